package calendar

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Valid specs of each kind, complete; rows of the tests below change one field of them.
func cronSpec() Spec { return Spec{Cron: "0 9 * * *", Zone: "America/New_York"} }
func everySpec() Spec {
	return Spec{Every: "6h", Start: "2026-03-01T09:00", Zone: "America/New_York"}
}
func workdaySpec() Spec { return Spec{Workday: new(3), At: "09:00", Zone: "America/New_York"} }

var kinds = map[string]func() Spec{"cron": cronSpec, "every": everySpec, "workday": workdaySpec}

const hostile = "\x00\"'; DROP TABLE schedules;-- ${jndi:ldap://x}\n\xff"

// Each row: what is changed, and per kind (or for "all") the field that is named, a part of what is said to be wrong and
// a part of what is said to be right. An empty field means that the spec is taken.
type refusal struct{ field, value, problem, want string }

func TestSpecFieldsByKind(t *testing.T) {
	ok := refusal{}
	duration := func(field, v, problem, want string) refusal { return refusal{field, v, problem, want} }
	for _, c := range []struct {
		name   string
		change func(*Spec)
		want   map[string]refusal
	}{
		{"as it is", func(*Spec) {}, map[string]refusal{"all": ok}},
		// which kind
		{"no kind", func(s *Spec) { s.Cron, s.Every, s.Workday = "", "", nil }, map[string]refusal{
			"cron": {"cron", "", "is empty", "or every, or workday"}, "every": {"cron", "", "is empty", "exactly five fields"}, "workday": {"cron", "", "is empty", "or every, or workday"}}},
		{"cron too", func(s *Spec) { s.Cron = "0 9 * * *" }, map[string]refusal{
			"cron": ok, "every": {"every", "6h", "stands beside cron", "exactly one of"}, "workday": {"workday", "3", "stands beside cron", "exactly one of"}}},
		{"every too", func(s *Spec) { s.Every, s.Start = "6h", "2026-03-01T09:00" }, map[string]refusal{
			"cron": {"every", "6h", "stands beside cron", "exactly one of"}, "every": ok, "workday": {"workday", "3", "stands beside every", "exactly one of"}}},
		{"workday too", func(s *Spec) { s.Workday, s.At = new(3), "09:00" }, map[string]refusal{
			"cron": {"workday", "3", "stands beside cron", "exactly one of"}, "every": {"workday", "3", "stands beside every", "exactly one of"}, "workday": ok}},
		// zone: required for all, by exact name (T6)
		{"T6 no zone", func(s *Spec) { s.Zone = "" }, map[string]refusal{"all": {"zone", "", "is empty", "IANA"}}},
		{"T6 zone of another system", func(s *Spec) { s.Zone = "GMT Standard Time" }, map[string]refusal{"all": {"zone", "GMT Standard Time", "is no zone", "IANA"}}},
		{"T6 zone by rule", func(s *Spec) { s.Zone = "EST5" }, map[string]refusal{"all": {"zone", "EST5", "is no zone", "IANA"}}},
		{"T6 hostile zone", func(s *Spec) { s.Zone = hostile }, map[string]refusal{"all": {"zone", hostile, "is no zone", "IANA"}}},
		// gap
		{"gap run-once", func(s *Spec) { s.Gap = GapRunOnce }, map[string]refusal{"all": ok}},
		{"gap skip", func(s *Spec) { s.Gap = GapSkip }, map[string]refusal{"cron": ok, "workday": ok, "every": {"gap", "skip", "stands beside every", "no gap, or run-once"}}},
		{"gap unknown", func(s *Spec) { s.Gap = "later" }, map[string]refusal{"all": {"gap", "later", "is no gap policy", "run-once or skip"}}},
		{"hostile gap", func(s *Spec) { s.Gap = hostile }, map[string]refusal{"all": {"gap", hostile, "is no gap policy", "run-once or skip"}}},
		// every
		{"every too short", func(s *Spec) { every(s, "59s") }, map[string]refusal{"every": duration("every", "59s", "is too short", "1m to 8784h")}},
		{"every 0", func(s *Spec) { every(s, "0s") }, map[string]refusal{"every": duration("every", "0s", "is too short", "1m to")}},
		{"every shortest", func(s *Spec) { every(s, "60s") }, map[string]refusal{"every": ok}},
		{"every longest", func(s *Spec) { every(s, "8784h") }, map[string]refusal{"every": ok}},
		{"every too long", func(s *Spec) { every(s, "8784h1s") }, map[string]refusal{"every": duration("every", "8784h1s", "is too long", "1m to 8784h")}},
		{"every in three units", func(s *Spec) { every(s, "1h30m15s") }, map[string]refusal{"every": ok}},
		{"every too many digits", func(s *Spec) { every(s, strings.Repeat("9", 400)+"h") }, map[string]refusal{"every": duration("every", strings.Repeat("9", 400)+"h", "is no duration", "whole hours")}},
		{"every negative", func(s *Spec) { every(s, "-6h") }, map[string]refusal{"every": duration("every", "-6h", "is no duration", "whole hours")}},
		{"every with a sign", func(s *Spec) { every(s, "+6h") }, map[string]refusal{"every": duration("every", "+6h", "is no duration", "whole hours")}},
		{"every a fraction", func(s *Spec) { every(s, "1.5h") }, map[string]refusal{"every": duration("every", "1.5h", "is no duration", `"90m"`)}},
		{"every in days", func(s *Spec) { every(s, "1d") }, map[string]refusal{"every": duration("every", "1d", "is no duration", `a day is "24h"`)}},
		{"every without unit", func(s *Spec) { every(s, "6") }, map[string]refusal{"every": duration("every", "6", "is no duration", "whole hours")}},
		{"every in words", func(s *Spec) { every(s, "daily") }, map[string]refusal{"every": duration("every", "daily", "is no duration", "whole hours")}},
		{"every spaced", func(s *Spec) { every(s, " 6h") }, map[string]refusal{"every": duration("every", " 6h", "is no duration", "whole hours")}},
		{"every in ms", func(s *Spec) { every(s, "3600000ms") }, map[string]refusal{"every": duration("every", "3600000ms", "is no duration", "whole hours")}},
		{"hostile every", func(s *Spec) { every(s, hostile) }, map[string]refusal{"every": duration("every", hostile, "is no duration", "whole hours")}},
		// start
		{"no start", func(s *Spec) { s.Start = "" }, map[string]refusal{"cron": ok, "workday": ok, "every": {"start", "", "every counts from it", "a date and time"}}},
		{"start with offset", func(s *Spec) { s.Start = "2026-03-01T09:00:00+05:30" }, map[string]refusal{"all": ok}},
		{"start in UTC", func(s *Spec) { s.Start = "2026-03-01T09:00:00Z" }, map[string]refusal{"all": ok}},
		{"start local", func(s *Spec) { s.Start = "2026-03-01T09:00:30" }, map[string]refusal{"all": ok}},
		{"start a date", func(s *Spec) { s.Start = "2026-03-01" }, map[string]refusal{"all": {"start", "2026-03-01", "is no date and time", "2026-03-01T09:00"}}},
		{"start with a space", func(s *Spec) { s.Start = "2026-03-01 09:00" }, map[string]refusal{"all": {"start", "2026-03-01 09:00", "is no date and time", "2026-03-01T09:00"}}},
		{"start no day", func(s *Spec) { s.Start = "2026-02-29T09:00" }, map[string]refusal{"all": {"start", "2026-02-29T09:00", "is no date and time", "2026-03-01T09:00"}}},
		{"start hour 24", func(s *Spec) { s.Start = "2026-02-28T24:00" }, map[string]refusal{"all": {"start", "2026-02-28T24:00", "is no date and time", "2026-03-01T09:00"}}},
		{"start one digit", func(s *Spec) { s.Start = "2026-3-1T9:00" }, map[string]refusal{"all": {"start", "2026-3-1T9:00", "is no date and time", "2026-03-01T09:00"}}},
		{"start fraction", func(s *Spec) { s.Start = "2026-03-01T09:00:00.5Z" }, map[string]refusal{"all": {"start", "2026-03-01T09:00:00.5Z", "is no date and time", "2026-03-01T09:00"}}},
		{"start local fraction", func(s *Spec) { s.Start = "2026-03-01T09:00:00.5" }, map[string]refusal{"all": {"start", "2026-03-01T09:00:00.5", "is no date and time", "2026-03-01T09:00"}}},
		{"start small letters", func(s *Spec) { s.Start = "2026-03-01t09:00:00z" }, map[string]refusal{"all": {"start", "2026-03-01t09:00:00z", "is no date and time", "2026-03-01T09:00"}}},
		{"start odd offset", func(s *Spec) { s.Start = "2026-03-01T09:00:00+23:00" }, map[string]refusal{"all": {"start", "2026-03-01T09:00:00+23:00", "is no date and time", "with an offset"}}},
		{"start zone name", func(s *Spec) { s.Start = "2026-03-01T09:00:00 EST" }, map[string]refusal{"all": {"start", "2026-03-01T09:00:00 EST", "is no date and time", "with an offset"}}},
		{"start early", func(s *Spec) { s.Start = "1969-12-31T09:00" }, map[string]refusal{"all": {"start", "1969-12-31T09:00", "is out of range", "1970 to 9999"}}},
		{"start five digits", func(s *Spec) { s.Start = "10000-01-01T09:00" }, map[string]refusal{"all": {"start", "10000-01-01T09:00", "is no date and time", "1970 to 9999"}}},
		{"start beyond by offset", func(s *Spec) { s.Start = "9999-12-31T23:00:00-05:00" }, map[string]refusal{"all": {"start", "9999-12-31T23:00:00-05:00", "is out of range", "1970 to 9999"}}},
		{"start last of all", func(s *Spec) { s.Start = "9999-12-31T23:59:30Z" }, map[string]refusal{"every": ok,
			"cron": {"start", "9999-12-31T23:59:30Z", "leaves nothing due", "an earlier start"}, "workday": {"start", "9999-12-31T23:59:30Z", "leaves nothing due", "an earlier start"}}},
		{"hostile start", func(s *Spec) { s.Start = hostile }, map[string]refusal{"all": {"start", hostile, "is no date and time", "2026-03-01T09:00"}}},
		// end
		{"end alone", func(s *Spec) { s.End = "2027-01-01T00:00" }, map[string]refusal{"all": ok}},
		{"end before start", func(s *Spec) { s.Start, s.End = "2026-03-01T09:00", "2026-02-28T09:00" }, map[string]refusal{"all": {"end", "2026-02-28T09:00", "is not after start, which is 2026-03-01T14:00:00Z", "a later end"}}},
		{"end at start", func(s *Spec) { s.Start, s.End = "2026-03-01T09:00", "2026-03-01T15:00:00+01:00" }, map[string]refusal{"all": {"end", "2026-03-01T15:00:00+01:00", "is not after start", "a later end"}}},
		{"end before the first", func(s *Spec) { s.Start, s.End = "2026-02-01T09:00:30", "2026-02-01T09:00:31" }, map[string]refusal{"every": ok,
			"cron":    {"end", "2026-02-01T09:00:31", "the first time from start on is 2026-02-02T09:00:00-05:00", "an end after that"},
			"workday": {"end", "2026-02-01T09:00:31", "the first time from start on is 2026-02-04T09:00:00-05:00", "an end after that"}}},
		{"end no time", func(s *Spec) { s.End = "never" }, map[string]refusal{"all": {"end", "never", "is no date and time", "2026-03-01T09:00"}}},
		{"hostile end", func(s *Spec) { s.End = hostile }, map[string]refusal{"all": {"end", hostile, "is no date and time", "2026-03-01T09:00"}}},
		// count
		{"count 1", func(s *Spec) { s.Count, s.Start = new(1), "2026-03-01T09:00" }, map[string]refusal{"all": ok}},
		{"count without start", func(s *Spec) { s.Count, s.Start = new(5), "" }, map[string]refusal{
			"cron": {"start", "", "count begins with it", "a date and time"}, "workday": {"start", "", "count begins with it", "a date and time"}, "every": {"start", "", "every counts from it", "a date and time"}}},
		{"count 0", func(s *Spec) { s.Count, s.Start = new(0), "2026-03-01T09:00" }, map[string]refusal{"all": {"count", "0", "is out of range", "1 to 100000"}}},
		{"count negative", func(s *Spec) { s.Count, s.Start = new(-1), "2026-03-01T09:00" }, map[string]refusal{"all": {"count", "-1", "is out of range", "1 to 100000"}}},
		{"count too high", func(s *Spec) { s.Count, s.Start = new(100_001), "2026-03-01T09:00" }, map[string]refusal{"all": {"count", "100001", "is out of range", "1 to 100000"}}},
		{"count for too long", func(s *Spec) { s.Count, s.Start = new(100_000), "2026-03-01T09:00" }, map[string]refusal{"cron": ok, "every": ok, "workday": {"count", "100000", "is not used up by 3026-03-01", "a smaller count"}}},
		// jitter
		{"jitter", func(s *Spec) { s.Jitter = "1h" }, map[string]refusal{"all": ok}},
		{"jitter least", func(s *Spec) { s.Jitter = "1s" }, map[string]refusal{"all": ok}},
		{"jitter 0", func(s *Spec) { s.Jitter = "0s" }, map[string]refusal{"all": {"jitter", "0s", "is too short", "1s to 1h"}}},
		{"jitter too long", func(s *Spec) { s.Jitter = "3601s" }, map[string]refusal{"all": {"jitter", "3601s", "is too long", "1s to 1h"}}},
		{"jitter more than half", func(s *Spec) {
			if s.Every != "" {
				s.Every, s.Jitter = "61s", "31s"
			}
		}, map[string]refusal{"cron": ok, "workday": ok, "every": {"jitter", "31s", "is too long", "1s to 30s"}}},
		{"jitter half", func(s *Spec) {
			if s.Every != "" {
				s.Every, s.Jitter = "61s", "30s"
			}
		}, map[string]refusal{"all": ok}},
		{"jitter no duration", func(s *Spec) { s.Jitter = "a bit" }, map[string]refusal{"all": {"jitter", "a bit", "is no duration", "1s to 1h"}}},
		{"jitter negative", func(s *Spec) { s.Jitter = "-5m" }, map[string]refusal{"all": {"jitter", "-5m", "is no duration", "1s to 1h"}}},
		{"hostile jitter", func(s *Spec) { s.Jitter = hostile }, map[string]refusal{"all": {"jitter", hostile, "is no duration", "1s to 1h"}}},
		// workday
		{"workday 0", func(s *Spec) { workday(s, 0) }, map[string]refusal{"workday": {"workday", "0", "is no workday of a month", "-1 is the last"}}},
		{"workday 23", func(s *Spec) { workday(s, 23) }, map[string]refusal{"workday": ok}},
		{"workday 24", func(s *Spec) { workday(s, 24) }, map[string]refusal{"workday": {"workday", "24", "is no workday of a month", "1 to 23"}}},
		{"workday -23", func(s *Spec) { workday(s, -23) }, map[string]refusal{"workday": ok}},
		{"workday -24", func(s *Spec) { workday(s, -24) }, map[string]refusal{"workday": {"workday", "-24", "is no workday of a month", "-1 to -23"}}},
		{"workday lowest", func(s *Spec) { workday(s, -1<<63) }, map[string]refusal{"workday": {"workday", "-9223372036854775808", "is no workday of a month", "1 to 23"}}},
		// at
		{"no at", func(s *Spec) { s.At = "" }, map[string]refusal{"cron": ok, "every": ok, "workday": {"at", "", "is empty", `"09:00"`}}},
		{"at with another kind", func(s *Spec) { s.At = "09:00" }, map[string]refusal{"workday": ok,
			"cron": {"at", "09:00", "stands without workday", "at with workday only"}, "every": {"at", "09:00", "stands without workday", "at with workday only"}}},
		{"at hour 24", func(s *Spec) { workdayAt(s, "24:00") }, map[string]refusal{"workday": {"at", "24:00", "is no time of a day", `"00:00" to "23:59"`}}},
		{"at minute 60", func(s *Spec) { workdayAt(s, "09:60") }, map[string]refusal{"workday": {"at", "09:60", "is no time of a day", `"HH:MM"`}}},
		{"at one digit", func(s *Spec) { workdayAt(s, "9:00") }, map[string]refusal{"workday": {"at", "9:00", "is no time of a day", `"HH:MM"`}}},
		{"at with seconds", func(s *Spec) { workdayAt(s, "09:00:00") }, map[string]refusal{"workday": {"at", "09:00:00", "is no time of a day", `"HH:MM"`}}},
		{"at with half", func(s *Spec) { workdayAt(s, "09:00pm") }, map[string]refusal{"workday": {"at", "09:00pm", "is no time of a day", `"HH:MM"`}}},
		{"hostile at", func(s *Spec) { workdayAt(s, hostile) }, map[string]refusal{"workday": {"at", hostile, "is no time of a day", `"HH:MM"`}}},
		// holidays
		{"no holidays, as a list", func(s *Spec) { s.Holidays = []string{} }, map[string]refusal{"all": ok}},
		{"holidays", func(s *Spec) { s.Holidays = []string{"2026-12-25", "2026-01-01"} }, map[string]refusal{"workday": ok,
			"cron":  {"holidays", "2026-12-25, 2026-01-01", "stands without workday", "holidays with workday only"},
			"every": {"holidays", "2026-12-25, 2026-01-01", "stands without workday", "holidays with workday only"}}},
		{"holiday twice", func(s *Spec) { off(s, "2026-12-25", "2026-01-01", "2026-12-25") }, map[string]refusal{"workday": {"holidays[2]", "2026-12-25", "is listed twice", "each date once"}}},
		{"holiday no day", func(s *Spec) { off(s, "2026-02-30") }, map[string]refusal{"workday": {"holidays[0]", "2026-02-30", "is no date", "YYYY-MM-DD"}}},
		{"holiday in words", func(s *Spec) { off(s, "2026-12-25", "Christmas") }, map[string]refusal{"workday": {"holidays[1]", "Christmas", "is no date", "YYYY-MM-DD"}}},
		{"holiday with time", func(s *Spec) { off(s, "2026-12-25T00:00:00Z") }, map[string]refusal{"workday": {"holidays[0]", "2026-12-25T00:00:00Z", "is no date", "YYYY-MM-DD"}}},
		{"holiday empty", func(s *Spec) { off(s, "") }, map[string]refusal{"workday": {"holidays[0]", "", "is no date", "YYYY-MM-DD"}}},
		{"holiday early", func(s *Spec) { off(s, "1969-12-25") }, map[string]refusal{"workday": {"holidays[0]", "1969-12-25", "is no date", "1970"}}},
		{"hostile holiday", func(s *Spec) { off(s, hostile) }, map[string]refusal{"workday": {"holidays[0]", hostile, "is no date", "YYYY-MM-DD"}}},
		{"holidays at the limit", func(s *Spec) { off(s, dates(MaxHolidays)...) }, map[string]refusal{"workday": ok}},
		{"holidays too many", func(s *Spec) { off(s, dates(MaxHolidays+1)...) }, map[string]refusal{"workday": {"holidays", "401 dates", "are too many", "at most 400"}}},
	} {
		for kind, valid := range kinds {
			want, listed := c.want[kind]
			if !listed {
				if want, listed = c.want["all"]; !listed {
					want = ok // the change leaves this kind alone
				}
			}
			t.Run(c.name+", "+kind, func(t *testing.T) {
				s := valid()
				c.change(&s)
				r, err := Parse(s)
				if want.field == "" {
					if err != nil || r.Next(at(t, "2026-01-01T00:00:00Z")).At.IsZero() {
						t.Fatalf("%v: %v", s, err)
					}
					return
				}
				if r != nil {
					t.Fatalf("%v was taken", s)
				}
				wantFieldError(t, err, want.field, want.value, want.problem, want.want)
			})
		}
	}
}

