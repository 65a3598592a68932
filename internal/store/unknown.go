package store

import (
	"context"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/transition"
)

// byPerson is one of table B's transitions that a person asks for, in one transaction with its audit.
func (s *Store) byPerson(ctx context.Context, sub schedule.Submission, event schedule.SubmissionEvent, set map[string]any, a schedule.Audit) error {
	set[schema.UpdatedAt] = schema.Time(a.At)
	w, err := advance(subStep{table: schedule.Submissions, from: sub.State, event: event, key: subKey(sub),
		facts: facts{decided: []transition.Guard{schedule.PersonReason}}, with: update{set: set}})
	if err != nil {
		return &schedule.Conflict{Event: string(event), Why: err.Error(), Submission: &sub}
	}
	return s.transact(ctx, w, auditWrite(a))
}

// Resolve records what a person found out about an unknown: schedule.ResolveSubmitted or schedule.ResolveSkipped. The
// first who does has the say; another's, or the sender's own late answer, is a *schedule.Conflict with the row.
func (s *Store) Resolve(ctx context.Context, sub schedule.Submission, event schedule.SubmissionEvent, a schedule.Audit) error {
	set := map[string]any{schema.Detail: failure.Cut("resolved by "+a.Who+": "+a.Why, 200), schema.Reason: nil}
	if event == schedule.ResolveSkipped {
		set[schema.Reason] = schedule.ReasonResolved
	}
	return s.byPerson(ctx, sub, event, set, a)
}

// AskToResend notes a person's wish on an unknown that bears none and puts it into the outbox, in one transaction with its
// audit.
func (s *Store) AskToResend(ctx context.Context, sub schedule.Submission, wish string, next, expires time.Time, a schedule.Audit) error {
	w := write{event: "ask to resend", key: subKey(sub)}
	w.condition = w.expr.equals(schema.State, string(schedule.Unknown)) + " AND attribute_not_exists(" + w.expr.name(schema.ResendWish) + ")"
	w.update = w.expr.update(update{set: map[string]any{schema.ResendWish: wish, schema.ResendBy: a.Who, schema.ResendWhy: failure.Cut(a.Why, 200)}})
	return s.transact(ctx, w, wishWrite(sub, wish, next, expires), auditWrite(a))
}

// Resend makes an unknown pending and its sender's, on the condition that the person's wish stands as read; the wish is
// taken off, so that it is carried out once. Whatever was frozen for the request before is replaced.
func (s *Store) Resend(ctx context.Context, read, taken schedule.Submission) error {
	set := map[string]any{schema.Owner: taken.Owner, schema.OwnerUntil: schema.Time(taken.OwnerUntil), schema.Resends: taken.Resends, schema.UpdatedAt: schema.Time(taken.UpdatedAt),
		schema.ResendWish: nil, schema.ResendBy: nil, schema.ResendWhy: nil, schema.Detail: nil, schema.Reason: nil, schema.RetryAt: nil}
	u := update{set: set}
	if taken.Tries != read.Tries { // a request follows
		set[schema.Body], set[schema.Tries] = nil, taken.Tries
		for k, v := range frozenAttributes(taken.Frozen) {
			set[k] = v
		}
	}
	w, err := advance(subStep{table: schedule.Submissions, from: read.State, event: schedule.Resend, key: subKey(read),
		facts: facts{decided: []transition.Guard{schedule.PersonReason}}, with: u, mine: ownedBy(taken.Owner)})
	if err != nil {
		return &schedule.Conflict{Event: string(schedule.Resend), Why: err.Error(), Submission: &read}
	}
	w.condition += " AND " + w.expr.equals(schema.ResendWish, read.Wish.ID)
	return s.send(ctx, w)
}
