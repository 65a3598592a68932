package simulate

import (
	"context"
	"slices"
	"time"

	"almanac/internal/schedule"
)

// pastLease is when the lease of an invocation that began now is over.
const pastLease = DeliverTime + time.Minute + time.Second

// zombie is a consumer of the queue's message that was frozen at one of its calls until its lease was over; b is another
// that has the same message.
func (w *World) zombie(until func(*Call) bool) (a, b func() *Worker) {
	b = w.take(queueRuns)
	k := b()
	w.drive(k, until)
	a = w.pausing(k)
	w.later(pastLease)
	return a, b
}

// ready is a worker that has done everything up to one of its calls.
func (w *World) upTo(start func() *Worker, until func(*Call) bool) func() *Worker {
	k := start()
	w.drive(k, until)
	return func() *Worker { return k }
}

// leased is the call after the one that takes the lease.
func leased() func(*Call) bool { return after(named("DynamoDB.UpdateItem", 1)) }

// settling is the call that settles a run.
func settling() func(*Call) bool { return named("DynamoDB.TransactWriteItems", 1) }

// does gives what starts a person's act on schedules.
func (w *World) does(name string, do editing) func() *Worker {
	return w.person(name, func(ctx context.Context, t Kit) error { return do(ctx, t.Editor()) })
}

func pause(ctx context.Context, e *schedule.Editor) error {
	_, err := e.Pause(ctx, "s", "holidays", "ann")
	return err
}

func resume(ctx context.Context, e *schedule.Editor) error {
	_, err := e.Resume(ctx, "s", "back again", "ann")
	return err
}

func remove(ctx context.Context, e *schedule.Editor) error {
	return e.Delete(ctx, "s", "done with it", "ann")
}

// two are one recipient of each channel.
func two() schedule.Definition { return Once("s", "a@example.com", "b") }

// against is a pair of a consumer of an admitted run and a person.
func against(name string, d schedule.Definition, do editing, want ...string) Pair {
	return Pair{Name: "deliver × " + name, Ended: ended, Want: want, New: func(w *World) (a, b func() *Worker) {
		w.admit(d)
		return w.take(queueRuns), w.does(name, do)
	}}
}

// deliveryPairs are those about one run, and about one schedule.
func deliveryPairs() []Pair {
	return slices.Concat(consumerPairs(), letterPairs(), tickPairs(), peoplePairs())
}

func consumerPairs() []Pair {
	switchedOff := against("switch off", two(), turn(false))
	switchedOff.After = func(w *World) { w.must(turn(true)(background, w.Kit(nil).Editor())) }
	return []Pair{
		{Name: "deliver × deliver", Ended: ended, Skews: fiveMinutes, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			b = w.take(queueRuns)
			return b, b
		}},
		{Name: "deliver, lease over × deliver", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			return w.zombie(leased())
		}},
		{Name: "mail sent, lease over × deliver", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			return w.zombie(after(named("SES.SendRawEmail", 1)))
		}},
		{Name: "settle, lease over × settle", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			a, b = w.zombie(settling())
			return a, w.upTo(b, settling())
		}},
		{Name: "settle of a failure, lease over × settle", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(telling(wrong(two())))
			a, b = w.zombie(settling())
			return a, w.upTo(b, settling())
		}},
		{Name: "refused once × deliver", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.Hooks.Answer = replies("b", Reply{Status: 503})
			w.admit(Once("s", "b"))
			a = w.take(queueRuns)
			return a, a
		}},
		{Name: "refused once × sweep", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.Hooks.Answer = replies("b", Reply{Status: 503})
			w.admit(Once("s", "b"))
			a = w.take(queueRuns)
			w.later(6 * time.Minute)
			return a, w.rule(ruleDispatch)
		}},
		{Name: "notice × notice", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			a = w.notice()
			return a, a
		}},
		{Name: "notice × sweep", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			return w.notice(), w.rule(ruleDispatch)
		}},
		against("stop", two(), stop),
		against("pause", two(), pause),
		against("edit", two(), apply(Once("s", "b", "c"))),
		against("edit of the recurrence", Definition("s", "b"), apply(Once("s", "b"))),
		against("delete", two(), remove),
		against("run now", two(), runNow),
		switchedOff,
		{Name: "failure × pause", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(telling(wrong(two())))
			return w.take(queueRuns), w.does("pause", pause)
		}},
		{Name: "failure × edit", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(telling(wrong(two())))
			return w.take(queueRuns), w.does("edit", apply(two()))
		}},
		{Name: "failure × delete", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(telling(wrong(two())))
			return w.take(queueRuns), w.does("delete", remove)
		}},
	}
}

// notice leaves what a failed run has to tell in the outbox, until the sweep has sent a message for it.
func (w *World) notice() func() *Worker {
	w.admit(telling(wrong(Once("s", "b"))))
	k := w.take(queueRuns)()
	w.drive(k, after(settling()))
	w.dies(k)
	w.later(6 * time.Minute)
	w.tick()
	return w.take(queueRuns)
}

// deadLetter is the n-th visit of a run to the dead letters, and another message of it in its queue.
func (w *World) deadLetter(n int) (letter, message func() *Worker) {
	message = w.take(queueRuns)
	for range n - 1 {
		w.must(w.Kit(nil).Exhauster().Handle(background, "letter", schedule.EncodeMessage(FirstRun("s"))))
	}
	w.send(queueDead, schedule.EncodeMessage(FirstRun("s")))
	return w.take(queueDead), message
}

// exhausted leaves the admitted run without an attempt: its only worker has died, and its lease is over.
func (w *World) exhausted() (message func() *Worker) {
	w.Schedule.MaxAttempts = 1
	w.admit(two())
	message = w.take(queueRuns)
	k := message()
	w.drive(k, named("Webhook.Post", 1))
	w.dies(k)
	w.later(pastLease)
	return message
}

