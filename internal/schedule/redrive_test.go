package schedule_test

import (
	"errors"
	"strings"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

func (w *world) dead(id, body string) {
	w.t.Helper()
	w.must(w.store.RecordDead(ctx, schedule.DeadLetter{MessageID: id, Queue: "query-runs", Body: body, Reason: "not read", At: w.wall()}, w.wall().AddDate(1, 0, 0)))
}

func TestRedriveOffersAnOpenRunThatNobodyHolds(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.dead("m", schedule.EncodeMessage(run))
	if n := w.messages(w.queue.URL); n != 1 {
		t.Fatalf("%d messages", n)
	}
	d, err := w.editor.Redrive(ctx, "m", "mended", "ann")
	w.must(err)
	if !d.RedrivenAt.Equal(w.wall()) || w.messages(w.queue.URL) != 2 {
		t.Errorf("%+v, %d messages", d, w.messages(w.queue.URL))
	}
	w.faults.plan = dies("deliver", "Webhook.Send", dieBefore)
	w.deliver()
	var c *schedule.Conflict
	if _, err := w.editor.Redrive(ctx, "m", "x", "ann"); !errors.As(err, &c) || !strings.Contains(c.Why, "a worker holds its run") || c.Run == nil {
		t.Errorf("under a lease: %v", err)
	}
	w.advance(deliverTime + w.timing.LeaseMargin.Std() + 1)
	if _, err := w.editor.Redrive(ctx, "m", "its worker died", "ann"); err != nil {
		t.Errorf("after the lease: %v", err)
	}
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if n := taken(w.hooks.to("b")); n != 1 {
		t.Errorf("taken %d times", n)
	}
	list, _, err := w.store.Audits(ctx, "dead letter m", "", 10)
	if err != nil || len(list) != 2 {
		t.Errorf("audits %+v, %v; want one for each that was carried out", list, err)
	}
}

func TestRedriveOfAResendAndANotice(t *testing.T) {
	w, run := unknownHook(t)
	before := len(w.hooks.to("b"))
	asked := w.resend(run, "b")
	w.dead("m", schedule.EncodeResend(schema.ResendID(run, "webhook", asked.RecipientHash, asked.Wish.ID)))
	_, err := w.editor.Redrive(ctx, "m", "mended", "ann")
	w.must(err)
	w.quiet()
	w.wantSub(run, "b", schedule.Submitted, "")
	if n := len(w.hooks.to("b")) - before; n != 1 {
		t.Errorf("%d more requests", n)
	}
	w.dead("n", schedule.EncodeNotice(schema.NoticeID(run, "failed", "email", "ff")))
	var c *schedule.Conflict
	if _, err := w.editor.Redrive(ctx, "n", "x", "ann"); !errors.As(err, &c) || !strings.Contains(c.Why, "the sweep has sent") {
		t.Errorf("a notice: %v", err)
	}
}
