package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/schema"
)

// A notice is an item of the outbox, put in the transaction of the settle that it tells of: neither is there without the
// other, whatever dies (case D14). The worker that settled sends it and deletes it; what it leaves the sweep has sent. It
// is sent at least once, and each try carries its id.

// Notice is one item of the outbox.
type Notice struct {
	channel.Notice
	Channel string
	NextAt  time.Time // wall time from which the sweep has it sent
	Tries   int       // how often the sweep had it sent
	Expires time.Time // wall time at which it is given up
	Resend  bool      // no notice, but a person's wish: its id is the resend's, and it tells nobody anything
}

// NoticeLife is how long a notice is tried: as long as a message lives in the queue.
const NoticeLife = 4 * 24 * time.Hour

// NoticeLook is what must be known before one notice is sent, read at one moment.
type NoticeLook struct {
	Notice     Notice
	Control    Control
	Suppressed bool
}

// NoticesOf makes the notices of a settle, one per address that the definition names. now is the wall time of the settle,
// sweep that from which on they are no longer their worker's own.
func NoticesOf(s Schedule, d Definition, r Run, o Outcome, e Effect, now, sweep time.Time) (ns []Notice) {
	if e.Notice == "" {
		return nil
	}
	streak := s.Streak
	if e.Streak != nil && *e.Streak > 0 {
		streak = *e.Streak
	}
	paused := e.Pause
	if s.State == Paused {
		paused = s.PauseReason
	}
	for _, t := range Targets(d.Notify) {
		ns = append(ns, Notice{Channel: t.Channel(), NextAt: sweep, Expires: now.Add(NoticeLife), Notice: channel.Notice{
			ID: schema.NoticeID(r.ID(), string(e.Notice), t.Channel(), t.Hash), Kind: e.Notice, At: now.UTC(),
			ScheduleID: s.ID, ScheduleName: s.Name, Workspace: s.Workspace, Zone: d.Recurrence.Zone, Owner: d.Owner,
			RunID: r.ID(), Occurrence: r.Occurrence, Nominal: r.Nominal.UTC(), Manual: r.Manual,
			Code: string(o.Code), Message: failure.Cut(o.Message, failure.MaxMessage), Streak: streak, Pause: paused,
			Recipient: t.Address(), SecretID: t.Secret}})
	}
	return ns
}

// announce sends what the settle put, in the time that the invocation has left.
func (w *work) announce(ctx context.Context) {
	for i, n := range w.put {
		w.Count("notices", 1, "put", n.Channel)
		end, ok := ctx.Deadline()
		if w.Notices == nil || ctx.Err() != nil || ok && end.Sub(w.Clocks.Wall()) < w.Timing.Reserve.Std() {
			w.log.Info("notices are left to the sweep", "notices", len(w.put)-i)
			return
		}
		if err := w.tell(ctx, n.ID); err != nil {
			w.log.Warn("a notice is left to the sweep", "notice", n.ID, "error", err.Error())
		}
	}
}

// handleNotice works on a message of the sweep.
func (d *Deliverer) handleNotice(ctx context.Context, id string) Disposition {
	if err := d.tell(ctx, id); err != nil {
		d.Log.Error("a notice's rows could not be read or written; the message comes again", "notice", id, "code", failure.From(err).Code, "error", err.Error())
		return again(d.Timing.BackoffBase.Std())
	}
	return done
}

// tell tries a notice once. An error means that a row could not be read or written; what the receiver does not take is
// none: the row stays, and the sweep comes back to it.
func (d *Deliverer) tell(ctx context.Context, id string) error {
	var held turns
	for {
		if err := d.tellOnce(ctx, id, &held); !errors.Is(err, errLookAgain) {
			return err
		}
	}
}

func (d *Deliverer) tellOnce(ctx context.Context, id string, held *turns) error {
	log := d.Log.With("notice", id)
	look, err := d.Ledger.BeforeNotice(ctx, id)
	if errors.Is(err, ErrNotFound) {
		log.Info("the notice was sent before, or has expired")
		return nil
	}
	if err != nil {
		return err
	}
	n := look.Notice
	if look.Control.SendOff {
		log.Info("sending is off; the notice is left to the sweep")
		return nil
	}
	var v channel.Verdict
	switch reason := d.unannounced(look); {
	case reason != "":
		v = channel.Verdict{Outcome: channel.Refused, Reason: reason}
	case d.Notices[n.Channel] == nil:
		v = channel.Verdict{Outcome: channel.RunRefused, Failure: failure.New(failure.ChannelMisconfig, "channel %q is not set up in this stage", n.Channel)}
	default:
		if v, err = d.say(ctx, n, held); err != nil {
			return err
		}
	}
	return d.told(ctx, n, v, log)
}

