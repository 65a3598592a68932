package schedule

import (
	"context"
	"errors"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/failure"
)

// Target is one recipient as submissions count them: spellings of one address are one target (case V2).
type Target struct {
	Recipient
	Hash string
}

func (t Target) key() string { return t.Channel() + "#" + t.Hash }

// Targets are the distinct recipients, in the order of the definition. An address that cannot be normalised was
// refused when the definition was saved; should one be met here, it is hashed as it stands.
func Targets(list []Recipient) []Target {
	var targets []Target
	seen := map[string]bool{}
	for _, r := range list {
		normal, err := channel.Normalise(r.Channel(), r.Address())
		if err != nil {
			normal = r.Address()
		}
		t := Target{r, channel.RecipientHash(r.Channel(), normal)}
		if !seen[t.key()] {
			seen[t.key()] = true
			targets = append(targets, t)
		}
	}
	return targets
}

// deliver works through the recipients: first those that nobody has asked yet, then those whose request must be tried
// again, so that dead receivers at the head of the list hold up nobody. A passing failure of one throws the attempt back
// when all have had their turn.
func (w *work) deliver(ctx context.Context) error {
	targets := Targets(w.def.Recipients)
	fresh, again, err := w.split(ctx, targets)
	if err != nil {
		return err
	}
	var passing *failure.Failure
	for i, t := range append(fresh, again...) {
		if err := w.timeFor(ctx); err != nil {
			if passing != nil && (i >= len(fresh) || !w.fresh) {
				return passing // everybody was asked: the receiver's wish counts, not this invocation's time
			}
			return err
		}
		err := w.one(ctx, t)
		if err == nil {
			continue
		}
		f := failure.From(err)
		if endsAttempt(err, f) {
			return err
		}
		if passing == nil || f.RetryAfter > passing.RetryAfter {
			passing = f
		}
	}
	if passing != nil {
		return passing
	}
	return w.finish(ctx, targets)
}

// endsAttempt reports an error after which no further recipient is asked.
func endsAttempt(err error, f *failure.Failure) bool {
	var y yielded
	var whole wholeRun
	return errors.As(err, &y) || errors.As(err, &whole) || errors.Is(err, errLost) || IsConflict(err) || !f.Passing() || f.Code == failure.InternalError
}

