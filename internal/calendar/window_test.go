package calendar

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustSpec(t testing.TB, s Spec) *Recurrence {
	t.Helper()
	r, err := Parse(s)
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	return r
}

// toTheEnd lists all occurrences after from and all skips, those after the last occurrence too.
func toTheEnd(t testing.TB, r *Recurrence, from time.Time) (list []time.Time, skipped []Skip) {
	t.Helper()
	for range 100_000 {
		n := r.Next(from)
		skipped = append(skipped, n.Skipped...)
		if n.At.IsZero() {
			return list, skipped
		}
		list, from = append(list, n.At), n.At
	}
	t.Fatalf("%v has no end", r.Spec())
	return nil, nil
}

// written writes an instant in one of the ways a definition can, and returns the instant that the text means by the
// minutes walked: the first minute that shows it.
func written(r *rand.Rand, list []minute, i int) (string, time.Time) {
	m := list[i]
	switch r.IntN(4) {
	case 0:
		return m.t.Format(time.RFC3339), m.t
	case 1:
		return m.t.In(time.FixedZone("", -5*3600)).Format(time.RFC3339), m.t
	}
	first := m.t
	for j := i; j >= 0 && i-j < 26*60; j-- {
		if list[j].local.Equal(m.local) {
			first = list[j].t
		}
	}
	return m.local.Format([]string{localMinutes, localSeconds}[r.IntN(2)]), first
}

// TestWindowAgainstOracle bounds rules at random on both sides of changes and wants what the minutes between show.
func TestWindowAgainstOracle(t *testing.T) {
	t.Parallel()
	r := seed(t)
	ends, counts, skips := 0, 0, 0
	for _, name := range zonesCompared {
		loc := mustZone(t, name)
		for _, change := range append(changesIn(loc, yearsFrom, yearsTo.AddDate(-1, 0, 0)), yearsFrom.AddDate(0, 0, 50)) {
			list := minutesOf(loc, change.Add(-60*time.Hour), change.Add(34*time.Hour))
			mid := 60 * 60
			for i := range 30 {
				cron, gap := randomRule(r), bothGaps[r.IntN(2)]
				if i%2 == 0 {
					cron = fixedRules[r.IntN(len(fixedRules))]
				}
				if !parsed(cron, name, gap) {
					continue
				}
				startText, start := written(r, list, mid-r.IntN(34*60))
				endText, end := written(r, list, mid+1+r.IntN(33*60))
				from := start.Add(time.Duration(r.IntN(500)-400) * time.Hour)
				if !from.Before(start) {
					from = start.Add(-1)
				}
				want := readRule(cron).ask(before(list, end), start.Add(-1), gap)
				spec := Spec{Cron: cron, Zone: name, Gap: gap, Start: startText, End: endText}
				if !end.After(start) {
					// A start in the second showing of an hour, told by its offset; an end later in that hour, told by the
					// clock, is in the first.
					_, err := Parse(spec)
					wantFieldError(t, err, "end", endText, "is not after start", "a later end")
					continue
				}
				if len(want.due) == 0 {
					_, err := Parse(spec)
					wantFieldError(t, err, "end", endText, "leaves nothing due", "after that")
					continue
				}
				compareWhole(t, spec, from, want)
				ends++
				// The same by count: of what is left to the last occurrence counted, all is as before.
				n := 1 + r.IntN(len(want.due))
				last := want.due[n-1]
				counted := Spec{Cron: cron, Zone: name, Gap: gap, Start: startText, Count: &n}
				if r.IntN(2) == 0 {
					counted.End = endText
				}
				compareWhole(t, counted, from, readRule(cron).ask(before(list, last.Add(time.Second)), start.Add(-1), gap))
				counts++
				skips += len(want.skipped)
			}
		}
	}
	if ends < 100 || counts < 100 || skips < 5 {
		t.Errorf("only %d ends, %d counts, %d skips", ends, counts, skips)
	}
	t.Logf("%d ends, %d counts, %d skips agree", ends, counts, skips)
}

func before(list []minute, end time.Time) []minute {
	for i, m := range list {
		if !m.t.Before(end) {
			return list[:i]
		}
	}
	return list
}

func compareWhole(t *testing.T, spec Spec, from time.Time, want answer) {
	t.Helper()
	got, skipped := toTheEnd(t, mustSpec(t, spec), from)
	if fmt.Sprint(got) != fmt.Sprint(want.due) {
		t.Fatalf("%v from %v\ngot  %v\nwant %v", spec, from, got, want.due)
	}
	for i := range skipped {
		skipped[i].Reason = ""
	}
	if fmt.Sprint(skipped) != fmt.Sprint(want.skipped) {
		t.Fatalf("%v from %v\ngot  %v\nwant %v", spec, from, skipped, want.skipped)
	}
}

