package calendar

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func mustMonth(t *testing.T, s string) Month {
	t.Helper()
	m, err := ParseMonth(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestMonthBounds(t *testing.T) {
	for _, c := range []struct {
		name, month, zone, start, end string
		hours                         float64
	}{
		{"T7", "2024-04", "Pacific/Auckland", "2024-03-31T11:00:00Z", "2024-04-30T12:00:00Z", 721},
		{"T8 leap", "2024-02", "UTC", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z", 696},
		{"T8 century", "2100-02", "UTC", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z", 672},
		{"end of year", "2026-12", "America/New_York", "2026-12-01T05:00:00Z", "2027-01-01T05:00:00Z", 744},
		{"first midnight left out", "1979-04", "Asia/Gaza", "1979-03-31T22:00:00Z", "1979-04-30T22:00:00Z", 720},
		{"clocks back across the first midnight", "2009-11", "America/St_Johns", "2009-11-01T02:30:00Z", "2009-12-01T03:30:00Z", 721},
		{"the day that Apia lost", "2011-12", "Pacific/Apia", "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z", 720},
	} {
		t.Run(c.name, func(t *testing.T) {
			start, end := mustMonth(t, c.month).Bounds(mustZone(t, c.zone))
			if !start.Equal(at(t, c.start)) || !end.Equal(at(t, c.end)) || end.Sub(start).Hours() != c.hours {
				t.Errorf("got [%v, %v), %v h; want [%s, %s), %v h", start, end, end.Sub(start).Hours(), c.start, c.end, c.hours)
			}
			if start.Location() != time.UTC || end.Location() != time.UTC {
				t.Error("bounds are not in UTC")
			}
		})
	}
}

// A month whose first midnight does not exist: clocks went forward at 00:00 on the first.
func TestMonthStartsAfterAGap(t *testing.T) {
	loc := mustZone(t, "America/Asuncion") // 2017-10-01 00:00 → 01:00
	start, _ := mustMonth(t, "2017-10").Bounds(loc)
	if got := start.In(loc).Format(time.RFC3339); got != "2017-10-01T01:00:00-03:00" {
		t.Errorf("got %s", got)
	}
}

func TestMonthsTileTimeInEveryZone(t *testing.T) {
	for name := range strings.Lines(zoneNames) {
		loc := mustZone(t, strings.TrimSpace(name))
		m := mustMonth(t, "2025-12")
		_, prev := m.Add(-1).Bounds(loc)
		for range 14 {
			start, end := m.Bounds(loc)
			if !start.Equal(prev) || !end.After(start) {
				t.Fatalf("%s %s starts at %v, the month before ends at %v", loc, m, start, prev)
			}
			for _, in := range []time.Time{start, start.Add(13 * 24 * time.Hour), end.Add(-1)} {
				if got := MonthOf(in, loc); got != m {
					t.Fatalf("%s: MonthOf(%v) = %s, want %s", loc, in, got, m)
				}
			}
			if l := start.In(loc); l.Day() != 1 || l.Month() != m.Month || start.Add(-1).In(loc).Month() == m.Month {
				t.Fatalf("%s %s starts at %v", loc, m, l)
			}
			prev, m = end, m.Add(1)
		}
	}
}

func TestMonthOfAgreesWithBoundsAcrossAFold(t *testing.T) {
	loc := mustZone(t, "America/St_Johns")                                        // 2009-11-01 00:01 → 2009-10-31 23:01
	for _, in := range []string{"2009-11-01T02:30:30Z", "2009-11-01T02:45:00Z"} { // the second shows 23:15 of October again
		if got := MonthOf(at(t, in), loc); got != mustMonth(t, "2009-11") {
			t.Errorf("MonthOf(%s) = %s", in, got)
		}
	}
}

func TestT9JanuaryPlusOneMonthIsFebruary(t *testing.T) {
	loc := mustZone(t, "America/New_York")
	if got := MonthOf(at(t, "2026-01-31T12:00:00-05:00"), loc).Add(1).String(); got != "2026-02" {
		t.Errorf("got %s", got)
	}
	for n, want := range map[int]string{0: "2026-01", 12: "2027-01", -1: "2025-12", -13: "2024-12", 23: "2027-12"} {
		if got := mustMonth(t, "2026-01").Add(n).String(); got != want {
			t.Errorf("2026-01 %+d = %s, want %s", n, got, want)
		}
	}
}

func TestParseMonthRefuses(t *testing.T) {
	for _, s := range []string{"", "2026", "2026-2", "2026-13", "2026-00", "0000-01", "26-02", "2026-02-01", " 2026-02", "2026-02\n",
		"2026/02", "２０２６-02", "+2026-02", "02026-02", strings.Repeat("9", 10000)} {
		_, err := ParseMonth(s)
		var fe *FieldError
		if !errors.As(err, &fe) || fe.Field != "month" || fe.Value != s || !strings.Contains(err.Error(), "2026-02") || len(err.Error()) > 400 {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestMonthAsJSON(t *testing.T) {
	var v struct{ M Month }
	if err := json.Unmarshal([]byte(`{"M":"2026-02"}`), &v); err != nil || v.M != (Month{2026, time.February}) {
		t.Errorf("%v %v", v, err)
	}
	b, err := json.Marshal(v)
	if err != nil || string(b) != `{"M":"2026-02"}` {
		t.Errorf("%s %v", b, err)
	}
	if err := json.Unmarshal([]byte(`{"M":"2026-2"}`), &v); err == nil {
		t.Error("2026-2 was read")
	}
}
