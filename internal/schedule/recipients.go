package schedule

import (
	"context"
	"errors"
	"slices"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

// Target is one recipient as submissions count them: spellings of one address are one target (case V2).
type Target struct {
	Recipient
	Hash string
}

func (t Target) key() string { return t.Channel() + "#" + t.Hash }

// Targets are the distinct recipients, in the order of the list; a group, whose members it does not know, is none. Of
// entries that are one recipient the first decides how it is spelled and with what it is signed.
func Targets(list []Recipient) []Target {
	var targets []Target
	distinct(list, map[string]bool{}, func(t Target) { targets = append(targets, t) })
	return targets
}

// distinct notes each recipient of a list in seen, by key, and hands over those that were not there. An address that cannot
// be normalised was refused when the definition was saved; should one be met here, it is hashed as it stands.
func distinct(list []Recipient, seen map[string]bool, fresh func(Target)) {
	for _, r := range list {
		if r.Group != "" {
			continue
		}
		normal, err := channel.Normalise(r.Channel(), r.Address())
		if err != nil {
			normal = r.Address()
		}
		t := Target{r, channel.RecipientHash(r.Channel(), normal)}
		if !seen[t.key()] {
			seen[t.key()] = true
			fresh(t)
		}
	}
}

// TargetReader reads whom a run sends to.
type TargetReader interface {
	GroupReader
	// RunTargets are the targets of a retry, as channel#hash; any other run has none. A list that stands apart and cannot be
	// read any more is definition_invalid.
	RunTargets(ctx context.Context, r Run) ([]string, error)
}

// RecipientsOf answers who the recipients of a run are, in the order of its definition, which is whole: all that it
// names, with the members that its groups had when the run was admitted, or those of them that a retry has frozen. Nothing
// else decides this. What cannot be read any more, and more recipients than a run may have, are definition_invalid.
func RecipientsOf(ctx context.Context, from TargetReader, r Run, def Version) ([]Target, error) {
	keys, err := from.RunTargets(ctx, r)
	if err != nil {
		return nil, err
	}
	all, err := wholeTargets(ctx, from, def.Recipients, r.Workspace, r.Groups)
	if err != nil {
		return nil, err
	}
	switch {
	case r.RetryOf == "":
		return all, nil
	case len(keys) == 0: // never everybody instead
		return nil, failure.New(failure.DefinitionInvalid, "the run repeats %s for recipients that its row does not name", r.RetryOf)
	}
	chosen := make(map[string]bool, len(keys))
	for _, k := range keys {
		chosen[k] = true
	}
	return slices.DeleteFunc(all, func(t Target) bool { return !chosen[t.key()] }), nil
}

// recipients are the run's, computed once per attempt.
func (w *work) recipients(ctx context.Context) ([]Target, error) {
	if w.all == nil {
		all, err := RecipientsOf(ctx, w.Ledger, w.run, w.def)
		if err != nil {
			return nil, err
		}
		w.all = all
	}
	return w.all, nil
}

// deliver works through the recipients: first those that nobody has asked yet, then those whose request must be tried
// again, so that dead receivers at the head of the list hold up nobody. A passing failure of one throws the attempt back
// when all have had their turn.
func (w *work) deliver(ctx context.Context) error {
	targets, err := w.recipients(ctx)
	if err != nil {
		return err
	}
	fresh, again, err := w.split(ctx, targets)
	if err != nil {
		return err
	}
	var passing *failure.Failure
	list := append(fresh, again...)
	w.rest = map[string]int{}
	for _, t := range list {
		w.rest[t.Channel()]++
	}
	for i, t := range list {
		if err := w.timeFor(ctx); err != nil {
			if passing != nil && (i >= len(fresh) || !w.fresh) {
				return passing // everybody was asked: the receiver's wish counts, not this invocation's time
			}
			return err
		}
		err := w.one(ctx, t)
		w.rest[t.Channel()]--
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
		if errors.Is(err, errLookAgain) || errors.As(err, &c) && c.Submission != nil {
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
