package schedule_test

import (
	"errors"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/schedule"
)

// unknownMail is a world whose run failed with one mail of whom nobody knows, and a webhook that was taken.
func unknownMail(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.faults.plan = dies("deliver", "SES.SendRawEmail", dieAfter)
	w.quiet()
	w.faults.plan = nil
	w.wantState(run, schedule.Failed, failure.DeliveryUnknown)
	w.wantSub(run, "a@x.com", schedule.Unknown, "")
	return w, run
}

func TestResolveSendsNothingAndMovesNoSettledRun(t *testing.T) {
	w, run := unknownMail(t)
	before := w.run(run)
	sub, err := w.editor.Resolve(ctx, run, w.sub(run, "a@x.com").RecipientHash, "submitted", "has it", "ann")
	w.must(err)
	if sub.State != schedule.Submitted || sub.Detail != "resolved by ann: has it" {
		t.Errorf("%+v", sub)
	}
	w.quiet()
	if r := w.run(run); r.State != schedule.Failed || !r.SettledAt.Equal(before.SettledAt) || r.Submitted != before.Submitted {
		t.Errorf("the settled run moved: %+v", r)
	}
	if n := len(w.mail.to("a@x.com")); n != 1 {
		t.Errorf("%d mails, want the first alone", n)
	}
}

// While the run is still open, what a person found out counts: the run goes on to succeed.
func TestResolveBeforeTheSettleCounts(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.faults.plan = dies("deliver", "SES.SendRawEmail", dieAfter)
	w.hooks.during = func(string, int) { // the second worker has lost track of the mail and asks the webhook
		if w.sub(run, "a@x.com").State == schedule.Unknown {
			_, err := w.editor.Resolve(ctx, run, w.sub(run, "a@x.com").RecipientHash, "submitted", "has it", "ann")
			w.must(err)
		}
	}
	w.hooks.answer = answers("b", status(503), ok())
	w.quiet()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Submitted != 2 {
		t.Errorf("%d submitted, want both", r.Submitted)
	}
	if n := len(w.mail.to("a@x.com")); n != 1 {
		t.Errorf("%d mails", n)
	}
}

func TestResolveRefusesWhatItCannotUse(t *testing.T) {
	w, run := unknownMail(t)
	hash := w.sub(run, "a@x.com").RecipientHash
	for _, x := range []struct{ name, recipient, as, reason, field string }{
		{"as absent", hash, "", "x", "as"}, {"as pending", hash, "pending", "x", "as"},
		{"no reason", hash, "skipped", "", "reason"}, {"hostile reason", hash, "skipped", "x\ny", "reason"},
		{"no recipient", "", "skipped", "x", "recipient"}, {"an address", "a@x.com", "skipped", "x", "recipient"},
		{"nobody", "00000000000000000000000000000000", "skipped", "x", "recipient"},
	} {
		var ps schedule.Problems
		if _, err := w.editor.Resolve(ctx, run, x.recipient, x.as, x.reason, "ann"); !errors.As(err, &ps) || ps[0].Field != x.field || ps[0].Want == "" {
			t.Errorf("%s: %v, want field %s", x.name, err, x.field)
		}
	}
	if _, err := w.editor.Resolve(ctx, "s@2040-01-01T00:00:00Z", hash, "skipped", "x", "ann"); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("no run: %v", err)
	}
	w.wantSub(run, "a@x.com", schedule.Unknown, "")
}
