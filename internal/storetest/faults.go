package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// fault is one way for a call to fail.
type fault struct {
	name  string
	err   func(operation string) error
	retry bool // says that nothing was written and that a moment later it may pass: only ever before the effect
	code  failure.Code
}

var faultKinds = []fault{
	{"time-out", func(string) error { return timedOut() }, false, failure.StoreUnavailable},
	{"500", func(string) error { return broken() }, false, failure.StoreUnavailable},
	{"503", func(string) error { return unavailable() }, false, failure.StoreUnavailable},
	{"throttle", func(string) error { return throttled() }, true, failure.StoreThrottled},
	{"conflict", conflicting, true, failure.StoreThrottled},
}

// faults fails each call of each operation that moves a row, before and after it took effect.
func faults(t *testing.T, b *bench) {
	eachCall(t, b, runs(b), submissions(b), schedules(b))
	t.Run("S8 a refused condition decides, whatever happened beside it", func(t *testing.T) { reasons(t, b) })
	t.Run("S9 applied, reply lost, sent again", func(t *testing.T) { sentAgain(t, b, runs(b), submissions(b), schedules(b)) })
	t.Run("a caller who gives up while the store waits", func(t *testing.T) { givesUp(t, b) })
	t.Run("reads that are throttled", func(t *testing.T) { throttledReads(t, b) })
	t.Run("a request that DynamoDB does not understand", func(t *testing.T) { misunderstood(t, b) })
}

// eachCall fails each call of each way of some tables, in each manner, on either side of its effect.
func eachCall(t *testing.T, b *bench, subjects ...subject) {
	for _, s := range subjects {
		for _, w := range s.ways {
			t.Run(s.name+", "+w.title(), func(t *testing.T) {
				calls := b.count(t, s, w)
				for _, f := range faultKinds {
					for n := range calls {
						t.Run(fmt.Sprintf("call %d, %s, before", n, f.name), func(t *testing.T) { b.failing(t, s, w, n, f, false) })
						if !f.retry {
							t.Run(fmt.Sprintf("call %d, %s, after", n, f.name), func(t *testing.T) { b.failing(t, s, w, n, f, true) })
						}
					}
					t.Run(f.name+" without end", func(t *testing.T) { b.failingAlways(t, s, w, f) })
				}
				t.Run("reply lost, and the row cannot be read", func(t *testing.T) { b.blind(t, s, w) })
			})
		}
	}
}

// count is how many calls a way takes when nothing fails.
func (b *bench) count(t *testing.T, s subject, w way) int {
	p, _ := b.stage(t, w)
	r := b.seen(t, s, w, p)
	b.tap.reset()
	if err := w.do(t.Context(), b.Store, p, r); err != nil {
		t.Fatal(err)
	}
	return int(b.tap.calls.Load())
}

// failing fails call n once. Whatever comes back, the rows are as before or as they should be, success means the
// latter, and a write that took effect and carries the caller's token is a success.
func (b *bench) failing(t *testing.T, s subject, w way, n int, f fault, after bool) {
	p, before := b.stage(t, w)
	r := b.seen(t, s, w, p)
	want := before.after(w.want(p))
	b.tap.reset()
	b.pauses.asked = nil
	struck := ""
	hook := func(call int, operation string) error {
		if call != n {
			return nil
		}
		struck = operation
		return f.err(operation)
	}
	if after {
		b.tap.after = hook
	} else {
		b.tap.before = hook
	}
	err := w.do(t.Context(), b.Store, p, r)
	b.tap.reset()
	got := b.read(t, p)
	landed, untouched := diff(got, want) == "", diff(got, before) == ""
	if !landed && !untouched {
		t.Fatalf("a wrong state:\n%s", diff(got, want))
	}
	switch {
	case err == nil && !landed:
		t.Errorf("success although nothing was written")
	case err != nil && landed && w.token:
		t.Errorf("the write took effect and carries our token, yet: %v", err)
	case err != nil:
		if failuretest.Want(t, err, f.code); !failure.From(err).Passing() {
			t.Errorf("%v does not pass", err)
		}
	}
	if f.retry && isWrite(struck) && err != nil {
		t.Errorf("a write that met a %s was not sent again: %v", f.name, err)
	}
	b.bounded(t)
}

