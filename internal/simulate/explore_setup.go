package simulate

import (
	"context"
	"slices"
	"testing/synctest"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// What brings a world to where two workers meet. Nothing starts by itself meanwhile.

// later lets time pass, in which nothing happens.
func (w *World) later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	w.checkChanged()
}

// drive lets a worker's calls go until its next one is as wanted, which then waits; nil: until it is over.
func (w *World) drive(k *Worker, until func(*Call) bool) {
	for range maxSteps {
		synctest.Wait()
		k.mu.Lock()
		ended := k.ended
		k.mu.Unlock()
		if ended {
			if until != nil {
				w.Failf("%s is over, and no call was as wanted\n%s", k.Name, w.Dump())
			}
			return
		}
		waiting := slices.DeleteFunc(w.waiting(), func(c *Call) bool { return c.Worker != k })
		if len(waiting) == 0 {
			w.later(10 * time.Millisecond)
			continue
		}
		if until != nil && until(waiting[0]) {
			return
		}
		w.letGo(waiting[0])
	}
	w.Failf("%s never ends", k.Name)
}

// pausing freezes a worker whose calls wait; what it gives thaws it, with a clock that stood still.
func (w *World) pausing(k *Worker) func() *Worker {
	for _, c := range w.waiting() {
		if c.Worker == k {
			w.mu.Lock()
			w.parked = slices.DeleteFunc(w.parked, func(o *Call) bool { return o == c })
			w.mu.Unlock()
			w.freeze(c)
		}
	}
	return func() *Worker { w.Thaw(); return k }
}

// dies kills a worker whose calls wait, before they leave.
func (w *World) dies(k *Worker) {
	for _, c := range w.waiting() {
		if c.Worker == k {
			w.mu.Lock()
			w.parked = slices.DeleteFunc(w.parked, func(o *Call) bool { return o == c })
			w.mu.Unlock()
			c.release <- DieBefore
		}
	}
	synctest.Wait()
}

// named is a call by its name, the n-th of them.
func named(name string, n int) func(*Call) bool {
	return func(c *Call) bool {
		if c.Name == name {
			n--
		}
		return n == 0
	}
}

// after is the call after one.
func after(is func(*Call) bool) func(*Call) bool {
	came := false
	return func(c *Call) bool {
		if came {
			return true
		}
		came = is(c)
		return false
	}
}

// take receives one message of a queue; each start of what it gives is a consumer that has it.
func (w *World) take(queue string) func() *Worker {
	url := w.address(queue)
	out, err := w.SQS.ReceiveMessage(background, &sqs.ReceiveMessageInput{QueueUrl: &url})
	w.must(err)
	if len(out.Messages) == 0 {
		w.Failf("no message in %s\n%s", queue, w.Dump())
	}
	return w.consumer(queue, out.Messages)
}

func (w *World) consumer(queue string, ms []sqstypes.Message) func() *Worker {
	return func() *Worker {
		return w.Spawn(queue, DeliverTime, func(ctx context.Context) any { return w.consume(ctx, queue, w.address(queue), ms) })
	}
}

// send puts a message into a queue.
func (w *World) send(queue, body string) {
	_, err := w.SQS.SendMessage(background, &sqs.SendMessageInput{QueueUrl: aws.String(w.address(queue)), MessageBody: &body})
	w.must(err)
}

// rule gives what starts a rule's function.
func (w *World) rule(name string) func() *Worker { return func() *Worker { return w.fire(name) } }

// person gives what starts an act, whose refusal is an answer too.
func (w *World) person(name string, do func(context.Context, Kit) error) func() *Worker {
	return func() *Worker {
		return w.Act(name, func(ctx context.Context, t Kit) error {
			err := do(ctx, t)
			if err != nil && refusedIsFine(err) != nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.broken(name + ": " + err.Error())
			}
			return err
		})
	}
}

// tick dispatches what is due, at once.
func (w *World) tick() {
	_, err := w.Kit(nil).Dispatcher().Tick(background)
	w.must(err)
}

// admit saves a schedule and lets its first occurrence be admitted; its message waits in the queue.
func (w *World) admit(d schedule.Definition) {
	w.Apply(d)
	w.later(FirstDue.Sub(w.Now()))
	w.tick()
}

// claimed lets the dispatcher of months look at once.
func (w *World) claimed() {
	_, err := w.Kit(nil).MonthDispatcher().Tick(background)
	w.must(err)
	synctest.Wait()
	w.checkChanged()
}

// reconciled lets the reconciler look at once.
func (w *World) reconciled() {
	_, err := w.Kit(nil).Reconciler().Tick(background)
	w.must(err)
	w.asked = 0
}

// asks gives the next call of the steps' function that an execution of a run waits for, once it is of a step; the calls
// before it are carried out at once.
func (w *World) asks(run, step string) *stepRequest {
	for range 100 {
		synctest.Wait()
		w.checkChanged()
		w.mu.Lock()
		i := slices.IndexFunc(w.steps, func(r *stepRequest) bool { return r.in.Run == run })
		if i < 0 {
			w.mu.Unlock()
			break
		}
		r := w.steps[i]
		if r.in.Step == step {
			w.mu.Unlock()
			return r
		}
		w.steps = slices.Delete(w.steps, i, i+1)
		w.mu.Unlock()
		result, err := w.Kit(nil).Stepper().Run(background, r.in)
		r.answer <- stepAnswer{result, err}
	}
	w.Failf("no execution of %s asks for step %q\n%s", run, step, w.Dump())
	return nil
}

// called gives what starts a call of the steps' function that no execution waits for: a twin, or what is left of one that
// was given up.
func (w *World) twin(in snapshot.StepInput) func() *Worker {
	return func() *Worker {
		return w.Spawn("twin of "+in.Step, StepTime, func(ctx context.Context) any {
			_, err := w.Kit(workerOf(ctx)).Stepper().Run(ctx, in)
			return err
		})
	}
}

// answers gives what starts the call that an execution waits for.
func (w *World) answers(r *stepRequest) func() *Worker { return func() *Worker { return w.step(r) } }
