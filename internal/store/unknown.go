package store

import (
	"context"

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