// bounded demands that every pause was a jittered, bounded one.
func (b *bench) bounded(t *testing.T) {
	t.Helper()
	for i, d := range b.pauses.asked {
		if limit := 25 * time.Millisecond << i; d < 0 || d >= limit {
			t.Errorf("pause %d is %s, want less than %s", i, d, limit)
		}
	}
}

// failingAlways fails every call before its effect: a passing failure after a bounded number of tries.
func (b *bench) failingAlways(t *testing.T, s subject, w way, f fault) {
	p, before := b.stage(t, w)
	r := b.seen(t, s, w, p)
	b.tap.reset()
	b.pauses.asked = nil
	b.tap.before = func(_ int, operation string) error {
		if isWrite(operation) {
			return f.err(operation)
		}
		return nil
	}
	err := w.do(t.Context(), b.Store, p, r)
	writes := b.tap.writes.Load()
	b.tap.reset()
	failuretest.Want(t, err, f.code)
	if want := map[bool]int64{true: 7, false: 1}[f.retry]; writes != want || len(b.pauses.asked) != int(want)-1 {
		t.Errorf("%d writes and %d pauses, want %d and %d", writes, len(b.pauses.asked), want, want-1)
	}
	if d := diff(b.read(t, p), before); d != "" {
		t.Error(d)
	}
	b.bounded(t)
}

// blind loses the reply of every call from the first write on: nobody knows, and a passing failure says so.
func (b *bench) blind(t *testing.T, s subject, w way) {
	p, _ := b.stage(t, w)
	r := b.seen(t, s, w, p)
	b.tap.reset()
	lost := false
	b.tap.after = func(_ int, operation string) error {
		if lost = lost || isWrite(operation); lost {
			return timedOut()
		}
		return nil
	}
	err := w.do(t.Context(), b.Store, p, r)
	b.tap.reset()
	failuretest.Want(t, err, failure.StoreUnavailable)
}

// reasons reads the reasons of a cancelled transaction one by one.
func reasons(t *testing.T, b *bench) {
	admit := func(code ...string) (place, world, error) {
		p := b.place()
		before := world{}.add(p.scheduleKey(), scheduleRow(p, "active"))
		b.write(t, before)
		b.tap.reset()
		b.tap.before = func(n int, operation string) error {
			if n == 0 && operation == "TransactWriteItems" {
				return cancelled(code...)
			}
			return nil
		}
		err := b.Admit(t.Context(), dueAdmission(p))
		b.tap.reset()
		return p, before, err
	}
	if _, _, err := admit("TransactionConflict", "ThrottlingError", "None"); err != nil {
		t.Errorf("conflict and throttle: %v, want a second try that lands", err)
	}
	if _, _, err := admit("None", "ProvisionedThroughputExceeded", "None"); err != nil {
		t.Errorf("throttle: %v, want a second try that lands", err)
	}
	p, before, err := admit("TransactionConflict", "ConditionalCheckFailed", "ThrottlingError")
	var c *schedule.Conflict
	if !errors.As(err, &c) {
		t.Errorf("a refused condition among conflicts: %v, want a Conflict", err)
	}
	if d := diff(b.read(t, p), before); d != "" {
		t.Error(d)
	}
	if _, _, err := admit("None", "ValidationError", "None"); !failure.Is(err, failure.InternalError) {
		t.Errorf("a reason that no try can mend: %v, want internal_error", err)
	}
}

