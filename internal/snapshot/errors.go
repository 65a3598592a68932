package snapshot

import (
	"errors"
	"fmt"
)

// ErrNotFound means that there is no such row.
var ErrNotFound = errors.New("there is no such thing")

// Conflict is a write that was refused because a row is not as it was read, with the row as it stands.
type Conflict struct {
	Event   string
	Why     string
	Run     *Run
	Head    *Head
	Pointer *Pointer
	Caps    *Caps
}

func (c *Conflict) Error() string { return fmt.Sprintf("%s refused: %s", c.Event, c.Why) }

// IsConflict reports whether err is a Conflict.
func IsConflict(err error) bool {
	var c *Conflict
	return errors.As(err, &c)
}
