package schedule_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
)

// Giving up that takes longer than an invocation yields, and costs no attempt. A yield that cannot be written keeps the
// message.
func TestGivingUpGoesOnInTheNextInvocation(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		run := w.admitted(w.definition("s", "b", "c", "d", "e", "f", "g"))
		w.faults.plan = dies("deliver", "DynamoDB.BatchGetItem", dieBefore) // with its file, and before anybody was asked
		w.deliver()
		w.must(second(w.editor.Stop(ctx, run, "enough", "ann")))
		w.to(w.run(run).LeaseEnd.Add(time.Second))
		yields := 0
		w.taking(45*time.Second, func(c outside) fault {
			if c.name == "DynamoDB.UpdateItem" && strings.Contains(asked(c), "time is nearly up") {
				yields++
				if lost && yields <= 10 { // the store tries some times
					return lostBefore
				}
			}
			return none
		})
		for !w.deliver() { // its message is hidden for a while yet
			w.advance(time.Minute)
		}
		if r := w.run(run); r.Settled() || yields == 0 {
			t.Fatalf("%s after %d yields: want an invocation that did not end", r.State, yields)
		}
		if w.messages(w.queue.URL) == 0 {
			t.Errorf("lost %t: the message of an open run is gone", lost)
		}
		r := w.settles(run)
		if r.Yields == 0 && !lost || r.ErrorCode != string(failure.StoppedByOperator) {
			t.Errorf("%d yields, %s", r.Yields, r.ErrorCode)
		}
		for _, name := range []string{"b", "c", "d", "e", "f", "g"} {
			w.wantSub(run, name, schedule.NotSent, string(failure.StoppedByOperator))
		}
	}
}

// slow is a channel that takes its time, or fails, while it makes a request ready.
type slow struct {
	channel.Channel
	w     *world
	takes time.Duration
	fails error
}

func (s *slow) Freeze(ctx context.Context, d channel.Delivery, now time.Time, entropy []byte) (channel.Frozen, error) {
	s.w.advance(s.takes)
	if s.fails != nil {
		return channel.Frozen{}, s.fails
	}
	return s.Channel.Freeze(ctx, d, now, entropy)
}

// slowly puts it before a channel.
func (w *world) slowly(name string) *slow {
	s := &slow{Channel: w.deliverer.Channels[name], w: w}
	w.deliverer.Channels[name] = s
	return s
}

// I9: a request that is made ready so late that no time is left is not begun, nor is one that cannot be made ready; the
// next attempt, or the next offer of the wish, sends it.
func TestI9NoRequestWithoutItsTimeOrItsBody(t *testing.T) {
	unready := failure.New(failure.FileUnavailable, "the file cannot be read")
	for name, begin := range map[string]func(w *world) (run string, s *slow){
		"first": func(w *world) (string, *slow) {
			return w.admitted(w.definition("s", "b")), w.slowly("webhook")
		},
		// Refused before it was asked, and its refusal was not recorded; now it may be asked, and is made ready only now.
		"once": func(w *world) (string, *slow) {
			run := w.admitted(w.definition("s", "b"))
			w.deliverer.Allowed = boot.AllowList([]string{"example.com"})
			w.faults.plan = dies("deliver", "DynamoDB.PutItem", dieAfter)
			w.deliver()
			w.faults.plan, w.deliverer.Allowed = nil, nil
			if sub := w.sub(run, "b"); sub.State != schedule.Pending || !sub.NotAccepted || sub.Frozen.BodyHash != "" {
				w.t.Fatalf("%+v", sub)
			}
			w.to(w.run(run).WakeAt.Add(time.Second))
			w.tick()
			return run, w.slowly("webhook")
		},
		"again": func(w *world) (string, *slow) {
			run := oneUnknown(w)
			w.resend(run, "b")
			return run, w.slowly("webhook")
		},
	} {
		for what, change := range map[string]func(s *slow){
			"no time is left":    func(s *slow) { s.takes = deliverTime - s.w.timing.Reserve.Std() + time.Second },
			"it cannot be ready": func(s *slow) { s.fails = unready },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				w := newWorld(t)
				run, s := begin(w)
				before := len(w.hooks.to("b"))
				change(s)
				w.deliver()
				if n := len(w.hooks.to("b")); n != before {
					t.Errorf("%d requests were sent", n-before)
				}
				s.takes, s.fails = 0, nil
				w.quiet()
				w.wantSub(run, "b", schedule.Submitted, "")
				if n := len(w.hooks.to("b")); n != before+1 {
					t.Errorf("%d requests in all", n-before)
				}
			})
		}
	}
}

// A turn that comes after the invocation's time is not used before it comes: the next invocation takes one of its own.
func TestATurnThatComesTooLateIsNotUsedEarly(t *testing.T) {
	w := newWorld(t, mailRate(2))
	run := w.admitted(w.definition("s", "a@x.com", "b@x.com", "c@x.com", "d@x.com"))
	inv := w.invoke("deliver", w.timing.Reserve.Std()+700*time.Millisecond)
	w.consume(inv, w.receive(w.queue.URL))
	if n := len(w.mail.kept); n != 3 {
		t.Errorf("%d mails in 0.7 s, want 3 at two a second and the burst", n)
	}
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if n := len(w.mail.kept); n != 4 {
		t.Errorf("%d mails", n)
	}
}

// A wait for a turn that is broken off is no turn.
func TestAWaitThatIsBrokenOffIsNoTurn(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com"))
	w.taken(w.wall().Add(3 * time.Second))
	pause, broken := w.deliverer.Pace.Pause, 0
	w.deliverer.Pace.Pause = func(context.Context, time.Duration) error {
		if broken++; broken > 10 {
			t.Fatal("it waits again and again")
		}
		return context.Canceled
	}
	w.deliver()
	if n := len(w.mail.kept); n != 0 || broken != 1 {
		t.Errorf("%d mails after %d waits", n, broken)
	}
	w.deliverer.Pace.Pause = pause
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

// A worker that was frozen once it had written its intent, and wakes when its lease is over and another has sent, sends
// nothing: its successor has the say.
func TestAWorkerThatWakesAfterItsLeaseSendsNothing(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "c"))
	after, frozen := w.db.Hooks.After, false
	w.db.Hooks.After = func(ctx context.Context, c memcloud.Call) error {
		inv, _ := ctx.Value(invocationKey{}).(*invocation)
		if c.Operation == "PutItem" && inv != nil && inv.kind == "deliver" && !frozen {
			frozen = true
			w.quiet()
		}
		return after(ctx, c)
	}
	w.deliver()
	if !frozen {
		t.Fatal("nobody was frozen")
	}
	w.wantState(run, schedule.Succeeded, "")
	for _, name := range []string{"b", "c"} {
		w.wantSub(run, name, schedule.Submitted, "")
		if n := len(w.hooks.to(name)); n != 1 {
			t.Errorf("%s was asked %d times", name, n)
		}
	}
}
