package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
)

// Clocks are the two clocks (lifecycles, "Words"). Business time is what months, watermarks and lateness are about; wall
// time is for retries, offers and ages of jobs. Only the local profile lets them differ.
type Clocks struct {
	Wall     func() time.Time
	Business func(context.Context) (time.Time, error)
}

// Counter counts for the metrics: at most an outcome and a kind go with a name.
type Counter func(name string, n int, outcome, kind string)

// MaxFailures is the failure that settles a run for good: the first three are followed by a delay each.
const MaxFailures = 4

// Timing holds every wait and bound of the snapshots' functions. The infrastructure's typed profile writes it into their
// environment, so that tests on a deployed stack can shorten it.
type Timing struct {
	RetryDelays []input.Duration `json:"retry_delays"` // after the first, second and third failure; widening
	// JobGrace is how long an offered job may take to show itself: before that no job is offered again and none is gone.
	JobGrace    input.Duration `json:"job_grace"`
	TickReserve input.Duration `json:"tick_reserve"` // a tick takes nothing new with less time left than this
	PageSize    int            `json:"page_size"`    // entries of an index read at once
	Parallel    int            `json:"parallel"`     // series that a planner looks at, or jobs that a dispatcher starts, at once
	OffEvery    input.Duration `json:"off_every"`    // the planner looks at a series that is switched off this often
	CleanAfter  input.Duration `json:"clean_after"`  // leftovers of runs that settled for good this long ago are removed
}

// DefaultTiming are the figures of lifecycles D.
func DefaultTiming() Timing {
	minutes := func(n int) input.Duration { return input.Duration(time.Duration(n) * time.Minute) }
	return Timing{
		RetryDelays: []input.Duration{minutes(5), minutes(30), minutes(120)}, JobGrace: minutes(5),
		TickReserve: input.Duration(5 * time.Second), PageSize: 200, Parallel: 8,
		OffEvery: input.Duration(24 * time.Hour), CleanAfter: input.Duration(7 * 24 * time.Hour),
	}
}

// ParseTiming reads what the profile wrote, strictly: each field present and sensible.
func ParseTiming(text string) (Timing, error) {
	var t Timing
	if err := input.Strict([]byte(text), &t); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return t, fmt.Errorf("SNAPSHOT_TIMING: %s", input.ProblemOf(err, "timing", input.FieldNames(reflect.TypeFor[Timing]())))
		}
		return t, fmt.Errorf("SNAPSHOT_TIMING: %w", err)
	}
	return t, t.Validate()
}

// Validate names the first figure that cannot be.
func (t Timing) Validate() error {
	if len(t.RetryDelays) != MaxFailures-1 {
		return fmt.Errorf("SNAPSHOT_TIMING: retry_delays has %d delays; want %d, one after each failure but the last", len(t.RetryDelays), MaxFailures-1)
	}
	before := time.Duration(0)
	for i, d := range t.RetryDelays {
		if d.Std() <= before {
			return fmt.Errorf("SNAPSHOT_TIMING: retry_delays[%d] is %s; want more than %s: delays widen", i, d.Std(), before)
		}
		before = d.Std()
	}
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"job_grace", int64(t.JobGrace)}, {"tick_reserve", int64(t.TickReserve)}, {"page_size", int64(t.PageSize)},
		{"parallel", int64(t.Parallel)}, {"off_every", int64(t.OffEvery)}, {"clean_after", int64(t.CleanAfter)},
	} {
		if f.v <= 0 {
			return fmt.Errorf("SNAPSHOT_TIMING: %s is %d; want more than 0", f.name, f.v)
		}
	}
	return nil
}

// Settle says how a failure settles a run's attempt (lifecycles D, "fail"): after the first three passing failures the
// run waits a widening delay; the fourth, and any refusal, is final.
func (t Timing) Settle(r Run, f *failure.Failure, now time.Time) Settlement {
	s := Settlement{Code: f.Code, Text: f.Cut()}
	if f.Passing() && r.Failures < len(t.RetryDelays) {
		s.NextAt = now.Add(t.RetryDelays[r.Failures].Std())
	}
	return s
}

// timeLeft reports whether a tick may begin something new.
func (t Timing) timeLeft(ctx context.Context, wall time.Time) bool {
	if ctx.Err() != nil {
		return false
	}
	end, ok := ctx.Deadline()
	return !ok || end.Sub(wall) >= t.TickReserve.Std()
}
