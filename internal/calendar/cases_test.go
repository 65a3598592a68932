package calendar

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func mustParse(t testing.TB, cron, zone string, gap Gap) *Recurrence {
	t.Helper()
	r, err := Parse(Spec{Cron: cron, Zone: zone, Gap: gap})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UTC()
}

// due lists the occurrences in (from, to].
func due(r *Recurrence, from, to time.Time) (list []time.Time, skipped []Skip) {
	for n := r.Next(from); !n.At.IsZero() && !n.At.After(to); n = r.Next(n.At) {
		list, skipped = append(list, n.At), append(skipped, n.Skipped...)
	}
	return list, skipped
}

func wantTimes(t *testing.T, got []time.Time, want ...string) {
	t.Helper()
	var g []string
	for _, v := range got {
		g = append(g, v.Format(time.RFC3339))
	}
	if strings.Join(g, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", g, want)
	}
}

func TestT1GapRunsOnceAfterIt(t *testing.T) {
	for _, gap := range []Gap{"", GapRunOnce} {
		r := mustParse(t, "30 2 * * *", "America/New_York", gap)
		got, skipped := due(r, at(t, "2026-03-08T00:00:00-05:00"), at(t, "2026-03-09T00:00:00-04:00"))
		wantTimes(t, got, "2026-03-08T07:00:00Z")
		if skipped != nil {
			t.Errorf("skipped %v", skipped)
		}
	}
	// Several local times that come to one instant are one occurrence, the time the gap ends with among them.
	for cron, want := range map[string][]string{
		"0,30 2 * * *":     {"2026-03-08T07:00:00Z"},
		"*/5 2 * * *":      {"2026-03-08T07:00:00Z"},
		"0,30 2,3 * * *":   {"2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"},
		"30 2,3 * * *":     {"2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"},
		"15,45 1-2 * * *":  {"2026-03-08T06:15:00Z", "2026-03-08T06:45:00Z", "2026-03-08T07:00:00Z"},
		"59 1,2,3,4 8 3 *": {"2026-03-08T06:59:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:59:00Z", "2026-03-08T08:59:00Z"},
	} {
		t.Run(cron, func(t *testing.T) {
			got, _ := due(mustParse(t, cron, "America/New_York", ""), at(t, "2026-03-08T05:00:00Z"), at(t, "2026-03-09T03:59:00Z"))
			wantTimes(t, got, want...)
		})
	}
}

func TestT2GapSkipLeavesARecord(t *testing.T) {
	r := mustParse(t, "30 2 * * *", "America/New_York", GapSkip)
	n := r.Next(at(t, "2026-03-07T07:30:00Z"))
	wantTimes(t, []time.Time{n.At}, "2026-03-09T06:30:00Z")
	nominal := at(t, "2026-03-08T07:30:00Z")
	want := Skip{nominal, nominal, 1, "02:30 does not exist on 2026-03-08 in America/New_York: clocks go from 02:00 to 03:00"}
	if len(n.Skipped) != 1 || n.Skipped[0] != want {
		t.Errorf("got  %+v\nwant %+v", n.Skipped, want)
	}
	t.Run("asked from anywhere before, the same record; from after the gap none", func(t *testing.T) {
		for _, from := range []string{"2026-03-08T00:00:00Z", "2026-03-08T06:59:59Z"} {
			if n := r.Next(at(t, from)); len(n.Skipped) != 1 || n.Skipped[0] != want {
				t.Errorf("from %s: %+v", from, n.Skipped)
			}
		}
		if n := r.Next(at(t, "2026-03-08T07:00:00Z")); n.Skipped != nil {
			t.Errorf("after the gap: %+v", n.Skipped)
		}
	})
	t.Run("a range is one record", func(t *testing.T) {
		n := mustParse(t, "*/5 2 * * *", "America/New_York", GapSkip).Next(at(t, "2026-03-08T00:00:00-05:00"))
		want := Skip{at(t, "2026-03-08T07:00:00Z"), at(t, "2026-03-08T07:55:00Z"), 12,
			"02:00 to 02:55 (12 times) do not exist on 2026-03-08 in America/New_York: clocks go from 02:00 to 03:00"}
		if len(n.Skipped) != 1 || n.Skipped[0] != want {
			t.Errorf("got  %+v\nwant %+v", n.Skipped, want)
		}
	})
	t.Run("two changes are two records", func(t *testing.T) {
		n := mustParse(t, "30 2 8 3 *", "America/New_York", GapSkip).Next(at(t, "2025-12-01T00:00:00Z"))
		wantTimes(t, []time.Time{n.At}, "2027-03-08T07:30:00Z")
		n = mustParse(t, "30 2 10,8 3 *", "America/New_York", GapSkip).Next(at(t, "2024-03-09T00:00:00Z"))
		wantTimes(t, []time.Time{n.At}, "2025-03-08T07:30:00Z")
		if len(n.Skipped) != 1 {
			t.Errorf("%+v", n.Skipped)
		}
	})
	t.Run("D17 the rule that lies in every gap is refused", func(t *testing.T) {
		_, err := Parse(Spec{Cron: "30 2 * 3 SUN#2", Zone: "America/New_York", Gap: GapSkip})
		if err == nil || !strings.Contains(err.Error(), "never due with gap skip in America/New_York") {
			t.Errorf("got %v", err)
		}
		mustParse(t, "30 2 * 3 SUN#2", "America/New_York", GapRunOnce)
	})
}