func TestStartIsInEndIsOut(t *testing.T) {
	nine := Spec{Cron: "0 9 * * *", Zone: "America/New_York", Start: "2026-03-01T09:00:00-05:00", End: "2026-03-04T09:00:00-05:00"}
	got, _ := toTheEnd(t, mustSpec(t, nine), at(t, "2020-01-01T00:00:00Z"))
	wantTimes(t, got, "2026-03-01T14:00:00Z", "2026-03-02T14:00:00Z", "2026-03-03T14:00:00Z")
	nine.Start, nine.End = "2026-03-01T09:00:01", "2026-03-04T09:00:01"
	got, _ = toTheEnd(t, mustSpec(t, nine), at(t, "2020-01-01T00:00:00Z"))
	wantTimes(t, got, "2026-03-02T14:00:00Z", "2026-03-03T14:00:00Z", "2026-03-04T14:00:00Z")
	t.Run("an end without a start", func(t *testing.T) {
		nine.Start = ""
		r := mustSpec(t, nine)
		wantTimes(t, []time.Time{r.Next(at(t, "1980-01-01T00:00:00Z")).At}, "1980-01-01T14:00:00Z")
		if n := r.Next(at(t, "2026-03-04T14:00:00Z")); !n.At.IsZero() {
			t.Errorf("after the end: %v", n.At)
		}
	})
	t.Run("asked after all", func(t *testing.T) {
		r := mustSpec(t, nine)
		for _, after := range []string{"2026-03-04T14:00:01Z", "2030-01-01T00:00:00Z", "9999-12-31T23:59:59Z"} {
			if n := r.Next(at(t, after)); !n.At.IsZero() || n.Skipped != nil {
				t.Errorf("after %s: %+v", after, n)
			}
		}
	})
}

func TestLocalBoundsAreResolvedOnce(t *testing.T) {
	for _, c := range []struct{ name, zone, text, want string }{
		{"in summer", "America/New_York", "2026-07-01T09:00", "2026-07-01T13:00:00Z"},
		{"T1 in a gap: the first instant after it", "America/New_York", "2026-03-08T02:30", "2026-03-08T07:00:00Z"},
		{"T3 in a fold: the first showing", "America/New_York", "2026-11-01T01:30", "2026-11-01T05:30:00Z"},
		{"the second showing, by offset", "America/New_York", "2026-11-01T01:30:00-05:00", "2026-11-01T06:30:00Z"},
		{"UTC by offset", "America/New_York", "2026-11-01T01:30:07Z", "2026-11-01T01:30:07Z"},
		{"UTC as +00:00", "America/New_York", "2026-11-01T01:30:07+00:00", "2026-11-01T01:30:07Z"},
		{"the day that Apia lost", "Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, gap := range bothGaps {
				// The policy is for occurrences: a bound is never skipped.
				r := mustSpec(t, Spec{Cron: "* 0-23 * * *", Zone: c.zone, Gap: gap, Start: c.text})
				if !r.start.Equal(at(t, c.want)) {
					t.Errorf("start %v, want %s", r.start, c.want)
				}
				e := mustSpec(t, Spec{Cron: "* * * * *", Zone: c.zone, Gap: gap, End: c.text})
				if !e.limit.Equal(at(t, c.want)) {
					t.Errorf("end %v, want %s", e.limit, c.want)
				}
			}
		})
	}
}

func TestSkippedDoNotCount(t *testing.T) {
	s := Spec{Cron: "30 2 * * *", Zone: "America/New_York", Gap: GapSkip, Start: "2026-03-07T00:00", Count: new(3)}
	got, skipped := toTheEnd(t, mustSpec(t, s), at(t, "2026-01-01T00:00:00Z"))
	wantTimes(t, got, "2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z")
	if len(skipped) != 1 {
		t.Errorf("skipped %v", skipped)
	}
	s.Gap = GapRunOnce
	got, _ = toTheEnd(t, mustSpec(t, s), at(t, "2026-01-01T00:00:00Z"))
	wantTimes(t, got, "2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z")
	t.Run("a skip after the last one, or at the end, is not reported", func(t *testing.T) {
		s.Gap, s.Count = GapSkip, new(1)
		if _, skipped := toTheEnd(t, mustSpec(t, s), at(t, "2026-01-01T00:00:00Z")); skipped != nil {
			t.Errorf("skipped %v", skipped)
		}
		s.Count, s.End = nil, "2026-03-08T03:00"
		if _, skipped := toTheEnd(t, mustSpec(t, s), at(t, "2026-01-01T00:00:00Z")); skipped != nil {
			t.Errorf("skipped %v", skipped)
		}
		s.End = "2026-03-08T03:00:01"
		if _, skipped := toTheEnd(t, mustSpec(t, s), at(t, "2026-01-01T00:00:00Z")); len(skipped) != 1 {
			t.Errorf("skipped %v", skipped)
		}
	})
}

