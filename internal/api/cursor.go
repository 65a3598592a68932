package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
)

// cursor is where a list goes on. It names its list, so that it cannot be used on another one, and holds the reader's
// own place in it. Callers see base64url and may read nothing into it.
type cursor struct {
	List      string `json:"l"`
	Of        string `json:"o,omitempty"` // the schedule or workspace that the list belongs to
	Workspace string `json:"w,omitempty"` // callers of some workspaces: the one that the list has come to
	Place     string `json:"p,omitempty"`
}

const maxCursor = 2048 // bytes of base64url

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // four strings always marshal
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor reads the cursor of a list; the empty text is its start. Anything that this list did not hand out is
// refused as a wrong field.
func parseCursor(text, list, of string) (cursor, error) {
	start := cursor{List: list, Of: of}
	if text == "" {
		return start, nil
	}
	bad := badCursor(text)
	if len(text) > maxCursor {
		return start, bad
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return start, bad
	}
	var c cursor
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return start, bad
	}
	if _, err := d.Token(); err != io.EOF {
		return start, bad
	}
	if c.List != list || c.Of != of || c.Place == "" && c.Workspace == "" || !printable(c.Place) || !printable(c.Workspace) {
		return start, bad
	}
	return c, nil
}

func badCursor(text string) error {
	return wrong("cursor", text, "the `next` of an earlier answer of this list, unchanged, or nothing")
}

// forged tells a place that the store cannot go on from, since no answer of ours held it, from other errors: the
// database refuses the request itself, which without a place never happens.
func forged(err error, at cursor, text string) error {
	var refused interface{ ErrorCode() string }
	if at.Place != "" && errors.As(err, &refused) && refused.ErrorCode() == "ValidationException" {
		return badCursor(text)
	}
	return err
}

// printable reports text without control characters or broken UTF-8.
func printable(s string) bool {
	for _, r := range s {
		if r < 0x20 || r == 0x7f || r == '\uFFFD' {
			return false
		}
	}
	return true
}
