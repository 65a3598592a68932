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

// message is what the queues carry: ids only.
type message struct {
	Run string `json:"run"`
}

// EncodeMessage spells the message that offers a run.
func EncodeMessage(run string) string {
	b, err := json.Marshal(message{run})
	if err != nil {
		panic("schedule: a run id that JSON cannot hold: " + err.Error()) // cannot happen: a string
	}
	return string(b)
}

// DecodeMessage reads what EncodeMessage wrote, strictly: a message that names no run shares nothing with any other
// (case D4).
func DecodeMessage(body string) (run string, err error) {
	var m message
	if err := strictJSON([]byte(body), &m); err != nil {
		return "", failure.New(failure.MessageInvalid, "message %q: %v; want {\"run\": \"schedule@occurrence\"}", failure.Cut(body, 100), err)
	}
	if _, _, ok := schema.SplitRunID(m.Run); !ok {
		return "", failure.New(failure.MessageInvalid, "message field run is %q; want schedule@occurrence", failure.Cut(m.Run, 100))
	}
	return m.Run, nil
}

// strictJSON refuses unknown fields and anything after the document.
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
	return nil
}

// OccurrenceKey names a due occurrence: its nominal time, RFC 3339, UTC.
func OccurrenceKey(nominal time.Time) string { return nominal.UTC().Format(time.RFC3339) }
