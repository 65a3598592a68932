package simulate

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Worker is one invocation of a function, or one act of a person: a context with a deadline, a clock and tokens of its
// own. A dead one stands for a process that was killed: what is left of its goroutine reaches nothing outside any more.
type Worker struct {
	Name   string // "deliver", "tick", "publish"
	Number int    // counted over the world, from 1

	w        *World
	skew     time.Duration // its clock less true time
	deadline time.Time     // true time
	timer    *time.Timer
	done     chan struct{} // its context's
	over     chan struct{} // closed when its function has returned, or its process died
	result   any

	mu      sync.Mutex
	after   map[int]func()
	next    int
	expired bool
	dead    bool
	ended   bool
	calls   int
	tokens  int
	outage  string // the service that answers nothing any more
	hurt    bool   // something befell one of its calls

	frozenAt time.Time // zero: it is not frozen
	thawAt   time.Time // zero: when the world is at rest
	left     time.Duration
}

type workerKey struct{}

func workerOf(ctx context.Context) *Worker {
	k, _ := ctx.Value(workerKey{}).(*Worker)
	return k
}

// invocation is a worker as its function's context.
type invocation struct{ *Worker }

func (i invocation) Deadline() (time.Time, bool) { return i.deadline.Add(i.skew), true }
func (i invocation) Done() <-chan struct{}       { return i.done }

func (i invocation) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.expired {
		return context.DeadlineExceeded
	}
	return nil
}

func (i invocation) Value(key any) any {
	if key == (workerKey{}) {
		return i.Worker
	}
	return nil
}

// AfterFunc lets package context hear of the end without a goroutine of its own.
func (i invocation) AfterFunc(f func()) (stop func() bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.expired {
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

// expire ends the worker's time, and that of every context made from its own.
func (k *Worker) expire() {
	k.mu.Lock()
	if k.expired || !k.frozenAt.IsZero() {
		k.mu.Unlock()
		return
	}
	k.expired = true
	after := k.after
	k.after = nil
	close(k.done)
	k.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// kill stands for the end of its process.
func (k *Worker) kill() {
	k.mu.Lock()
	already := k.dead
	k.dead = true
	k.mu.Unlock()
	if !already {
		k.finish()
	}
	k.expire()
}

func (k *Worker) isDead() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.dead }

func (k *Worker) isFrozen() bool { k.mu.Lock(); defer k.mu.Unlock(); return !k.frozenAt.IsZero() }

// Died reports that the worker's process was killed before its function returned.
func (k *Worker) Died() bool { return k.isDead() }

func (k *Worker) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.ended = true
		close(k.over)
	}
}

// Now is the worker's wall clock.
func (k *Worker) Now() time.Time { return k.w.Now().Add(k.skew) }

// business is its business clock.
func (k *Worker) business(context.Context) (time.Time, error) { return k.Now().Add(k.w.Shift), nil }

// token is deterministic, no other's, and as long and URL-safe as a real one.
func (k *Worker) token() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens++
	return fmt.Sprintf("tok%03d-%s-%04d", k.tokens, k.stamp(), k.Number)
}

func (k *Worker) stamp() string { return (k.Name + "----------")[:10] }

// hexToken is a token in names of objects.
func (k *Worker) hexToken() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens++
	return fmt.Sprintf("%016x%016x", k.Number, k.tokens)
}

// entropy is sixteen bytes.
func (k *Worker) entropy() []byte { return []byte(k.token())[:16] }

// pause waits on the held clock. How long the product would jitter is not its business here: the scheduler orders calls.
func (k *Worker) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// backoff is a pause of the store's between two tries, whose length is drawn by chance in production.
func (k *Worker) backoff(ctx context.Context, _ time.Duration) error {
	return k.pause(ctx, 20*time.Millisecond)
}
