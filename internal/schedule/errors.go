package schedule

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotFound means that there is no such row.
var ErrNotFound = errors.New("there is no such thing")

// Conflict is a write that was refused because the row is not as it was read, with the row as it stands.
type Conflict struct {
	Event      string
	Why        string
	Run        *Run
	Schedule   *Schedule
	Submission *Submission
}

func (c *Conflict) Error() string { return fmt.Sprintf("%s refused: %s", c.Event, c.Why) }

// IsConflict reports whether err is a Conflict.
func IsConflict(err error) bool {
	var c *Conflict
	return errors.As(err, &c)
}

// Problem is one wrong field of an input: where it is, what it holds, what would be right.
type Problem struct{ Field, Value, Want string }

func (p Problem) String() string {
	if p.Value == "" {
		return fmt.Sprintf("%s is missing; want %s", p.Field, p.Want)
	}
	return fmt.Sprintf("%s is %s; want %s", p.Field, p.Value, p.Want)
}

// Problems are all wrong fields of an input.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "; ")
}
