package storetest

import (
	"errors"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// askToResend notes a wish on an unknown, once, with its audit; in every other state, and beside another wish, it is
// refused, and whoever carries it out must have read that very wish.
func askToResend(t *testing.T, b *bench) {
	ctx := t.Context()
	for _, state := range []string{"pending", "submitted", "skipped", "not_sent"} {
		p := b.place()
		b.write(t, world{}.add(p.subKey(), subRow(p, state)))
		before := b.read(t, p)
		var c *schedule.Conflict
		if err := b.AskToResend(ctx, newSubmission(p), "wish-1", actOf(p.run(), "act-1", "resend")); !errors.As(err, &c) || c.Submission == nil || string(c.Submission.State) != state {
			t.Errorf("%s: %v, want a Conflict with the row", state, err)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("%s: %s", state, d)
		}
	}
	p := b.place()
	b.write(t, given("unknown", nil)(p))
	before := b.read(t, p)
	a := actOf(p.run(), "act-1", "resend")
	for range 2 { // sent again, it took effect once
		if err := b.AskToResend(ctx, newSubmission(p), "wish-1", a); err != nil {
			t.Fatal(err)
		}
	}
	want := before.after([]change{{key: p.subKey(), set: row{schema.ResendWish: "wish-1", schema.ResendBy: a.Who, schema.ResendWhy: a.Why}}, auditRow(a)})
	if d := diff(b.read(t, p), want); d != "" {
		t.Error(d)
	}
	var c *schedule.Conflict
	if err := b.AskToResend(ctx, newSubmission(p), "wish-2", actOf(p.run(), "act-2", "resend")); !errors.As(err, &c) || c.Submission == nil || c.Submission.Wish != (schedule.Wish{ID: "wish-1", By: a.Who, Why: a.Why}) {
		t.Errorf("a second wish: %v", err)
	}
	read := c.Submission
	read.Wish.ID = "wish-0"
	taken := *read
	taken.Owner, taken.OwnerUntil, taken.Resends = "worker-2", wall, 1
	if err := b.Resend(ctx, *read, taken); !schedule.IsConflict(err) {
		t.Errorf("another wish carried out: %v", err)
	}
	if d := diff(b.read(t, p), want); d != "" {
		t.Errorf("refused: %s", d)
	}
}
