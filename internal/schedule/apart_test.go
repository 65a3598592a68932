package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// hundreds is a definition with so many mail recipients.
func (w *world) hundreds(id string, n int) schedule.Definition {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("somebody.%05d@example.com", i)
	}
	return w.definition(id, names...)
}

// A retry to more recipients than stand on a row freezes them apart, and sends to them alone.
func TestARetryToManyFreezesThemApart(t *testing.T) {
	failedOnce := func(t *testing.T) (*world, string) {
		w := newWorld(t)
		run := w.admitted(w.hundreds("s", 700))
		w.mail.answer = func(to string, _ int) error {
			if to >= "somebody.00050" {
				return coded("AccountSendingPausedException", "paused")
			}
			return nil
		}
		w.settles(run)
		w.wantState(run, schedule.Failed, failure.SenderRefused)
		w.mail.answer = nil
		r, created, err := w.editor.Retry(ctx, run, schedule.RetryRequest{}, "again", "ann", "key-1", "hash-1")
		w.must(err)
		if !created || len(w.run(r.ID()).Targets) != 0 || w.run(r.ID()).TargetList.Count != 650 {
			t.Fatalf("%v, %d targets on the row, %+v apart", created, len(w.run(r.ID()).Targets), w.run(r.ID()).TargetList)
		}
		again, created, err := w.editor.Retry(ctx, run, schedule.RetryRequest{}, "again", "ann", "key-1", "hash-1")
		w.must(err)
		if created || again.ID() != r.ID() {
			t.Errorf("the same key made %s, %v", again.ID(), created)
		}
		return w, r.ID()
	}
	t.Run("delivered", func(t *testing.T) {
		w, run := failedOnce(t)
		w.settles(run)
		if r := w.wantState(run, schedule.Succeeded, ""); r.Submitted != 650 || len(w.subs(run)) != 650 {
			t.Errorf("%d submitted, %d submissions", r.Submitted, len(w.subs(run)))
		}
		for to, n := range w.asked() {
			if n != 1 {
				t.Errorf("%s got %d mails", to, n)
			}
		}
		if n := len(w.asked()); n != 700 {
			t.Errorf("%d got a mail", n)
		}
		// Whom a retry of the retry sends to is decided on the frozen targets, too.
		p, err := w.editor.PlanRetry(ctx, run, schedule.RetryRequest{To: schedule.RetryEveryone})
		w.must(err)
		if len(p.Send) != 650 {
			t.Errorf("%d of the retry's recipients", len(p.Send))
		}
	})
	t.Run("its list is gone", func(t *testing.T) {
		w, run := failedOnce(t)
		w.gone(schema.ListKey(w.run(run).TargetList.Hash))
		w.settles(run)
		r := w.wantState(run, schedule.Failed, failure.DefinitionInvalid)
		if len(w.subs(run)) != 0 || !strings.Contains(r.ErrorText, "the list of 650 recipients") {
			t.Errorf("%d submissions; %s", len(w.subs(run)), r.ErrorText)
		}
		_, err := w.editor.PlanRetry(ctx, run, schedule.RetryRequest{})
		failuretest.Want(t, err, failure.DefinitionInvalid)
	})
}

// A list that goes away while its run is in work: what was asked comes to its end, and nobody else is asked.
func TestAListThatGoesAwayInTheMiddle(t *testing.T) {
	for name, c := range map[string]struct {
		recipient string
		state     schedule.SubmissionState
	}{"of a mail nobody knows": {"a@example.com", schedule.Unknown}, "a webhook may have it": {"b", schedule.Unknown}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.admitted(w.definition("s", c.recipient, "second@example.com"))
			key := w.apart("s", 1)
			w.faults.plan = func(o outside) fault {
				if o.name == "SES.SendRawEmail" || o.name == "Webhook.Send" {
					return dieAfter
				}
				return none
			}
			w.deliver()
			w.faults.plan = nil
			w.gone(key)
			w.settles(run)
			w.wantState(run, schedule.Failed, failure.DefinitionInvalid)
			w.wantSub(run, c.recipient, c.state, "")
			if n := len(w.subs(run)); n != 1 {
				t.Errorf("%d submissions", n)
			}
		})
	}
}

// A run of an earlier version must know who is on the schedule now: where that list is gone, nobody is asked.
func TestThePresentListIsGone(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@example.com", "b@example.com")
	run := w.admitted(d)
	d.Recipients = d.Recipients[:1]
	w.apply(d)
	key := w.apart("s", 2)
	w.gone(key)
	w.settles(run)
	w.wantState(run, schedule.Failed, failure.DefinitionInvalid)
	if len(w.mail.kept) != 0 {
		t.Errorf("%d mails", len(w.mail.kept))
	}
	// The tick needs no list: the next occurrence is admitted all the same, and settling told it to the schedule's row.
	w.to(firstDue.Add(24 * time.Hour))
	if tally := w.tick(); tally.Admitted != 1 {
		t.Errorf("%+v", tally)
	}
	if s := w.schedule("s"); s.Streak != 1 {
		t.Errorf("streak %d", s.Streak)
	}
}

// A bucket that does not answer is a passing failure: the run comes again, and is delivered.
func TestAListThatCannotBeReadForAWhile(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@example.com"))
	w.apart("s", 1)
	down := 0
	w.faults.plan = func(o outside) fault {
		if o.name == "S3.GetObject" && down < 2 {
			down++
			return lostBefore
		}
		return none
	}
	w.settles(run)
	if r := w.wantState(run, schedule.Succeeded, ""); r.Attempts != 3 || !strings.Contains(strings.Join(r.Timeline, " "), string(failure.FileUnavailable)) {
		t.Errorf("%d attempts: %v", r.Attempts, r.Timeline)
	}
}