// TestCountIsTheNthOfTheChain compares the counting by days and months with asking one by one.
func TestCountIsTheNthOfTheChain(t *testing.T) {
	t.Parallel()
	changes := map[string][]time.Time{"Pacific/Apia": {at(t, "2011-12-30T10:00:00Z")}, "Pacific/Kwajalein": {at(t, "1993-08-21T12:00:00Z")}}
	for _, name := range zonesCompared {
		changes[name] = changesIn(mustZone(t, name), yearsFrom, yearsTo.AddDate(-1, 0, 0))
	}
	zones := slices.Sorted(maps.Keys(changes))
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "rule"), 1))
		s := Spec{Cron: randomRule(r), Zone: rapid.SampledFrom(zones).Draw(t, "zone"), Gap: rapid.SampledFrom(bothGaps).Draw(t, "gap")}
		if rapid.Bool().Draw(t, "each minute") {
			s.Cron = rapid.SampledFrom([]string{"* * * * *", "* 0-23 * * *", "*/2 0-4 * * *"}).Draw(t, "cron")
		}
		start := time.Unix(rapid.Int64Range(0, 60*365*86400).Draw(t, "start"), 0).UTC()
		if list := changes[s.Zone]; len(list) > 0 && rapid.Bool().Draw(t, "near a change") {
			start = rapid.SampledFrom(list).Draw(t, "change").Add(time.Duration(rapid.IntRange(-96*60, 26*60).Draw(t, "minutes")) * time.Minute)
		}
		s.Start = start.Format(time.RFC3339)
		n := rapid.IntRange(1, 2000).Draw(t, "count")
		free, err := Parse(s)
		if err != nil {
			t.Skip(err)
		}
		want := start.Add(-1)
		for range n {
			if want = free.Next(want).At; want.IsZero() {
				t.Skip("no end within the calendar")
			}
		}
		if want.Year() >= start.Year()+countYears-1 {
			t.Skip("too late to be allowed")
		}
		s.Count = &n
		counted, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := counted.Next(want.Add(-1)).At; !got.Equal(want) || !counted.Next(want).At.IsZero() {
			t.Fatalf("%v: the last is %v, the chain says %v", s, counted.lastOfCount(), want)
		}
	})
}

// TestDaysAgainstOracle compares the days of each month with the oracle's reading of both day fields.
func TestDaysAgainstOracle(t *testing.T) {
	r := seed(t)
	for range 150 {
		cron := randomRule(r)
		f, err := parseFields(cron)
		if err != nil {
			continue
		}
		part := strings.Fields(cron)
		rule := readRule("0 0 " + strings.Join(part[2:], " "))
		for m := (Month{2027, 1}); m.Year < 2029; m = m.Add(1) {
			var want uint64
			for c := m.first(); c.Month() == m.Month; c = c.AddDate(0, 0, 1) {
				if rule.matches(c) {
					want |= 1 << c.Day()
				}
			}
			if got := f.days(m); got != want {
				t.Fatalf("%q in %s: days %b, want %b", cron, m, got, want)
			}
		}
	}
}

// TestCountTakesFewSteps bounds the work of Parse, which each delivery does anew.
func TestCountTakesFewSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec Spec
		most int
	}{
		{Spec{Cron: "* * * * *"}, 4000},
		{Spec{Cron: "* 0-23 * * *"}, 4000},
		{Spec{Cron: "*/5 * * * *"}, 4000},
		{Spec{Cron: "0 * * * *"}, 4000},
		{Spec{Cron: "0 9 * * *"}, 4000},
		{Spec{Cron: "0 9 * * MON-FRI", Gap: GapSkip}, 4000},
		{Spec{Every: "1m"}, 0},
	} {
		for _, zone := range []string{"America/New_York", "Africa/Casablanca", "Australia/Lord_Howe", "UTC"} {
			s := c.spec
			s.Zone, s.Start, s.Count = zone, "2026-01-15T00:00", new(MaxCount)
			r := mustSpec(t, s)
			last, steps := r.nth(MaxCount, r.start.AddDate(countYears, 0, 0))
			if !last.Equal(r.lastOfCount()) || steps > c.most {
				t.Errorf("%v: %d steps to %v, want at most %d", s, steps, last, c.most)
			}
		}
	}
	t.Run("what is refused ends its search too", func(t *testing.T) {
		for _, s := range []Spec{{Cron: "0 9 29 2 *"}, {Cron: "0 9 * 2 MON#5"}, {Cron: "0 9 1 * *"}, {Workday: new(23), At: "09:00"}, {Workday: new(-1), At: "09:00", Gap: GapSkip}} {
			s.Zone, s.Start = "America/New_York", "2026-01-15T00:00"
			r := mustSpec(t, s)
			if _, steps := r.nth(MaxCount, r.start.AddDate(countYears, 0, 0)); steps > 12*countYears+1 {
				t.Errorf("%v: %d steps", s, steps)
			}
			s.Count = new(MaxCount)
			_, err := Parse(s)
			wantFieldError(t, err, "count", "100000", "is not used up by 3026-01-15", "a smaller count")
		}
	})
}

func TestCountNeedsNoEndOfItsOwn(t *testing.T) {
	s := Spec{Cron: "0 9 29 2 *", Zone: "UTC", Start: "2026-01-01T00:00", End: "2030-01-01T00:00", Count: new(MaxCount)}
	got, _ := toTheEnd(t, mustSpec(t, s), at(t, "2000-01-01T00:00:00Z"))
	wantTimes(t, got, "2028-02-29T09:00:00Z")
}
