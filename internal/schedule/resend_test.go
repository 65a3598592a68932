package schedule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func (w *world) resend(run, recipient string) schedule.Submission {
	w.t.Helper()
	sub, err := w.editor.Resend(ctx, run, w.sub(run, recipient).RecipientHash, "they called", "ann")
	w.must(err)
	return sub
}

// unknownHook is a world whose run failed with a webhook of whom nobody knows.
func unknownHook(t testing.TB) (*world, string) {
	t.Helper()
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", reply{cut: true})
	w.quiet()
	w.wantSub(run, "b", schedule.Unknown, "")
	w.hooks.answer = nil
	return w, run
}

func TestResendSendsOnceUnderANewKey(t *testing.T) {
	w, run := unknownHook(t)
	before := len(w.hooks.to("b"))
	asked := w.resend(run, "b")
	if asked.State != schedule.Unknown || asked.Wish.By != "ann" || len(w.hooks.to("b")) != before {
		t.Fatalf("asking alone did something: %+v", asked)
	}
	w.quiet()
	w.wantSub(run, "b", schedule.Submitted, "")
	got := w.hooks.to("b")
	if len(got) != before+1 || got[before].key != got[0].key+"/2" {
		t.Errorf("%d requests, the last under %q; want one more, under %q", len(got), got[len(got)-1].key, got[0].key+"/2")
	}
	if s := w.sub(run, "b"); s.Resends != 1 || s.Tries != before+1 || s.Wish.ID != "" || s.Detail != "" {
		t.Errorf("%+v", s)
	}
	w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
}

func TestResendOfAMailAndAThirdKey(t *testing.T) {
	w, run := unknownMail(t)
	w.faults.plan = dies("deliver", "SES.SendRawEmail", lostAfter)
	w.resend(run, "a@x.com")
	w.quiet()
	w.wantSub(run, "a@x.com", schedule.Unknown, "")
	w.faults.plan = nil
	w.resend(run, "a@x.com")
	w.quiet()
	w.wantSub(run, "a@x.com", schedule.Submitted, "")
	if s := w.sub(run, "a@x.com"); len(w.mail.to("a@x.com")) != 3 || s.Resends != 2 || s.Tries != 3 {
		t.Errorf("%d mails, %+v", len(w.mail.to("a@x.com")), s)
	}
}

// What is no verdict leaves the recipient unknown, a refusal and the rules of every send settle it.
func TestResendVerdicts(t *testing.T) {
	for _, x := range []struct {
		name    string
		prepare func(w *world, run string)
		state   schedule.SubmissionState
		reason  string
		more    int
	}{
		{"503", func(w *world, _ string) { w.hooks.answer = answers("b", status(503)) }, schedule.Unknown, "", 1},
		{"cut", func(w *world, _ string) { w.hooks.answer = answers("b", reply{cut: true}) }, schedule.Unknown, "", 1},
		{"400", func(w *world, _ string) { w.hooks.answer = answers("b", status(400)) }, schedule.NotDelivered, "refused", 1},
		{"removed since", func(w *world, _ string) { w.apply(w.definition("s", "c")) }, schedule.NotDelivered, "removed", 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, run := unknownHook(t)
			before := len(w.hooks.to("b"))
			x.prepare(w, run)
			w.resend(run, "b")
			w.drain()
			w.pass(time.Hour)
			w.wantSub(run, "b", x.state, x.reason)
			if n := len(w.hooks.to("b")) - before; n != x.more {
				t.Errorf("%d more requests, want %d", n, x.more)
			}
		})
	}
}

// Whatever dies, is lost or is sent twice while a resend is carried out: at most one more request leaves, and in the end
// the recipient has an outcome or is unknown again.
func TestDeathAtEveryCallOfAResend(t *testing.T) {
	t.Parallel()
	w, run := unknownHook(t)
	w.resend(run, "b")
	first := w.faults.n
	w.deliver()
	w.minute()
	calls := append([]string{}, w.faults.log[len(w.faults.log)-(w.faults.n-first):]...)
	if len(calls) < 6 {
		t.Fatalf("calls %v", calls)
	}
	outcomes := map[string]int{}
	for n := range calls {
		for f, kind := range kinds {
			w, run := unknownHook(t)
			before := len(w.hooks.to("b"))
			w.resend(run, "b")
			w.faults.plan = nth(w.faults.n+1+n, f)
			w.step = time.Minute
			w.quiet()
			s := w.sub(run, "b")
			name := fmt.Sprintf("%s at call %d (%s)", kind, n, calls[n])
			more := len(w.hooks.to("b")) - before
			outcomes[string(s.State)]++
			switch {
			case more > 1 && f != sentTwice:
				t.Errorf("%s: %d more requests", name, more)
			case s.State == schedule.Submitted && more == 0, s.State != schedule.Submitted && s.State != schedule.Unknown:
				t.Errorf("%s: %s after %d more requests", name, s.State, more)
			case s.State == schedule.Unknown && s.Resends == 0 || w.left() > 0:
				t.Errorf("%s: the wish was lost or is left: %+v, %d left", name, s, w.left())
			}
			w.hooks.server.Close()
		}
	}
	t.Logf("%d calls: %v", len(calls), outcomes)
}

