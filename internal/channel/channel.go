// Package channel sends one delivery request to one recipient and says what became of it (design.md §5, lifecycles B).
// The channels live in packages below it: email, webhook.
package channel

import (
	"context"
	"time"

	"almanac/internal/failure"
)

// Names of the channels, as definitions and submission keys spell them.
const (
	Email   = "email"
	Webhook = "webhook"
)

// Delivery is all that a channel may know about one request. It is the same on every try of one submission.
type Delivery struct {
	Key          string // the submission's key: run + channel + recipient hash; the idempotency key that receivers see
	ScheduleID   string
	ScheduleName string
	Workspace    string
	RunID        string
	Occurrence   string    // the occurrence key
	Nominal      time.Time // the instant that the occurrence was due (a manual run: when it was asked for)
	Zone         string    // IANA zone in which people read times
	Recipient    string    // e-mail address as the definition spells it, or the webhook's URL
	Owner        string    // whom to ask; an e-mail address or a team's name
	Subject      string    // the schedule's own, or empty
	Introduction string    // the schedule's own, or empty
	NextDue      time.Time // zero: none
	SecretID     string    // webhook: id of the secret that signs
	File         File
	FileLink     string // our own download route for this recipient, with its token
	Unsubscribe  string // e-mail: our own route for one-click unsubscribe, with its token
}

// File is the recorded file of the run.
type File struct {
	Name      string // safe, as the recipient sees it
	MediaType string
	Rows      int64
	Bytes     int64
	SHA256    string // hex
	DataAsOf  time.Time
	Open      func(ctx context.Context) ([]byte, error) // whole content; called only when it is attached
}

// Frozen is what a request's body is rendered from besides the Delivery. It is made once, stored with the intent, and
// given back on every try, so that each try has equal bytes.
type Frozen struct {
	Date     time.Time // e-mail: the Date header
	Boundary string    // e-mail: the MIME boundary
	Body     []byte    // webhook: the whole JSON
	Attach   bool      // e-mail: the file goes as an attachment (fits), not as a link
	BodyHash string    // hex SHA-256 of the bytes that Send puts on the wire as body (e-mail: the whole MIME message)
}

// Outcome is what is known after a try.
type Outcome int

const (
	Accepted    Outcome = iota // the receiver took it
	Refused                    // a verdict on the recipient: do not try again (Reason says which)
	NotAccepted                // certain that nothing was accepted; may be tried again later (lifecycles B, "note not accepted")
	Lost                       // bytes left and no verdict came back: accepted or not, nobody knows
	RunRefused                 // a verdict on the account or the configuration, not on the recipient; nothing was accepted (Failure says which)
)

// Reasons of Refused, as stored on submissions.
const (
	ReasonInvalid      = "invalid"      // the address or URL cannot be delivered to
	ReasonRefused      = "refused"      // the receiver refused this request
	ReasonSuppressed   = "suppressed"   // the address bounced or complained before
	ReasonUnsubscribed = "unsubscribed" // the recipient said no
	ReasonRemoved      = "removed"      // taken off the schedule since admission
)

// Verdict is the answer to one try.
type Verdict struct {
	Outcome    Outcome
	ProviderID string           // Accepted: the receiver's own id, if any
	Reason     string           // Refused: one of the reasons above
	Detail     string           // for people; never holds an address or a secret
	Failure    *failure.Failure // NotAccepted, Lost, RunRefused: the failure with code and RetryAfter
}

// Channel sends requests of one kind. Send may be called again for the same Delivery and Frozen: what reaches the
// receiver is then byte-equal in its body and carries the same key.
type Channel interface {
	// HonoursKeys reports whether the receiver can tell a second try by its key, so that a lost reply may be tried again.
	HonoursKeys() bool
	// Freeze renders once. entropy is 16 random bytes, now is wall time. A failure refuses the run, or passes.
	Freeze(ctx context.Context, d Delivery, now time.Time, entropy []byte) (Frozen, error)
	// Send tries once, within ctx's deadline. It never retries by itself.
	Send(ctx context.Context, d Delivery, f Frozen) Verdict
}
