package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// events are what starts workers: queues, rules, Step Functions, an asked dispatch, and people.
type events struct {
	asked    int // dispatches of months
	steps    []*stepRequest
	acts     []act
	machines map[string]context.CancelFunc // that walk, by ARN

	ticked map[string]time.Time // when a rule fired last
	ended  bool
	saved  bool // a definition of months that the planner has not looked at
	saves  int  // of them, ever
	dirty  bool // rows have changed since due was worked out
	due    dueTimes
	Off    map[string]bool // rules and queues that start nothing
}

// dueTimes are the earliest wall times at which a rule's function would find work, by rule; zero: none.
type dueTimes map[string]time.Time

// Rules, by the function that each starts. A rule fires only when the rows say that its function would find something.
const (
	ruleDispatch  = "schedule-dispatch"
	rulePlan      = "snapshot-plan"
	ruleMonths    = "snapshot-dispatch"
	ruleReconcile = "snapshot-reconcile"
	queueRuns     = "schedule-deliver"
	queueDead     = "schedule-exhaust"
)

var every = map[string]time.Duration{ruleDispatch: tickEvery, rulePlan: planEvery, ruleMonths: tickEvery, ruleReconcile: mendEvery}

var rules = []string{ruleDispatch, rulePlan, ruleMonths, ruleReconcile}

func (e *events) init(w *World) {
	e.machines, e.ticked, e.due, e.Off = map[string]context.CancelFunc{}, map[string]time.Time{}, dueTimes{}, map[string]bool{}
	w.Steps.OnStart = w.walk
}

// act is what a person does at some time.
type act struct {
	at    time.Time
	name  string
	tries int
	do    func(context.Context, Kit) error
}

// Act has a person do something once: an answer that is lost, or a process that dies, is the person's to see.
func (w *World) Act(name string, do func(context.Context, Kit) error) *Worker {
	return w.Spawn(name, ActTime, func(ctx context.Context) any { return do(ctx, w.Kit(workerOf(ctx))) })
}

// Insist has a person do something at a time, and again each minute until it is answered; a refusal that says it is done
// is to be told as success by do.
func (w *World) Insist(at time.Time, name string, do func(context.Context, Kit) error) {
	w.acts = append(w.acts, act{at, name, 0, do})
}

// ready lists what can be started now.
func (w *World) ready() (out []Option) {
	now := w.Now()
	if w.askedNow() {
		out = append(out, Option{Name: "asked dispatch", do: func() { w.mu.Lock(); w.asked--; w.mu.Unlock(); w.arrive(ruleMonths) }})
	}
	w.mu.Lock()
	slices.SortFunc(w.steps, func(a, b *stepRequest) int { return cmp.Compare(a.in.Run, b.in.Run) }) // executions that wake at once
	slices.SortStableFunc(w.acts, func(a, b act) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	steps := slices.Clone(w.steps)
	w.mu.Unlock()
	for _, s := range steps {
		out = append(out, Option{Name: "step " + s.in.Step, do: func() { w.step(s) }})
	}
	for _, q := range []string{queueRuns, queueDead} {
		if at := w.SQS.NextVisible(w.address(q)); !w.Off[q] && !at.IsZero() && !at.After(now) {
			out = append(out, Option{Name: "message of " + q, do: func() { w.receive(q) }})
		}
	}
	for _, r := range rules {
		if at := w.firing(r); !at.IsZero() && !at.After(now) {
			out = append(out, Option{Name: "rule of " + r, do: func() { w.arrive(r) }})
		}
	}
	if at := w.thawing(); !at.IsZero() && !at.After(now) {
		out = append(out, Option{Name: "thaw", do: func() { w.thaw(func(k *Worker) bool { return !k.thawAt.IsZero() && !k.thawAt.After(now) }) }})
	}
	for i, a := range w.acts {
		if !a.at.After(now) {
			out = append(out, Option{Name: a.name, do: func() { w.insist(i) }})
			break
		}
	}
	return out
}

func (w *World) askedNow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked > 0 && !w.Off[ruleMonths]
}

func (w *World) address(queue string) string {
	if queue == queueDead {
		return w.dlq
	}
	return w.runs
}

// nextMoment is when the next thing can be started; zero: nothing ever by itself.
func (w *World) nextMoment() (next time.Time) {
	earliest := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, q := range []string{queueRuns, queueDead} {
		if !w.Off[q] {
			earliest(w.SQS.NextVisible(w.address(q)))
		}
	}
	for _, r := range rules {
		earliest(w.firing(r))
	}
	earliest(w.thawing())
	for _, a := range w.acts {
		earliest(a.at)
	}
	return next
}

// firing is when a rule fires next and finds something; zero: never.
func (w *World) firing(rule string) time.Time {
	w.look()
	at := w.due[rule]
	if w.Off[rule] || at.IsZero() {
		return time.Time{}
	}
	if after := w.ticked[rule].Add(every[rule]); at.Before(after) {
		at = after
	}
	return upTo(at, every[rule])
}

