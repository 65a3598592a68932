package store

import (
	"context"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// DeadLetter reads one message that nobody could read.
func (s *Store) DeadLetter(ctx context.Context, id string) (schedule.DeadLetter, error) {
	it, err := s.get(ctx, schema.DeadLetterKey(id))
	if err == nil && len(it) == 0 {
		err = schedule.ErrNotFound
	}
	if err != nil {
		return schedule.DeadLetter{}, err
	}
	return decodeDead(it)
}

// Redriven notes on a dead letter when it was last read again, in one transaction with its audit; one that is gone is a
// *schedule.Conflict.
func (s *Store) Redriven(ctx context.Context, id string, a schedule.Audit) error {
	w := write{event: "redrive", key: schema.DeadLetterKey(id)}
	w.condition = "attribute_exists(" + w.expr.name(schema.PK) + ")"
	w.update = w.expr.update(update{set: map[string]any{schema.UpdatedAt: schema.Time(a.At)}})
	return s.transact(ctx, w, auditWrite(a))
}
