package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
)

// ResendLedger is what asking for a resend asks of the store.
type ResendLedger interface {
	// AskToResend notes the wish on an unknown and puts it into the outbox, in one transaction with its audit. The sweep
	// looks at it from next on, until it expires. One that is not unknown any more, or that bears a wish already, is a
	// Conflict that carries it.
	AskToResend(ctx context.Context, s Submission, wish string, next, expires time.Time, a Audit) error
}

// Wish is a person's wish that an unknown be sent again; whoever carries it out takes it off the row.
type Wish struct{ ID, By, Why string }

// Resend asks that a recipient of whom nobody knows gets the recorded file again, under a new key, so that they may get
// it twice. It is carried out by the deliver function, soon. A second ask before that finds the first, and offers it
// again. Until then the wish stands in the outbox: no lost message loses it.
func (e *Editor) Resend(ctx context.Context, id, recipient, reason, by string) (Submission, error) {
	if ps := needReason(reason); ps != nil {
		return Submission{}, ps
	}
	wish := e.Token()
	a := e.audit(id, by, "resend", reason, "", "")
	for try := 0; ; try++ {
		sub, until, err := e.resendable(ctx, id, recipient)
		if err != nil {
			return sub, err
		}
		if sub.Wish.ID == "" {
			a.Before, a.After = sub.named(Unknown), fmt.Sprintf("asked to send as number %d: %s %s", sub.Resends+2, sub.Channel, sub.RecipientHash)
			if err = e.Ledger.AskToResend(ctx, sub, wish, a.At.Add(e.Timing.SweepQueued.Std()), until, a); retry(ctx, err, try) {
				continue // another asked, or resolved it, between read and write
			}
			if err != nil {
				return sub, err
			}
			sub.Wish = Wish{wish, by, reason}
		}
		offer(ctx, e.Queue.SendResends, []string{schema.ResendID(id, sub.Channel, sub.RecipientHash, sub.Wish.ID)}, e.Log)
		return sub, nil
	}
}

// resendable reads an unknown that may be sent again, and until when it may.
func (e *Editor) resendable(ctx context.Context, id, recipient string) (sub Submission, until time.Time, err error) {
	if sub, err = e.unknown(ctx, id, recipient, "resend"); err != nil {
		return sub, until, err
	}
	r, err := e.Ledger.Run(ctx, id)
	if err != nil {
		return sub, until, err
	}
	if why := unsendable(r, sub, e.Clocks.Wall()); why != "" {
		return sub, until, &Conflict{Event: "resend", Why: why, Run: &r}
	}
	return sub, r.LinkExpires, nil
}

// unsendable says why a recipient's request cannot be sent again.
func unsendable(r Run, s Submission, now time.Time) string {
	switch {
	case !r.Settled():
		return fmt.Sprintf("the run is still %s; its worker has the say until it settles", r.State)
	case r.File == nil:
		return "no file is recorded on the run"
	case !now.Before(r.LinkExpires):
		return fmt.Sprintf("the link to its file ended at %s; retry as new, or run the schedule now", r.LinkExpires.UTC().Format(time.RFC3339))
	case !r.LinksRevoked.IsZero(), !s.RevokedAt.IsZero():
		return "the link to its file was taken back"
	}
	return ""
}

// key names a request of a submission to its receiver: each resend has a key of its own.
func (s Submission) key(run string, t Target) string {
	if s.Resends == 0 {
		return run + "/" + t.key()
	}
	return fmt.Sprintf("%s/%s/%d", run, t.key(), s.Resends+1)
}

// handleResend carries out one wish, and takes it out of the outbox once there is nothing left to do about it. What it
// finds pending was taken by a worker before: while that one's lease lives it waits, after that nobody knows (again) what
// became of the request, which is never sent a second time.
func (d *Deliverer) handleResend(ctx context.Context, id string) Disposition {
	run, channelName, hash, wish, _ := schema.SplitResendID(id)
	w := &work{Deliverer: d, id: run, log: d.Log.With("run", run, "recipient", hash, "channel", channelName)}
	wait, err := w.resend(ctx, channelName, hash, wish)
	for errors.Is(err, errLookAgain) {
		wait, err = w.resend(ctx, channelName, hash, wish)
	}
	if err == nil && wait == 0 {
		err = w.record(ctx, func(ctx context.Context) error { return d.Ledger.RemoveNotice(ctx, id) })
	}
	switch {
	case errors.Is(err, errSendOff):
		w.log.Info("sending is off; the sweep offers the resend again once it is on")
		return done
	case err == nil && wait > 0:
		return again(wait)
	case err == nil:
		return done
	case IsConflict(err):
		w.log.Info("another was faster", "reason", err.Error())
		return done
	}
	w.log.Error("the resend could not be carried out; the sweep offers it again", "code", failure.From(err).Code, "error", err.Error())
	return done
}

var errSendOff = errors.New("sending is off")

