package calendar

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDelayIsWithinJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jitter := time.Duration(rapid.IntRange(1, 3600).Draw(t, "jitter")) * time.Second
		id := rapid.String().Draw(t, "id")
		r, err := Parse(Spec{Cron: "0 9 * * *", Zone: "UTC", Jitter: short(jitter)})
		if err != nil {
			t.Fatal(err)
		}
		nominal := time.Unix(rapid.Int64Range(0, 1<<36).Draw(t, "nominal"), 0)
		d := r.Delay(id, nominal)
		if d < 0 || d >= jitter || d%time.Second != 0 {
			t.Fatalf("%v with jitter %v", d, jitter)
		}
		if again := r.Delay(id, nominal.In(time.FixedZone("", 3600))); again != d {
			t.Fatalf("%v, then %v", d, again)
		}
	})
}

func TestDelayIsSpreadEvenly(t *testing.T) {
	r := mustSpec(t, Spec{Cron: "0 9 * * *", Zone: "UTC", Jitter: "60s"})
	nine := at(t, "2026-01-01T09:00:00Z")
	for name, delay := range map[string]func(i int) time.Duration{
		"over schedules":   func(i int) time.Duration { return r.Delay(fmt.Sprintf("report-%d", i), nine) },
		"over occurrences": func(i int) time.Duration { return r.Delay("report", nine.AddDate(0, 0, i)) },
	} {
		var buckets [60]int
		for i := range 60_000 {
			buckets[delay(i)/time.Second]++
		}
		for second, n := range buckets { // 1000 expected, standard deviation 32
			if n < 840 || n > 1160 {
				t.Errorf("%s: second %d comes %d times of 60000", name, second, n)
			}
		}
	}
}

// A delay must outlast releases: another hash would move what has been planned. The values pin it.
func TestDelayStaysWhatItIs(t *testing.T) {
	r := mustSpec(t, Spec{Every: "2h", Zone: "UTC", Start: "2026-01-01T00:00", Jitter: "1h"})
	for nominal, want := range map[string]time.Duration{
		"2026-01-01T00:00:00Z": 3364 * time.Second, "2026-01-01T02:00:00Z": 1005 * time.Second, // by a hash computed elsewhere
	} {
		if got := r.Delay("delays", at(t, nominal)); got != want {
			t.Errorf("%s: %v, want %v", nominal, got, want)
		}
	}
	if a, b := r.Delay("a1", at(t, "2026-01-01T00:00:00Z")), r.Delay("a", at(t, "2026-01-01T00:00:00Z")); a == b {
		t.Errorf("both %v", a)
	}
}

func TestJitterMovesNoNominalTime(t *testing.T) {
	s := Spec{Cron: "*/30 1-3 * * *", Zone: "America/New_York", Gap: GapSkip, Start: "2026-03-07T00:00", Count: new(20)}
	want, wantSkips := toTheEnd(t, mustSpec(t, s), at(t, "2026-01-01T00:00:00Z"))
	s.Jitter = "1h"
	got, skips := toTheEnd(t, mustSpec(t, s), at(t, "2026-01-01T00:00:00Z"))
	if fmt.Sprint(got, skips) != fmt.Sprint(want, wantSkips) {
		t.Errorf("got  %v %v\nwant %v %v", got, skips, want, wantSkips)
	}
	if d := mustParse(t, "0 9 * * *", "UTC", "").Delay("delays", want[0]); d != 0 {
		t.Errorf("without jitter: %v", d)
	}
}
