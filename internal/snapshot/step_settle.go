package snapshot

import (
	"context"

	"almanac/internal/failure"
)

// settleTries bounds how often a settlement is tried against a row that keeps changing.
const settleTries = 5

// Settle settles an attempt that failed with what a Catch handed on: after the first three passing failures the run waits
// for its next attempt, the fourth and any refusal are final. It frees the slot and asks for a dispatch. A run that has
// settled, or that is another job's, is left as it is.
func (s *Steps) Settle(ctx context.Context, j Job, caught Caught) (Result, error) {
	return s.do(ctx, "settle", j, func(w *work, ctx context.Context) (bool, error) {
		f := caught.Failure()
		if v := w.run.Verdict; w.run.State == Validating && v != nil && f.Code != failure.StepDied {
			if said := refusal(v.Checks); !v.Passed && said != nil {
				f = said // as it was found, not as it came through the workflow
			}
		}
		var err error
		for range settleTries {
			now := w.Clocks.Wall()
			how := w.Timing.Settle(w.run, f, now)
			if how.NextAt.IsZero() || w.run.State == Validating { // the next attempt, if any, asks anew
				w.stopQuery(ctx)
			}
			if err = w.Ledger.Fail(ctx, w.run, how, now); err == nil {
				w.settled(ctx, f, how)
				return true, nil
			}
			if err := w.changed(ctx, err); err != nil {
				return false, err
			}
		}
		return false, failure.Wrap(failure.StoreUnavailable, err, "the failure could not be settled: the row kept changing")
	})
}

func (w *work) settled(ctx context.Context, f *failure.Failure, how Settlement) {
	w.log.Warn("the attempt failed", "code", f.Code, "message", f.Cut(), "from", w.run.State, "final", how.NextAt.IsZero(), "next", how.NextAt)
	w.run.State = Failed
	countFailure(w.Count, w.run, how)
	w.free(ctx)
}
