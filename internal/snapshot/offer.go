package snapshot

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"almanac/internal/failure"
)

// offerer starts attempt jobs, and settles those that closed without settling their run. Dispatcher and reconciler share
// it.
type offerer struct {
	ledger DispatchLedger
	jobs   Jobs
	clocks Clocks
	timing Timing
	log    *slog.Logger
	count  Counter
}

// outcome is what became of an offer.
type outcome string

const (
	started  outcome = "started"  // by this offer, or by an earlier one of the same name that still runs
	attached outcome = "attached" // an earlier offer's job runs
	lost     outcome = "job_lost" // an earlier offer's job has closed: the attempt was settled as failed
	waiting  outcome = "waiting"  // unknown: the next offer, five minutes later, finds out
)

// offer starts the job of a run that was claimed or is offered again. The name is the job's own, so that a second offer
// never makes a second job (cases S1, N7).
func (o *offerer) offer(ctx context.Context, r Run) (outcome, error) {
	execution, err := o.jobs.Start(ctx, r.JobName(), Job{Run: r.ID(), Job: r.Job})
	if errors.Is(err, ErrJobExists) {
		return o.existing(ctx, r)
	}
	if err != nil {
		return waiting, err
	}
	return started, o.attach(ctx, r, execution)
}

// attach notes a run's execution. A run that has moved on already, or was cancelled, needs none.
func (o *offerer) attach(ctx context.Context, r Run, execution string) error {
	err := o.ledger.Attach(ctx, r, execution)
	if IsConflict(err) {
		return nil
	}
	return err
}

// existing decides by the job that has the name: one that runs is attached, one that closed while the row is still queued
// under it has lost the attempt.
func (o *offerer) existing(ctx context.Context, r Run) (outcome, error) {
	job, err := o.jobs.Describe(ctx, r.JobName())
	if err != nil {
		return waiting, err
	}
	switch job.State {
	case JobRunning:
		return attached, o.attach(ctx, r, job.Execution)
	case JobClosed:
		return o.settle(ctx, r.ID(), r.Job, "the attempt job "+r.JobName()+" has closed as "+job.Detail+" and has not begun the run")
	}
	return waiting, nil // it exists and does not show yet
}

// settle fails the attempt of a run whose job is over, if the run is still admitted under that job.
func (o *offerer) settle(ctx context.Context, id string, job int, why string) (outcome, error) {
	for range rereads {
		r, err := o.ledger.Run(ctx, id)
		if err != nil {
			return waiting, err
		}
		if !r.Admitted() || r.Job != job {
			return waiting, nil // it has settled by itself meanwhile
		}
		now := o.clocks.Wall()
		s := o.timing.Settle(r, failure.New(failure.JobLost, "%s", why), now)
		err = o.ledger.Fail(ctx, r, s, now)
		if IsConflict(err) {
			continue
		}
		if err != nil {
			return waiting, err
		}
		countFailure(o.count, r, s)
		o.log.Warn("attempt settled for its job", "run", id, "job", job, "state", r.State, "next_attempt", s.NextAt, "why", why)
		return lost, nil
	}
	return waiting, nil
}

// countFailure counts a failed attempt, whoever settles it, by whether it was the last.
func countFailure(count Counter, r Run, s Settlement) {
	outcome := "retried"
	if s.NextAt.IsZero() {
		outcome = "final"
	}
	count("snapshot_failures", 1, outcome, kindOf(r))
}

// reoffer offers a queued run again whose job has not shown for five minutes (case N8).
func (o *offerer) reoffer(ctx context.Context, r Run) (outcome, error) {
	now := o.clocks.Wall()
	before := now.Add(-o.timing.JobGrace.Std())
	if r.State != Queued || r.Execution != "" || r.OfferedAt.After(before) {
		return waiting, nil
	}
	r, err := o.ledger.Reoffer(ctx, r, now, before)
	if IsConflict(err) {
		return waiting, nil // another one offers it, or it has begun
	}
	if err != nil {
		return waiting, err
	}
	return o.offer(ctx, r)
}

// since is how long ago something was; never negative.
func since(now, then time.Time) time.Duration { return max(now.Sub(then), 0) }