// resend reports how long to wait where it is not the time.
func (w *work) resend(ctx context.Context, channelName, hash, wish string) (wait time.Duration, err error) {
	schedule, occurrence, _ := schema.SplitRunID(w.id)
	look, err := w.Ledger.BeforeRecipient(ctx, Run{Schedule: schedule, Occurrence: occurrence}, channelName, hash)
	if errors.Is(err, ErrNotFound) || err == nil && look.Submission == nil {
		return 0, nil // expired
	}
	if err != nil {
		return 0, err
	}
	w.run = look.Run
	sub, now := *look.Submission, w.Clocks.Wall()
	switch {
	case sub.State == Pending && sub.Resends > 0:
		return w.lapse(ctx, sub, now)
	case sub.State != Unknown || sub.Wish.ID != wish:
		return 0, nil // carried out, or resolved
	case unsendable(w.run, sub, now) != "":
		w.log.Warn("the resend is not possible any more", "why", unsendable(w.run, sub, now))
		return 0, nil
	case look.Control.SendOff:
		return 0, errSendOff
	}
	return 0, w.again(ctx, sub, look, now)
}

// lapse loses track of a resend whose worker did not come back.
func (w *work) lapse(ctx context.Context, sub Submission, now time.Time) (time.Duration, error) {
	if left := sub.OwnerUntil.Sub(now); left >= 0 {
		return left + time.Second, nil
	}
	sub.Detail, sub.UpdatedAt = "the worker that sent it again did not come back", now
	return 0, w.Ledger.LoseTrack(ctx, sub, w.Token(), w.honours(sub), true)
}

func (w *work) honours(sub Submission) bool {
	ch := w.Channels[sub.Channel]
	return ch != nil && ch.HonoursKeys()
}

// again makes the submission this worker's, with its body frozen anew under a new key, and sends once. Whatever is no
// verdict leaves it unknown: also where this try was certainly not accepted, nobody knows about the one before.
func (w *work) again(ctx context.Context, sub Submission, look Look, now time.Time) error {
	t, err := w.recipient(ctx, sub)
	if err != nil {
		return err
	}
	ch, err := w.channel(t)
	if err != nil {
		return err
	}
	end, ok := ctx.Deadline()
	if !ok {
		end = now.Add(time.Minute)
	}
	w.lease = Lease{Token: w.Token(), Now: now, End: end.Add(w.Timing.LeaseMargin.Std())}
	taken := sub
	taken.State, taken.Owner, taken.OwnerUntil, taken.Resends, taken.UpdatedAt, taken.Wish = Pending, w.lease.Token, w.lease.End, sub.Resends+1, now, Wish{}
	reason, detail := w.unwanted(t, look)
	if reason == "" {
		taken.Tries++
		if taken.Frozen, err = ch.Freeze(ctx, w.delivery(t, taken), now, w.Entropy()); err != nil {
			return err
		}
		if err := w.turn(ctx, t.Channel()); err != nil {
			return err
		}
	}
	if err := w.timeFor(ctx); err != nil {
		return err
	}
	if err := w.Ledger.Resend(ctx, sub, taken); err != nil {
		return err
	}
	if reason != "" {
		return w.refuse(ctx, taken, reason, detail+"; an earlier request may have reached the receiver")
	}
	if err = w.send(ctx, ch, t, taken, true); err == nil || IsConflict(err) {
		return err
	}
	taken.Detail, taken.UpdatedAt = failure.Cut("sent again: "+failure.From(err).Message, 200), w.Clocks.Wall()
	return w.record(ctx, func(ctx context.Context) error {
		return w.Ledger.LoseTrack(ctx, taken, w.lease.Token, ch.HonoursKeys(), true)
	})
}

// recipient finds a submission's recipient in the definition that the run used, and who is on the schedule now.
func (w *work) recipient(ctx context.Context, sub Submission) (Target, error) {
	var err error
	if w.def, err = w.Ledger.Definition(ctx, w.run.Schedule, w.run.Version); err != nil {
		return Target{}, err
	}
	s, err := w.Ledger.Schedule(ctx, w.run.Schedule)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Target{}, err
	}
	if err == nil {
		if err := w.presence(ctx, s); err != nil {
			return Target{}, err
		}
	}
	all, err := w.recipients(ctx)
	if err != nil {
		return Target{}, err
	}
	for _, t := range all {
		if t.Channel() == sub.Channel && t.Hash == sub.RecipientHash {
			return t, nil
		}
	}
	return Target{}, failure.New(failure.DefinitionInvalid, "version %d of schedule %s does not name this recipient", w.def.Number, w.run.Schedule)
}

// lapsed is what becomes of a resend's message in the dead-letter queue: nobody sends, and what is pending is lost track
// of once its lease has ended. An error keeps the letter.
func (d *Deliverer) lapsed(ctx context.Context, id string, log *slog.Logger) error {
	run, channelName, hash, _, _ := schema.SplitResendID(id)
	w := &work{Deliverer: d, id: run, log: log}
	sub, err := d.Ledger.Submission(ctx, run, channelName, hash)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if sub.State != Pending || sub.Resends == 0 {
		return nil // expired, carried out, or still unknown
	}
	wait, err := w.lapse(ctx, sub, d.Clocks.Wall())
	if err == nil && wait > 0 {
		return failure.New(failure.SendFailed, "a worker holds the resend for %s", wait)
	}
	return w.settleLost(err)
}