// A message that was delivered twice, and one that comes late, send nothing more.
func TestResendDeliveredTwice(t *testing.T) {
	w, run := unknownHook(t)
	before := len(w.hooks.to("b"))
	asked := w.resend(run, "b")
	w.resend(run, "b") // a second ask finds the first, and offers it again
	body := schedule.EncodeResend(schema.ResendID(run, "webhook", asked.RecipientHash, asked.Wish.ID))
	w.raw(body)
	w.quiet()
	w.raw(body)
	w.quiet()
	if n := len(w.hooks.to("b")) - before; n != 1 {
		t.Errorf("%d more requests", n)
	}
	list, _, err := w.store.Audits(ctx, run, "", 10)
	if err != nil || len(list) != 1 || list[0].What != "resend" || list[0].Why != "they called" {
		t.Errorf("audits %+v, %v", list, err)
	}
}

// A worker that died leaves the recipient pending until its lease has ended; then it is unknown, and no second request
// leaves.
func TestResendWhoseWorkerDiedIsUnknownAgain(t *testing.T) {
	w, run := unknownHook(t)
	before := len(w.hooks.to("b"))
	w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
	w.resend(run, "b")
	w.drain()
	w.wantSub(run, "b", schedule.Pending, "")
	w.quiet()
	w.wantSub(run, "b", schedule.Unknown, "")
	if n := len(w.hooks.to("b")) - before; n != 1 {
		t.Errorf("%d more requests", n)
	}
}

func TestResendWaitsWhileSendingIsOff(t *testing.T) {
	w, run := unknownHook(t)
	before := len(w.hooks.to("b"))
	off, on := false, true
	_, err := w.editor.Switch(ctx, schedule.Switches{Send: &off}, "x", "ann")
	w.must(err)
	w.resend(run, "b")
	w.pass(30 * time.Minute)
	if n := len(w.hooks.to("b")) - before; n != 0 || w.messages(w.queue.URL) != 0 || w.left() != 1 {
		t.Fatalf("%d requests, %d messages, %d left although sending is off", n, w.messages(w.queue.URL), w.left())
	}
	_, err = w.editor.Switch(ctx, schedule.Switches{Send: &on}, "x", "ann")
	w.must(err)
	w.quiet()
	w.wantSub(run, "b", schedule.Submitted, "")
}

// A wish whose messages are lost is offered by the sweep until somebody has carried it out, or until there is nothing
// left to carry out.
func TestNoLostMessageLosesAWishToResend(t *testing.T) {
	for _, x := range []struct {
		name    string
		prepare func(w *world, run, hash string)
		state   schedule.SubmissionState
		more    int
	}{
		{"lost", func(*world, string, string) {}, schedule.Submitted, 1},
		{"resolved meanwhile", func(w *world, run, hash string) {
			_, err := w.editor.Resolve(ctx, run, hash, "skipped", "x", "ann")
			w.must(err)
		}, schedule.NotDelivered, 0},
		{"links taken back meanwhile", func(w *world, run, _ string) {
			_, err := w.editor.RevokeLinks(ctx, run, schedule.AllLinks, "x", "ann")
			w.must(err)
		}, schedule.Unknown, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, run := unknownHook(t)
			before := len(w.hooks.to("b"))
			hash := w.resend(run, "b").RecipientHash
			w.lose(2)
			x.prepare(w, run, hash)
			w.quiet()
			w.wantSub(run, "b", x.state, map[schedule.SubmissionState]string{schedule.NotDelivered: schedule.ReasonResolved}[x.state])
			if n := len(w.hooks.to("b")) - before; n != x.more || w.left() != 0 {
				t.Errorf("%d more requests, %d left", n, w.left())
			}
		})
	}
}

