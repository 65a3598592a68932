// Package input reads what people and programs write: documents with one meaning, and problems that name the field, the
// value and what would be right. Pure.
package input

import (
	"fmt"
	"strings"
)

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

// Wrong is a problem in one call.
func Wrong(field, value, want string) Problem { return Problem{field, value, want} }