// sentAgain is the SDK's own retry: the first request took effect, its reply was lost, and the second one is refused
// because of the first. The old item that comes with the refusal carries our token.
func sentAgain(t *testing.T, b *bench, subjects ...subject) {
	for _, s := range subjects {
		for _, w := range s.ways {
			if !w.token || slices.Contains([]string{"accept late"}, w.event) {
				continue
			}
			t.Run(s.name+", "+w.title(), func(t *testing.T) {
				p, before := b.stage(t, w)
				r := b.seen(t, s, w, p)
				b.tap.reset()
				if err := w.do(t.Context(), b.Store, p, r); err != nil {
					t.Fatal(err)
				}
				if err := w.do(t.Context(), b.Store, p, r); err != nil {
					t.Errorf("sent again: %v, want success", err)
				}
				if d := diff(b.read(t, p), before.after(w.want(p))); d != "" {
					t.Errorf("sent again, it was written twice:\n%s", d)
				}
			})
		}
	}
}

// givesUp ends the caller's time while the store waits between tries.
func givesUp(t *testing.T, b *bench) {
	w := admitWays()[0]
	p, before := b.stage(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	b.tap.reset()
	b.tap.before = func(_ int, operation string) error {
		cancel()
		return conflicting(operation)
	}
	err := w.do(ctx, b.Store, p, seen{})
	writes := b.tap.writes.Load()
	b.tap.reset()
	failuretest.Want(t, err, failure.StoreThrottled)
	if writes != 1 {
		t.Errorf("%d writes, want 1: the caller had gone", writes)
	}
	if d := diff(b.read(t, p), before); d != "" {
		t.Error(d)
	}
}

// throttledReads refuses each kind of read for its rate: it is made again as often as a write, and no more, and not once its
// caller has gone.
func throttledReads(t *testing.T, b *bench) {
	p := b.place()
	for operation, read := range map[string]func(context.Context) error{
		"GetItem": func(ctx context.Context) error { _, err := b.Control(ctx); return err },
		"Query":   func(ctx context.Context) error { _, err := b.Submissions(ctx, p.run()); return err },
		"BatchGetItem": func(ctx context.Context) error {
			_, err := b.BeforeNotice(ctx, schema.NoticeID(p.run(), "failed", "email", "hash"))
			return err
		},
	} {
		for _, c := range []struct {
			name         string
			refused      int // how often
			gone         bool
			calls, waits int
		}{{"six times", 6, false, 7, 6}, {"without end", 1000, false, 7, 6}, {"the caller gone", 1000, true, 1, 1}} {
			t.Run(operation+", "+c.name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b.tap.reset()
				b.pauses.asked = nil
				b.tap.before = func(n int, asked string) error {
					if asked != operation {
						t.Errorf("%s, want %s", asked, operation)
					}
					if c.gone {
						cancel()
					}
					if n < c.refused {
						return throttled()
					}
					return nil
				}
				err := read(ctx)
				calls := int(b.tap.calls.Load())
				b.tap.reset()
				if c.refused > 6 {
					failuretest.Want(t, err, failure.StoreThrottled)
				} else if err != nil && !errors.Is(err, schedule.ErrNotFound) {
					t.Errorf("%v, want what stands there", err)
				}
				if calls != c.calls || len(b.pauses.asked) != c.waits {
					t.Errorf("%d calls and %d pauses, want %d and %d", calls, len(b.pauses.asked), c.calls, c.waits)
				}
				b.bounded(t)
			})
		}
	}
}

// misunderstood is an answer that no try can mend, and that must not settle a run: an operator reads it.
func misunderstood(t *testing.T, b *bench) {
	b.tap.reset()
	b.tap.before = func(int, string) error {
		return answered(400, &types.ResourceNotFoundException{Message: new(string)})
	}
	_, err := b.Run(t.Context(), b.place().run())
	b.tap.reset()
	if f := failuretest.Want(t, err, failure.InternalError); !f.Passing() {
		t.Error("internal_error settles a run")
	}
}
