package calendar

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// workdayOracle walks the days of some years by their names and picks, per month, the n-th that is neither a Saturday,
// a Sunday nor listed. It shares no code with the package.
func workdayOracle(n, fromYear, toYear int, holidays []string) []string {
	var days []string
	byMonth := map[string][]string{}
	var months []string
	for d := time.Date(fromYear, 1, 1, 12, 0, 0, 0, time.UTC); d.Year() <= toYear; d = d.Add(24 * time.Hour) {
		month := d.Format("2006-01")
		if len(months) == 0 || months[len(months)-1] != month {
			months = append(months, month)
		}
		if day := d.Format("2006-01-02"); !strings.HasPrefix(d.Format("Mon"), "S") && !slices.Contains(holidays, day) {
			byMonth[month] = append(byMonth[month], day)
		}
	}
	for _, m := range months {
		list := byMonth[m]
		if n < 0 {
			list = slices.Clone(list)
			slices.Reverse(list)
		}
		if i := max(n, -n); i <= len(list) {
			days = append(days, list[i-1])
		}
	}
	return days
}

// instantOf finds the first minute that shows a local time, or the first after the gap that leaves it out, by walking.
func instantOf(t testing.TB, loc *time.Location, day, clock string) (at time.Time, gap bool) {
	t.Helper()
	c, err := time.Parse(localMinutes, day+"T"+clock)
	if err != nil {
		t.Fatal(err)
	}
	for m := c.Add(-16 * time.Hour); m.Before(c.Add(16 * time.Hour)); m = m.Add(15 * time.Minute) { // local times are quarters here
		switch l := m.In(loc).Format("2006-01-02T15:04"); {
		case l == day+"T"+clock:
			return m, false
		case l > day+"T"+clock && at.IsZero():
			at = m
		}
	}
	return at, true
}

func TestWorkdayAgainstDayWalk(t *testing.T) {
	r := seed(t)
	total, gaps := 0, 0
	for _, name := range zonesCompared {
		loc := mustZone(t, name)
		for range 4 {
			n := 1 + r.IntN(23)
			if r.IntN(2) == 0 {
				n = -n
			}
			var holidays []string
			for range r.IntN(120) {
				d := time.Date(2026, 1, 1+r.IntN(3*365), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
				if !slices.Contains(holidays, d) {
					holidays = append(holidays, d)
				}
			}
			clock := []string{"00:00", "00:30", "02:15", "09:00", "23:45"}[r.IntN(5)]
			gap := bothGaps[r.IntN(2)]
			rule := mustSpec(t, Spec{Workday: &n, At: clock, Holidays: holidays, Zone: name, Gap: gap})
			var want []string
			for _, day := range workdayOracle(n, 2026, 2028, holidays) {
				at, left := instantOf(t, loc, day, clock)
				if left {
					gaps++
				}
				if !left || gap == GapRunOnce {
					want = append(want, at.UTC().Format(time.RFC3339))
				}
			}
			got, _ := due(rule, time.Date(2025, 12, 31, 10, 0, 0, 0, loc), time.Date(2028, 12, 31, 23, 59, 0, 0, loc))
			if len(got) > 0 && got[0].In(loc).Year() == 2025 {
				got = got[1:]
			}
			wantTimes(t, got, want...)
			if t.Failed() {
				t.Fatalf("%v %v", rule.Spec(), holidays)
			}
			total += len(got)
		}
	}
	if total < 500 {
		t.Errorf("only %d", total)
	}
	t.Logf("%d times due agree, %d in gaps", total, gaps)
}

func TestWorkdayProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 23).Draw(t, "n") * rapid.SampledFrom([]int{1, -1}).Draw(t, "way")
		year := rapid.IntRange(1970, 2150).Draw(t, "year")
		offs := rapid.SliceOfNDistinct(rapid.IntRange(0, 364), 0, 60, rapid.ID[int]).Draw(t, "holidays")
		var holidays []string
		for _, d := range offs {
			holidays = append(holidays, time.Date(year, 1, 1+d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
		}
		r, err := Parse(Spec{Workday: &n, At: "12:00", Holidays: holidays, Zone: "UTC"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); ; {
			if at = r.Next(at).At; at.Year() != year {
				break
			}
			got = append(got, at.Format(time.DateOnly))
		}
		if want := workdayOracle(n, year, year, holidays); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

func TestWorkdayThroughChanges(t *testing.T) {
	// Cairo's clocks go forward at 00:00 on the last Friday of April: in 2026 the 24th, the fifth workday from the end.
	s := Spec{Workday: new(-5), At: "00:30", Zone: "Africa/Cairo"}
	from, to := at(t, "2026-04-01T00:00:00Z"), at(t, "2026-05-31T00:00:00Z")
	t.Run("T1 run-once", func(t *testing.T) {
		got, skipped := due(mustSpec(t, s), from, to)
		wantTimes(t, got, "2026-04-23T22:00:00Z", "2026-05-24T21:30:00Z")
		if skipped != nil {
			t.Errorf("skipped %v", skipped)
		}
		note := "00:30 does not exist on 2026-04-24 in Africa/Cairo: clocks go from 00:00 to 01:00; due once at 01:00"
		if p := mustSpec(t, s).Preview(from, 1); p[0].Note != note {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("T2 skip", func(t *testing.T) {
		s.Gap = GapSkip
		got, skipped := due(mustSpec(t, s), from, to)
		wantTimes(t, got, "2026-05-24T21:30:00Z")
		nominal := at(t, "2026-04-23T22:30:00Z")
		want := Skip{nominal, nominal, 1, "00:30 does not exist on 2026-04-24 in Africa/Cairo: clocks go from 00:00 to 01:00"}
		if len(skipped) != 1 || skipped[0] != want {
			t.Errorf("got %+v", skipped)
		}
	})
	t.Run("T3 a repeated hour", func(t *testing.T) {
		// and back at 24:00 on the last Thursday of October, so that 23:30 on the 29th comes twice.
		s := Spec{Workday: new(-2), At: "23:30", Zone: "Africa/Cairo"}
		r := mustSpec(t, s)
		got, _ := due(r, at(t, "2026-10-01T00:00:00Z"), at(t, "2026-11-01T00:00:00Z"))
		wantTimes(t, got, "2026-10-29T20:30:00Z")
		if p := r.Preview(at(t, "2026-10-01T00:00:00Z"), 1); !strings.HasSuffix(p[0].Note, "happens twice on 2026-10-29 in Africa/Cairo; runs at the first") {
			t.Errorf("got %+v", p)
		}
	})
}

func TestWorkdayIsFoundBeyondItsHolidays(t *testing.T) {
	// Each month that could have a 23rd workday loses one day, for as long as the list allows.
	var holidays []string
	for y := 2026; len(holidays) < MaxHolidays; y++ {
		for _, day := range workdayOracle(23, y, y, nil) {
			if len(holidays) < MaxHolidays {
				holidays = append(holidays, day)
			}
		}
	}
	r := mustSpec(t, Spec{Workday: new(23), At: "09:00", Holidays: holidays, Zone: "UTC"})
	got := r.Next(at(t, "2026-01-01T00:00:00Z")).At
	if last := holidays[MaxHolidays-1]; got.IsZero() || got.Format(time.DateOnly) <= last {
		t.Errorf("got %v, the holidays end on %s", got, last)
	}
}
