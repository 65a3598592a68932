package snapshot

import (
	"context"
	"errors"
	"log/slog"
)

// cancelLedger is what a cancellation asks of the store.
type cancelLedger interface {
	Run(ctx context.Context, id string) (Run, error)
	Cancel(ctx context.Context, r Run, c Cancellation) error
}

// cancel cancels a run in whatever state it is: where it moved on between read and write it is read again (case N17). The
// run comes back as it stands then, so that the caller knows its job. A run that has settled is a *Conflict.
func cancel(ctx context.Context, ledger cancelLedger, id string, c Cancellation) (Run, error) {
	for try := 0; ; try++ {
		r, err := ledger.Run(ctx, id)
		if err != nil {
			return r, err
		}
		if r.Final() {
			return r, &Conflict{Event: string(Cancel), Why: "the run is " + settledAs(r) + "; only a run that has not settled can be cancelled", Run: &r}
		}
		err = ledger.Cancel(ctx, r, c)
		if IsConflict(err) && ctx.Err() == nil && try < rereads {
			continue
		}
		if err != nil {
			return r, err
		}
		return ledger.Run(ctx, id)
	}
}

// rereads bounds how often a command reads again because a row changed between its read and its write. A run moves a few
// dozen times in its life, chunks aside, so that more than a few in a row means a defect.
const rereads = 20

// settledAs says how a run has settled, for people.
func settledAs(r Run) string {
	if r.State == Failed {
		return "failed for good"
	}
	return string(r.State)
}

// stopJob stops the attempt job of a run that was cancelled, if it ever had one. Where that fails, the job's next write is
// refused anyway.
func stopJob(ctx context.Context, jobs JobStopper, r Run, why string, log *slog.Logger) {
	if r.Job == 0 {
		return
	}
	if err := jobs.Stop(ctx, r.JobName(), why); err != nil {
		log.Warn("the attempt job could not be stopped; its next write will be refused", "run", r.ID(), "job", r.Job, "error", err)
	}
}

// ask asks for a dispatch at once; the tick is the backstop.
func ask(ctx context.Context, d Dispatch, log *slog.Logger) {
	if err := d.Ask(ctx); err != nil {
		log.Warn("no dispatch could be asked for; the tick will come", "error", err)
	}
}

// active finds the version that a head names as under way, for a refusal that names it.
func active(ctx context.Context, ledger Reading, event Event, h Head) error {
	r, err := ledger.Run(ctx, Run{Period: h.Period, Version: h.Active}.ID())
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return &Conflict{Event: string(event), Why: "version " + r.ID() + " is " + string(r.State) + "; wait until it has settled, or cancel it", Run: &r, Head: &h}
}
