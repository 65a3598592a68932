package schedule

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"almanac/internal/failure"
)

// giveUpAll brings the submissions of a run that is about to fail to their ends, several at once, and returns the states
// that they have then. It stops at the first error, and when the time for it is up.
func (w *work) giveUpAll(ctx context.Context, all []Submission, code failure.Code) ([]SubmissionState, error) {
	g := givingUp{work: w, code: code, until: w.givingUpEnds(), all: all, states: make([]SubmissionState, len(all))}
	var workers sync.WaitGroup
	for range min(w.Timing.Parallel, len(all)) {
		workers.Go(func() { g.run(ctx) })
	}
	workers.Wait()
	switch {
	case g.err != nil:
		return nil, g.err
	case !g.late.Load():
		return g.states, nil
	case g.wrote.Load() > 0:
		w.log.Info("recipients given up, more remain", "now", g.wrote.Load(), "of", len(all))
		return nil, yielded{"time is nearly up, and recipients remain to be given up"}
	}
	return nil, failure.New(failure.OutOfTime, "time was nearly up before the first recipient was given up")
}

// givingUpEnds is when the invocation must turn to the last write: half of what an attempt leaves of it is for that and
// for the message's visibility. An attempt that used up its time has a quarter for giving up.
func (w *work) givingUpEnds() time.Time {
	least, most := w.Clocks.Wall().Add(w.Timing.settling()/4), w.over.Add(-w.Timing.settling()/2)
	if most.After(least) {
		return most
	}
	return least
}

// givingUp is what the workers of one giveUpAll share.
type givingUp struct {
	*work
	code   failure.Code
	until  time.Time
	all    []Submission
	states []SubmissionState // each is written by the one worker that took it

	next  atomic.Int64
	wrote atomic.Int64
	late  atomic.Bool
	once  sync.Once
	err   error // the first one
	ended atomic.Bool
}

func (g *givingUp) run(ctx context.Context) {
	for !g.ended.Load() {
		i := int(g.next.Add(1)) - 1
		if i >= len(g.all) {
			return
		}
		if ctx.Err() != nil || g.Clocks.Wall().After(g.until) {
			g.late.Store(true)
			return
		}
		state, err := g.settled(ctx, g.all[i])
		if err != nil {
			g.once.Do(func() { g.err = err })
			g.ended.Store(true)
			return
		}
		g.states[i] = state
	}
}

// settled gives one recipient up, again where another worker changed the submission meanwhile.
func (g *givingUp) settled(ctx context.Context, sub Submission) (SubmissionState, error) {
	state, err := g.giveUp(ctx, sub, g.code)
	var c *Conflict
	for errors.As(err, &c) && c.Submission != nil && ctx.Err() == nil {
		sub = *c.Submission
		state, err = g.giveUp(ctx, sub, g.code) // an earlier worker's late answer came between
	}
	if err == nil && state != sub.State {
		g.wrote.Add(1)
	}
	return state, err
}

// giveUp brings one submission of a run that is about to fail to its end.
func (w *work) giveUp(ctx context.Context, sub Submission, code failure.Code) (SubmissionState, error) {
	sub.UpdatedAt = w.Clocks.Wall()
	switch {
	case sub.State == "" || sub.State == Pending && sub.NotAccepted:
		sub.Reason = string(code)
		return NotSent, w.Ledger.Abandon(ctx, sub, w.lease.Token, w.expires())
	case sub.State == Pending:
		ch := w.Channels[sub.Channel]
		honours := ch != nil && ch.HonoursKeys()
		sub.Detail = "the run ended before the receiver's answer was known"
		return Unknown, w.Ledger.LoseTrack(ctx, sub, w.lease.Token, honours, true)
	}
	return sub.State, nil
}

// failed fails the run, or yields where its recipients are too many for this invocation.
func (w *work) failed(ctx context.Context, f *failure.Failure) (Disposition, error) {
	err := w.fail(ctx, f)
	var y yielded
	if errors.As(err, &y) && w.run.Yields < w.Timing.MaxYields {
		return w.yield(ctx, y)
	}
	return done, w.settleLost(err)
}

// yield gives the lease back, and the attempt with it: the message comes again at once.
func (w *work) yield(ctx context.Context, y yielded) (Disposition, error) {
	l := w.now()
	l.Wake = l.Now.Add(w.Timing.SweepReleased.Std())
	if err := w.Ledger.Yield(ctx, w.run, l, w.Timing.MaxYields, y.why); err != nil {
		return done, w.settleLost(err)
	}
	w.log.Info("attempt yields", "why", y.why, "yields", w.run.Yields+1)
	return again(0), nil
}
