package snapshot

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
)

// Leavings is the bucket as the reconciler sees it: it looks at a run's objects and removes those that no manifest needs.
type Leavings interface {
	Objects
	// Remove removes objects; one that is gone is no error. On an error some may be left.
	Remove(ctx context.Context, keys []string) error
}

// Reconciler compares what the table says with what runs and lies outside, and mends the difference (lifecycles D,
// "Reconcile"). It works without any event about a job's status: each tick finds what none told.
type Reconciler struct {
	Ledger   ReconcileLedger
	Jobs     Jobs
	Objects  Leavings
	Dispatch Dispatch
	// Off reports that dispatch is switched off: no job is offered then. Everything else goes on.
	Off    func(context.Context) (bool, error)
	Clocks Clocks
	Timing Timing
	Log    *slog.Logger
	Count  Counter
}

// Findings is what a tick of the reconciler found and did.
type Findings struct {
	Reoffered int `json:"reoffered"`
	Lost      int `json:"lost"`    // attempts settled because their job had closed or was gone
	Drift     int `json:"drift"`   // slots freed whose run was not admitted
	Cleaned   int `json:"cleaned"` // runs whose leftovers were removed
	Removed   int `json:"removed"` // objects

	// The three numbers, each with an alarm of its own.
	Late          int           `json:"late"`           // periods
	OldestLate    time.Duration `json:"oldest_late"`    // how long the latest of them all has been late, business time
	FinalFailures int           `json:"final_failures"` // periods whose latest version failed for good, until its leftovers are removed
	OldestQueued  time.Duration `json:"oldest_queued"`  // since its claim

	Errors  int  `json:"errors"`
	Partial bool `json:"partial"` // time was nearly up, or something could not be read: the numbers may be too low
}

// Tick looks at every owner, and then at what is late and what is left over. It returns an error only where nothing could
// be done at all.
func (r *Reconciler) Tick(ctx context.Context) (Findings, error) {
	t := &reconcileTick{Reconciler: r, offerer: &offerer{r.Ledger, r.Jobs, r.Clocks, r.Timing, r.Log, r.Count}}
	var err error
	if t.now, err = r.Clocks.Business(ctx); err != nil {
		return t.Findings, err
	}
	if t.off, err = r.Off(ctx); err != nil {
		return t.Findings, err
	}
	owners, err := r.Ledger.Owners(ctx)
	if err != nil {
		return t.Findings, err
	}
	turn := int(r.Clocks.Wall().Unix() / 300) // each tick begins elsewhere, so that nothing starves
	for _, o := range rotated(owners, turn) {
		if err := t.owner(ctx, o.ID); err != nil {
			t.trouble("owner could not be reconciled", err, "owner", o.ID)
		}
	}
	for i := range schema.Shards {
		t.lateShard(ctx, (turn+i)%schema.Shards)
		t.failedShard(ctx, (turn+i)%schema.Shards)
	}
	t.numbers() // what follows changes none of them, whether it succeeds or not
	for i := range schema.Shards {
		t.cleanShard(ctx, (turn+i)%schema.Shards)
	}
	t.report()
	return t.Findings, nil
}

type reconcileTick struct {
	*Reconciler
	offerer *offerer
	now     time.Time // business time
	off     bool
	waiting waits

	Findings
}

// numbers sends the three numbers. One that may be too low is not sent: it would silence an alarm.
func (t *reconcileTick) numbers() {
	if t.Partial {
		return
	}
	t.Count("snapshots_late", t.Late, "", "")
	t.Count("snapshots_late_oldest_seconds", int(t.OldestLate/time.Second), "", "")
	t.Count("snapshots_failed_for_good", t.FinalFailures, "", "")
	t.Count("snapshots_queued_oldest_seconds", int(t.OldestQueued/time.Second), "", "")
}

// report sends what the tick did. A tick that never comes to its end is trouble too, or its numbers would be missed by
// nobody.
func (t *reconcileTick) report() {
	trouble := t.Errors
	if t.Partial {
		trouble = max(trouble, 1)
	}
	t.Count("snapshot_slots_drift", t.Drift, "", "")
	t.Count("snapshot_jobs", t.Lost, "lost", "")
	t.Count("snapshot_reconcile_errors", trouble, "", "")
	t.Log.Info("reconcile", "business_time", t.now, "findings", t.Findings)
}

