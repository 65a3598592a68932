package schedule

import (
	"context"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/failure"
)

// first records the intent, then sends. A recipient that is not asked at all gets its intent with the mark "not
// accepted": should the worker die before the refusal is recorded, nobody takes it for a request that may have left.
func (w *work) first(ctx context.Context, t Target, look Look) error {
	ch, err := w.channel(t)
	if err != nil {
		return err
	}
	sub := Submission{Run: w.id, Channel: t.Channel(), RecipientHash: t.Hash, Recipient: t.Address(), State: Pending,
		Owner: w.lease.Token, Token: w.Token(), UpdatedAt: w.Clocks.Wall()}
	reason, detail := w.unwanted(t, look)
	if sub.NotAccepted = reason != ""; !sub.NotAccepted {
		if sub.Frozen, err = ch.Freeze(ctx, w.delivery(t, sub), w.Clocks.Wall(), w.Entropy()); err != nil {
			return err
		}
		if err := w.turn(ctx, t.Channel()); err != nil {
			return err
		}
	}
	if err := w.timeFor(ctx); err != nil {
		return err
	}
	if err := w.Ledger.Intend(ctx, sub, w.expires()); err != nil {
		return err
	}
	if reason != "" {
		return w.refuse(ctx, sub, reason, detail)
	}
	return w.send(ctx, ch, t, sub, false)
}

func (w *work) channel(t Target) (channel.Channel, error) {
	ch, ok := w.Channels[t.Channel()]
	if !ok {
		return nil, failure.New(failure.ChannelMisconfig, "channel %q is not set up in this stage", t.Channel())
	}
	return ch, nil
}

// once takes a pending submission over and sends it again: nothing was accepted before, or the receiver honours its key.
// A recipient that must not be asked (any more) is refused instead, and its mark stays until that is recorded.
func (w *work) once(ctx context.Context, t Target, sub Submission, look Look) error {
	ch, err := w.channel(t)
	if err != nil {
		return err
	}
	if sub.NotAccepted && sub.Owner == w.lease.Token {
		return failure.New(failure.SendThrottled, "the receiver did not accept the request in this attempt")
	}
	reason, detail := w.unwanted(t, look)
	if wait := sub.RetryAt.Sub(w.Clocks.Wall()); reason == "" && sub.NotAccepted && wait > 0 {
		return failure.New(failure.SendThrottled, "the receiver asked to be left alone until %s", sub.RetryAt.Format(time.RFC3339)).After(wait)
	}
	doubtful := !sub.NotAccepted
	take := Take{Owner: w.lease.Token, HonoursKeys: ch.HonoursKeys(), KeepMark: reason != "" && sub.NotAccepted}
	if reason == "" && sub.Frozen.BodyHash == "" {
		// It was not to be asked before, and now it is: its body is rendered now.
		if sub.Frozen, err = ch.Freeze(ctx, w.delivery(t, sub), w.Clocks.Wall(), w.Entropy()); err != nil {
			return err
		}
		take.Frozen = &sub.Frozen
	}
	if reason == "" {
		if err := w.turn(ctx, t.Channel()); err != nil {
			return err
		}
	}
	if err := w.timeFor(ctx); err != nil {
		return err
	}
	sub.UpdatedAt = w.Clocks.Wall()
	if err := w.Ledger.TakeOver(ctx, sub, take); err != nil {
		return err
	}
	sub.Owner, sub.NotAccepted = w.lease.Token, take.KeepMark
	if reason != "" {
		if doubtful {
			detail += "; an earlier request may have reached the receiver"
		}
		return w.refuse(ctx, sub, reason, detail)
	}
	return w.send(ctx, ch, t, sub, doubtful)
}

// Take is how a pending submission is taken over.
type Take struct {
	Owner       string          // the new owner
	HonoursKeys bool            // what the channel does
	KeepMark    bool            // no send follows: the mark "not accepted" stays
	Frozen      *channel.Frozen // rendered only now; nil: it stands on the row
}

// unwanted says why a recipient is not asked at all.
func (w *work) unwanted(t Target, look Look) (reason, detail string) {
	switch {
	case w.live != nil && !w.live[t.key()]:
		return channel.ReasonRemoved, "taken off the schedule since the run was admitted"
	case look.Unsubscribed:
		return channel.ReasonUnsubscribed, "the recipient unsubscribed from this schedule"
	case look.Suppressed:
		return channel.ReasonSuppressed, "the address bounced or complained before"
	case w.Allowed != nil && !w.Allowed(t.Channel(), t.Address()):
		return channel.ReasonRefused, "this stage sends only to its allow-list"
	}
	return "", ""
}

func (w *work) refuse(ctx context.Context, sub Submission, reason, detail string) error {
	sub.Reason, sub.Detail, sub.UpdatedAt = reason, detail, w.Clocks.Wall()
	if err := w.record(ctx, func(ctx context.Context) error { return w.Ledger.Refused(ctx, sub) }); err != nil {
		return err
	}
	w.outcome(sub, "skipped", reason)
	return nil
}

func (w *work) outcome(sub Submission, outcome, reason string) {
	w.fresh = true
	w.Count("submissions", 1, outcome, sub.Channel)
	w.log.Info("recipient done", "recipient", sub.RecipientHash, "channel", sub.Channel, "outcome", outcome, "reason", reason)
}

