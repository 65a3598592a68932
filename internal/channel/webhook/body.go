package webhook

import (
	"bytes"
	"encoding/json"
	"time"

	"almanac/internal/channel"
)

// Payload is the JSON that a receiver gets: Standard Webhooks' envelope around one delivered file. Fields are added,
// never changed or removed.
type Payload struct {
	Type      string    `json:"type"`      // always "file.delivered"
	Timestamp time.Time `json:"timestamp"` // when the request was planned, UTC; equal on every try
	Data      Data      `json:"data"`
}

// Data says what was delivered.
type Data struct {
	Schedule    Schedule  `json:"schedule"`
	Workspace   string    `json:"workspace"`
	Run         string    `json:"run"`
	Occurrence  string    `json:"occurrence"`
	NominalTime time.Time `json:"nominal_time"` // when the occurrence was due, UTC
	Zone        string    `json:"zone"`
	Owner       string    `json:"owner,omitempty"`
	NextDue     time.Time `json:"next_due,omitzero"`
	File        File      `json:"file"`
}

// Schedule is whose occurrence it is.
type Schedule struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// File is where to fetch the bytes, and how to check them.
type File struct {
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Rows     int64     `json:"rows"`
	Bytes    int64     `json:"bytes"`
	SHA256   string    `json:"sha256"`
	DataAsOf time.Time `json:"data_as_of,omitzero"`
	Link     string    `json:"link"`
}

func render(d channel.Delivery, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a link stays readable
	err := e.Encode(Payload{
		Type:      "file.delivered",
		Timestamp: now.UTC().Truncate(time.Second),
		Data: Data{
			Schedule:    Schedule{ID: d.ScheduleID, Name: d.ScheduleName},
			Workspace:   d.Workspace,
			Run:         d.RunID,
			Occurrence:  d.Occurrence,
			NominalTime: d.Nominal.UTC(),
			Zone:        d.Zone,
			Owner:       d.Owner,
			NextDue:     utc(d.NextDue),
			File: File{
				Name: d.File.Name, Type: d.File.MediaType, Rows: d.File.Rows, Bytes: d.File.Bytes,
				SHA256: d.File.SHA256, DataAsOf: utc(d.File.DataAsOf), Link: d.FileLink,
			},
		},
	})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
