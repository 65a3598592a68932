package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

var _ channel.Announcer = (*Channel)(nil)

// NoticePayload is the JSON of a notice: Standard Webhooks' envelope around what happened to a schedule. Fields are
// added, never changed or removed.
type NoticePayload struct {
	Type      string     `json:"type"`      // "schedule.failed", "schedule.paused" or "schedule.recovered"
	Timestamp time.Time  `json:"timestamp"` // when the run settled, UTC; equal on every try
	Data      NoticeData `json:"data"`
}

// NoticeData says what happened, in which run, and what helps.
type NoticeData struct {
	Schedule    Schedule  `json:"schedule"`
	Workspace   string    `json:"workspace"`
	Run         string    `json:"run"`
	Occurrence  string    `json:"occurrence"`
	NominalTime time.Time `json:"nominal_time"` // when the occurrence was due, UTC; a manual run: when it was asked for
	Zone        string    `json:"zone"`
	Manual      bool      `json:"manual"`
	Owner       string    `json:"owner,omitempty"`
	Streak      int       `json:"streak"`                 // failures in a row; of a recovery: those that it ended
	PauseReason string    `json:"pause_reason,omitempty"` // where the schedule is paused, by this failure or since before
	Failure     *Failure  `json:"failure,omitempty"`      // none of a recovery
}

// Failure is why the run failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Meaning string `json:"meaning,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// Announce posts a notice, signed as every request of this channel is; its id is the webhook-id.
func (c *Channel) Announce(ctx context.Context, n channel.Notice) channel.Verdict {
	body, err := renderNotice(n)
	if err != nil {
		return channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.From(err)}
	}
	return c.Send(ctx, channel.Delivery{Key: n.ID, Recipient: n.Recipient, SecretID: n.SecretID}, channel.Frozen{Body: body})
}

func renderNotice(n channel.Notice) ([]byte, error) {
	p := NoticePayload{
		Type:      "schedule." + string(n.Kind),
		Timestamp: n.At.UTC().Truncate(time.Second),
		Data: NoticeData{
			Schedule: Schedule{ID: n.ScheduleID, Name: n.ScheduleName}, Workspace: n.Workspace, Run: n.RunID, Occurrence: n.Occurrence,
			NominalTime: n.Nominal.UTC(), Zone: n.Zone, Manual: n.Manual, Owner: n.Owner, Streak: n.Streak, PauseReason: n.Pause,
		},
	}
	if n.Code != "" {
		entry, _ := failure.Lookup(failure.Code(n.Code))
		p.Data.Failure = &Failure{Code: n.Code, Message: n.Message, Meaning: entry.Meaning, Remedy: entry.Remedy}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(p)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
