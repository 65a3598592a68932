package schedule

import (
	"context"
	"errors"
	"fmt"

	"almanac/internal/channel"
	"almanac/internal/input"
)

// UnknownLedger is what the acts on a recipient of whom nobody knows ask of the store.
type UnknownLedger interface {
	Run(ctx context.Context, id string) (Run, error)
	Submission(ctx context.Context, run, channel, recipientHash string) (Submission, error)
	// Resolve records what a person found out, in one transaction with its audit. A submission that is not unknown any more
	// is a Conflict that carries it.
	Resolve(ctx context.Context, s Submission, event SubmissionEvent, a Audit) error
}

// ReasonResolved is why a submission is skipped that a person resolved so.
const ReasonResolved = "resolved"

// resolutions are the events by what a person may say of an unknown.
var resolutions = map[string]SubmissionEvent{string(Submitted): ResolveSubmitted, string(NotDelivered): ResolveSkipped}

// Resolve records what a person found out about an unknown: that the recipient has the delivery ("submitted"), or has it
// not and is to be left at that ("skipped"). Nothing is sent. A settled run stays as it settled; one that is open counts
// what the person said. A recipient who is not unknown (any more) is a Conflict with the submission as it stands.
func (e *Editor) Resolve(ctx context.Context, id, recipient, as, reason, by string) (Submission, error) {
	event, ok := resolutions[as]
	if !ok {
		return Submission{}, Problems{input.Wrong("as", orMissing(as), `"submitted" or "skipped"`)}
	}
	if ps := needReason(reason); ps != nil {
		return Submission{}, ps
	}
	a := e.audit(id, by, "resolve", reason, "", "")
	sub, err := e.unknown(ctx, id, recipient, "resolve")
	if err != nil {
		return sub, err
	}
	a.Before = sub.named(Unknown)
	a.After = sub.named(SubmissionState(as))
	if err := e.Ledger.Resolve(ctx, sub, event, a); err != nil {
		return sub, err
	}
	return e.Ledger.Submission(ctx, id, sub.Channel, sub.RecipientHash)
}

// named says of whom a state is, for an audit: by hash, since audits outlive addresses.
func (s Submission) named(state SubmissionState) string {
	return fmt.Sprintf("%s: %s %s", state, s.Channel, s.RecipientHash)
}

// orMissing quotes a value; an empty one is missing.
func orMissing(value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("%.60q", value)
}

// unknown reads the submission of a recipient of whom nobody knows; any other is a Conflict that carries it.
func (e *Editor) unknown(ctx context.Context, id, recipient, act string) (Submission, error) {
	if _, err := e.Ledger.Run(ctx, id); err != nil {
		return Submission{}, err
	}
	sub, err := e.asked(ctx, id, recipient)
	if err == nil && sub.State != Unknown {
		err = &Conflict{Event: act, Why: fmt.Sprintf("what became of this recipient's request is known: %s; only an unknown can be resent or resolved", sub.State), Submission: &sub}
	}
	return sub, err
}

// asked reads the submission of a recipient, whose hash does not tell the channel.
func (e *Editor) asked(ctx context.Context, id, hash string) (Submission, error) {
	want := "the hash of a recipient that the run has asked, as GET /runs/{run} shows it"
	if !hashForm.MatchString(hash) {
		return Submission{}, Problems{input.Wrong("recipient", orMissing(hash), want)}
	}
	for _, name := range []string{channel.Email, channel.Webhook} {
		if sub, err := e.Ledger.Submission(ctx, id, name, hash); !errors.Is(err, ErrNotFound) {
			return sub, err
		}
	}
	return Submission{}, Problems{input.Wrong("recipient", orMissing(hash), want+"; this one was not asked")}
}
