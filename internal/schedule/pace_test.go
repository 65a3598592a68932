package schedule_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The promise of the send rate: a send time may be used for this long, and unused time of the past is taken up to half of it.
const turnLife = time.Second

// wantRate asserts that no window that the mail service saw holds more requests than the rate allows, and one more for
// each worker that was held between its turn and its request.
func (w *world) wantRate(rate, held int) {
	w.t.Helper()
	at := slices.SortedFunc(slices.Values(w.mail.at), time.Time.Compare)
	for i, first := range at {
		for j, last := range at[i:] {
			window := last.Sub(first)
			if most := int(float64(rate)*(window+turnLife).Seconds()) + 1 + held; j+1 > most {
				w.t.Fatalf("%d requests within %s from %s on; the rate of %d a second allows %d\n%v", j+1, window, first, rate, most, at)
			}
		}
	}
}

// taken sets the instant up to which all send times are taken.
func (w *world) taken(until time.Time) {
	w.t.Helper()
	w.set(schema.SendRateKey(channel.Email, "test"), schema.TakenUntil, &dynamotypes.AttributeValueMemberN{Value: strconv.FormatInt(until.UnixMicro(), 10)})
}

// takes notes each reservation of send times: from where on, how long, and what it cost.
type takes struct {
	schedule.SendTimes
	w     *world
	from  []time.Time
	span  []time.Duration
	units int
}

func (w *world) watchTakes() *takes {
	tap := &takes{SendTimes: w.deliverer.Pace.Times, w: w}
	w.deliverer.Pace.Times = tap
	return tap
}

func (s *takes) TakeSendTimes(ctx context.Context, name, by string, ask func() schedule.Wanted) (schedule.Taken, error) {
	before := s.w.db.Units()
	var span time.Duration
	got, err := s.SendTimes.TakeSendTimes(ctx, name, by, func() schedule.Wanted {
		w := ask()
		span = w.Span
		return w
	})
	s.units += int(s.w.db.Units().Since(before).Total().TableWrite)
	if err == nil && !got.Late {
		s.from, s.span = append(s.from, got.Start), append(s.span, span)
	}
	return got, err
}

// watchTurns tells of each write to a row of the send rate. One that is refused costs as much.
func (w *world) watchTurns(seen func(err error)) {
	after := w.db.Hooks.After
	w.db.Hooks.After = func(ctx context.Context, c memcloud.Call) error {
		if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && text(in.Key, schema.PK) == string(schema.SendRateKey(channel.Email, "test").PK) {
			seen(c.Err)
		}
		return after(ctx, c)
	}
}

func mails(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("r%02d@example.com", i))
	}
	return list
}

// throttles answers the first request for some recipients as SES does where the account sends too fast.
func throttles(some func(to string) bool) func(string, int) error {
	return func(to string, n int) error {
		if n == 1 && some(to) {
			return coded("Throttling", "Maximum sending rate exceeded.")
		}
		return nil
	}
}

