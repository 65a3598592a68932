package calendar

import (
	"fmt"
	"unicode/utf8"
)

// FieldError says that one field of a definition is wrong: which, its value, what is wrong with it, what would be right.
type FieldError struct {
	Field   string // as in the definition, below its recurrence: cron, every, holidays[3]; or month
	Value   string // as it was written, whole
	Problem string // completes "<value> …": "has 6 fields"
	Want    string // completes "want …": "exactly five: minute hour …"
}

// maxShown is how many bytes of a value an error repeats: enough to find it, too few to flood a log.
const maxShown = 60

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s %s; want %s", e.Field, show(e.Value), e.Problem, e.Want)
}

// show quotes a value, so that control characters stay visible and harmless, and cuts a long one.
func show(s string) string {
	if len(s) <= maxShown {
		return fmt.Sprintf("%q", s)
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:cut], len(s))
}
