package snapshot_test

import (
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/snapshot"
)

func TestTimingComesBackAsItWasWritten(t *testing.T) {
	want := snapshot.DefaultTiming()
	got, err := snapshot.ParseTiming(string(asJSON(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if string(asJSON(t, got)) != string(asJSON(t, want)) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := snapshot.ParseTiming(strings.Replace(string(asJSON(t, want)), "{", `{"retry": 1, `, 1)); err == nil || !strings.Contains(err.Error(), "retry") {
		t.Errorf("a figure that there is not: %v", err)
	}
	for name, text := range map[string]string{"not JSON": "x", "unknown": `{"retry":1}`, "wrong type": `{"page_size":"x"}`, "absent fields": "{}", "no duration": `{"job_grace":5}`} {
		if _, err := snapshot.ParseTiming(text); err == nil || !strings.Contains(err.Error(), "SNAPSHOT_TIMING") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimingThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*snapshot.Timing){
		"retry_delays has 2":    func(g *snapshot.Timing) { g.RetryDelays = g.RetryDelays[:2] },
		"retry_delays[1] is 5m": func(g *snapshot.Timing) { g.RetryDelays[1] = g.RetryDelays[0] },
		"retry_delays[0] is 0s": func(g *snapshot.Timing) { g.RetryDelays[0] = 0 },
		"job_grace is 0":        func(g *snapshot.Timing) { g.JobGrace = 0 },
		"tick_reserve is -1":    func(g *snapshot.Timing) { g.TickReserve = -1 },
		"page_size is 0":        func(g *snapshot.Timing) { g.PageSize = 0 },
		"parallel is 0":         func(g *snapshot.Timing) { g.Parallel = 0 },
		"off_every is 0":        func(g *snapshot.Timing) { g.OffEvery = 0 },
		"clean_after is 0":      func(g *snapshot.Timing) { g.CleanAfter = 0 },
	} {
		timing := snapshot.DefaultTiming()
		change(&timing)
		if err := timing.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// N6: three delays that widen; the fourth failure is final. A refusal is final at once.
func TestN6DelaysWidenAndTheFourthIsFinal(t *testing.T) {
	timing, now := snapshot.DefaultTiming(), time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC)
	lost := failure.New(failure.JobLost, "the job %s", strings.Repeat("x", 600))
	for failures, want := range []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 0} {
		s := timing.Settle(snapshot.Run{Failures: failures}, lost, now)
		next := now.Add(want)
		if want == 0 {
			next = time.Time{}
		}
		if !s.NextAt.Equal(next) || s.Code != failure.JobLost || len(s.Text) > failure.MaxMessage {
			t.Errorf("after %d failures: %+v, want %s", failures, s, next)
		}
	}
	if s := timing.Settle(snapshot.Run{}, failure.New(failure.QueryInvalid, "x"), now); !s.NextAt.IsZero() {
		t.Errorf("a refusal is tried again at %s", s.NextAt)
	}
	timing.RetryDelays[0] = input.Duration(time.Second)
	if s := timing.Settle(snapshot.Run{}, lost, now); !s.NextAt.Equal(now.Add(time.Second)) {
		t.Errorf("configured delay was not taken: %s", s.NextAt)
	}
}
