package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// repeatedField is a field that stands twice in one object, in whatever case: the decoder would take the last, or mix
// the two, and a person who reads the document sees the first.
type repeatedField struct{ name string }

func (r *repeatedField) Error() string { return fmt.Sprintf("field %q is written twice", r.name) }

// repeated finds a field that an object of the document has twice. The document is valid JSON.
func repeated(document []byte) error {
	type level struct {
		names map[string]bool // nil in a list
		value bool            // a name was read, and its value comes
	}
	stack := []level{{}}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return nil
		}
		top := &stack[len(stack)-1]
		name, text := token.(string)
		switch {
		case token == json.Delim('}'), token == json.Delim(']'):
			stack = stack[:len(stack)-1]
			continue
		case text && top.names != nil && !top.value:
			folded := fold(name)
			if top.names[folded] {
				return &repeatedField{name}
			}
			top.names[folded] = true
			top.value = true
			continue
		}
		top.value = false
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, level{})
		}
	}
}

// fold gives names that encoding/json takes for one field one spelling.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}

// Parameters are a definition's own. Numbers are exact: a whole one is an int64, also beyond 2^53 and also where it is
// written as 1e3 or 5.0, any other a float64. One that is neither stays a json.Number, which Check refuses.
type Parameters map[string]any

// UnmarshalJSON reads an object.
func (p *Parameters) UnmarshalJSON(b []byte) error {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return err
	}
	for name, v := range m {
		if n, ok := v.(json.Number); ok {
			m[name] = number(n)
		}
	}
	*p = m
	return nil
}

func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	f, err := n.Float64()
	switch {
	case err != nil:
		return n
	case f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 && strings.ContainsAny(n.String(), ".eE"):
		return int64(f)
	case !strings.ContainsAny(n.String(), ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != n.String():
		return n // a whole number that only a nearby float could hold
	}
	return f
}
