package calendar

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEveryAgainstMinuteWalk counts minutes of real time from start, across each change of the clocks of a year.
func TestEveryAgainstMinuteWalk(t *testing.T) {
	r := seed(t)
	for _, name := range zonesCompared {
		loc := mustZone(t, name)
		for _, change := range append(changesIn(loc, yearsFrom, yearsTo.AddDate(-1, 0, 0)), yearsFrom.AddDate(0, 6, 0)) {
			every := time.Duration(1+r.IntN(1500)) * time.Minute
			startText, start := written(r, minutesOf(loc, change.Add(-70*time.Hour), change), 30*60+r.IntN(40*60))
			rule := mustSpec(t, Spec{Every: every.String(), Zone: name, Start: startText})
			var want []time.Time
			elapsed, to := time.Duration(0), change.Add(40*time.Hour)
			for m := start; !m.After(to); m = m.Add(time.Minute) {
				if elapsed%every == 0 {
					want = append(want, m)
				}
				elapsed += time.Minute
			}
			got, skipped := due(rule, start.Add(-time.Duration(1+r.IntN(1e9))), to)
			if len(got) != len(want) || skipped != nil {
				t.Fatalf("%v: got %v\nwant %v", rule.Spec(), got, want)
			}
			for i := range got {
				if !got[i].Equal(want[i]) {
					t.Fatalf("%v: occurrence %d is %v, want %v", rule.Spec(), i, got[i], want[i])
				}
			}
		}
	}
}

func TestEveryProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.Int64Range(60, 366*86400).Draw(t, "every")) * time.Second
		start := time.Unix(rapid.Int64Range(0, 100*365*86400).Draw(t, "start"), 0).UTC()
		n := rapid.IntRange(1, 300).Draw(t, "count")
		zone := rapid.SampledFrom(zonesCompared).Draw(t, "zone")
		r, err := Parse(Spec{Every: short(every), Zone: zone, Start: start.Format(time.RFC3339), Count: &n})
		if err != nil {
			t.Fatal(err)
		}
		got, want := start.Add(-1), start
		for i := range n {
			if got = r.Next(got).At; !got.Equal(want) {
				t.Fatalf("occurrence %d is %v, want %v", i, got, want)
			}
			// Wherever one asks from within the interval, the next is the same.
			within := want.Add(time.Duration(rapid.Int64Range(0, int64(every)-1).Draw(t, "within")))
			want = want.Add(every)
			if next := r.Next(within).At; i < n-1 && !next.Equal(want) || i == n-1 && !next.IsZero() {
				t.Fatalf("after %v: %v, want %v", within, next, want)
			}
		}
	})
}

func TestEveryTakesNoNoticeOfClocks(t *testing.T) {
	r := mustSpec(t, Spec{Every: "24h", Zone: "America/New_York", Start: "2026-03-07T09:00"})
	got, _ := due(r, at(t, "2026-01-01T00:00:00Z"), at(t, "2026-03-09T15:00:00Z"))
	wantTimes(t, got, "2026-03-07T14:00:00Z", "2026-03-08T14:00:00Z", "2026-03-09T14:00:00Z")
	t.Run("far from start", func(t *testing.T) {
		r := mustSpec(t, Spec{Every: "1m", Zone: "UTC", Start: "1970-01-01T00:00:30Z"})
		for after, want := range map[string]string{
			"0001-01-01T00:00:00Z": "1970-01-01T00:00:30Z", "9998-12-31T23:59:30Z": "9999-01-01T00:00:30Z", "9999-12-31T23:59:29Z": "9999-12-31T23:59:30Z",
		} {
			wantTimes(t, []time.Time{r.Next(at(t, after)).At}, want)
		}
		if n := r.Next(at(t, "9999-12-31T23:59:30Z")).At; !n.IsZero() {
			t.Errorf("beyond the last year: %v", n)
		}
	})
}
