package input_test

import (
	"slices"
	"testing"

	"almanac/internal/input"
)

func TestDiffNamesEachFieldOnce(t *testing.T) {
	type inner struct {
		N    int64    `json:"n,omitempty"`
		List []string `json:"list,omitempty"`
	}
	type document struct {
		Name  string `json:"name"`
		Inner inner  `json:"inner"`
	}
	a := document{"x", inner{9007199254740993, []string{"a", "b"}}}
	if d := input.Diff(a, a); len(d) != 0 {
		t.Errorf("equal documents differ: %v", d)
	}
	got := input.Diff(a, document{"y", inner{9007199254740992, []string{"a"}}})
	want := []string{`inner.list[1]: "b" → (absent)`, "inner.n: 9007199254740993 → 9007199254740992", `name: "x" → "y"`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