// An attempt that cannot learn its turn asks nobody again: what was not accepted before waits for the next attempt.
func TestNobodyIsAskedAgainWithoutATurn(t *testing.T) {
	w := newWorld(t, mailRate(5))
	run := w.admitted(w.definition("s", "ann@example.com"))
	w.mail.answer = throttles(func(string) bool { return true })
	w.deliver()
	if s := w.sub(run, "ann@example.com"); !s.NotAccepted || len(w.mail.at) != 1 {
		t.Fatalf("%s", w.dump())
	}
	w.advance(w.timing.BackoffBase.Std() * 2)
	w.deliverer.Pace.Times = silent{}
	w.deliver()
	if r := w.run(run); r.State != schedule.Running || r.ErrorCode != string(failure.StoreUnavailable) || r.Attempts != 2 || len(w.mail.at) != 1 {
		t.Fatalf("%d requests: %s", len(w.mail.at), w.dump())
	}
	w.wire()
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

// silent keeps no send times.
type silent struct{}

func (silent) TakeSendTimes(context.Context, string, string, func() schedule.Wanted) (schedule.Taken, error) {
	return schedule.Taken{}, failure.New(failure.StoreUnavailable, "no answer")
}

func TestD10OnlyTheRefusedWaitAndRetryAtTheAccountsRate(t *testing.T) {
	const rate = 5
	w := newWorld(t, mailRate(rate))
	to := mails(20)
	run := w.admitted(w.definition("s", to...))
	refusals := to[5:10]
	refused := func(a string) bool { return slices.Contains(refusals, a) }
	w.mail.answer = throttles(refused)
	watched := w.watchTakes()
	w.deliver()
	if r := w.run(run); r.State != schedule.Running || r.ErrorCode != string(failure.SendThrottled) || len(w.mail.at) != 20 {
		t.Fatalf("%d requests: %s", len(w.mail.at), w.dump())
	}
	// 20 send times 200 ms apart, the first half a second ago.
	if took := w.mail.at[19].Sub(w.mail.at[0]); took != 19*200*time.Millisecond-turnLife/2 {
		t.Errorf("the 20 requests took %s", took)
	}
	if len(watched.span) != 2 || watched.units != 2 || watched.span[0] != schedule.TurnSpan {
		t.Errorf("20 mails took their send times in %v for %d write units; want two of %s", watched.span, watched.units, schedule.TurnSpan)
	}
	first := w.mail.at[19]
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if r.Submitted != 20 || r.Attempts != 2 || len(w.mail.at) != 25 {
		t.Errorf("%d requests: %s", len(w.mail.at), w.dump())
	}
	for _, a := range to {
		want := 1
		if refused(a) {
			want = 2
		}
		if w.mail.asked[a] != want || len(w.mail.to(a)) != 1 {
			t.Errorf("%s was asked %d times and got %d mails; want %d and 1", a, w.mail.asked[a], len(w.mail.to(a)), want)
		}
	}
	if wait := w.mail.at[20].Sub(first); wait < w.timing.BackoffBase.Std() {
		t.Errorf("the refused were asked again after %s", wait)
	}
	w.wantRate(rate, 0)
}

// Two workers share one rate. The first is held at each of its calls in turn while the second does all of its work; so
// it also meets a row that was moved between its read and its write.
func TestD10TwoWorkersShareOneRate(t *testing.T) {
	t.Parallel()
	const rate = 5
	var refused atomic.Int64
	for n := 1; ; n++ {
		w := newWorld(t, mailRate(rate))
		w.watchTurns(func(err error) {
			if err != nil {
				refused.Add(1)
			}
		})
		to := mails(12)
		a := w.admitted(w.definition("a", to...))
		inv := w.invoke("deliver", deliverTime)
		z, held := w.freeze(inv, n, func() { w.consume(inv, w.receive(w.queue.URL)) })
		if !held {
			if n < 40 {
				t.Fatalf("only %d calls", n)
			}
			break
		}
		b, _, err := w.editor.RunNow(ctx, "a", "ann", fmt.Sprint("key", n), "test")
		w.must(err)
		w.drain()
		if r := w.run(b.ID()); r.State != schedule.Succeeded {
			t.Fatalf("held at %d: the other worker's run is %s", n, r.State)
		}
		z.release()
		w.quiet()
		w.wantState(a, schedule.Succeeded, "")
		for _, run := range []string{a, b.ID()} {
			if r := w.run(run); r.Submitted != 12 {
				t.Fatalf("held at %d: %s", n, w.dump())
			}
		}
		for _, r := range to {
			if got := len(w.mail.to(r)); got != 2 {
				t.Fatalf("held at %d: %s got %d mails of two runs", n, r, got)
			}
		}
		w.wantRate(rate, 1)
		w.hooks.server.Close()
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("%d writes were refused; want one: where the row was made between a worker's read and its write. Later moves refuse nothing", n)
	}
}

// Workers that do not use the rate up leave the instant behind again and again. They must not all set it anew each time,
// or most of their writes are refused.
func TestManyWorkersBelowTheRateRefuseEachOtherLittle(t *testing.T) {
	t.Parallel()
	const rate, mails = 400, 300
	l := newLoaded(t)
	l.deliverer.Pace.Rates = map[string]int{channel.Email: rate}
	for n := range mails {
		l.owes(l.definition(fmt.Sprintf("s-%03d", n), fmt.Sprintf("a%d@example.com", n)), firstDue)
	}
	l.drains(firstDue)
	l.kept(nil)
	if n := l.turns.Load(); n < mails || n > mails*5/4 {
		t.Errorf("%d mails took %d writes for their turns, want one each and few more", mails, n)
	}
	l.wantRate(rate, 0)
}

func TestWebhooksAreNotPaced(t *testing.T) {
	w := newWorld(t, mailRate(1))
	run := w.admitted(w.definition("s", "b", "c", "d"))
	w.taken(firstDue.Add(9 * time.Minute))
	watched, before := w.watchTakes(), w.wall()
	w.deliver()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Submitted != 3 || len(watched.from) != 0 || !w.wall().Equal(before) {
		t.Errorf("%d reservations, %s later: %s", len(watched.from), w.wall().Sub(before), w.dump())
	}
}

func TestAMailWaitsUntilASendTimeIsFree(t *testing.T) {
	w := newWorld(t, mailRate(1))
	run := w.admitted(w.definition("s", "a@x.com"))
	free := firstDue.Add(90 * time.Second)
	w.taken(free)
	w.deliver()
	r := w.wantState(run, schedule.Succeeded, "")
	if len(w.mail.at) != 1 || !w.mail.at[0].Equal(free) || r.Attempts != 1 || r.Yields != 0 || w.counts["send_turns waited"] != 1 {
		t.Errorf("asked at %v, want %s: %s", w.mail.at, free, w.dump())
	}
}

// Where no send time comes in this invocation nobody is asked: what has recorded its file yields, what has done nothing
// is released until the next free one.
func TestNoTurnInThisInvocation(t *testing.T) {
	w := newWorld(t, mailRate(1))
	run := w.admitted(w.definition("s", "a@x.com", "b@x.com"))
	free := firstDue.Add(8 * time.Minute)
	w.taken(free)
	w.deliver()
	if r := w.run(run); r.Yields != 1 || r.AttemptsLeft != 5 || r.LeaseOwner != "" || r.File == nil || len(w.subs(run)) != 0 {
		t.Fatalf("with its file recorded it yields: %s", w.dump())
	}
	w.deliver()
	if r := w.wantState(run, schedule.Running, failure.SendThrottled); r.Yields != 1 || r.AttemptsLeft != 4 || len(w.subs(run)) != 0 || !strings.Contains(r.ErrorText, "8m0s") {
		t.Fatalf("without progress it is released: %s", w.dump())
	}
	if w.deliver() {
		t.Fatal("its message is visible before a send time is free")
	}
	if w.counts["send_turns none"] != 2 {
		t.Errorf("%v", w.counts)
	}
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if len(w.mail.at) != 2 || w.mail.at[0].Before(free) {
		t.Errorf("asked at %v, free from %s", w.mail.at, free)
	}
	w.wantRate(1, 0)
}

// Time that ends while a worker waits, and a wait between two mails that does not fit any more.
func TestTimeThatEndsWhileWaiting(t *testing.T) {
	w := newWorld(t, mailRate(1))
	run := w.admitted(w.definition("s", mails(6)...))
	waits := 0
	w.paused = func(time.Duration) {
		if waits++; waits == 3 {
			w.advance(deliverTime)
		}
	}
	w.deliver()
	if r := w.run(run); r.Yields != 1 || r.LeaseOwner != "" || len(w.mail.at) != 3 || len(w.subs(run)) != 3 {
		t.Fatalf("%d requests: %s", len(w.mail.at), w.dump())
	}
	w.paused = nil
	w.quiet()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Submitted != 6 || len(w.mail.at) != 6 {
		t.Error(w.dump())
	}

	w = newWorld(t, mailRate(1))
	run = w.admitted(w.definition("s", mails(6)...))
	w.mail.during = func(to string) {
		if to == "r01@example.com" {
			w.taken(w.wall().Add(5 * time.Minute)) // others were quicker
			w.advance(2 * time.Minute)
		}
	}
	w.deliver()
	if r := w.run(run); r.Yields != 1 || len(w.mail.at) != 2 || len(w.subs(run)) != 2 || w.wall().Sub(firstDue) > 3*time.Minute {
		t.Fatalf("%d requests: %s", len(w.mail.at), w.dump())
	}
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

// Long waits end with a look at what may have changed meanwhile, before the intent.
func TestWhatChangesDuringAWaitIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, run string)
		check  func(w *world, run string)
	}{
		"send off": {func(w *world, _ string) { w.control(schedule.Control{SendOff: true}) }, func(w *world, run string) {
			if r := w.run(run); r.Yields != 1 || r.LeaseOwner != "" || len(w.subs(run)) != 1 {
				w.t.Fatal(w.dump())
			}
			w.control(schedule.Control{})
			w.quiet()
			w.wantState(run, schedule.Succeeded, "")
			if len(w.mail.at) != 3 {
				w.t.Errorf("%d requests for 3 recipients", len(w.mail.at))
			}
		}},
		"stopped": {func(w *world, run string) {
			a := w.stop("enough")
			a.Subject = run
			w.must(w.store.AskToStop(ctx, w.run(run), a))
		}, func(w *world, run string) {
			if r := w.wantState(run, schedule.Failed, failure.StoppedByOperator); r.Submitted != 1 || len(w.mail.at) != 1 {
				w.t.Error(w.dump())
			}
		}},
		"unsubscribed": {func(w *world, run string) {
			hash := schedule.Targets([]schedule.Recipient{{Email: "r01@example.com"}})[0].Hash
			w.must(w.store.Unsubscribe(ctx, channel.Email, hash, "s", w.wall()))
		}, func(w *world, run string) {
			r := w.wantState(run, schedule.Succeeded, "")
			w.wantSub(run, "r01@example.com", schedule.NotDelivered, channel.ReasonUnsubscribed)
			if r.Submitted != 2 || len(w.mail.at) != 2 {
				w.t.Error(w.dump())
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mailRate(1))
			run := w.admitted(w.definition("s", mails(3)...))
			w.paused = func(time.Duration) {
				w.paused = nil
				c.change(w, run)
			}
			w.deliver()
			if w.paused != nil {
				t.Fatal("nobody waited")
			}
			c.check(w, run)
			w.wantRate(1, 0)
		})
	}
}