func every(s *Spec, v string) {
	if s.Every != "" {
		s.Every = v
	}
}

func workday(s *Spec, n int) {
	if s.Workday != nil {
		s.Workday = &n
	}
}

func workdayAt(s *Spec, v string) {
	if s.Workday != nil {
		s.At = v
	}
}

func off(s *Spec, list ...string) {
	if s.Workday != nil {
		s.Holidays = list
	}
}

func dates(n int) (list []string) {
	for i := range n {
		list = append(list, time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
	}
	return list
}

func TestSpecNamesEveryWrongField(t *testing.T) {
	_, err := Parse(Spec{Every: "1d", Workday: new(0), At: "9", Zone: "EST5", Gap: "no", Start: "soon", End: "late", Count: new(0), Jitter: "x"})
	for _, field := range []string{"workday", "zone", "gap", "start", "end", "count", "jitter"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+field+": ") {
			t.Errorf("%s is not named by %v", field, err)
		}
	}
	_, err = Parse(Spec{Workday: new(0), At: "9", Zone: "UTC", Holidays: strings.Split(strings.Repeat("x ", 400), " ")[:400]})
	list, joined := err.(interface{ Unwrap() []error })
	if !joined || len(list.Unwrap()) != 2+maxNamed {
		t.Fatalf("got %v", err)
	}
	for _, e := range list.Unwrap() {
		if _, plain := e.(*FieldError); !plain {
			t.Errorf("%T %v", e, e)
		}
	}
	_, err = Parse(Spec{Cron: "0 9 * * *", Every: "6h", Workday: new(1), At: "09:00", Zone: "UTC", Start: "2026-01-01T00:00"})
	if err == nil || !strings.Contains(err.Error(), "every: ") || !strings.Contains(err.Error(), `workday: "1" stands beside cron and every`) {
		t.Errorf("all three kinds: %v", err)
	}
}