func TestT3FoldRunsOnce(t *testing.T) {
	for _, gap := range []Gap{GapRunOnce, GapSkip} {
		r := mustParse(t, "30 1 * * *", "America/New_York", gap)
		got, _ := due(r, at(t, "2026-11-01T04:00:00Z"), at(t, "2026-11-02T04:59:00Z"))
		wantTimes(t, got, "2026-11-01T05:30:00Z")
		// Asked between the two showings, the answer is the next day.
		wantTimes(t, []time.Time{r.Next(at(t, "2026-11-01T05:45:00Z")).At}, "2026-11-02T06:30:00Z")
	}
	got, _ := due(mustParse(t, "0 0-23 * * *", "America/New_York", ""), at(t, "2026-11-01T03:59:00Z"), at(t, "2026-11-02T04:59:00Z"))
	if len(got) != 24 {
		t.Errorf("an explicit list of hours ran %d times, want 24", len(got))
	}
}

func TestT4EveryHourRuns25Times(t *testing.T) {
	from, to := at(t, "2026-11-01T03:59:59Z"), at(t, "2026-11-02T04:59:59Z")
	got, _ := due(mustParse(t, "0 * * * *", "America/New_York", ""), from, to)
	if len(got) != 25 {
		t.Errorf("ran %d times, want 25", len(got))
	}
	for i := 1; i < len(got); i++ {
		if got[i].Sub(got[i-1]) != time.Hour {
			t.Errorf("%v follows %v", got[i], got[i-1])
		}
	}
	got, _ = due(mustParse(t, "0 * * * *", "America/New_York", ""), at(t, "2026-03-08T04:59:59Z"), at(t, "2026-03-09T03:59:59Z"))
	if len(got) != 23 {
		t.Errorf("on the short day %d times, want 23", len(got))
	}
	got, skipped := due(mustParse(t, "0 */2 * * *", "America/New_York", GapSkip), at(t, "2026-03-08T04:59:59Z"), at(t, "2026-03-08T12:00:00Z"))
	wantTimes(t, got, "2026-03-08T05:00:00Z", "2026-03-08T08:00:00Z", "2026-03-08T10:00:00Z", "2026-03-08T12:00:00Z")
	if skipped != nil {
		t.Errorf("a rule of instants has no skips: %v", skipped)
	}
}

func TestT5Day31GoesToMarchAndSaysWhy(t *testing.T) {
	r := mustParse(t, "0 9 31 * *", "America/New_York", "")
	p := r.Preview(at(t, "2026-01-31T14:00:00Z"), 5)
	want := []Entry{
		{at(t, "2026-03-31T13:00:00Z"), "2026-03-31T09:00:00-04:00", "no day 31 in 2026-02", false},
		{at(t, "2026-05-31T13:00:00Z"), "2026-05-31T09:00:00-04:00", "no day 31 in 2026-04", false},
		{at(t, "2026-07-31T13:00:00Z"), "2026-07-31T09:00:00-04:00", "no day 31 in 2026-06", false},
		{at(t, "2026-08-31T13:00:00Z"), "2026-08-31T09:00:00-04:00", "", false},
		{at(t, "2026-10-31T13:00:00Z"), "2026-10-31T09:00:00-04:00", "no day 31 in 2026-09", false},
	}
	wantEntries(t, p, want)
}

func TestD17OneRunEachLocalDay(t *testing.T) {
	spring, _ := due(mustParse(t, "0 2 * * *", "America/Los_Angeles", ""), at(t, "2025-03-08T08:00:00Z"), at(t, "2025-03-11T07:00:00Z"))
	wantTimes(t, spring, "2025-03-08T10:00:00Z", "2025-03-09T10:00:00Z", "2025-03-10T09:00:00Z")
	autumn, _ := due(mustParse(t, "30 1 * * *", "America/Los_Angeles", ""), at(t, "2025-11-01T07:00:00Z"), at(t, "2025-11-04T08:00:00Z"))
	wantTimes(t, autumn, "2025-11-01T08:30:00Z", "2025-11-02T08:30:00Z", "2025-11-03T09:30:00Z")
}

