package schedule_test

import (
	"container/heap"
	"strings"
	"sync"
	"time"
)

// fleet lets many invocations go on side by side in held time: each call out of one takes a while, and the clocks move
// on to the next that is over when all are under way. What is over at the same moment goes on in parallel.
type fleet struct {
	w    *world
	wait sync.WaitGroup

	mu    sync.Mutex
	awake int // actors that are not in spend
	asleep
	over bool
	n    int // woken so far, for the order of those that sleep until the same moment
}

type sleeper struct {
	until time.Time
	n     int
	wake  chan struct{}
}

type asleep []sleeper

func (a asleep) Len() int { return len(a) }
func (a asleep) Less(i, j int) bool {
	if !a[i].until.Equal(a[j].until) {
		return a[i].until.Before(a[j].until)
	}
	return a[i].n < a[j].n
}
func (a asleep) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *asleep) Push(s any)   { *a = append(*a, s.(sleeper)) }
func (a *asleep) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// latencies are what a call takes in the model: round figures of the size that AWS's services have. They make the shape
// of a drain, and no promise. A call that is not named takes no time; so S3.GetObject, since one invocation fetches the
// data file while others of this process wait for it, who must not hold the clocks up.
var latencies = map[string]time.Duration{
	"DynamoDB.GetItem": 5 * time.Millisecond, "DynamoDB.BatchGetItem": 6 * time.Millisecond, "DynamoDB.Query": 8 * time.Millisecond,
	"DynamoDB.PutItem": 8 * time.Millisecond, "DynamoDB.UpdateItem": 8 * time.Millisecond, "DynamoDB.DeleteItem": 8 * time.Millisecond,
	"DynamoDB.TransactWriteItems": 20 * time.Millisecond, "S3.PutObject": 40 * time.Millisecond,
	"SQS.SendMessageBatch": 15 * time.Millisecond, "SES.SendRawEmail": 80 * time.Millisecond, "Webhook.Send": 80 * time.Millisecond,
	"Webhook.Announce": 80 * time.Millisecond,
}

// pollTime is how long a message takes from the queue to a function that is at leisure, pauseTime how long a poller waits
// where there is none.
const (
	pollTime  = 20 * time.Millisecond
	pauseTime = time.Second
)

// newFleet has each call out of the world's invocations take its time. At admission the calls of one schedule go on
// beside those of others, and the ten requests that offer a page's runs take two rounds (boot's queue has eight at once);
// the world does them one by one, so each takes its share.
func newFleet(w *world) *fleet {
	f := &fleet{w: w}
	beside := time.Duration(16) // DefaultTiming().Parallel
	w.faults.plan = func(c outside) fault {
		d := latencies[c.name]
		if c.inv.kind == "dispatch" && strings.HasPrefix(c.name, "DynamoDB.") && c.name != "DynamoDB.Query" {
			d /= beside
		}
		if c.inv.kind == "dispatch" && c.name == "SQS.SendMessageBatch" {
			d /= 5
		}
		if d > 0 {
			f.spend(d)
		}
		return none
	}
	return f
}

// actor lets something go on beside all others.
func (f *fleet) actor(do func()) {
	f.mu.Lock()
	f.awake++
	f.mu.Unlock()
	f.wait.Go(func() {
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.awake--
			f.turn()
		}()
		do()
	})
}

// spend lets held time pass for the actor that calls it.
func (f *fleet) spend(d time.Duration) {
	f.mu.Lock()
	f.n++
	s := sleeper{f.w.wall().Add(d), f.n, make(chan struct{})}
	heap.Push(&f.asleep, s)
	f.awake--
	f.turn()
	f.mu.Unlock()
	<-s.wake
}

// turn moves the clocks to the next moment at which somebody wakes, once all sleep.
func (f *fleet) turn() {
	if f.awake > 0 || len(f.asleep) == 0 {
		return
	}
	at := f.asleep[0].until
	f.w.advance(at.Sub(f.w.wall()))
	for len(f.asleep) > 0 && f.asleep[0].until.Equal(at) {
		close(heap.Pop(&f.asleep).(sleeper).wake)
		f.awake++
	}
}

func (f *fleet) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// run lets the product work, as many deliver functions at once as the stage has, with a tick each minute, until done says
// so at a full minute.
func (f *fleet) run(concurrency int, done func() bool) {
	for range concurrency {
		f.actor(func() {
			for !f.ended() {
				f.spend(pollTime)
				if !f.w.deliver() {
					f.spend(pauseTime)
				}
			}
		})
	}
	f.actor(func() {
		for !f.ended() {
			f.w.exhaust()
			f.spend(pauseTime)
		}
	})
	f.actor(func() {
		for !done() && !f.w.t.Failed() {
			f.actor(func() { f.w.tick() })
			now := f.w.wall()
			f.spend(now.Truncate(time.Minute).Add(time.Minute).Sub(now))
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.over = true
	})
	f.wait.Wait()
}
