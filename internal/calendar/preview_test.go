package calendar

import (
	"strings"
	"testing"
)

func wantEntries(t *testing.T, got, want []Entry) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("entry %d\ngot  %+v\nwant %+v", i, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}

func TestPreviewExplainsGaps(t *testing.T) {
	from := at(t, "2026-03-07T12:00:00Z")
	t.Run("T1 run-once", func(t *testing.T) {
		wantEntries(t, mustParse(t, "30 2 * * *", "America/New_York", "").Preview(from, 2), []Entry{
			{at(t, "2026-03-08T07:00:00Z"), "2026-03-08T03:00:00-04:00",
				"02:30 does not exist on 2026-03-08 in America/New_York: clocks go from 02:00 to 03:00; due once at 03:00", false},
			{at(t, "2026-03-09T06:30:00Z"), "2026-03-09T02:30:00-04:00", "", false},
		})
	})
	t.Run("T2 skip", func(t *testing.T) {
		wantEntries(t, mustParse(t, "30 2 * * *", "America/New_York", GapSkip).Preview(from, 1), []Entry{
			{at(t, "2026-03-08T07:30:00Z"), "2026-03-08T02:30:00-05:00",
				"02:30 does not exist on 2026-03-08 in America/New_York: clocks go from 02:00 to 03:00; skipped", true},
			{at(t, "2026-03-09T06:30:00Z"), "2026-03-09T02:30:00-04:00", "", false},
		})
	})
	t.Run("several times on one instant", func(t *testing.T) {
		p := mustParse(t, "0,30 2,3 * * *", "America/New_York", "").Preview(from, 2)
		if want := "02:00 to 02:30 (2 times) do not exist on 2026-03-08"; !strings.HasPrefix(p[0].Note, want) || p[1].Note != "" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("a rule of instants", func(t *testing.T) {
		p := mustParse(t, "0 */2 * * *", "America/New_York", "").Preview(at(t, "2026-03-08T05:30:00Z"), 2)
		want := "02:00 does not exist on 2026-03-08 in America/New_York: clocks go from 02:00 to 03:00; " +
			"nothing is due for it, since the hour field asks for instants"
		if p[0].Local != "2026-03-08T04:00:00-04:00" || p[0].Note != want || p[1].Note != "" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("a whole day", func(t *testing.T) {
		p := mustParse(t, "30 2 * * *", "Pacific/Apia", "").Preview(at(t, "2011-12-29T23:00:00Z"), 2)
		want := "02:30 does not exist on 2011-12-30 in Pacific/Apia: clocks go from 00:00 to 2011-12-31 00:00; due once at 2011-12-31 00:00"
		if p[0].Note != want || p[1].Local != "2011-12-31T02:30:00+14:00" {
			t.Errorf("got %+v", p)
		}
	})
}

func TestPreviewExplainsFolds(t *testing.T) {
	from := at(t, "2026-11-01T05:00:00Z")
	p := mustParse(t, "30 1 * * *", "America/New_York", "").Preview(from, 2)
	if want := "01:30 happens twice on 2026-11-01 in America/New_York; runs at the first"; p[0].Note != want || p[1].Note != "" {
		t.Errorf("T3: got %+v", p)
	}
	p = mustParse(t, "30 * * * *", "America/New_York", "").Preview(from, 3)
	if !strings.HasSuffix(p[0].Note, "this is the first") || !strings.HasSuffix(p[1].Note, "this is the second") || p[2].Note != "" {
		t.Errorf("T4: got %+v", p)
	}
}

func TestPreviewExplainsPassedMonths(t *testing.T) {
	for _, c := range []struct{ cron, from, note string }{
		{"0 9 30,31 * *", "2026-01-31T12:00:00Z", "no day 30 or 31 in 2026-02"},
		{"0 9 31 * *", "2026-02-10T00:00:00Z", "no day 31 in 2026-02"},
		{"0 9 * * FRI#5", "2026-01-31T12:00:00Z", "no fifth FRI in 2026-02, 2026-03, 2026-04"},
		{"0 9 31 * FRI#5", "2026-01-31T12:00:00Z", "no day 31 or fifth FRI in 2026-02"},
		{"0 9 29 2 *", "2096-03-01T00:00:00Z", "no day 29 in 2097-02, 2098-02, 2099-02, 2100-02, 2101-02, 2102-02 and 1 more"},
		{"0 9 31 * MON", "2026-01-31T12:00:00Z", ""},
		{"0 9 L * *", "2026-01-31T12:00:00Z", ""},
		{"0 9 31 1,3 *", "2026-01-31T12:00:00Z", ""},
		{"0 9 1 7 *", "2026-01-31T12:00:00Z", ""},
	} {
		p := mustParse(t, c.cron, "UTC", "").Preview(at(t, c.from), 1)
		if len(p) != 1 || p[0].Note != c.note {
			t.Errorf("%s after %s\ngot  %+v\nwant %q", c.cron, c.from, p, c.note)
		}
	}
}

func TestPreviewLength(t *testing.T) {
	r := mustParse(t, "* * * * *", "UTC", "")
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 5: 5, MaxPreview: MaxPreview, 1 << 30: MaxPreview} {
		if got := len(r.Preview(at(t, "2026-01-01T00:00:00Z"), n)); got != want {
			t.Errorf("Preview(%d) has %d entries, want %d", n, got, want)
		}
	}
	if got := mustParse(t, "0 0 1 1 *", "UTC", "").Preview(at(t, "9998-06-01T00:00:00Z"), 5); len(got) != 1 {
		t.Errorf("at the end of time: %+v", got)
	}
}

func TestPreviewSaysWhenARuleIsOver(t *testing.T) {
	from := at(t, "2026-03-06T15:00:00Z")
	t.Run("by its end", func(t *testing.T) {
		r := mustSpec(t, Spec{Cron: "0 9 * * *", Zone: "America/New_York", End: "2026-03-08T09:00"})
		wantEntries(t, r.Preview(from, 5), []Entry{
			{at(t, "2026-03-07T14:00:00Z"), "2026-03-07T09:00:00-05:00", "no more after 2026-03-08T09:00:00-04:00, the end", false},
		})
		wantEntries(t, r.Preview(at(t, "2026-03-07T14:00:00Z"), 5), []Entry{
			{at(t, "2026-03-08T13:00:00Z"), "2026-03-08T09:00:00-04:00", "no more after 2026-03-08T09:00:00-04:00, the end", true},
		})
		if got := r.Preview(at(t, "2026-03-07T14:00:00Z"), 0); got != nil {
			t.Errorf("none asked for: %+v", got)
		}
	})
	t.Run("by its count", func(t *testing.T) {
		r := mustSpec(t, Spec{Every: "24h", Zone: "America/New_York", Start: "2026-03-07T09:00", Count: new(2), End: "2027-01-01T00:00"})
		last := "no more after 2026-03-08T10:00:00-04:00, the last of count 2"
		wantEntries(t, r.Preview(from, 2), []Entry{
			{at(t, "2026-03-07T14:00:00Z"), "2026-03-07T09:00:00-05:00", "", false},
			{at(t, "2026-03-08T14:00:00Z"), "2026-03-08T10:00:00-04:00", "clocks in America/New_York go forward by 1h on the way; every counts elapsed time; " + last, false},
		})
		wantEntries(t, r.Preview(at(t, "2026-04-01T00:00:00Z"), 2), []Entry{{at(t, "2026-03-08T14:00:00Z"), "2026-03-08T10:00:00-04:00", last, true}})
	})
	t.Run("by its end, before its count", func(t *testing.T) {
		r := mustSpec(t, Spec{Every: "24h", Zone: "UTC", Start: "2026-03-07T09:00", Count: new(20), End: "2026-03-08T00:00"})
		if got := r.Preview(from, 2); len(got) != 1 || got[0].Note != "no more after 2026-03-08T00:00:00Z, the end" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a skip is the last thing", func(t *testing.T) {
		r := mustSpec(t, Spec{Cron: "30 2 * * *", Zone: "America/New_York", Gap: GapSkip, End: "2026-03-08T12:00"})
		got := r.Preview(at(t, "2026-03-07T08:00:00Z"), 3)
		if len(got) != 2 || !strings.HasSuffix(got[0].Note, "; skipped") || got[1].Note != "no more after 2026-03-08T12:00:00-04:00, the end" || !got[1].Skipped {
			t.Errorf("got %+v", got)
		}
	})
}

func TestPreviewBeginsWithStart(t *testing.T) {
	r := mustSpec(t, Spec{Cron: "0 9 31 * *", Zone: "UTC", Start: "2026-04-15T00:00"})
	wantEntries(t, r.Preview(at(t, "2025-01-01T00:00:00Z"), 1), []Entry{{at(t, "2026-05-31T09:00:00Z"), "2026-05-31T09:00:00Z", "no day 31 in 2026-04", false}})
}

func TestPreviewOfIntervals(t *testing.T) {
	r := mustSpec(t, Spec{Every: "24h", Zone: "America/New_York", Start: "2026-10-30T09:00"})
	wantEntries(t, r.Preview(at(t, "2026-10-31T00:00:00Z"), 3), []Entry{
		{at(t, "2026-10-31T13:00:00Z"), "2026-10-31T09:00:00-04:00", "", false},
		{at(t, "2026-11-01T13:00:00Z"), "2026-11-01T08:00:00-05:00", "clocks in America/New_York go back by 1h on the way; every counts elapsed time", false},
		{at(t, "2026-11-02T13:00:00Z"), "2026-11-02T08:00:00-05:00", "", false},
	})
}

func TestPreviewOfWorkdays(t *testing.T) {
	r := mustSpec(t, Spec{Workday: new(22), At: "09:00", Zone: "UTC", Holidays: []string{"2026-12-25", "2026-12-26"}})
	wantEntries(t, r.Preview(at(t, "2026-07-31T10:00:00Z"), 3), []Entry{
		{at(t, "2026-09-30T09:00:00Z"), "2026-09-30T09:00:00Z", "no workday 22 in 2026-08", false},
		{at(t, "2026-10-30T09:00:00Z"), "2026-10-30T09:00:00Z", "", false},
		{at(t, "2026-12-31T09:00:00Z"), "2026-12-31T09:00:00Z", "no workday 22 in 2026-11; not counted as workdays, since listed as holidays: 2026-12-25", false},
	})
	r = mustSpec(t, Spec{Workday: new(-1), At: "09:00", Zone: "UTC", Holidays: []string{"2026-12-31", "2026-12-30", "2026-12-25"}})
	wantEntries(t, r.Preview(at(t, "2026-11-30T10:00:00Z"), 1), []Entry{
		{at(t, "2026-12-29T09:00:00Z"), "2026-12-29T09:00:00Z", "not counted as workdays, since listed as holidays: 2026-12-30, 2026-12-31", false},
	})
}
