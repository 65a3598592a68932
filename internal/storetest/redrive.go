package storetest

import (
	"errors"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// redriven marks a dead letter that stands, with an audit of each act; one that is gone leaves none.
func redriven(t *testing.T, b *bench) {
	ctx := t.Context()
	d := schedule.DeadLetter{MessageID: "again-1", Queue: "query-runs", Body: "{", Reason: "no JSON", At: wall}
	if err := b.RecordDead(ctx, d, expires); err != nil {
		t.Fatal(err)
	}
	k := schema.DeadLetterKey("again-1")
	before := b.row(t, k)
	a := actOf("dead letter again-1", "act-1", "redrive")
	for range 2 { // sent again, it took effect once
		if err := b.Redriven(ctx, "again-1", a); err != nil {
			t.Fatal(err)
		}
	}
	b.audited(t, a.Subject, 1)
	if d := diff(world{k: b.row(t, k)}, world{k: before}.after([]change{{key: k, set: row{schema.UpdatedAt: actAt}}})); d != "" {
		t.Error(d)
	}
	d.RedrivenAt = actAt
	if got, err := b.DeadLetter(ctx, "again-1"); err != nil || got != d {
		t.Errorf("%+v, %v; want %+v", got, err, d)
	}
	gone := actOf("dead letter gone", "act-1", "redrive")
	if err := b.Redriven(ctx, "gone", gone); !schedule.IsConflict(err) {
		t.Errorf("one that is gone: %v, want a Conflict", err)
	}
	b.audited(t, gone.Subject, 0)
	if len(b.row(t, schema.DeadLetterKey("gone"))) != 0 {
		t.Error("a letter that never was left something")
	}
	if _, err := b.DeadLetter(ctx, "gone"); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("%v, want not found", err)
	}
}
