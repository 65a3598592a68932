package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"almanac/internal/input"
)

// Timing holds every wait and bound of scheduled delivery. The infrastructure's typed profile writes it into the
// functions' environment, so that tests on a deployed stack can shorten it.
type Timing struct {
	MaxAttempts   int      `json:"max_attempts"`   // attempts of a run, yields not counted
	MaxYields     int      `json:"max_yields"`     // lifecycles A, "yield"
	LeaseMargin   Duration `json:"lease_margin"`   // a lease ends this long after the invocation's deadline
	BackoffBase   Duration `json:"backoff_base"`   // visibility after a passing failure: base × 2^(attempt − yields)
	BackoffMax    Duration `json:"backoff_max"`    // and at most this, also for a receiver's Retry-After
	SweepQueued   Duration `json:"sweep_queued"`   // a queued run is offered again this long after admission, × 2^offers
	SweepMax      Duration `json:"sweep_max"`      // at most this
	SweepReleased Duration `json:"sweep_released"` // a released run is looked at this long after it is visible again
	Backlog       int      `json:"backlog"`        // above this many visible messages no queued run is offered again
	Reserve       Duration `json:"reserve"`        // no recipient is begun with less time left than this
	SendTimeout   Duration `json:"send_timeout"`   // one try of one request
	Missed        Duration `json:"missed"`         // an occurrence is missed when seen this long past its nominal time
	RunRetention  Duration `json:"run_retention"`  // runs, submissions and skip records expire after this
	NeverStarted  int      `json:"never_started"`  // DLQ visits without a begin or resume between, until a run fails
	TickReserve   Duration `json:"tick_reserve"`   // dispatch takes nothing new with less time left than this
	PageSize      int      `json:"page_size"`      // schedules read from the due index at once
	Parallel      int      `json:"parallel"`       // admissions at once, and recipients given up at once
	DownloadLife  Duration `json:"download_life"`  // life of the signed address behind one click on a link
}

// DefaultTiming are the figures of lifecycles A.
func DefaultTiming() Timing {
	return Timing{
		MaxAttempts: 5, MaxYields: 200,
		LeaseMargin: Duration(time.Minute),
		BackoffBase: Duration(30 * time.Second), BackoffMax: Duration(15 * time.Minute),
		SweepQueued: Duration(5 * time.Minute), SweepMax: Duration(time.Hour), SweepReleased: Duration(5 * time.Minute),
		Backlog: 1000, Reserve: Duration(20 * time.Second), SendTimeout: Duration(10 * time.Second),
		Missed: Duration(10 * time.Minute), RunRetention: Duration(400 * 24 * time.Hour),
		NeverStarted: 3, TickReserve: Duration(5 * time.Second), PageSize: 100, Parallel: 16,
		DownloadLife: Duration(time.Minute),
	}
}

// ParseTiming reads what the profile wrote, strictly: each field present and sensible.
func ParseTiming(text string) (Timing, error) {
	var t Timing
	if err := input.Strict([]byte(text), &t); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return t, fmt.Errorf("TIMING: %s", input.ProblemOf(err, "timing", input.FieldNames(reflect.TypeFor[Timing]())))
		}
		return t, fmt.Errorf("TIMING: %w", err)
	}
	return t, t.Validate()
}

// settling is what an attempt leaves of its invocation's time to write down how it ended.
func (t Timing) settling() time.Duration { return t.Reserve.Std() - t.SendTimeout.Std() }

// Validate names the first figure that cannot be.
func (t Timing) Validate() error {
	positive := []struct {
		name string
		v    int64
	}{
		{"max_attempts", int64(t.MaxAttempts)}, {"max_yields", int64(t.MaxYields)}, {"lease_margin", int64(t.LeaseMargin)},
		{"backoff_base", int64(t.BackoffBase)}, {"backoff_max", int64(t.BackoffMax)}, {"sweep_queued", int64(t.SweepQueued)},
		{"sweep_max", int64(t.SweepMax)}, {"sweep_released", int64(t.SweepReleased)}, {"backlog", int64(t.Backlog)},
		{"reserve", int64(t.Reserve)}, {"send_timeout", int64(t.SendTimeout)}, {"missed", int64(t.Missed)},
		{"run_retention", int64(t.RunRetention)}, {"never_started", int64(t.NeverStarted)}, {"tick_reserve", int64(t.TickReserve)},
		{"page_size", int64(t.PageSize)}, {"parallel", int64(t.Parallel)}, {"download_life", int64(t.DownloadLife)},
	}
	for _, f := range positive {
		if f.v <= 0 {
			return fmt.Errorf("TIMING: %s is %d; want more than 0", f.name, f.v)
		}
	}
	// A message's visibility is at most 12 hours (AWS: ChangeMessageVisibility); the specification stays at 15 minutes.
	if t.BackoffMax.Std() > 12*time.Hour {
		return fmt.Errorf("TIMING: backoff_max is %s; SQS allows at most 12h", t.BackoffMax.Std())
	}
	if t.settling() < 2*time.Second {
		return fmt.Errorf("TIMING: reserve is %s; want at least send_timeout %s and 2s, or the outcome of a request begun at the reserve could not be written", t.Reserve.Std(), t.SendTimeout.Std())
	}
	return nil
}