// upTo is the first instant of a rule's rhythm that is not before at.
func upTo(at time.Time, every time.Duration) time.Time {
	if t := at.Truncate(every); t.Equal(at) {
		return t
	}
	return at.Truncate(every).Add(every)
}

// look works out what is due, from rows that have changed.
func (w *World) look() {
	if !w.dirty {
		return
	}
	w.dirty = false
	w.due = dueTimes{}
	note := func(rule string, at time.Time) {
		if have := w.due[rule]; have.IsZero() || at.Before(have) {
			w.due[rule] = at
		}
	}
	w.DB.Any(Schedules, func(it map[string]types.AttributeValue) bool {
		if Text(it, schema.OpenShard) != "" {
			note(ruleDispatch, instant(Text(it, schema.WakeAt)))
		}
		if Text(it, schema.DueShard) != "" {
			note(ruleDispatch, instant(Text(it, schema.NextDueAt)).Add(-w.Shift))
		}
		if at := Text(it, schema.NextAt); at != "" && strings.HasPrefix(Text(it, schema.SK), schema.OutPrefix) {
			note(ruleDispatch, instant(at))
		}
		return false
	})
	now := w.Now()
	if w.saved {
		note(rulePlan, now)
	}
	w.DB.Any(Snapshots, func(it map[string]types.AttributeValue) bool {
		work := Text(it, schema.Work)
		switch kind, _, _ := strings.Cut(work, "#"); kind {
		case "planned":
			note(ruleMonths, now)
		case "retry":
			note(ruleMonths, instant(Text(it, schema.WorkAt)))
		case "open":
			note(ruleReconcile, instant(Text(it, schema.WorkAt)).Add(w.Months.JobGrace.Std()))
			note(ruleMonths, instant(Text(it, schema.WorkAt)).Add(w.Months.JobGrace.Std()))
		}
		if Text(it, schema.PlanShard) != "" {
			note(rulePlan, instant(Text(it, schema.PlanAt)).Add(-w.Shift))
		}
		return false
	})
}

// instant reads a time as package schema writes it.
func instant(s string) time.Time {
	t, err := schema.ParseTime(s)
	if err != nil {
		panic(fmt.Sprintf("a row's time %q: %v", s, err))
	}
	return t
}

// Text is a string attribute; "" where there is none.
func Text(it map[string]types.AttributeValue, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// fire starts the function of a rule.
func (w *World) fire(rule string) *Worker {
	w.ticked[rule] = w.Now()
	w.dirty = true // what it finds may be due again although no row changes
	w.mu.Lock()
	saves := w.saves
	w.mu.Unlock()
	return w.Spawn(rule, TickTime, func(ctx context.Context) any {
		t := w.Kit(workerOf(ctx))
		var err error
		switch rule {
		case ruleDispatch:
			_, err = t.Dispatcher().Tick(ctx)
		case rulePlan:
			tally, failed := t.Planner().Tick(ctx)
			if err = failed; err == nil && !tally.Partial && tally.Errors == 0 && !workerOf(ctx).isDead() {
				w.mu.Lock()
				w.saved = w.saves > saves // what was saved meanwhile it may not have seen
				w.mu.Unlock()
			}
		case ruleMonths:
			_, err = t.MonthDispatcher().Tick(ctx)
		case ruleReconcile:
			_, err = t.Reconciler().Tick(ctx)
		}
		return err
	})
}

// receive hands a message, or a batch of dead letters, to its consumer as Lambda's poller does, and deletes what the answer does not name. What dies
// deletes nothing.
func (w *World) receive(queue string) {
	url, batch := w.address(queue), int32(1)
	if queue == queueDead {
		batch = deadBatch
	}
	out, err := w.SQS.ReceiveMessage(background, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: batch})
	w.must(err)
	if len(out.Messages) == 0 {
		return // it went to the dead letters
	}
	copies := 1
	if w.Duplicate != nil && w.Duplicate() {
		copies = 2
	}
	for range copies {
		w.Spawn(queue, DeliverTime, func(ctx context.Context) any { return w.consume(ctx, queue, url, out.Messages) })
	}
}

func (w *World) consume(ctx context.Context, queue, url string, ms []sqstypes.Message) error {
	k := workerOf(ctx)
	t := w.Kit(k)
	var e lambdaevents.SQSEvent
	for _, m := range ms {
		e.Records = append(e.Records, lambdaevents.SQSMessage{MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body})
	}
	handle := t.deliver
	if queue == queueDead {
		handle = t.exhaust
	}
	answer, err := handle(ctx, e)
	if k.isDead() {
		return nil
	}
	if err == nil {
		w.answered(ctx, queue, ms, answer)
	}
	for _, m := range ms {
		named := err != nil || slices.ContainsFunc(answer.BatchItemFailures, func(f lambdaevents.SQSBatchItemFailure) bool { return f.ItemIdentifier == *m.MessageId })
		if !named { // by the poller, whose own failure is a redelivery
			_, _ = w.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
		}
	}
	return err
}

