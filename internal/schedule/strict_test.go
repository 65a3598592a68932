package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"almanac/internal/schedule"
)

// raw is the sample with members before its last brace, as somebody could send it.
func raw(t *testing.T, members string) []byte {
	t.Helper()
	b, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.TrimSuffix(string(b), "}") + members + "}")
}

func TestFieldsWrittenTwiceAreRefused(t *testing.T) {
	for members, field := range map[string]string{
		`,"query":"SELECT 2"`:                                       "query",
		`,"QUERY":"SELECT 2"`:                                       "QUERY",
		`,"\u0071uery":"SELECT 2"`:                                  "query",
		`,"\u017fource":"other"`:                                    "\u017fource",
		`,"recipients":[{"email":"eve@example.com"}]`:               "recipients",
		`,"limits":{"rows":1,"Rows":2}`:                             "Rows",
		`,"parameters":{"a":[{"x":1},{"x":1,"y":[],"x":2}]}`:        "x",
		`,"parameters":{"a":1,"b":"a","a":2}`:                       "a",
		`,"mail":{"subject":"a"},"limits":{},"MAIL":{"subject":""}`: "MAIL",
	} {
		_, err := schedule.ParseDefinition(raw(t, members))
		var ps schedule.Problems
		if !errors.As(err, &ps) || len(ps) != 1 || ps[0].Field != field || ps[0].Value != "written twice" {
			t.Errorf("%s: %v, want %q refused", members, err, field)
		}
	}
	if _, err := schedule.ParseDefinition(raw(t, `,"parameters":{"a":"a","b":"a"},"limits":{"rows":5}`)); err != nil {
		t.Errorf("a text that equals a name: %v", err)
	}
}

// TestParametersAreExact: a number is what was written, after the way through the store as well.
func TestParametersAreExact(t *testing.T) {
	for text, want := range map[string]any{
		"5": int64(5), "9007199254740993": int64(9007199254740993), "-9223372036854775808": int64(-9223372036854775808),
		"5.0": int64(5), "1e3": int64(1000), "1e18": int64(1000000000000000000), "-0.0": int64(0), "0.5": 0.5, "1e20": 1e20, "1e300": 1e300,
		"100000000000000000000": 1e20, `"5"`: "5", "true": true, "null": nil,
	} {
		d, err := schedule.ParseDefinition(raw(t, `,"parameters":{"n":`+text+`}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		stored, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again schedule.Definition
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatal(err)
		}
		if got := d.Parameters["n"]; got != want || !reflect.DeepEqual(again.Parameters, d.Parameters) || again.Hash() != d.Hash() {
			t.Errorf("%s is read as %T %v, and from the store as %T %v; want %T %v", text, got, got, again.Parameters["n"], again.Parameters["n"], want, want)
		}
	}
	for text, want := range map[string]string{"1e400": "fits", "9223372036854775808": "64 bits", "99999999999999999999": "64 bits", `"a\u0000b"`: "NUL", "[1]": "text, a number"} {
		_, err := schedule.ParseDefinition(raw(t, `,"parameters":{"n":`+text+`}`))
		if err == nil || !strings.Contains(err.Error(), "parameters.n") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want parameters.n refused", text, err)
		}
	}
}

// TestWhatIsStoredIsBounded: what fits as it was sent may not fit as it is stored.
func TestWhatIsStoredIsBounded(t *testing.T) {
	_, err := schedule.ParseDefinition(raw(t, `,"parameters":{"n":"`+strings.Repeat("<", 20_000)+`"}`))
	var ps schedule.Problems
	if !errors.As(err, &ps) || len(ps) != 1 || ps[0].Field != "definition" || !strings.Contains(ps[0].Value, "as it is stored") {
		t.Errorf("%v, want the size refused", err)
	}
	many := schedule.SourceConfig{Name: "a", Engine: "sqlite", Object: "a", Workspaces: make([]string, schedule.MaxWorkspaces+1)}
	if ps := many.Check(); len(ps) != 1 || ps[0].Field != "workspaces" || ps[0].Value != fmt.Sprint(schedule.MaxWorkspaces+1) {
		t.Errorf("%v, want the number of workspaces refused", ps)
	}
}
