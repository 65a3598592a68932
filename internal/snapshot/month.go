package snapshot

import (
	"strings"
	"time"

	"almanac/internal/calendar"
)

// Month is all that stands of one period: its head, its versions in their order, and which of them is current.
type Month struct {
	Head    Head
	Runs    []Run
	Pointer Pointer
}

// Latest is the latest version; false where there is none.
func (m Month) Latest() (Run, bool) {
	if n := len(m.Runs); n > 0 {
		return m.Runs[n-1], true
	}
	return Run{}, false
}

// Letters of a grid, one for each way that a month can stand.
const (
	LetterNone       = "."
	LetterPlanned    = "p"
	LetterQueued     = "q"
	LetterRunning    = "r"
	LetterValidating = "v"
	LetterPublished  = "P"
	LetterWaiting    = "f"
	LetterFinal      = "F"
	LetterLoading    = "l"
	LetterPolicy     = "-"
	LetterCancelled  = "c"
)

// Legend says what the letters of a grid mean, in the order in which a month comes through them.
var Legend = []struct{ Letter, Meaning string }{
	{LetterNone, "nothing yet"}, {LetterLoading, "the source is loading"}, {LetterPlanned, "planned"}, {LetterQueued, "queued"}, {LetterRunning, "running"},
	{LetterValidating, "validating"}, {LetterPublished, "published, with the current version's number"}, {LetterWaiting, "failed, to be tried again"},
	{LetterFinal, "failed for good"}, {LetterPolicy, "not wanted: switched off, before the start, or removed"}, {LetterCancelled, "cancelled"},
}

// Letter is how a version stands.
func (r Run) Letter() string {
	switch r.State {
	case Planned:
		return LetterPlanned
	case Queued:
		return LetterQueued
	case Running:
		return LetterRunning
	case Validating:
		return LetterValidating
	case Published:
		return LetterPublished
	case Failed:
		if r.Final() {
			return LetterFinal
		}
		return LetterWaiting
	case Skipped:
		if r.Reason == ReasonLoading {
			return LetterLoading
		}
		return LetterPolicy
	case Cancelled:
		return LetterCancelled
	}
	return LetterNone
}

// Standing is one month in a grid.
type Standing struct {
	Month   calendar.Month `json:"month"`
	Letter  string         `json:"letter"`
	Current int            `json:"current,omitempty"` // the published version that is current
	// Next is the letter of the version behind the current one, while that is not published.
	Next string `json:"next,omitempty"`
	Late bool   `json:"late,omitempty"` // nothing of it is published, and it should be
}

// String is the month as a table shows it: P1, P1r (the second version is running), l! (loading, and late).
func (c Standing) String() string {
	var b strings.Builder
	b.WriteString(c.Letter)
	if c.Current > 0 {
		b.WriteString(itoa(c.Current))
	}
	b.WriteString(c.Next)
	if c.Late {
		b.WriteByte('!')
	}
	return b.String()
}

// cell is a month of a line; m is zero where it has no version.
func (l line) cell(month calendar.Month, m Month, now time.Time) Standing {
	c := Standing{Month: month, Letter: LetterNone, Current: m.Pointer.Version}
	latest, ok := m.Latest()
	switch {
	case ok && c.Current > 0:
		c.Letter = LetterPublished
		if latest.Version > c.Current && latest.State != Published {
			c.Next = latest.Letter()
		}
	case ok:
		c.Letter = latest.Letter()
	case l.version.Number > 0 && !month.Before(l.version.Start) && l.policy(month).Reason != "":
		c.Letter = LetterPolicy
	}
	c.Late = c.Current == 0 && l.isLate(month, m.Head, now)
	return c
}

// isLate reports whether somebody waits for a month of which nothing is published.
func (l line) isLate(month calendar.Month, h Head, now time.Time) bool {
	if l.version.Number == 0 || l.off != "" || month.Before(l.first()) || waived(l.version.Waived, month) != "" {
		return false
	}
	if h.Latest > 0 {
		return !h.LateAt.IsZero() && !h.LateAt.After(now)
	}
	_, end := month.Bounds(l.zone)
	return !end.Add(l.version.DueAfter.Std()).After(now)
}
