package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// World is the whole of Almanac in one process. Its exported fields are set before it is used.
type World struct {
	DB     *memcloud.Dynamo
	S3     *memcloud.S3
	SQS    *memcloud.SQS
	Steps  *memcloud.States
	Athena *memcloud.Athena

	Mail  *Mailbox
	Hooks *Receivers
	Data  *Data

	Schedule schedule.Timing
	Months   snapshot.Timing
	Shift    time.Duration // business time less wall time

	// Fault says what befalls a call that is about to be let go; nil: nothing.
	Fault func(*Call) Form
	// Choose picks what happens next; nil: the first. It is given at least two options.
	Choose func([]Option) int
	// Workers is how many invocations may be under way at once; 0: one.
	Workers int
	// SkewOf is the clock of a worker that starts, less true time; nil: none.
	SkewOf func(name string) time.Duration
	// Duplicate says whether a message that is received is handed to two consumers; nil: never.
	Duplicate func() bool
	// ThawAfter is how long what is being frozen stays so; nil: until the world is at rest.
	ThawAfter func() time.Duration

	// Lag says of how many of a table's latest writes the index knows nothing that a worker is about to read; it is told how
	// many are that recent. nil: of none.
	Lag func(young int) int
	// Behind says whether an answer about an execution is that of some seconds ago; nil: never.
	Behind func() bool
	// Arrives says how often an invocation comes about that a rule, or a function, has asked for; nil: once.
	Arrives func() int

	heard func(k *Worker, answer any, err error) // is told each answer that a worker gets; nil: nobody

	origin time.Time // of the bubble's clock

	mu      sync.Mutex
	parked  []*Call
	frozen  []*Call
	live    []*Worker
	pending map[any]Form
	arrived chan struct{}
	started int // workers
	calls   int
	Trace   []string // every call that was let go

	failed *Failed

	functions
	events
	watch
}

// Option is one thing that can happen next.
type Option struct {
	Name string
	Call *Call // to be let go; nil: something else
	do   func()
}

// Failed is a promise that was broken, or a world that did not come to rest.
type Failed struct {
	What  string
	Trace []string
}

func (f *Failed) Error() string { return f.What }

// Start is when the worlds begin: a Monday, noon UTC. It lies far ahead, so that the machine's clock is never it.
var Start = time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC)

// Run makes a world, hands it to f in a bubble of its own, and ends whatever f left alive. The error is a *Failed.
func Run(t *testing.T, f func(*World)) (err error) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld()
		defer func() {
			r := recover()
			w.end()
			if failed, ok := r.(*Failed); ok {
				err = failed
			} else if r != nil {
				panic(r)
			}
		}()
		f(w)
	})
	return err
}

func newWorld() *World {
	w := &World{origin: time.Now(), pending: map[any]Form{}, arrived: make(chan struct{}, 1), Schedule: schedule.DefaultTiming(), Months: snapshot.DefaultTiming()}
	w.Schedule.Parallel, w.Months.Parallel = 1, 1
	w.Mail, w.Hooks, w.Data = newMailbox(w), &Receivers{w: w}, newData(w)
	w.watch.init()
	w.cloud()
	w.functions.init(w)
	w.events.init(w)
	return w
}

// Now is true wall time.
func (w *World) Now() time.Time { return Start.Add(time.Since(w.origin)).UTC() }

// Failf breaks the world off.
func (w *World) Failf(format string, args ...any) {
	panic(&Failed{What: fmt.Sprintf(format, args...), Trace: w.Trace})
}

func (w *World) must(err error) {
	if err != nil {
		_, file, line, _ := runtime.Caller(1)
		w.Failf("%s:%d: %v", file[strings.LastIndexByte(file, '/')+1:], line, err)
	}
}

// end kills every worker and lets what is parked go, so that no goroutine is left.
func (w *World) end() {
	w.stopMachines()
	for range 1000 {
		synctest.Wait()
		w.mu.Lock()
		live, parked := slices.Clone(w.live), append(w.parked, w.frozen...)
		w.parked, w.frozen = nil, nil
		w.mu.Unlock()
		for _, k := range live {
			k.mu.Lock()
			k.frozenAt = time.Time{}
			k.mu.Unlock()
			k.kill()
			k.timer.Stop()
		}
		for _, c := range parked {
			c.release <- DieBefore
		}
		if len(live)+len(parked) == 0 {
			return
		}
	}
}

// Spawn starts a worker. life is its function's time-out.
func (w *World) Spawn(name string, life time.Duration, f func(context.Context) any) *Worker {
	w.mu.Lock()
	w.started++
	k := &Worker{Name: name, Number: w.started, w: w, deadline: w.Now().Add(life), done: make(chan struct{}), over: make(chan struct{})}
	if w.SkewOf != nil {
		k.skew = w.SkewOf(name)
	}
	w.live = append(w.live, k)
	w.mu.Unlock()
	k.timer = time.AfterFunc(life, k.expire)
	go func() {
		defer w.gone(k)
		k.result = f(invocation{k})
	}()
	return k
}

func (w *World) gone(k *Worker) {
	k.timer.Stop()
	k.finish()
	w.mu.Lock()
	w.live = slices.DeleteFunc(w.live, func(o *Worker) bool { return o == k })
	w.mu.Unlock()
	w.ring()
}

// ring tells the scheduler that something happened while it lets time pass.
func (w *World) ring() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

func (w *World) park(c *Call) {
	w.mu.Lock()
	w.parked = append(w.parked, c)
	w.mu.Unlock()
	w.ring()
}

