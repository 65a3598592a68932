package snapshot

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
)

// Dispatcher claims planned runs and due retries under the owners' caps, and starts their attempt jobs (lifecycles D,
// "Caps"). Several at once never exceed a cap: the owner's slots decide in the claim's own transaction.
type Dispatcher struct {
	Ledger DispatchLedger
	Jobs   Jobs
	// Off reports that dispatch is switched off: nothing is claimed or offered then.
	Off    func(context.Context) (bool, error)
	Clocks Clocks
	Timing Timing
	Log    *slog.Logger
	Count  Counter
}

// DispatchTally is what a tick of the dispatcher did.
type DispatchTally struct {
	Claimed   int  `json:"claimed"`
	Started   int  `json:"started"`   // jobs, those of earlier claims included
	Reoffered int  `json:"reoffered"` // queued runs whose job had not shown for five minutes
	Lost      int  `json:"lost"`      // attempts settled because their job had closed
	Unstarted int  `json:"unstarted"` // claimed, and it is unknown whether the job started: offered again in five minutes
	Errors    int  `json:"errors"`    // owners or runs that could not be handled; the next tick finds them again
	Partial   bool `json:"partial"`
	Off       bool `json:"off"`
}

// Tick offers forgotten jobs again and claims what the caps permit, for each owner. It returns an error only where
// nothing could be done at all.
func (d *Dispatcher) Tick(ctx context.Context) (DispatchTally, error) {
	t := &dispatchTick{Dispatcher: d, offerer: &offerer{d.Ledger, d.Jobs, d.Clocks, d.Timing, d.Log, d.Count}}
	off, err := d.Off(ctx)
	if err != nil {
		return t.DispatchTally, err
	}
	if off {
		t.DispatchTally.Off = true
		return t.DispatchTally, nil
	}
	owners, err := d.Ledger.Owners(ctx)
	if err != nil {
		return t.DispatchTally, err
	}
	for _, o := range rotated(owners, int(d.Clocks.Wall().Unix()/60)) { // each tick begins elsewhere, so that no owner starves
		if !t.timeLeft(ctx) {
			break
		}
		if err := t.owner(ctx, o); err != nil {
			t.trouble("owner could not be dispatched", err, "owner", o.ID)
		}
	}
	d.Count("snapshots_claimed", t.Claimed, "", "")
	d.Count("snapshot_jobs", t.Started, "started", "")
	d.Count("snapshot_dispatch_errors", t.Errors, "", "")
	d.Log.Info("dispatch", "tally", t.DispatchTally)
	return t.DispatchTally, nil
}

// rotated begins a list elsewhere.
func rotated[T any](list []T, by int) []T {
	if len(list) == 0 {
		return nil
	}
	by %= len(list)
	return slices.Concat(list[by:], list[:by])
}

type dispatchTick struct {
	*Dispatcher
	offerer *offerer

	mu sync.Mutex
	DispatchTally
}

func (t *dispatchTick) timeLeft(ctx context.Context) bool {
	if t.Timing.timeLeft(ctx, t.Clocks.Wall()) {
		return true
	}
	t.mu.Lock()
	t.Partial = true
	t.mu.Unlock()
	return false
}

func (t *dispatchTick) trouble(what string, err error, args ...any) {
	t.mu.Lock()
	t.Errors++
	t.mu.Unlock()
	t.Log.Error(what, append(args, "code", failure.From(err).Code, "error", err.Error())...)
}

// owner offers an owner's forgotten jobs again, and then claims: current months first, since a slot is left to backfills
// anyway.
func (t *dispatchTick) owner(ctx context.Context, o Owner) error {
	if err := t.forgotten(ctx, o); err != nil {
		return err
	}
	caps, err := t.Ledger.Caps(ctx, o.ID)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, t.Timing.Parallel)
	begin := func(r Run) {
		slots <- struct{}{}
		wg.Go(func() { defer func() { <-slots }(); t.begin(ctx, r) })
	}
	for _, backfill := range []bool{false, true} {
		if err := t.claims(ctx, &caps, backfill, begin); err != nil {
			return err
		}
	}
	return nil
}