func TestChangesOfOddKinds(t *testing.T) {
	for _, c := range []struct {
		name, cron, zone, from, to string
		want                       []string
	}{
		{"a day that does not exist runs at its end, together with what is due then", "0 0 * * *", "Pacific/Apia",
			"2011-12-29T00:00:00Z", "2011-12-31T23:00:00Z", []string{"2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}},
		{"a time on the missing day runs once at its end", "30 2 30 12 *", "Pacific/Apia",
			"2011-12-01T00:00:00Z", "2012-01-01T00:00:00Z", []string{"2011-12-30T10:00:00Z"}},
		{"clocks forward at midnight", "0 0 * * *", "America/Santiago",
			"2026-09-05T05:00:00Z", "2026-09-08T00:00:00Z", []string{"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}},
		{"clocks back at midnight", "30 23 * * *", "America/Santiago",
			"2026-04-04T00:00:00Z", "2026-04-06T12:00:00Z", []string{"2026-04-04T02:30:00Z", "2026-04-05T02:30:00Z", "2026-04-06T03:30:00Z"}},
		{"clocks forward at midnight, month's first", "0 0 29 * *", "Asia/Beirut",
			"2026-03-20T00:00:00Z", "2026-03-30T00:00:00Z", []string{"2026-03-28T22:00:00Z"}},
		{"a day that does not exist, at noon", "0 12 * * *", "Pacific/Kwajalein",
			"1993-08-19T12:00:00Z", "1993-08-22T12:00:00Z", []string{"1993-08-20T00:00:00Z", "1993-08-21T00:00:00Z", "1993-08-21T12:00:00Z", "1993-08-22T00:00:00Z"}},
		{"a day that comes twice", "0 12 * * *", "Pacific/Kwajalein",
			"1969-09-29T00:00:00Z", "1969-10-02T12:00:00Z", []string{"1969-09-29T01:00:00Z", "1969-09-30T01:00:00Z", "1969-10-02T00:00:00Z"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe",
			"2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"half an hour twice, by the hour", "45 * * * *", "Australia/Lord_Howe",
			"2026-04-04T14:00:00Z", "2026-04-04T16:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"}},
		{"winter time that is negative", "30 1 * * *", "Europe/Dublin",
			"2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := due(mustParse(t, c.cron, c.zone, ""), at(t, c.from), at(t, c.to))
			wantTimes(t, got, c.want...)
		})
	}
}

func TestRareDaysAreFound(t *testing.T) {
	for _, c := range []struct{ cron, from, want string }{
		{"0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 * 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 * 2 MON#5", "2026-01-01T00:00:00Z", "2044-02-29T00:00:00Z"},
		{"0 0 * 2 MON#5", "2072-03-01T00:00:00Z", "2112-02-29T00:00:00Z"}, // the longest wait: 40 years
		{"59 23 31 12 *", "2099-12-31T23:59:00Z", "2100-12-31T23:59:00Z"},
		{"0 0 1 1 *", "1969-06-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"0 0 1 1 *", "0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z"},
		{"0 0 1 1 *", "9999-06-01T00:00:00Z", ""},
	} {
		n := mustParse(t, c.cron, "UTC", "").Next(at(t, c.from))
		if c.want == "" {
			if !n.At.IsZero() {
				t.Errorf("%s after %s: %v, want never", c.cron, c.from, n.At)
			}
		} else if !n.At.Equal(at(t, c.want)) {
			t.Errorf("%s after %s: %v, want %s", c.cron, c.from, n.At, c.want)
		}
	}
}

func TestNextIsStrictlyAfterToTheNanosecond(t *testing.T) {
	for _, hour := range []string{"9", "*"} {
		r := mustParse(t, "0 "+hour+" * * *", "UTC", "")
		nine := at(t, "2026-05-01T09:00:00Z")
		if got := r.Next(nine.Add(-1)).At; !got.Equal(nine) {
			t.Errorf("a nanosecond before: %v", got)
		}
		if got := r.Next(nine).At; !got.After(nine) {
			t.Errorf("at the time itself: %v", got)
		}
		if got := r.Next(nine.Add(1)).At; !got.After(nine.Add(1)) || got.Nanosecond() != 0 {
			t.Errorf("a nanosecond after: %v", got)
		}
		if got := r.Next(nine).At.Location(); got != time.UTC {
			t.Errorf("location %v", got)
		}
	}
}

func TestOneRecurrenceServesManyGoroutines(t *testing.T) {
	r := mustParse(t, "0 9 L,15 * MON#1", "America/New_York", "")
	from := at(t, "2026-01-01T00:00:00Z")
	want, _ := due(r, from, from.AddDate(3, 0, 0))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			start := want[i*4]
			got, _ := due(r, start, from.AddDate(3, 0, 0))
			if len(got) != len(want)-i*4-1 {
				t.Errorf("from %v: %d occurrences, want %d", start, len(got), len(want)-i*4-1)
			}
		})
	}
	wg.Wait()
}