// lose takes the one message of the queue away before anybody reads it, and so the sweep's next ones.
func (w *world) lose(times int) {
	w.t.Helper()
	for n := range times {
		if n > 0 {
			w.advance(time.Hour)
			if tally := w.tick(); tally.Resends != 1 || tally.Notices != 0 {
				w.t.Fatalf("%+v", tally)
			}
		}
		for _, m := range w.receive(w.queue.URL) {
			_, err := w.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &w.queue.URL, ReceiptHandle: m.ReceiptHandle})
			w.must(err)
		}
	}
}

// What keeps a resend from being carried out is tried again by the sweep, ever more seldom, and never by its message.
func TestAResendThatCannotBeCarriedOutIsLeftToTheSweep(t *testing.T) {
	w, run := unknownHook(t)
	w.resend(run, "b")
	channels := w.deliverer.Channels
	w.deliverer.Channels = nil
	w.deliver()
	if w.messages(w.queue.URL) != 0 || w.left() != 1 || !strings.Contains(w.log.text(), "the sweep offers it again") {
		t.Fatalf("%d messages, %d left", w.messages(w.queue.URL), w.left())
	}
	w.wantSub(run, "b", schedule.Unknown, "")
	w.deliverer.Channels = channels
	w.quiet()
	w.wantSub(run, "b", schedule.Submitted, "")
}

func TestResendRefusals(t *testing.T) {
	for _, x := range []struct {
		name, why string
		prepare   func(w *world, run, hash string)
	}{
		{"expired", "ended at", func(w *world, _, _ string) { w.advance(31 * 24 * time.Hour) }},
		{"links taken back", "taken back", func(w *world, run, _ string) {
			_, err := w.editor.RevokeLinks(ctx, run, schedule.AllLinks, "x", "ann")
			w.must(err)
		}},
		{"one link taken back", "taken back", func(w *world, run, hash string) {
			_, err := w.editor.RevokeLinks(ctx, run, hash, "x", "ann")
			w.must(err)
		}},
		{"resolved", "only an unknown", func(w *world, run, hash string) {
			_, err := w.editor.Resolve(ctx, run, hash, "skipped", "x", "ann")
			w.must(err)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, run := unknownHook(t)
			hash := w.sub(run, "b").RecipientHash
			x.prepare(w, run, hash)
			var c *schedule.Conflict
			if _, err := w.editor.Resend(ctx, run, hash, "x", "ann"); !errors.As(err, &c) || !strings.Contains(c.Why, x.why) {
				t.Errorf("%v, want %q", err, x.why)
			}
		})
	}
}

func TestDecodeMessageOfAResend(t *testing.T) {
	id := schema.ResendID("s@2040-01-01T00:00:00Z", "email", "ff", "wish")
	if m, err := schedule.DecodeMessage(schedule.EncodeResend(id)); err != nil || m != (schedule.Message{Resend: id}) {
		t.Fatal(m, err)
	}
	for name, body := range map[string]string{
		"empty": `{"resend":""}`, "wrong type": `{"resend":7}`, "of no run": `{"resend":"s#email#ff#w"}`, "without wish": `{"resend":"s@o#email#ff#"}`,
		"three parts": `{"resend":"s@o#email#ff"}`, "five parts": `{"resend":"s@o#email#ff#w#x"}`, "beside a run": `{"run":"s@o","resend":"s@o#email#ff#w"}`,
		"beside a notice": `{"notice":"s@o#failed#email#ff","resend":"s@o#email#ff#w"}`, "hostile": "{\"resend\":\"\\u0000; DROP\"}",
	} {
		if _, err := schedule.DecodeMessage(body); failure.From(err).Code != failure.MessageInvalid || !strings.Contains(err.Error(), "resend") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In the dead-letter queue a resend is not sent: what is pending is lost track of once its lease has ended, an unknown
// stays one that may be asked for again.
func TestDeadLetterOfAResend(t *testing.T) {
	w, run := unknownHook(t)
	before := len(w.hooks.to("b"))
	asked := w.resend(run, "b")
	body := schedule.EncodeResend(schema.ResendID(run, "webhook", asked.RecipientHash, asked.Wish.ID))
	w.must(w.letters.Handle(ctx, "m-1", body))
	w.wantSub(run, "b", schedule.Unknown, "")
	w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
	w.deliver()
	w.wantSub(run, "b", schedule.Pending, "")
	if err := w.letters.Handle(ctx, "m-1", body); err == nil {
		t.Error("the letter was taken although a worker may be at work")
	}
	w.advance(time.Hour)
	w.must(w.letters.Handle(ctx, "m-1", body))
	w.wantSub(run, "b", schedule.Unknown, "")
	if n := len(w.hooks.to("b")) - before; n != 1 {
		t.Errorf("%d more requests", n)
	}
}
