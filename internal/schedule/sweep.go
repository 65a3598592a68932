package schedule

import (
	"context"
	"errors"
	"time"

	"almanac/internal/schema"
)

// sweep offers again what nobody works on: queued runs whose message may be lost, running ones whose lease has ended, and
// notices that were not sent. While the queue's visible backlog is above its bound no queued run and no notice is offered,
// so that a long queue does not breed copies (case V17).
func (t *tick) sweep(ctx context.Context, start int) {
	backlog, err := t.Queue.Backlog(ctx)
	if err != nil {
		t.trouble("the queue's backlog could not be read: no queued run is offered again", err)
		backlog = t.Timing.Backlog + 1
	}
	t.Backlog = backlog
	now := t.Clocks.Wall()
	for i := range schema.Shards {
		t.sweepShard(ctx, true, (start+i)%schema.Shards, now)
	}
	if backlog > t.Timing.Backlog {
		return
	}
	for i := range schema.OutboxShards {
		t.sweepOutbox(ctx, (start+i)%schema.OutboxShards, now)
	}
	for i := range schema.Shards {
		t.sweepShard(ctx, false, (start+i)%schema.Shards, now)
	}
}

// sweepShard offers again what one partition of the open-run index suggests.
func (t *tick) sweepShard(ctx context.Context, begun bool, shard int, now time.Time) {
	from := ""
	for t.timeLeft(ctx) {
		ids, next, err := t.Ledger.Open(ctx, begun, shard, now, from, t.Timing.PageSize)
		if err != nil {
			t.trouble("open-run index could not be read", err, "shard", shard)
			return
		}
		var runs []string
		t.each(ids, func(id string) {
			if t.reoffer(ctx, id, now) {
				t.mu.Lock()
				runs = append(runs, id)
				t.mu.Unlock()
			}
		})
		t.Reoffer += len(runs)
		t.offer(ctx, runs)
		if from = next; from == "" {
			return
		}
	}
}

// reoffer moves a run's wake_at on the condition that it is as read, and reports whether its message is to be sent.
func (t *tick) reoffer(ctx context.Context, id string, now time.Time) bool {
	r, err := t.Ledger.Run(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return false
	}
	if err != nil {
		t.trouble("run could not be read", err, "run", id)
		return false
	}
	if !forgotten(r, now) {
		return false
	}
	switch err := t.Ledger.Reoffer(ctx, r, now, now.Add(OfferPause(r.Offers, t.Timing)), false); {
	case IsConflict(err):
		return false // somebody was faster
	case err != nil:
		t.trouble("run could not be offered again", err, "run", id)
		return false
	}
	t.Log.Info("offered again", "run", id, "occurrence", r.Occurrence, "attempt", r.Attempts, "state", r.State, "offers", r.Offers+1)
	return true
}

// forgotten decides whether a run is to be offered again.
func forgotten(r Run, now time.Time) bool {
	switch {
	case r.WakeAt.After(now):
		return false // the index was behind
	case r.State == Queued:
		return true
	}
	return r.State == Running && !r.LeaseLive(now)
}

// OfferPause is how long a run waits after its n-th offer: SweepQueued × 2^n, at most SweepMax.
func OfferPause(offers int, t Timing) time.Duration {
	return doubling(t.SweepQueued.Std(), offers, t.SweepMax.Std())
}

// doubling is base × 2^n, at most limit, without overflow.
func doubling(base time.Duration, n int, limit time.Duration) time.Duration {
	for ; n > 0 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}