// split tells the recipients that nobody has asked from those whose request is pending; those with an outcome need
// nothing. On a first attempt nobody was asked.
func (w *work) split(ctx context.Context, targets []Target) (fresh, again []Target, err error) {
	if w.run.Attempts <= 1 {
		return targets, nil, nil
	}
	subs, err := w.byTarget(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range targets {
		switch s, ok := subs[t.key()]; {
		case !ok:
			fresh = append(fresh, t)
		case s.State == Pending:
			again = append(again, t)
		case s.State == NotSent:
			return nil, nil, interrupted(s) // the run can only fail: nobody else is asked
		}
	}
	return fresh, again, nil
}

// byTarget reads the run's submissions consistently.
func (w *work) byTarget(ctx context.Context) (map[string]Submission, error) {
	list, err := w.Ledger.Submissions(ctx, w.id)
	if err != nil {
		return nil, err
	}
	subs := make(map[string]Submission, len(list))
	for _, s := range list {
		subs[s.Channel+"#"+s.RecipientHash] = s
	}
	return subs, nil
}

// timeFor reports whether one more recipient may be begun: no item starts without its reserve (case I9).
func (w *work) timeFor(ctx context.Context) error {
	now := w.Clocks.Wall()
	if now.After(w.lease.End) {
		return errLost
	}
	end := w.lease.End.Add(-w.Timing.LeaseMargin.Std())
	if ctx.Err() == nil && end.Sub(now) >= w.Timing.Reserve.Std() {
		return nil
	}
	if w.fresh {
		return yielded{"time is nearly up"}
	}
	return failure.New(failure.OutOfTime, "time was nearly up before the first recipient")
}

// one brings one recipient to an outcome, or says why not.
func (w *work) one(ctx context.Context, t Target) error {
	for {
		look, err := w.Ledger.BeforeRecipient(ctx, w.run, t.Channel(), t.Hash)
		switch {
		case err != nil:
			return err
		case look.Run.LeaseOwner != w.lease.Token:
			return errLost
		case look.Run.StopBy != "":
			return w.stopped(look.Run)
		case look.Control.SendOff:
			return yielded{"sending was switched off"}
		}
		err = w.step(ctx, t, look)
		var c *Conflict
		if errors.As(err, &c) && c.Submission != nil {
			continue // the submission is not as read: look again
		}
		return err
	}
}

// step decides what one recipient needs, from what was just read.
func (w *work) step(ctx context.Context, t Target, look Look) error {
	sub := look.Submission
	if sub == nil {
		return w.first(ctx, t, look)
	}
	switch ch := w.Channels[t.Channel()]; {
	case sub.State == NotSent:
		// The run was about to fail when its worker was interrupted: nobody else is asked, since it can only fail.
		return interrupted(*sub)
	case sub.State != Pending:
		return nil // it has its outcome, or waits for a person
	case sub.NotAccepted, ch != nil && ch.HonoursKeys() && sub.Owner != w.lease.Token:
		return w.once(ctx, t, *sub, look)
	case sub.Owner == w.lease.Token:
		// This attempt's own request to a receiver that honours keys, its reply lost: the next attempt asks again.
		return failure.New(failure.SendFailed, "the receiver's answer to this attempt's request was lost")
	default:
		// An earlier worker may have sent and died. E-mail has no key that a receiver honours: never again unasked.
		lost := *sub
		lost.Detail, lost.UpdatedAt = "the worker that sent it did not come back", w.Clocks.Wall()
		return w.Ledger.LoseTrack(ctx, lost, w.lease.Token, false, false)
	}
}

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
	if err := w.timeFor(ctx); err != nil {
		return err
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
		Key: w.id + "/" + t.key(), ScheduleID: w.run.Schedule, ScheduleName: w.def.Name, Workspace: w.def.Workspace, RunID: w.id,
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

// following is the occurrence after this one, by the frozen rule; so each try says the same.
func (w *work) following() time.Time {
	rule, err := calendar.Parse(w.def.Recurrence)
	if err != nil {
		return time.Time{}
	}
	return rule.Next(w.run.Nominal).At
}

func (w *work) expires() int64 {
	return w.run.CreatedAt.Add(w.Timing.RunRetention.Std()).Unix()
}

// finish settles a run whose recipients have all had their turn, by a consistent read of what they came to.
func (w *work) finish(ctx context.Context, targets []Target) error {
	subs, err := w.byTarget(ctx)
	if err != nil {
		return err
	}
	o := Outcome{Event: Succeed}
	for _, t := range targets {
		s, ok := subs[t.key()]
		switch {
		case !ok, s.State == Pending:
			return failure.New(failure.SendFailed, "a recipient has no outcome yet")
		case s.State == Unknown:
			return failure.New(failure.DeliveryUnknown, "a request was sent and its answer was lost; ask the recipient, then resend or resolve")
		case s.State == NotSent:
			return interrupted(s)
		case s.State == Submitted:
			o.Submitted++
		default:
			o.Skipped++
		}
	}
	return w.settle(ctx, o)
}

// interrupted is why a run with a not_sent can only fail: the code that it was about to fail with.
func interrupted(s Submission) *failure.Failure {
	return failure.New(failure.Code(s.Reason), "the run was about to fail for this reason when its worker was interrupted")
}

// fail settles the run as failed. Before that every recipient without an outcome gets one: what was certainly not
// accepted, or never asked, is not sent; what may have been accepted is unknown. What this needs to know and an attempt
// that broke off early does not, is read first.
func (w *work) fail(ctx context.Context, f *failure.Failure) error {
	if err := w.complete(ctx); err != nil {
		return err
	}
	o := Outcome{Event: Fail, Code: f.Code, Message: f.Message}
	if w.run.File != nil {
		all, err := w.everyone(ctx)
		if err != nil {
			return err
		}
		for _, sub := range all {
			state, err := w.giveUp(ctx, sub, f.Code)
			var c *Conflict
			for errors.As(err, &c) && c.Submission != nil && ctx.Err() == nil {
				state, err = w.giveUp(ctx, *c.Submission, f.Code) // an earlier worker's late answer came between
			}
			if err != nil {
				return err
			}
			switch state {
			case Submitted:
				o.Submitted++
			case NotDelivered:
				o.Skipped++
			}
		}
	}
	return w.settle(ctx, o)
}

// complete reads the definition, and whether a file is recorded, where this attempt does not know. A definition that is
// gone leaves the submissions that there are.
func (w *work) complete(ctx context.Context) error {
	if w.def.Number == 0 {
		def, err := w.Ledger.Definition(ctx, w.run.Schedule, w.run.Version)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		w.def = def
	}
	if w.unsure {
		r, err := w.Ledger.Run(ctx, w.id)
		if err != nil {
			return err
		}
		w.run.File, w.unsure = r.File, false
	}
	return nil
}

// everyone lists the submission of each recipient, one without a state for those that have none.
func (w *work) everyone(ctx context.Context) ([]Submission, error) {
	all, err := w.Ledger.Submissions(ctx, w.id)
	if err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	for _, s := range all {
		asked[s.Channel+"#"+s.RecipientHash] = true
	}
	for _, t := range Targets(w.def.Recipients) {
		if !asked[t.key()] {
			all = append(all, Submission{Run: w.id, Channel: t.Channel(), RecipientHash: t.Hash, Recipient: t.Address()})
		}
	}
	return all, nil
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