// say asks the receiver, in its turn. Without a turn in this invocation the receiver was not asked.
func (d *Deliverer) say(ctx context.Context, n Notice, held *turns) (channel.Verdict, error) {
	end, ok := ctx.Deadline()
	if !ok {
		end = d.Clocks.Wall().Add(time.Minute)
	}
	err := d.await(ctx, held, n.Channel, 1, end.Add(-d.Timing.Reserve.Std()))
	var none noTurn
	switch {
	case errors.As(err, &none):
		return channel.Verdict{Outcome: channel.NotAccepted, Failure: none.failure()}, nil
	case err != nil:
		return channel.Verdict{}, err
	}
	try, cancel := context.WithTimeout(ctx, d.Timing.SendTimeout.Std())
	defer cancel()
	return d.Notices[n.Channel].Announce(try, n.Notice), nil
}

// unannounced says why an address is not told at all.
func (d *Deliverer) unannounced(look NoticeLook) (reason string) {
	switch n := look.Notice; {
	case look.Suppressed:
		return channel.ReasonSuppressed
	case d.Allowed != nil && !d.Allowed(n.Channel, n.Recipient):
		return channel.ReasonRefused
	}
	return ""
}

// told notes a verdict. What was taken or refused leaves the outbox; should that fail, it is sent again under its id.
func (d *Deliverer) told(ctx context.Context, n Notice, v channel.Verdict, log *slog.Logger) error {
	log = log.With("schedule", n.ScheduleID, "kind", n.Kind, "channel", n.Channel, "tries", n.Tries)
	switch v.Outcome {
	case channel.Accepted:
		d.Count("notices", 1, "sent", n.Channel)
		log.Info("notice sent")
	case channel.Refused:
		d.Count("notices", 1, "refused", n.Channel)
		log.Error("the notice is given up: its address is refused", "reason", v.Reason, "detail", failure.Cut(v.Detail, 200))
	default:
		d.Count("notices", 1, "kept", n.Channel)
		log.Warn("the notice was not taken; the sweep has it sent again", "code", v.Failure.Code, "error", v.Failure.Message)
		return nil
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	return d.Ledger.RemoveNotice(own, n.ID)
}

// sweepOutbox has the notices and resends of one partition sent that were not sent when they should have been.
func (t *tick) sweepOutbox(ctx context.Context, shard int, now time.Time) {
	from := ""
	for t.timeLeft(ctx) {
		ns, next, err := t.Ledger.Outbox(ctx, shard, from, t.Timing.PageSize)
		if err != nil {
			t.trouble("outbox could not be read", err, "shard", shard)
			return
		}
		var notices, resends []string
		for _, n := range ns {
			switch {
			case !t.postpone(ctx, n, now):
			case n.Resend:
				resends = append(resends, n.ID)
			default:
				notices = append(notices, n.ID)
			}
		}
		t.Notices += len(notices)
		t.Resends += len(resends)
		t.Unsent += offer(ctx, t.Queue.SendNotices, notices, t.Log) + offer(ctx, t.Queue.SendResends, resends, t.Log)
		if from = next; from == "" {
			return
		}
	}
}

// postpone moves a notice's next time on the condition that it is as read, and reports whether its message is to be sent.
func (t *tick) postpone(ctx context.Context, n Notice, now time.Time) bool {
	if n.NextAt.After(now) {
		return false
	}
	next := now.Add(OfferPause(n.Tries, t.Timing))
	switch err := t.Ledger.PostponeNotice(ctx, n, next); {
	case IsConflict(err):
		return false // somebody was faster, or it has been sent
	case err != nil:
		t.trouble("notice could not be offered again", err, "notice", n.ID)
		return false
	}
	if next.After(n.Expires) {
		t.Count("notices", 1, "expiring", n.Channel)
		t.Log.Error("a notice or a resend could not be sent until it expires; this is its last try", "notice", n.ID, "tries", n.Tries+1)
	}
	return true
}
