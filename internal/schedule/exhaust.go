package schedule

import (
	"context"
	"errors"
	"time"

	"almanac/internal/failure"
)

// ExhaustLedger is what the consumer of the dead-letter queue asks of the store, besides the deliverer's.
type ExhaustLedger interface {
	Reoffer(ctx context.Context, r Run, now, wake time.Time, fromDLQ bool) error
	RecordDead(ctx context.Context, d DeadLetter, expires time.Time) error
}

// Exhauster works on what reached the dead-letter queue: it offers a run again while attempts remain, settles it where
// none do or where it never gets started, and keeps what nobody can read.
type Exhauster struct {
	Deliverer *Deliverer // settles; sends nothing
	Ledger    ExhaustLedger
	Queue     Queue
	QueueName string
}

// Handle works on one dead letter. An error means that nothing was recorded: the letter must come again.
func (e *Exhauster) Handle(ctx context.Context, messageID, body string) error {
	d := e.Deliverer
	m, err := DecodeMessage(body)
	if err != nil {
		now := d.Clocks.Wall()
		d.Log.Error("a message that cannot be read is kept for a person", "message", messageID, "code", failure.MessageInvalid, "bytes", len(body))
		d.Count("dead_letters", 1, "unreadable", "")
		return e.Ledger.RecordDead(ctx, DeadLetter{MessageID: messageID, Queue: e.QueueName, Body: failure.Cut(body, 4096), Reason: failure.From(err).Cut(), At: now}, now.Add(d.Timing.RunRetention.Std()))
	}
	if m.Notice != "" {
		d.Log.Warn("a dead letter names a notice; it is left to the sweep", "notice", m.Notice)
		return nil
	}
	if m.Resend != "" {
		d.Log.Warn("a dead letter asks for a resend; nothing is sent here, and the sweep offers it again", "resend", m.Resend)
		return d.lapsed(ctx, m.Resend, d.Log)
	}
	w := &work{Deliverer: d, id: m.Run, log: d.Log.With("run", m.Run)}
	w.run, err = d.Ledger.Run(ctx, m.Run)
	switch now := d.Clocks.Wall(); {
	case errors.Is(err, ErrNotFound):
		w.log.Warn("the dead letter names a run that is not there, or no more")
		return nil
	case err != nil:
		return err
	case w.run.Settled():
		return nil
	case w.run.LeaseLive(now):
		w.log.Info("a worker holds the run; it is left to the sweep")
		return nil
	case w.run.AttemptsLeft <= 0:
		return w.settleLost(w.settleExhausted(ctx))
	case w.run.DeadLetters+1 >= d.Timing.NeverStarted:
		return w.settleLost(e.neverStarted(ctx, w))
	default:
		return w.settleLost(e.reoffer(ctx, w, now))
	}
}

// neverStarted begins or resumes the run and fails it: there is no way from queued to failed.
func (e *Exhauster) neverStarted(ctx context.Context, w *work) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	f := failure.New(failure.NeverStarted, "its message reached the dead-letter queue %d times without an attempt between", w.Timing.NeverStarted)
	if w.run.StopBy != "" {
		f = w.stopped(w.run)
	}
	_, err := w.failed(ctx, f) // what a yield leaves, the sweep offers to the consumer
	return err
}

// reoffer moves wake_at first, then sends: should the send be lost, the sweep finds the run by its wake_at.
func (e *Exhauster) reoffer(ctx context.Context, w *work, now time.Time) error {
	if err := e.Ledger.Reoffer(ctx, w.run, now, now.Add(OfferPause(w.run.Offers, w.Timing)), true); err != nil {
		return err
	}
	w.Count("dead_letters", 1, "reoffered", "")
	w.log.Warn("a dead letter's run is offered again", "attempts_left", w.run.AttemptsLeft, "visits", w.run.DeadLetters+1)
	Offer(ctx, e.Queue, []string{w.id}, w.log)
	return nil
}
