package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/memcloud"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// invocation is one call of a function: a context with a deadline on the held clock. A dead one stands for a process
// that was killed: what is left of its goroutine reaches nothing outside any more.
type invocation struct {
	w        *world
	kind     string // dispatch, deliver, exhaust, poller
	deadline time.Time
	done     chan struct{}
	once     sync.Once
	dead     atomic.Bool

	mu    sync.Mutex
	after map[int]func()
	next  int

	calls   int          // outside calls so far
	pending atomic.Int64 // the fault that comes after the call under way; where several are, after the first of them that is over
	twice   atomic.Bool  // the call under way is to be sent again
	again   atomic.Bool  // it is being sent again
}

type invocationKey struct{}

func (i *invocation) Deadline() (time.Time, bool) { return i.deadline, true }
func (i *invocation) Done() <-chan struct{}       { return i.done }

// expire ends the invocation's time, and that of every context made from it, before it returns.
func (i *invocation) expire() {
	i.once.Do(func() {
		close(i.done)
		i.mu.Lock()
		after := i.after
		i.after = nil
		i.mu.Unlock()
		for _, f := range after {
			f()
		}
	})
}

// AfterFunc lets package context hear of the end without a goroutine of its own.
func (i *invocation) AfterFunc(f func()) (stop func() bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.Err() != nil {
		go f()
		return func() bool { return false }
	}
	if i.after == nil {
		i.after = map[int]func(){}
	}
	n := i.next
	i.next++
	i.after[n] = f
	return func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		_, there := i.after[n]
		delete(i.after, n)
		return there
	}
}

func (i *invocation) Err() error {
	select {
	case <-i.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
func (i *invocation) Value(key any) any {
	if key == (invocationKey{}) {
		return i
	}
	return nil
}

func (w *world) invoke(kind string, life time.Duration) *invocation {
	w.mu.Lock()
	defer w.mu.Unlock()
	inv := &invocation{w: w, kind: kind, deadline: w.now.Add(life), done: make(chan struct{})}
	w.live[inv] = true
	return inv
}

func (w *world) end(inv *invocation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, inv)
}

// fault is what befalls one outside call.
type fault int

const (
	none       fault = iota
	dieBefore        // the process dies before the request leaves
	dieAfter         // the process dies when the request has been served
	lostBefore       // the request is lost: an error, and no effect
	lostAfter        // the reply is lost: an error, and the effect stands
	sentTwice        // the reply is lost and the SDK sends the request again by itself
)

var kinds = map[fault]string{dieBefore: "die before", dieAfter: "die after", lostBefore: "time-out before effect", lostAfter: "time-out after effect", sentTwice: "sent again by the SDK"}

// outside is one call out of an invocation.
type outside struct {
	n     int    // counted over the world, from 1
	name  string // e.g. "DynamoDB.PutItem"
	input any    // what is asked for; nil where the name says it
	inv   *invocation
}

// faults is the world's plan of faults.
type faults struct {
	mu   sync.Mutex
	n    int
	log  []string
	met  bool // some fault happened
	plan func(outside) fault
}

var (
	errDead = errors.New("the process is dead")
	errLost = &smithyhttp.RequestSendError{Err: errors.New("i/o timeout")}
)

// before is asked at each outside call. It may block, where the plan does.
func (w *world) before(ctx context.Context, name string) error { return w.ask(ctx, name, nil) }

func (w *world) ask(ctx context.Context, name string, input any) error {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv == nil {
		return nil
	}
	if inv.dead.Load() {
		return errDead
	}
	if inv.again.Load() {
		return nil
	}
	w.faults.mu.Lock()
	w.faults.n++
	inv.calls++
	n, plan := w.faults.n, w.faults.plan
	w.faults.log = append(w.faults.log, inv.kind+" "+name)
	w.faults.mu.Unlock()
	f := none
	if plan != nil {
		f = plan(outside{n, name, input, inv})
	}
	if inv.dead.Load() {
		return errDead
	}
	if f != none {
		w.faults.mu.Lock()
		w.faults.met = true
		w.faults.mu.Unlock()
	}
	switch f {
	case dieBefore:
		inv.dead.Store(true)
		return errDead
	case lostBefore:
		return errLost
	case sentTwice:
		inv.twice.Store(true)
		return nil
	case dieAfter, lostAfter:
		inv.pending.Store(int64(f))
	}
	return nil
}

// after is asked when the request has been served.
func (w *world) after(ctx context.Context) error {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv == nil {
		return nil
	}
	switch fault(inv.pending.Swap(int64(none))) {
	case dieAfter:
		inv.dead.Store(true)
		return errDead
	case lostAfter:
		return errLost
	}
	return nil
}

// hooked puts the plan before and after each request of a service.
func (w *world) hooked() memcloud.Hooks {
	return memcloud.Hooks{
		Before: func(ctx context.Context, c memcloud.Call) error {
			return w.ask(ctx, c.Service+"."+c.Operation, c.Input)
		},
		After: func(ctx context.Context, c memcloud.Call) error { return w.after(ctx) },
	}
}

// nth is a plan that lets the n-th call of the world fail.
func nth(n int, f fault) func(outside) fault {
	return func(c outside) fault {
		if c.n == n {
			return f
		}
		return none
	}
}

// resend does what an SDK does after a lost reply: the same request once more.
func resend[O any](ctx context.Context, rewind io.Seeker, call func() (O, error)) (O, error) {
	out, err := call()
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv == nil || !inv.twice.Load() {
		return out, err
	}
	if rewind != nil {
		if _, err := rewind.Seek(0, io.SeekStart); err != nil {
			return out, err
		}
	}
	inv.twice.Store(false)
	inv.again.Store(true)
	defer inv.again.Store(false)
	return call()
}

// twiceDynamo, twiceS3 and twiceSQS send again what the plan wants sent again.
type twiceDynamo struct {
	*memcloud.Dynamo
	w *world
}

func (d twiceDynamo) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return resend(ctx, nil, func() (*dynamodb.PutItemOutput, error) { return d.Dynamo.PutItem(ctx, in, o...) })
}