// waiting lists the calls that can be let go, in an order that does not depend on which goroutine came first.
func (w *World) waiting() []*Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.parked, func(a, b *Call) int {
		return cmp.Or(cmp.Compare(a.Worker.Number, b.Worker.Number), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	return slices.DeleteFunc(slices.Clone(w.parked), func(c *Call) bool { return c.Worker.isFrozen() }) // nor can its other calls go
}

// busy counts the workers that are neither over nor frozen.
func (w *World) busy() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.live {
		k.mu.Lock()
		if k.frozenAt.IsZero() && !k.dead {
			n++
		}
		k.mu.Unlock()
	}
	return n
}

// letGo releases one call with what befalls it, and waits until every goroutine waits again.
func (w *World) letGo(c *Call) {
	w.mu.Lock()
	w.parked = slices.DeleteFunc(w.parked, func(o *Call) bool { return o == c })
	w.calls++
	c.Worker.calls++
	c.N, c.Of = w.calls, c.Worker.calls
	w.mu.Unlock()
	form := AsAsked
	if w.Fault != nil {
		form = w.Fault(c)
	}
	line := fmt.Sprintf("%s %s", w.Now().Format("15:04:05"), c)
	if form != AsAsked {
		c.Worker.hurt = true
		line += " <- " + form.String()
	}
	w.Trace = append(w.Trace, line)
	if form == Zombie {
		w.freeze(c)
		return
	}
	c.release <- form
	synctest.Wait()
	w.checkChanged()
}

// freeze holds a call, its process and its clock.
func (w *World) freeze(c *Call) {
	k := c.Worker
	k.mu.Lock()
	k.frozenAt = w.Now()
	w.delivery.held = true
	k.left = k.deadline.Sub(k.frozenAt)
	k.mu.Unlock()
	k.timer.Stop()
	if w.ThawAfter != nil {
		k.thawAt = k.frozenAt.Add(w.ThawAfter())
	}
	w.mu.Lock()
	w.frozen = append(w.frozen, c)
	w.mu.Unlock()
	w.ring()
}

// Thaw lets whatever is frozen go on, with clocks that stood still meanwhile, and tells whether anything was.
func (w *World) Thaw() bool { return w.thaw(func(*Worker) bool { return true }) > 0 }

// thawing is when the next worker thaws by itself; zero: none does.
func (w *World) thawing() (at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.frozen {
		if t := c.Worker.thawAt; !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// thaw lets those go on that are meant.
func (w *World) thaw(meant func(*Worker) bool) int {
	w.mu.Lock()
	var frozen, left []*Call
	for _, c := range w.frozen {
		if meant(c.Worker) {
			frozen = append(frozen, c)
		} else {
			left = append(left, c)
		}
	}
	w.frozen = left
	w.mu.Unlock()
	for _, c := range frozen {
		k := c.Worker
		k.mu.Lock()
		slept := w.Now().Sub(k.frozenAt)
		k.skew -= slept
		k.deadline = k.deadline.Add(slept)
		k.frozenAt = time.Time{}
		k.mu.Unlock()
		k.timer.Reset(k.left)
		w.park(c)
	}
	return len(frozen)
}

// Step lets one thing happen; false: nothing can, until time passes.
func (w *World) Step() bool {
	synctest.Wait()
	var options []Option
	for _, c := range w.waiting() {
		options = append(options, Option{Name: c.Name, Call: c})
	}
	if w.busy() < max(1, w.Workers) {
		options = append(options, w.ready()...)
	}
	if len(options) == 0 {
		return false
	}
	n := 0
	if w.Choose != nil && len(options) > 1 {
		n = w.Choose(options)
	}
	if o := options[n]; o.Call != nil {
		w.letGo(o.Call)
	} else {
		o.do()
		synctest.Wait()
		w.checkChanged()
	}
	return true
}

// Pass lets time pass: until something happens by itself, until the next moment at which something is due, but not beyond
// limit. False: it came to the limit.
func (w *World) Pass(limit time.Time) bool {
	until := limit
	if w.busy() < max(1, w.Workers) {
		if at := w.nextMoment(); !at.IsZero() && at.Before(until) {
			until = at
		}
	}
	select { // a signal of what has been seen already
	case <-w.arrived:
	default:
	}
	if d := until.Sub(w.Now()); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-w.arrived:
		}
	}
	synctest.Wait()
	w.checkChanged()
	return w.Now().Before(limit)
}

// errLimit is the end of what a world may take.
const maxSteps = 200_000

// Until lets things happen until is says so, and fails when that takes longer than life.
func (w *World) Until(life time.Duration, what string, is func() bool) {
	end := w.Now().Add(life)
	for n := 0; ; n++ {
		if n > maxSteps {
			w.Failf("%s: not after %d steps\n%s", what, n, w.Dump())
		}
		if w.Step() {
			continue
		}
		if is() {
			return
		}
		if !w.Pass(end) {
			w.Failf("%s: not within %s\n%s", what, life, w.Dump())
		}
	}
}

// Rest lets things happen until nothing is left to do; then what is frozen is thawed, until nothing is left again.
func (w *World) Rest() {
	for {
		w.Until(72*time.Hour, "at rest", w.atRest)
		if !w.Thaw() {
			break
		}
	}
	w.checkWhole()
}

// For lets things happen for some time.
func (w *World) For(d time.Duration) {
	end := w.Now().Add(d)
	for n := 0; ; n++ {
		if n > maxSteps {
			w.Failf("%d steps within %s", n, d)
		}
		if !w.Step() && !w.Pass(end) {
			return
		}
	}
}

// BySeed chooses by chance: the same seed is the same world.
func BySeed(seed uint64) func([]Option) int {
	r := rand.New(rand.NewPCG(seed, 11))
	return func(options []Option) int { return r.IntN(len(options)) }
}

// AsFailed gives the failure in an error.
func AsFailed(err error) *Failed {
	var f *Failed
	errors.As(err, &f)
	return f
}