// TestSpecAsJSON: wrong types are refused by the decoder, which names the field; what is read is written alike.
func TestSpecAsJSON(t *testing.T) {
	wrong := map[string][]string{
		"text":   {`7`, `1.5`, `true`, `[]`, `{}`},
		"number": {`"3"`, `1.5`, `true`, `[]`, `{}`, `1e400`, `99999999999999999999`},
		"list":   {`"2026-12-25"`, `7`, `true`, `{}`, `[7]`, `[["2026-12-25"]]`},
	}
	fields := map[string]string{"cron": "text", "every": "text", "at": "text", "zone": "text", "gap": "text", "start": "text", "end": "text", "jitter": "text",
		"workday": "number", "count": "number", "holidays": "list"}
	if n := reflect.TypeFor[Spec]().NumField(); n != len(fields) {
		t.Errorf("%d fields are covered of %d", len(fields), n)
	}
	for field, kind := range fields {
		for _, v := range wrong[kind] {
			var s Spec
			var typed *json.UnmarshalTypeError
			err := json.Unmarshal(fmt.Appendf(nil, `{%q:%s}`, field, v), &s)
			if !errors.As(err, &typed) || typed.Field != field {
				t.Errorf("%s: %s gives %v", field, v, err)
			}
		}
	}
	for text, want := range map[string]Spec{
		`{"cron":"0 9 * * *","zone":"America/New_York"}`:                              cronSpec(),
		`{"every":"6h","zone":"America/New_York","start":"2026-03-01T09:00"}`:         everySpec(),
		`{"workday":3,"at":"09:00","zone":"America/New_York"}`:                        workdaySpec(),
		`{"workday":0,"holidays":["2026-12-25"],"zone":"","count":0,"jitter":"1m"}`:   {Workday: new(0), Holidays: []string{"2026-12-25"}, Count: new(0), Jitter: "1m"},
		`{"cron":"0 9 * * *","zone":"UTC","gap":"skip","end":"2027-01-01T00:00:00Z"}`: {Cron: "0 9 * * *", Zone: "UTC", Gap: GapSkip, End: "2027-01-01T00:00:00Z"},
	} {
		var s Spec
		if err := json.Unmarshal([]byte(text), &s); err != nil || !s.Equal(want) {
			t.Errorf("%s: %v %v", text, s, err)
		}
		if b, err := json.Marshal(s); err != nil || string(b) != text {
			t.Errorf("%s %v\nwant %s", b, err, text)
		}
	}
}