func TestAResendTakesItsTurn(t *testing.T) {
	w, run := unknownMail(t)
	asked := len(w.mail.at)
	free := w.wall().Add(40 * time.Second)
	w.taken(free)
	w.resend(run, "a@x.com")
	w.paused = func(time.Duration) {
		w.paused = nil
		w.control(schedule.Control{SendOff: true})
	}
	w.drain()
	w.wantSub(run, "a@x.com", schedule.Unknown, "")
	if len(w.mail.at) != asked || w.paused != nil {
		t.Fatal("it was sent although sending was switched off while it waited")
	}
	w.control(schedule.Control{})
	free = w.wall().Add(8 * time.Minute) // longer than one invocation
	w.taken(free)
	w.quiet()
	w.wantSub(run, "a@x.com", schedule.Submitted, "")
	if len(w.mail.at) != asked+1 || w.mail.at[asked].Before(free) {
		t.Errorf("sent at %v, free from %s", w.mail.at[asked:], free)
	}
}

func TestNoticesTakeTheirTurns(t *testing.T) {
	w := newWorld(t, mailRate(1))
	d := w.definition("s", "b")
	d.Query = "SELECT nothing"
	d.Notify = []schedule.Recipient{{Email: "x@example.com"}, {Email: "y@example.com"}, {Email: "z@example.com"}}
	w.apply(d)
	watched := w.watchTakes()
	w.to(firstDue)
	w.tick()
	w.deliver()
	if len(w.mail.at) != 3 || len(watched.from) != 3 || w.left() != 0 || w.mail.at[2].Sub(w.mail.at[0]) != 3*time.Second/2 {
		t.Errorf("told at %v by %d reservations, %d left", w.mail.at, len(watched.from), w.left())
	}
	w.wantRate(1, 0)
}