func (t *reconcileTick) timeLeft(ctx context.Context) bool {
	if t.Timing.timeLeft(ctx, t.Clocks.Wall()) {
		return true
	}
	t.Partial = true
	return false
}

func (t *reconcileTick) trouble(what string, err error, args ...any) {
	t.Errors++
	t.Partial = true
	t.Log.Error(what, append(args, "code", failure.From(err).Code, "error", err.Error())...)
}

// owner looks at an owner's admitted runs and at its slots. Both name runs: a run that the index forgets has a slot.
func (t *reconcileTick) owner(ctx context.Context, owner string) error {
	open, err := t.Ledger.Open(ctx, owner)
	if err != nil {
		return err
	}
	caps, err := t.Ledger.Caps(ctx, owner)
	if err != nil {
		return err
	}
	held := held(caps)
	ids := slices.Concat(open, held)
	slices.Sort(ids)
	lost, suspects := t.Lost, []string(nil)
	for _, id := range slices.Compact(ids) {
		if !t.timeLeft(ctx) {
			break
		}
		run, err := t.Ledger.Run(ctx, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.trouble("run could not be read", err, "run", id)
			continue
		}
		if run.Admitted() {
			t.look(ctx, run)
		} else if slices.Contains(held, id) {
			suspects = append(suspects, id)
		}
	}
	if err := t.free(ctx, owner, suspects); err != nil {
		return err
	}
	if t.Lost > lost || len(suspects) > 0 {
		ask(ctx, t.Dispatch, t.Log)
	}
	return nil
}

func held(c Caps) []string {
	ids := slices.Concat(c.Slots, c.Backfills)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// look offers the job of an admitted run again, or settles the attempt whose job is over.
func (t *reconcileTick) look(ctx context.Context, r Run) {
	if r.State == Queued {
		t.OldestQueued = max(t.OldestQueued, since(t.Clocks.Wall(), r.ClaimedAt))
	}
	what, err := t.examine(ctx, r)
	if err != nil {
		t.trouble("job could not be looked at", err, "run", r.ID(), "job", r.Job)
	}
	switch what {
	case started, attached:
		t.Reoffered++
	case lost:
		t.Lost++
	}
}

func (t *reconcileTick) examine(ctx context.Context, r Run) (outcome, error) {
	if r.State == Queued && r.Execution == "" && !t.off {
		return t.offerer.reoffer(ctx, r)
	}
	job, err := t.Jobs.Describe(ctx, r.JobName())
	if err != nil {
		return waiting, err
	}
	switch {
	case job.State == JobClosed:
		return t.offerer.settle(ctx, r.ID(), r.Job, "the attempt job "+r.JobName()+" has closed as "+job.Detail+" and has not settled the run")
	case job.State == JobAbsent && r.State == Queued && r.Execution == "":
		return waiting, nil // it is offered again once dispatch is switched on
	case job.State == JobAbsent && since(t.Clocks.Wall(), r.ClaimedAt) >= t.Timing.JobGrace.Std() && since(t.Clocks.Wall(), r.OfferedAt) >= t.Timing.JobGrace.Std():
		return t.offerer.settle(ctx, r.ID(), r.Job, "there is no attempt job "+r.JobName())
	}
	return waiting, nil
}

// free frees slots whose runs are not admitted. A run that settles frees its own slot in the same transaction: only what
// is still there on a second look is drift.
func (t *reconcileTick) free(ctx context.Context, owner string, suspects []string) error {
	if len(suspects) == 0 {
		return nil
	}
	caps, err := t.Ledger.Caps(ctx, owner)
	if err != nil {
		return err
	}
	held := held(caps)
	for _, id := range suspects {
		if !slices.Contains(held, id) {
			continue
		}
		err := t.Ledger.Free(ctx, owner, id)
		if IsConflict(err) {
			continue // it was claimed again
		}
		if err != nil {
			return err
		}
		t.Drift++
		t.Log.Error("a slot was held for a run that is not admitted", "owner", owner, "run", id)
	}
	return nil
}