// wholeRun is a verdict on the account or the configuration: asking the next recipient would end the same way.
type wholeRun struct{ error }

func (w wholeRun) Unwrap() error { return w.error }

// send tries once and records the verdict. doubtful says that an earlier try may have been accepted: then this try's not
// being accepted says nothing about that one, and no mark is set.
//
// What the receiver said is written even when the attempt's own time is over. Where it cannot be written, nobody else is
// asked: at most one outcome is lost.
func (w *work) send(ctx context.Context, ch channel.Channel, t Target, sub Submission, doubtful bool) error {
	if w.Clocks.Wall().After(w.lease.End) {
		return errLost // a worker that was frozen since its intent: its successor has the say
	}
	sendCtx, cancel := context.WithTimeout(ctx, w.Timing.SendTimeout.Std())
	v := ch.Send(sendCtx, w.delivery(t, sub), sub.Frozen)
	cancel()
	sub.UpdatedAt = w.Clocks.Wall()
	sub.Detail = failure.Cut(v.Detail, 200)
	switch v.Outcome {
	case channel.Accepted:
		if err := w.record(ctx, func(ctx context.Context) error { return w.Ledger.Accepted(ctx, sub, v.ProviderID) }); err != nil {
			return err
		}
		w.outcome(sub, "submitted", "")
		return nil
	case channel.Refused:
		return w.refuse(ctx, sub, v.Reason, v.Detail)
	}
	w.outcomeless(sub, v.Failure)
	switch {
	case v.Outcome == channel.Lost && ch.HonoursKeys():
		return v.Failure // stays pending: the next attempt asks again under the same key
	case v.Outcome == channel.Lost:
		return w.record(ctx, func(ctx context.Context) error { return w.Ledger.LoseTrack(ctx, sub, w.lease.Token, false, false) })
	}
	if !doubtful {
		sub.RetryAt = w.retryAt(v.Failure)
		if err := w.record(ctx, func(ctx context.Context) error { return w.Ledger.NotAccepted(ctx, sub) }); err != nil {
			return err
		}
	}
	if v.Outcome == channel.RunRefused {
		return wholeRun{v.Failure}
	}
	return v.Failure
}

// retryAt is when a receiver that named a time may be asked again.
func (w *work) retryAt(f *failure.Failure) time.Time {
	if f.RetryAfter <= 0 {
		return time.Time{}
	}
	return w.Clocks.Wall().Add(min(f.RetryAfter, w.Timing.BackoffMax.Std()))
}

// record writes an outcome, once more after a passing failure, within a time of its own.
func (w *work) record(ctx context.Context, write func(context.Context) error) (err error) {
	for range 2 {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		err = write(own)
		cancel()
		if err == nil || IsConflict(err) || !failure.From(err).Passing() {
			return err
		}
	}
	return wholeRun{err}
}

// writeTime bounds the writing of one outcome.
const writeTime = time.Second

func (w *work) outcomeless(sub Submission, f *failure.Failure) {
	w.log.Warn("request was not settled", "recipient", sub.RecipientHash, "channel", sub.Channel, "code", f.Code, "error", f.Message)
	w.Count("submissions", 1, "unsettled", sub.Channel)
}

// delivery is all that a channel may know; it is the same on every try of one submission.
func (w *work) delivery(t Target, sub Submission) channel.Delivery {
	d := channel.Delivery{
		Key: sub.key(w.id, t), ScheduleID: w.run.Schedule, ScheduleName: w.def.Name, Workspace: w.def.Workspace, RunID: w.id,
		Occurrence: w.run.Occurrence, Nominal: w.run.Nominal, Zone: w.def.Recurrence.Zone, Recipient: t.Address(), Owner: w.def.Owner,
		Subject: w.def.Mail.Subject, Introduction: w.def.Mail.Introduction, SecretID: t.Secret, NextDue: w.following(),
		FileLink: w.Links.File(sub), Unsubscribe: w.Links.Unsubscribe(sub),
	}
	if f := w.run.File; f != nil {
		d.File = channel.File{Name: f.Name, MediaType: artifact.MediaType(w.def.File.Format), Rows: f.Rows, Bytes: f.Bytes, SHA256: f.SHA256,
			DataAsOf: f.DataAsOf, Open: w.content}
	}
	return d
}

// content reads the recorded file once per attempt, for channels that attach it.
func (w *work) content(ctx context.Context) ([]byte, error) {
	if w.bytes == nil {
		b, err := w.Files.Read(ctx, *w.run.File)
		if err != nil {
			return nil, err
		}
		w.bytes = b
	}
	return w.bytes, nil
}

// following is the occurrence after this one, by the frozen rule; so each try says the same. It is computed once per
// attempt.
func (w *work) following() time.Time {
	if w.next == nil {
		w.next = new(time.Time)
		if rule, err := calendar.Parse(w.def.Recurrence); err == nil {
			*w.next = rule.Next(w.run.Nominal).At
		}
	}
	return *w.next
}

func (w *work) expires() int64 {
	return w.run.CreatedAt.Add(w.Timing.RunRetention.Std()).Unix()
}