// insist starts an act that comes again in a minute unless it is answered.
func (w *World) insist(i int) {
	a := w.acts[i]
	w.acts = slices.Delete(slices.Clone(w.acts), i, i+1)
	k := w.Act(a.name, a.do)
	go func() {
		err, answered := error(nil), false
		patience := time.NewTimer(2 * ActTime) // what is frozen does not answer: nobody waits for ever
		defer patience.Stop()
		select {
		case <-k.over:
			err, _ = k.result.(error)
			answered = !k.isDead() && err == nil
		case <-patience.C:
		}
		if w.ending() || answered {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if a.tries++; a.tries > 20 {
			w.broken(fmt.Sprintf("%s is refused for the %dth time: %v", a.name, a.tries, err))
			return
		}
		a.at = w.Now().Add(time.Minute)
		w.acts = append(w.acts, a)
		w.ring()
	}()
}

// stepRequest is a call of the steps' function that an execution waits for.
type stepRequest struct {
	in     snapshot.StepInput
	answer chan stepAnswer
}

type stepAnswer struct {
	result snapshot.Result
	err    error
}

// walk is an execution: it goes through the one definition of the workflow, with its Retry, its Catch and its waits.
func (w *World) walk(arn, input string) {
	var j snapshot.Job
	w.must(json.Unmarshal([]byte(input), &j))
	ctx, cancel := context.WithCancel(background)
	w.mu.Lock()
	w.begunExecution(arn, j)
	w.machines[arn] = cancel
	w.mu.Unlock()
	go func() {
		defer cancel()
		walked, err := workflowtest.WalkWaiting(ctx, snapshot.Workflow(StepTime), j, arn, func(ctx context.Context, in snapshot.StepInput) (snapshot.Result, error) {
			return w.called(ctx, cancel, arn, in)
		}, func(d time.Duration) { w.sleep(ctx, d) })
		status := sfntypes.ExecutionStatusSucceeded
		if walked.Failed {
			status = sfntypes.ExecutionStatusFailed
		}
		if err == nil {
			w.Steps.Finish(arn, status, "", walked.State)
		}
		w.mu.Lock()
		delete(w.machines, arn)
		w.dirty = true
		w.mu.Unlock()
		w.ring()
	}()
}

// called is one try of a Task: the function is asked for, and its answer awaited for as long as the state's time-out.
func (w *World) called(ctx context.Context, stop context.CancelFunc, arn string, in snapshot.StepInput) (snapshot.Result, error) {
	if !w.Steps.Runs(arn) {
		stop() // it was aborted meanwhile
		return snapshot.Result{}, context.Canceled
	}
	r := &stepRequest{in, make(chan stepAnswer, 1)}
	w.mu.Lock()
	w.steps = append(w.steps, r)
	w.mu.Unlock()
	w.ring()
	t := time.NewTimer(StepTime + 30*time.Second)
	defer t.Stop()
	select {
	case a := <-r.answer:
		return a.result, a.err
	case <-t.C:
		return snapshot.Result{}, workflowtest.Died{Name: "States.Timeout"}
	case <-ctx.Done():
		return snapshot.Result{}, ctx.Err()
	}
}

func (w *World) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// step runs one call of the steps' function.
func (w *World) step(r *stepRequest) *Worker {
	w.mu.Lock()
	w.steps = slices.DeleteFunc(w.steps, func(o *stepRequest) bool { return o == r })
	w.mu.Unlock()
	var a stepAnswer
	k := w.Spawn("snapshot-step "+r.in.Step, StepTime, func(ctx context.Context) any {
		a.result, a.err = w.Kit(workerOf(ctx)).Stepper().Run(ctx, r.in)
		return a.err
	})
	go func() {
		<-k.over
		if k.isDead() {
			r.answer <- stepAnswer{err: workflowtest.Died{Name: "Runtime.ExitError"}}
			return
		}
		r.answer <- a
	}()
	return k
}

// stopMachines ends every execution's walk.
func (w *World) stopMachines() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, arn := range slices.Sorted(maps.Keys(w.machines)) {
		w.machines[arn]()
	}
}

func (w *World) ending() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ended }

// atRest reports that nothing is left to do: no worker, no message, no open run, no notice, no execution, no act.
func (w *World) atRest() bool {
	w.mu.Lock()
	left := len(w.acts)+len(w.steps)+len(w.machines)+w.asked > 0
	w.mu.Unlock()
	if left || w.busy() > 0 {
		return false
	}
	for _, q := range []string{queueRuns, queueDead} {
		if !w.Off[q] && !w.SQS.NextVisible(w.address(q)).IsZero() {
			return false
		}
	}
	w.look()
	now := w.Now()
	for _, r := range []string{ruleDispatch, rulePlan} {
		if at := w.due[r]; !w.Off[r] && !at.IsZero() && !at.After(now) {
			return false
		}
	}
	open := w.DB.Any(Schedules, func(it map[string]types.AttributeValue) bool {
		return Text(it, schema.OpenShard) != "" || strings.HasPrefix(Text(it, schema.SK), schema.OutPrefix)
	})
	return !open && !w.DB.Any(Snapshots, func(it map[string]types.AttributeValue) bool { return Text(it, schema.Work) != "" })
}