func (t *dispatchTick) forgotten(ctx context.Context, o Owner) error {
	open, err := t.Ledger.Open(ctx, o.ID)
	if err != nil {
		return err
	}
	for _, id := range open {
		if !t.timeLeft(ctx) {
			return nil
		}
		r, err := t.Ledger.Run(ctx, id)
		if err != nil {
			t.trouble("run could not be read", err, "run", id)
			continue
		}
		offered := r.OfferedAt
		what, err := t.offerer.reoffer(ctx, r)
		if err != nil {
			t.trouble("job could not be offered again", err, "run", id, "job", r.Job)
		}
		if what != waiting || err != nil {
			t.mu.Lock()
			t.Reoffered++
			t.mu.Unlock()
			t.Log.Info("job offered again", "run", id, "job", r.Job, "offered_before", offered, "outcome", what)
		}
		t.tell(what)
	}
	return nil
}

func (t *dispatchTick) tell(what outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch what {
	case started, attached:
		t.Started++
	case lost:
		t.Lost++
	}
}

// permits reports whether caps as they stand permit one more claim (lifecycles D, "Caps"). It saves claims that would be
// refused; the store's condition decides.
func (c Caps) permits(backfill bool) bool {
	switch {
	case len(c.Slots) >= c.Cap:
		return false
	case backfill:
		return len(c.Backfills) < c.Owner.Backfill
	case c.Owner.Backfill > 0:
		return len(c.Slots) < c.Cap-1 || len(c.Backfills) > 0
	}
	return true
}

func (c *Caps) took(r Run) {
	c.Slots = append(c.Slots, r.ID())
	if r.Backfill {
		c.Backfills = append(c.Backfills, r.ID())
	}
}

// claims claims runs of one kind, the oldest month first, until the caps refuse.
func (t *dispatchTick) claims(ctx context.Context, caps *Caps, backfill bool, begin func(Run)) error {
	if !caps.permits(backfill) {
		return nil
	}
	ids, err := t.candidates(ctx, caps.Owner, backfill)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !caps.permits(backfill) || !t.timeLeft(ctx) {
			return nil
		}
		r, refused, err := t.claim(ctx, id, caps.Owner)
		if err != nil {
			t.trouble("run could not be claimed", err, "run", id)
			continue
		}
		if refused { // other dispatchers were faster
			if *caps, err = t.Ledger.Caps(ctx, caps.ID); err != nil {
				return err
			}
		}
		if r.State == Queued {
			caps.took(r)
			begin(r)
		}
	}
	return nil
}

// candidates are planned runs and due retries, the oldest month first. The index only suggests.
func (t *dispatchTick) candidates(ctx context.Context, o Owner, backfill bool) ([]string, error) {
	planned, err := t.Ledger.Planned(ctx, o.ID, backfill, t.Timing.PageSize)
	if err != nil {
		return nil, err
	}
	retries, err := t.Ledger.Retries(ctx, o.ID, backfill, t.Clocks.Wall(), t.Timing.PageSize)
	if err != nil {
		return nil, err
	}
	ids := slices.Concat(retries, planned)
	slices.SortStableFunc(ids, func(a, b string) int { return strings.Compare(monthIn(a), monthIn(b)) })
	return ids, nil
}

func monthIn(id string) string {
	_, _, month, _, _ := schema.SplitSnapshotID(id)
	return month
}

// claim claims one run. A run that comes back otherwise than queued was claimed by another dispatcher, has settled, or is
// not due yet; refused: the caps did not permit it.
func (t *dispatchTick) claim(ctx context.Context, id string, o Owner) (r Run, refused bool, err error) {
	r, err = t.Ledger.Run(ctx, id)
	now := t.Clocks.Wall()
	if err != nil || r.State != Planned && (r.State != Failed || r.NextAt.IsZero() || r.NextAt.After(now)) {
		return Run{}, false, err
	}
	claimed, err := t.Ledger.Claim(ctx, r, o, now)
	var c *Conflict
	if errors.As(err, &c) {
		return Run{}, c.Caps != nil, nil
	}
	if err != nil {
		return Run{}, false, err
	}
	t.mu.Lock()
	t.Claimed++
	t.mu.Unlock()
	t.Log.Info("claimed", "run", id, "job", claimed.Job, "backfill", claimed.Backfill, "waited", since(now, r.CreatedAt).Round(time.Second).String())
	return claimed, false, nil
}

// begin starts the job of a run that was just claimed.
func (t *dispatchTick) begin(ctx context.Context, r Run) {
	what, err := t.offerer.offer(ctx, r)
	if err != nil {
		t.trouble("job could not be started; it will be offered again", err, "run", r.ID(), "job", r.Job)
	}
	if what == waiting {
		t.mu.Lock()
		t.Unstarted++
		t.mu.Unlock()
	}
	t.tell(what)
}
