package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/schedule"
)

// decode reads a JSON object strictly into a struct of plain fields: an unknown field is refused with the name that
// was perhaps meant, a field of the wrong type with what would be right. The error is schedule.Problems.
func decode(raw []byte, into any) error {
	if !utf8.Valid(raw) {
		return wrong("body", string(raw), "JSON in UTF-8")
	}
	var fields map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(raw))
	err := d.Decode(&fields)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			err = nil
		} else {
			err = errors.New("more than one value")
		}
	}
	if err != nil || fields == nil {
		return wrong("body", failure.Cut(string(raw), maxValue), "one JSON object: "+shape(reflect.TypeOf(into).Elem()))
	}
	v := reflect.ValueOf(into).Elem()
	var problems schedule.Problems
	names := map[string]int{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		names[name] = i
	}
	for name, value := range fields {
		i, known := names[name]
		if !known {
			problems = append(problems, schedule.Problem{Field: name, Value: string(value), Want: "no such field; " + suggest(name, v.Type())})
			continue
		}
		if part := v.Field(i); part.Kind() == reflect.Pointer && part.Type().Elem().Kind() == reflect.Struct {
			part.Set(reflect.New(part.Type().Elem()))
			problems = append(problems, within(name, decode(value, part.Interface()))...)
			continue
		}
		if string(value) == "null" || json.Unmarshal(value, v.Field(i).Addr().Interface()) != nil {
			problems = append(problems, schedule.Problem{Field: name, Value: string(value), Want: kind(v.Field(i).Type())})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.SortFunc(problems, func(a, b schedule.Problem) int { return strings.Compare(a.Field, b.Field) })
	return problems
}

// within names the problems of a part by the field that holds it.
func within(field string, err error) (out schedule.Problems) {
	var inner schedule.Problems
	if !errors.As(err, &inner) {
		return nil
	}
	for _, p := range inner {
		if p.Field == "body" {
			p.Field = field
		} else {
			p.Field = field + "." + p.Field
		}
		out = append(out, p)
	}
	return out
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func shape(t reflect.Type) string {
	if t.NumField() == 0 {
		return "{}"
	}
	return "fields " + strings.Join(fieldNames(t), ", ")
}

// suggest names the nearest field, or all of them.
func suggest(name string, t reflect.Type) string {
	if near := input.Nearest(strings.ToLower(name), fieldNames(t)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "the body has " + shape(t)
}

func kind(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "a time such as 2026-03-08T07:00:00Z"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t == reflect.TypeFor[[]json.RawMessage]():
		return "a list of definitions"
	case t.Kind() == reflect.Slice:
		return "a list of texts"
	}
	return "a text"
}

// maxReason is the longest reason, in characters.
const maxReason = 200

// reason checks why somebody pauses, resumes or deletes.
func reason(s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return wrong("reason", s, "a sentence that says why; it is audited")
	case utf8.RuneCountInString(s) > maxReason:
		return wrong("reason", s, fmt.Sprintf("at most %d characters", maxReason))
	case !printable(s):
		return wrong("reason", s, "text without line breaks or control characters")
	}
	return nil
}
