package schedule

import (
	"context"
	"errors"

	"almanac/internal/failure"
)

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
// that broke off early does not, is read first. Where the invocation's time does not suffice for all of them, the error is
// yielded: what was written stands, and the next attempt goes on.
func (w *work) fail(ctx context.Context, f *failure.Failure) error {
	if err := w.complete(ctx); err != nil {
		return err
	}
	w.stopQuery(ctx)
	o := Outcome{Event: Fail, Code: f.Code, Message: f.Message}
	if w.run.File != nil {
		all, err := w.everyone(ctx)
		if err != nil {
			return err
		}
		states, err := w.giveUpAll(ctx, all, f.Code)
		if err != nil {
			return err
		}
		for _, state := range states {
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

// complete reads the definition, and whether a file is recorded, where this attempt does not know. A definition, or a list
// of its recipients, that is gone leaves the submissions that there are.
func (w *work) complete(ctx context.Context) error {
	if w.def.Number == 0 {
		def, err := w.Ledger.Definition(ctx, w.run.Schedule, w.run.Version)
		if err != nil && !errors.Is(err, ErrNotFound) && !failure.Is(err, failure.DefinitionInvalid) {
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
	targets, err := w.recipients(ctx)
	if err != nil && !failure.Is(err, failure.DefinitionInvalid) {
		return nil, err
	}
	for _, t := range targets {
		if !asked[t.key()] {
			all = append(all, Submission{Run: w.id, Channel: t.Channel(), RecipientHash: t.Hash, Recipient: t.Address()})
		}
	}
	return all, nil
}
