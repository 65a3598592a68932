package snapshot

import (
	"context"
	"errors"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Publish makes the validated version the period's current one, tied to the verdict: its manifest, and the current version
// that it was compared with. Where the pointer has moved since, the month is judged anew against the one that is there.
func (s *Steps) Publish(ctx context.Context, j Job) (Result, error) {
	return s.do(ctx, "publish", j, func(w *work, ctx context.Context) (bool, error) {
		return true, w.publish(ctx)
	})
}

func (w *work) publish(ctx context.Context) error {
	if w.run.State != Validating || w.run.Verdict == nil {
		return failure.New(failure.InternalError, "publication was asked for before there was a verdict; the run is %s", w.run.State)
	}
	if err := verdictFailure(w.run.Verdict); err != nil {
		return err
	}
	read, err := w.current(ctx)
	if err != nil {
		return err
	}
	if read.Version != w.run.Verdict.Current {
		w.log.Info("the current version moved since the verdict", "compared", w.run.Verdict.Current, "current", read.Version)
		if err := w.judge(ctx); errors.Is(err, source.ErrRunning) {
			return outOfTime("the control query was not looked at again when the invocation's time was up")
		} else if err != nil {
			return err
		}
		if read, err = w.current(ctx); err != nil {
			return err
		}
	}
	if err := w.Ledger.Publish(ctx, w.run, read, w.Clocks.Wall()); err != nil {
		return w.unpublished(ctx, err)
	}
	w.run.State = Published
	w.Count("snapshot_published", 1, "", kindOf(w.run))
	w.free(ctx)
	return nil
}

// unpublished tells why a publication was refused: the run is stale, or somebody changed the period meanwhile, so that the
// next try reads it again.
func (w *work) unpublished(ctx context.Context, err error) error {
	var refused *Conflict
	if !errors.As(err, &refused) {
		return err
	}
	if err := w.changed(ctx, err); err != nil {
		return err
	}
	return failure.Wrap(failure.StoreUnavailable, err, "the version could not be published: %s", refused.Why)
}

func kindOf(r Run) string {
	if r.Backfill {
		return "backfill"
	}
	return "current"
}