func TestSpecEqual(t *testing.T) {
	full := func() Spec {
		return Spec{Cron: "a", Every: "b", Workday: new(1), At: "c", Holidays: []string{"d", "e"}, Zone: "f", Gap: GapSkip, Start: "g", End: "h", Count: new(2), Jitter: "i"}
	}
	if !full().Equal(full()) || !(Spec{}).Equal(Spec{Gap: GapRunOnce, Holidays: []string{}}) {
		t.Error("equal specs differ")
	}
	turned := full()
	turned.Holidays = []string{"e", "d"}
	if !turned.Equal(full()) || turned.Holidays[0] != "e" {
		t.Error("the order of holidays matters, or was changed")
	}
	for name, change := range map[string]func(*Spec){
		"Cron": func(s *Spec) { s.Cron = "x" }, "Every": func(s *Spec) { s.Every = "x" }, "Workday": func(s *Spec) { s.Workday = new(9) },
		"At": func(s *Spec) { s.At = "x" }, "Holidays": func(s *Spec) { s.Holidays = s.Holidays[:1] }, "Zone": func(s *Spec) { s.Zone = "x" },
		"Gap": func(s *Spec) { s.Gap = "" }, "Start": func(s *Spec) { s.Start = "x" }, "End": func(s *Spec) { s.End = "x" },
		"Count": func(s *Spec) { s.Count = nil }, "Jitter": func(s *Spec) { s.Jitter = "x" },
	} {
		s := full()
		change(&s)
		if s.Equal(full()) || full().Equal(s) {
			t.Errorf("another %s is not seen", name)
		}
		if same := s.SameTimes(full()); same != (name == "Jitter") {
			t.Errorf("another %s: same times %v", name, same)
		}
		if _, ok := reflect.TypeFor[Spec]().FieldByName(name); !ok {
			t.Errorf("no field %s", name)
		}
	}
	if n := reflect.TypeFor[Spec]().NumField(); n != 11 {
		t.Errorf("Spec has %d fields, the rows above 11", n)
	}
}

