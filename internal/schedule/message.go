package schedule

import (
	"encoding/json"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/schema"
)

// Message is what the queues carry: the id of a run, that of a notice, or that of a resend.
type Message struct {
	Run    string `json:"run,omitempty"`
	Notice string `json:"notice,omitempty"`
	Resend string `json:"resend,omitempty"`
}

// EncodeMessage spells the message that offers a run.
func EncodeMessage(run string) string { return Message{Run: run}.encode() }

// EncodeNotice spells the message that has a notice sent.
func EncodeNotice(id string) string { return Message{Notice: id}.encode() }

// EncodeResend spells the message that has a resend carried out.
func EncodeResend(id string) string { return Message{Resend: id}.encode() }

func (m Message) encode() string {
	b, err := json.Marshal(m)
	if err != nil {
		panic("schedule: an id that JSON cannot hold: " + err.Error()) // cannot happen: a string
	}
	return string(b)
}

// DecodeMessage reads what EncodeMessage, EncodeNotice and EncodeResend wrote, strictly: a message that names none of a
// run, a notice and a resend, or more than one, shares nothing with any other (case D4).
func DecodeMessage(body string) (Message, error) {
	const want = `{"run": "schedule@occurrence"}, {"notice": "schedule@occurrence#kind#channel#recipient"} or {"resend": "schedule@occurrence#channel#recipient#wish"}`
	var m Message
	if err := input.Strict([]byte(body), &m); err != nil {
		return Message{}, failure.New(failure.MessageInvalid, "message %q: %v; want %s", failure.Cut(body, 100), err, want)
	}
	_, _, run := schema.SplitRunID(m.Run)
	_, _, _, notice := schema.SplitNoticeID(m.Notice)
	_, _, _, _, resend := schema.SplitResendID(m.Resend)
	wrong := func(field, value string) (Message, error) {
		return Message{}, failure.New(failure.MessageInvalid, "message field %s is %q; want %s", field, failure.Cut(value, 100), want)
	}
	switch {
	case m.Run != "" && m.Notice != "", m.Run != "" && m.Resend != "", m.Notice != "" && m.Resend != "":
		return Message{}, failure.New(failure.MessageInvalid, "message fields run %q, notice %q and resend %q: more than one is there; want %s",
			failure.Cut(m.Run, 100), failure.Cut(m.Notice, 100), failure.Cut(m.Resend, 100), want)
	case m.Notice != "" && !notice:
		return wrong("notice", m.Notice)
	case m.Resend != "" && !resend:
		return wrong("resend", m.Resend)
	case m.Notice == "" && m.Resend == "" && !run:
		return wrong("run", m.Run)
	}
	return m, nil
}

// OccurrenceKey names a due occurrence: its nominal time, RFC 3339, UTC.
func OccurrenceKey(nominal time.Time) string { return nominal.UTC().Format(time.RFC3339) }
