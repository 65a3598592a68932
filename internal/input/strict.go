package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"almanac/internal/failure"
)

// Strict refuses unknown fields, fields that are written twice, and anything after the document.
func Strict(b []byte, into any) error {
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

// ProblemOf turns an error of Strict into a problem with a field. document names what was read, such as "definition", and
// fields are the names that it may have.
func ProblemOf(err error, document string, fields []string) Problem {
	var wrong *json.UnmarshalTypeError
	var twice *repeatedField
	switch {
	case errors.As(err, &twice):
		return Problem{spelled(failure.Cut(twice.name, 60)), "written twice", "one value"}
	case !errors.As(err, &wrong):
	case wrong.Field == "": // the whole document is of another type
		return Problem{document, article(wrong.Value), article(typeName(wrong.Type))}
	case wrong.Type == reflect.TypeFor[Duration]():
		return Problem{path(wrong.Field), failure.Cut(wrong.Value, 60), `a duration in text, such as "30s"`}
	default:
		return Problem{path(wrong.Field), article(wrong.Value), article(typeName(wrong.Type))}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		want := "one of the fields of a " + document
		if near := Nearest(name, fields); near != "" {
			want = "a field of a " + document + "; did you mean " + near + "?"
		}
		return Problem{spelled(name), "not known", want}
	}
	return Problem{document, failure.Cut(err.Error(), 200), "one JSON document"}
}

// path is a field as a document spells it. The decoder names the structures as well that are embedded in others; their
// names begin with a capital, no field's does.
func path(field string) string {
	parts := strings.Split(field, ".")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part != "" && 'A' <= part[0] && part[0] <= 'Z' }), ".")
}

// spelled is a field's name as a problem gives it: one that is empty would name nothing.
func spelled(name string) string {
	if strings.TrimSpace(name) == "" {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// article puts "a" or "an" before the name of a type, and nothing before what needs none.
func article(name string) string {
	switch {
	case name == "true or false" || name == "text":
		return name
	case strings.ContainsRune("aeiou", rune(name[0])):
		return "an " + name
	}
	return "a " + name
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	case reflect.Struct, reflect.Map:
		return "mapping"
	}
	return "number"
}