func letterPairs() []Pair {
	return []Pair{
		{Name: "exhaust × deliver", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			return w.deadLetter(1)
		}},
		{Name: "exhaust, third time × deliver", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			return w.deadLetter(3)
		}},
		{Name: "exhaust, third time × exhaust", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			a, _ = w.deadLetter(3)
			return a, a
		}},
		{Name: "exhaust, no attempt left × deliver", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			b = w.exhausted()
			w.send(queueDead, schedule.EncodeMessage(FirstRun("s")))
			return w.take(queueDead), b
		}},
		{Name: "exhaust, no attempt left × deliver, lease over", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.Schedule.MaxAttempts = 1
			w.admit(two())
			b, _ = w.zombie(leased())
			w.send(queueDead, schedule.EncodeMessage(FirstRun("s")))
			return w.take(queueDead), b
		}},
		{Name: "exhaust × stop", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(two())
			a, _ = w.deadLetter(3)
			return a, w.does("stop", stop)
		}},
	}
}

// due has a schedule whose first occurrence is due and not admitted.
func (w *World) dueNow(d schedule.Definition) {
	w.Apply(d)
	w.later(FirstDue.Sub(w.Now()))
}

func tickPairs() []Pair {
	tick := func(name string, start func(*World) func() *Worker) Pair {
		return Pair{Name: "tick × " + name, Ended: ended, New: func(w *World) (a, b func() *Worker) {
			d := Once("s", "b")
			w.dueNow(d)
			return w.rule(ruleDispatch), start(w)
		}}
	}
	act := func(name string, do editing) Pair {
		return tick(name, func(w *World) func() *Worker { return w.does(name, do) })
	}
	twoTicks := tick("tick", func(w *World) func() *Worker { return w.rule(ruleDispatch) })
	twoTicks.Skews = fiveMinutes
	later := Once("s", "b")
	later.Recurrence.Cron = "0 14 5 3 *"
	edited := act("edit of the recurrence", apply(later))
	edited.After = func(w *World) { w.For(2 * time.Hour) }
	return []Pair{
		twoTicks,
		edited,
		act("pause", pause),
		act("delete", remove),
		act("run now", runNow),
		{Name: "sweep × deliver, lease over", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(Once("s", "b"))
			b, _ = w.zombie(leased())
			return w.rule(ruleDispatch), b
		}},
		{Name: "sweep × deliver", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(Once("s", "b"))
			b = w.take(queueRuns)
			w.later(6 * time.Minute)
			return w.rule(ruleDispatch), b
		}},
		{Name: "sweep × sweep", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.admit(Once("s", "b"))
			w.later(6 * time.Minute)
			return w.rule(ruleDispatch), w.rule(ruleDispatch)
		}},
	}
}

// unknownRun has a settled run of which nobody knows whether a's mail arrived.
func (w *World) unknownRun() {
	cut(w)
	w.admit(two())
	w.drive(w.take(queueRuns)(), nil)
	if got := ended(w); got != "failed delivery_unknown a:unknown b:submitted" {
		w.Failf("it ended as %q", got)
	}
}

func peoplePairs() []Pair {
	acts := func(name string, first, second editing) Pair {
		return Pair{Name: name, Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.unknownRun()
			return w.does("first", first), w.does("second", second)
		}}
	}
	onWish := func(name string, second func(*World) func() *Worker) Pair {
		return Pair{Name: name, Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.unknownRun()
			w.must(resend("a@example.com")(background, w.Kit(nil).Editor()))
			a = w.take(queueRuns)
			if second == nil {
				return a, a
			}
			return a, second(w)
		}}
	}
	again := func(key string) editing {
		return func(ctx context.Context, e *schedule.Editor) error {
			_, _, err := e.Retry(ctx, FirstRun("s"), schedule.RetryRequest{To: schedule.RetryEveryone}, "again", "ann", key, "hash")
			return err
		}
	}
	return []Pair{
		acts("resend × resend", resend("a@example.com"), resend("a@example.com")),
		acts("resend × resolve", resend("a@example.com"), resolve("a@example.com", "submitted")),
		acts("resolve × resolve", resolve("a@example.com", "skipped"), resolve("a@example.com", "submitted")),
		acts("retry × retry of one key", again("one"), again("one")),
		acts("retry × retry", again("one"), again("two")),
		acts("retry × resolve", retry(schedule.RetryRequest{IncludeUnknown: []string{hash("a@example.com")}}), resolve("a@example.com", "submitted")),
		acts("retry × resend", retry(schedule.RetryRequest{IncludeUnknown: []string{hash("a@example.com")}}), resend("a@example.com")),
		onWish("resending × resending", nil),
		onWish("resending × resolve", func(w *World) func() *Worker {
			return w.does("resolve", resolve("a@example.com", "submitted"))
		}),
		{Name: "save × save", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			d, e := two(), two()
			d.Name, e.Name = "First", "Second"
			return w.does("save", apply(d)), w.does("save", apply(e))
		}},
		{Name: "edit × pause", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.Apply(two())
			return w.does("edit", apply(Definition("s", "b"))), w.does("pause", pause)
		}},
		{Name: "resume × delete", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.Apply(two())
			w.must(pause(background, w.Kit(nil).Editor()))
			return w.does("resume", resume), w.does("delete", remove)
		}},
		{Name: "run now × run now of one key", Ended: ended, New: func(w *World) (a, b func() *Worker) {
			w.Apply(two())
			return w.does("run now", runNow), w.does("run now", runNow)
		}},
	}
}