func TestANoticeWithoutATurnIsLeftToTheSweep(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Query = "SELECT nothing"
	w.telling(&d)
	w.apply(d)
	w.to(firstDue)
	free := firstDue.Add(9 * time.Minute)
	w.taken(free)
	w.tick()
	w.deliver()
	if len(w.mail.at) != 0 || w.left() != 1 || len(w.hooks.to("n")) != 1 {
		t.Fatalf("%d mails, %d notices left, %d posts", len(w.mail.at), w.left(), len(w.hooks.to("n")))
	}
	w.paused = func(time.Duration) {
		w.paused = nil
		w.control(schedule.Control{SendOff: true})
	}
	for w.paused != nil {
		w.pass(time.Minute)
	}
	if len(w.mail.at) != 0 || w.left() != 1 {
		t.Fatal("it was told although sending was switched off while it waited")
	}
	w.control(schedule.Control{})
	w.quiet()
	if len(w.mail.at) != 1 || w.mail.at[0].Before(free) || w.left() != 0 {
		t.Errorf("told at %v, free from %s", w.mail.at, free)
	}
}

// A row that cannot be right counts as absent; so a wrong clock, or a hand that wrote it, holds up nobody for long.
func TestARowOfSendTimesThatCannotBeRight(t *testing.T) {
	key := schema.SendRateKey(channel.Email, "test")
	for name, c := range map[string]struct {
		value dynamotypes.AttributeValue
		wait  time.Duration
		reset int
	}{
		"too far ahead":      {&dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(firstDue.Add(schedule.MaxAhead + time.Millisecond).UnixMicro())}, 0, 1},
		"ages ahead":         {&dynamotypes.AttributeValueMemberN{Value: "99999999999999999999"}, 0, 0},
		"text":               {txt("tomorrow"), 0, 0},
		"a fraction":         {&dynamotypes.AttributeValueMemberN{Value: "0.5"}, 0, 0},
		"below zero":         {&dynamotypes.AttributeValueMemberN{Value: "-5"}, 0, 0},
		"a clock went back":  {&dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(firstDue.Add(7 * time.Second).UnixMicro())}, 7 * time.Second, 0},
		"long ago":           {&dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(firstDue.Add(-time.Hour).UnixMicro())}, 0, 0},
		"just in the burst":  {&dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(firstDue.Add(-100 * time.Millisecond).UnixMicro())}, 0, 0},
		"of this very time":  {&dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(firstDue.UnixMicro())}, 0, 0},
		"a moment ahead yet": {&dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(firstDue.Add(time.Millisecond).UnixMicro())}, time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mailRate(1))
			run := w.admitted(w.definition("s", "a@x.com"))
			w.set(key, schema.TakenUntil, c.value)
			w.deliver()
			w.wantState(run, schedule.Succeeded, "")
			if len(w.mail.at) != 1 || w.mail.at[0].Sub(firstDue) != c.wait || w.counts["send_turns reset"] != c.reset {
				t.Errorf("asked at %v, want %s after %s; %v", w.mail.at, c.wait, firstDue, w.counts)
			}
			if strings.Contains(w.log.text(), "a clock was wrong") != (c.reset > 0) {
				t.Error("the log does not say so, or says so without need")
			}
		})
	}
}

// A worker that is slower than the rate takes only what it uses, so that others get the rest.
func TestASlowWorkerTakesOnlyWhatItUses(t *testing.T) {
	w := newWorld(t, mailRate(10))
	run := w.admitted(w.definition("s", mails(40)...))
	w.mail.during = func(string) { w.advance(400 * time.Millisecond) }
	watched := w.watchTakes()
	w.deliver()
	w.wantState(run, schedule.Succeeded, "")
	most, used := time.Duration(0), 40*100*time.Millisecond
	for i, s := range watched.span {
		if most += s; i > 1 && s > time.Second/2 {
			t.Errorf("reservation %d of a worker that asks 2.5 times a second is %s", i, s)
		}
	}
	if watched.span[0] != schedule.TurnSpan || most > 2*used {
		t.Errorf("it took %s worth of send times and used %s: %v", most, used, watched.span)
	}
	w.wantRate(10, 0)
}
