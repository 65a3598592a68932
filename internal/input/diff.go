package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Diff lists the fields that differ between two documents of one kind, a line each, by their dotted JSON names. Numbers
// are compared as they are written, exact at any size.
func Diff(a, b any) []string {
	before, after := flat(a), flat(b)
	names := map[string]bool{}
	for _, side := range []map[string]string{before, after} {
		for n := range side {
			names[n] = true
		}
	}
	var lines []string
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if before[n] != after[n] {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", n, orAbsent(before[n]), orAbsent(after[n])))
		}
	}
	return lines
}

func orAbsent(s string) string {
	if s == "" {
		return "(absent)"
	}
	return s
}

// flat gives a document's values as JSON, by dotted name.
func flat(document any) map[string]string {
	b, err := json.Marshal(document)
	if err != nil {
		panic("input: a document that JSON cannot hold: " + err.Error()) // cannot happen: documents are read from JSON
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		panic("input: JSON that was just made cannot be read: " + err.Error()) // cannot happen
	}
	out := map[string]string{}
	var walk func(string, any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if name != "" {
					k = name + "." + k
				}
				walk(k, e)
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s[%d]", name, i), e)
			}
		default:
			text, _ := json.Marshal(v) // cannot fail: it came from JSON
			out[name] = string(text)
		}
	}
	walk("", tree)
	return out
}
