package channel

import (
	"context"
	"time"
)

// NoticeKind is what a notice is about.
type NoticeKind string

const (
	NoticeFailed    NoticeKind = "failed"    // the first failure of a streak
	NoticePaused    NoticeKind = "paused"    // the schedule was paused by a failure, or by a streak of them
	NoticeRecovered NoticeKind = "recovered" // the first success after a streak
)

// Notice is word to one address that a schedule stands otherwise than before. It is stored whole, so that each try is
// rendered from equal facts; attributes are added, never changed or removed.
type Notice struct {
	ID           string     `json:"id"` // the idempotency key that receivers see; equal on every try
	Kind         NoticeKind `json:"kind"`
	At           time.Time  `json:"at"` // wall time of the settle
	ScheduleID   string     `json:"schedule"`
	ScheduleName string     `json:"name"`
	Workspace    string     `json:"workspace"`
	Zone         string     `json:"zone"` // IANA zone in which people read times
	Owner        string     `json:"owner"`
	RunID        string     `json:"run"`
	Occurrence   string     `json:"occurrence"`
	Nominal      time.Time  `json:"nominal"`
	Manual       bool       `json:"manual,omitempty"`
	Code         string     `json:"code,omitempty"` // of the failure; none with a recovery
	Message      string     `json:"message,omitempty"`
	Streak       int        `json:"streak"`          // failures in a row, this one included; with a recovery: those that it ended
	Pause        string     `json:"pause,omitempty"` // why the schedule is paused, if it is, by this failure or since before
	Recipient    string     `json:"recipient"`       // e-mail address or URL, as the definition spells it
	SecretID     string     `json:"secret,omitempty"`
}

// Announcer sends notices on one channel.
type Announcer interface {
	// Announce tries once, within ctx's deadline. For an equal notice the receiver gets an equal body under the same key.
	// A notice is sent at least once: one whose answer was lost is tried again, also by mail.
	Announce(ctx context.Context, n Notice) Verdict
}
