package storetest

import (
	"errors"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

var wishNext, wishEnds = wall.Add(5 * time.Minute), wall.Add(24 * time.Hour)

// askToResend notes a wish on an unknown, once, with its audit and an item of the outbox, which is moved and removed as a
// notice is and yet is none; in every other state, and beside another wish, it is
// refused, and whoever carries it out must have read that very wish.
func askToResend(t *testing.T, b *bench) {
	ctx := t.Context()
	for _, state := range []string{"pending", "submitted", "skipped", "not_sent"} {
		p := b.place()
		b.write(t, world{}.add(p.subKey(), subRow(p, state)))
		before := b.read(t, p)
		var c *schedule.Conflict
		if err := b.AskToResend(ctx, newSubmission(p), "wish-1", wishNext, wishEnds, actOf(p.run(), "act-1", "resend")); !errors.As(err, &c) || c.Submission == nil || string(c.Submission.State) != state {
			t.Errorf("%s: %v, want a Conflict with the row", state, err)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("%s: %s", state, d)
		}
	}
	p := b.place()
	b.write(t, given("unknown", nil)(p))
	before := b.read(t, p)
	a, sub := actOf(p.run(), "act-1", "resend"), newSubmission(p)
	id := schema.ResendID(sub.Run, sub.Channel, sub.RecipientHash, "wish-1")
	for range 2 { // sent again, it took effect once
		if err := b.AskToResend(ctx, newSubmission(p), "wish-1", wishNext, wishEnds, a); err != nil {
			t.Fatal(err)
		}
	}
	want := before.after([]change{{key: p.subKey(), set: row{schema.ResendWish: "wish-1", schema.ResendBy: a.Who, schema.ResendWhy: a.Why}}, auditRow(a),
		{key: schema.NoticeKey(id), set: row{schema.ResendWish: "wish-1", schema.NextAt: wishNext, schema.Tries: 0, schema.ExpiresAt: wishEnds.Unix()}}})
	if d := diff(b.read(t, p), want); d != "" {
		t.Error(d)
	}
	var c *schedule.Conflict
	if err := b.AskToResend(ctx, newSubmission(p), "wish-2", wishNext, wishEnds, actOf(p.run(), "act-2", "resend")); !errors.As(err, &c) || c.Submission == nil || c.Submission.Wish != (schedule.Wish{ID: "wish-1", By: a.Who, Why: a.Why}) {
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
	if _, err := b.BeforeNotice(ctx, id); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("a wish read as a notice: %v", err)
	}
	n := b.wished(t, id)
	if n.Channel != sub.Channel || !n.NextAt.Equal(wishNext) || !n.Expires.Equal(wishEnds) || n.Tries != 0 {
		t.Errorf("listed %+v", n)
	}
	if err := b.PostponeNotice(ctx, n, wishEnds); err != nil {
		t.Error(err)
	}
	if n := b.wished(t, id); !n.NextAt.Equal(wishEnds) || n.Tries != 1 {
		t.Errorf("postponed %+v", n)
	}
	if err := b.RemoveNotice(ctx, id); err != nil || len(b.row(t, schema.NoticeKey(id))) > 0 {
		t.Errorf("%v, and it is there", err)
	}
}

// wished finds a resend by listing the outbox.
func (b *bench) wished(t *testing.T, id string) schedule.Notice {
	t.Helper()
	for i := range schema.OutboxShards {
		for from := ""; ; {
			ns, next, err := b.Outbox(t.Context(), i, from, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range ns {
				if n.ID == id && n.Resend {
					return n
				}
			}
			if from = next; from == "" {
				break
			}
		}
	}
	t.Fatalf("the outbox has no resend %s", id)
	return schedule.Notice{}
}