func (d twiceDynamo) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return resend(ctx, nil, func() (*dynamodb.UpdateItemOutput, error) { return d.Dynamo.UpdateItem(ctx, in, o...) })
}

// TransactWriteItems carries no client request token here: the conditions alone must decide (case I8).
func (d twiceDynamo) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return resend(ctx, nil, func() (*dynamodb.TransactWriteItemsOutput, error) { return d.Dynamo.TransactWriteItems(ctx, in, o...) })
}

type twiceS3 struct {
	*memcloud.S3
	w *world
}

func (d twiceS3) PutObject(ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	body, _ := in.Body.(io.Seeker)
	return resend(ctx, body, func() (*s3.PutObjectOutput, error) { return d.S3.PutObject(ctx, in, o...) })
}

type twiceSQS struct {
	*memcloud.SQS
	w *world
}

func (d twiceSQS) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return resend(ctx, nil, func() (*sqs.SendMessageBatchOutput, error) { return d.SQS.SendMessageBatch(ctx, in, o...) })
}

func (d twiceSQS) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return resend(ctx, nil, func() (*sqs.ChangeMessageVisibilityOutput, error) {
		return d.SQS.ChangeMessageVisibility(ctx, in, o...)
	})
}

// tap puts the plan before and after a webhook's request.
type tap struct {
	channel.Channel
	w *world
}

func (c tap) Send(ctx context.Context, d channel.Delivery, f channel.Frozen) channel.Verdict {
	lost := channel.Verdict{Outcome: channel.Lost, Failure: failure.New(failure.SendFailed, "the answer was lost")}
	if err := c.w.before(ctx, "Webhook.Send"); err != nil {
		return lost
	}
	v := c.Channel.Send(ctx, d, f)
	if err := c.w.after(ctx); err != nil {
		return lost
	}
	return v
}

// noticeTap puts the plan before and after a webhook's notice.
type noticeTap struct {
	channel.Announcer
	w *world
}

func (c noticeTap) Announce(ctx context.Context, n channel.Notice) channel.Verdict {
	lost := channel.Verdict{Outcome: channel.Lost, Failure: failure.New(failure.SendFailed, "the answer was lost")}
	if err := c.w.before(ctx, "Webhook.Announce"); err != nil {
		return lost
	}
	v := c.Announcer.Announce(ctx, n)
	if err := c.w.after(ctx); err != nil {
		return lost
	}
	return v
}

// frozen holds one call of one invocation until it is thawed.
type frozen struct {
	held, thaw chan struct{}
	finished   chan struct{}
}

// freeze starts f in a goroutine and returns when its n-th outside call is held, or f has ended without one (ok false).
func (w *world) freeze(inv *invocation, n int, f func()) (z *frozen, ok bool) {
	w.t.Helper()
	z = &frozen{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	earlier := w.faults.plan
	w.faults.plan = func(c outside) fault {
		if c.inv == inv && inv.calls == n {
			close(z.held)
			<-z.thaw
			return none
		}
		if earlier != nil {
			return earlier(c)
		}
		return none
	}
	go func() {
		defer close(z.finished)
		f()
	}()
	select {
	case <-z.held:
		w.sandbox()
		return z, true
	case <-z.finished:
		return z, false
	}
}

// release lets the held call go on, and waits for the end of what was frozen.
func (z *frozen) release() {
	close(z.thaw)
	<-z.finished
}

func (c outside) String() string { return fmt.Sprintf("call %d (%s %s)", c.n, c.inv.kind, c.name) }
