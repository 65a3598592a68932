package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
)

// Message is what the queues carry: the id of a run, or that of a notice.
type Message struct {
	Run    string `json:"run,omitempty"`
	Notice string `json:"notice,omitempty"`
}

// EncodeMessage spells the message that offers a run.
func EncodeMessage(run string) string { return Message{Run: run}.encode() }

// EncodeNotice spells the message that has a notice sent.
func EncodeNotice(id string) string { return Message{Notice: id}.encode() }

func (m Message) encode() string {
	b, err := json.Marshal(m)
	if err != nil {
		panic("schedule: an id that JSON cannot hold: " + err.Error()) // cannot happen: a string
	}
	return string(b)
}

// DecodeMessage reads what EncodeMessage and EncodeNotice wrote, strictly: a message that names neither a run nor a
// notice, or both, shares nothing with any other (case D4).
func DecodeMessage(body string) (Message, error) {
	const want = `{"run": "schedule@occurrence"} or {"notice": "schedule@occurrence#kind#channel#recipient"}`
	var m Message
	if err := strictJSON([]byte(body), &m); err != nil {
		return Message{}, failure.New(failure.MessageInvalid, "message %q: %v; want %s", failure.Cut(body, 100), err, want)
	}
	_, _, run := schema.SplitRunID(m.Run)
	_, _, _, notice := schema.SplitNoticeID(m.Notice)
	switch {
	case m.Run != "" && m.Notice != "":
		return Message{}, failure.New(failure.MessageInvalid, "message fields run %q and notice %q: both are there; want %s", failure.Cut(m.Run, 100), failure.Cut(m.Notice, 100), want)
	case m.Notice != "" && !notice:
		return Message{}, failure.New(failure.MessageInvalid, "message field notice is %q; want %s", failure.Cut(m.Notice, 100), want)
	case m.Notice == "" && !run:
		return Message{}, failure.New(failure.MessageInvalid, "message field run is %q; want %s", failure.Cut(m.Run, 100), want)
	}
	return m, nil
}

// strictJSON refuses unknown fields, fields that are written twice, and anything after the document.
func strictJSON(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the document")
	}
	return repeated(b)
}

// OccurrenceKey names a due occurrence: its nominal time, RFC 3339, UTC.
func OccurrenceKey(nominal time.Time) string { return nominal.UTC().Format(time.RFC3339) }