func TestSpecIsOneLine(t *testing.T) {
	for want, s := range map[string]Spec{
		"0 9 * * *  America/New_York":                         cronSpec(),
		"every 6h  America/New_York  start 2026-03-01T09:00":  everySpec(),
		"workday 3 of each month at 09:00  America/New_York":  workdaySpec(),
		"last workday of each month at 09:00 (1 holidays)  Z": {Workday: new(-1), At: "09:00", Holidays: []string{"x"}, Zone: "Z"},
		"workday 2 from the end of each month at 09:00  Z  gap skip  start a  end b  count 7  jitter 1m": {
			Workday: new(-2), At: "09:00", Zone: "Z", Gap: GapSkip, Start: "a", End: "b", Count: new(7), Jitter: "1m"},
	} {
		if got := s.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestRecurrenceKeepsItsOwnSpec(t *testing.T) {
	s := workdaySpec()
	s.Holidays = []string{"2026-01-05"}
	r := mustSpec(t, s)
	s.Holidays[0] = "2026-01-06"
	r.Spec().Holidays[0] = "2026-01-07"
	if got := r.Spec().Holidays[0]; got != "2026-01-05" {
		t.Errorf("got %s", got)
	}
}

func FuzzSpec(f *testing.F) {
	for _, s := range []string{
		`{"cron":"0 9 * * *","zone":"UTC"}`, `{"every":"90m","zone":"Australia/Lord_Howe","start":"2026-04-05T01:45","count":9,"jitter":"45m"}`,
		`{"workday":-1,"at":"02:30","zone":"America/New_York","holidays":["2026-12-31","2026-12-25"],"gap":"skip"}`,
		`{"workday":23,"at":"00:00","zone":"Africa/Cairo","start":"2026-01-01T00:00:00Z","end":"2036-01-01T00:00","count":3}`,
		`{"cron":"30 2 * * *","zone":"America/New_York","gap":"skip","start":"2026-03-08T02:30","end":"2026-03-09T02:30:00-04:00","jitter":"1h"}`,
		`{"cron":"* * * * *","zone":"Pacific/Apia","start":"2011-12-30T12:00","count":100000}`, `{"every":"8784h","start":"9999-12-31T00:00","zone":"UTC"}`,
		`{"cron":"0 0 29 2 *","every":"1m","workday":0,"at":"x","zone":"EST5","count":-1,"start":"","end":"\u0000","holidays":[""]}`,
		`{"cron":"0 0 * 2 MON#5","zone":"Asia/Kolkata","start":"2099-12-31T23:59:59+14:00","count":20,"end":"3000-01-01T00:00"}`,
	} {
		f.Add([]byte(s), int64(1_772_000_000), int64(5))
	}
	f.Fuzz(func(t *testing.T, text []byte, from, nanos int64) {
		var s Spec
		if json.Unmarshal(text, &s) != nil {
			return
		}
		r, err := Parse(s)
		if err != nil {
			var fe *FieldError
			if r != nil || !errors.As(err, &fe) || fe.Field == "" || fe.Problem == "" || fe.Want == "" || !utf8.ValidString(err.Error()) {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		after := time.Unix(from%(1<<37), nanos%1e9)
		n := r.Next(after)
		inWindow := !n.At.Before(r.start) && (r.limit.IsZero() || n.At.Before(r.limit))
		if !n.At.IsZero() && (!n.At.After(after) || !inWindow || n.At.Nanosecond() != 0) {
			t.Fatalf("%s after %v: due at %v", text, after, n.At)
		}
		again, err := Parse(r.Spec())
		if err != nil || !again.Next(after).At.Equal(n.At) || !again.Spec().Equal(r.Spec()) {
			t.Fatalf("%s: its own spec reads otherwise: %v", text, err)
		}
		list := r.Preview(after, 2)
		if len(list) > 0 && !list[len(list)-1].Skipped && n.At.IsZero() || len(list) == 0 && !n.At.IsZero() {
			t.Fatalf("%s: next %v, preview %+v", text, n.At, list)
		}
		if d := r.Delay("id", n.At); d < 0 || d > MaxJitter || d != 0 && d >= r.jitter {
			t.Fatalf("%s: delay %v", text, d)
		}
	})
}
