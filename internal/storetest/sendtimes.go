package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// window is what one move took: from the instant that it read, or from now on, for a second.
type window struct{ from, until time.Time }

// takeSecond moves a channel's instant by a second, and returns what that took.
func takeSecond(ctx context.Context, s schedule.SendTimes, channel, by string) (got window, err error) {
	err = s.MoveSendTimes(ctx, channel, by, func(taken time.Time) (time.Time, bool) {
		if got.from = wall; taken.After(wall) {
			got.from = taken
		}
		got.until = got.from.Add(time.Second)
		return got.until, true
	})
	return got, err
}

// sendTimes are the rows by which workers share a send rate. No two of them ever hold one instant, whatever is lost.
func sendTimes(t *testing.T, b *bench) {
	channel := func(t *testing.T) (string, schema.Key) {
		t.Helper()
		name := b.place().schedule
		return name, schema.SendRateKey(name, b.Stage)
	}
	wants := func(t *testing.T, k schema.Key, until time.Time, by string) {
		t.Helper()
		if d := diff(world{k: b.row(t, k)}, world{}.add(k, row{schema.TakenUntil: until.UnixMicro(), schema.Owner: by})); d != "" {
			t.Error(d)
		}
	}
	t.Run("absent, then as read", func(t *testing.T) {
		name, k := channel(t)
		for i := range 3 {
			got, err := takeSecond(t.Context(), b.Store, name, fmt.Sprint("w", i))
			if want := wall.Add(time.Duration(i) * time.Second); err != nil || !got.from.Equal(want) {
				t.Errorf("move %d from %s, %v; want from %s", i, got.from, err, want)
			}
			wants(t, k, got.until, fmt.Sprint("w", i))
		}
		other := *b.Store
		other.Stage = "another"
		if got, err := takeSecond(t.Context(), &other, name, "w"); err != nil || !got.from.Equal(wall) {
			t.Errorf("another stage: %+v, %v; want a row of its own", got, err)
		}
	})
	t.Run("rounded up to microseconds", func(t *testing.T) {
		name, k := channel(t)
		if err := b.MoveSendTimes(t.Context(), name, "w", func(time.Time) (time.Time, bool) { return wall.Add(1), true }); err != nil {
			t.Fatal(err)
		}
		wants(t, k, wall.Add(time.Microsecond), "w")
	})
	t.Run("nothing wanted, nothing written", func(t *testing.T) {
		name, k := channel(t)
		b.tap.reset()
		if err := b.MoveSendTimes(t.Context(), name, "w", func(time.Time) (time.Time, bool) { return wall, false }); err != nil || b.tap.writes.Load() != 0 || len(b.row(t, k)) != 0 {
			t.Errorf("%d writes, %v", b.tap.writes.Load(), err)
		}
	})
	t.Run("a row that cannot be read counts as absent", func(t *testing.T) {
		for what, v := range map[string]types.AttributeValue{"text": av("soon"), "a fraction": number("1.5"), "too large": number("1" + strconv.Itoa(1<<62)), "an instant, as text": av(schema.Time(wall))} {
			name, k := channel(t)
			b.overwrite(t, k, Item{schema.PK: av(string(k.PK)), schema.SK: av(string(k.SK)), schema.TakenUntil: v})
			got, err := takeSecond(t.Context(), b.Store, name, "w")
			if err != nil || !got.from.Equal(wall) {
				t.Errorf("%s: %+v, %v; want from now on", what, got, err)
			}
			wants(t, k, got.until, "w")
		}
	})
	t.Run("a rival between read and write", func(t *testing.T) { overtaken(t, b) })
	t.Run("many at once", func(t *testing.T) { crowd(t, b) })
	t.Run("faults", func(t *testing.T) { sendTimeFaults(t, b) })
}

func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// overtaken lets a rival move the row before each of the first writes. That is read again after a pause, and no failure.
func overtaken(t *testing.T, b *bench) {
	name := b.place().schedule
	rival := *b.Store
	rival.DB = b.tap.DynamoDB
	var theirs []window
	b.tap.reset()
	b.pauses.asked = nil
	b.tap.before = func(_ int, operation string) error {
		if operation == "UpdateItem" && len(theirs) < 9 {
			got, err := takeSecond(t.Context(), &rival, name, "rival")
			theirs = append(theirs, got)
			return err
		}
		return nil
	}
	ours, err := takeSecond(t.Context(), b.Store, name, "w")
	b.tap.reset()
	if err != nil || !ours.from.Equal(theirs[8].until) {
		t.Errorf("%+v, %v; want it behind the nine of the rival, which end at %s", ours, err, theirs[8].until)
	}
	if len(b.pauses.asked) != 9 {
		t.Errorf("%d pauses for nine refusals", len(b.pauses.asked))
	}
	for i, d := range b.pauses.asked {
		if limit := 25 * time.Millisecond << min(i, 6); d < 0 || d >= limit {
			t.Errorf("pause %d is %s, want less than %s", i, d, limit)
		}
	}
	// Who gives up while it waits has taken nothing.
	ctx, cancel := context.WithCancel(t.Context())
	b.tap.before = func(_ int, operation string) error {
		if operation == "UpdateItem" {
			cancel()
			_, err := takeSecond(t.Context(), &rival, name, "rival")
			return err
		}
		return nil
	}
	_, err = takeSecond(ctx, b.Store, name, "w2")
	b.tap.reset()
	failuretest.Want(t, err, failure.StoreUnavailable)
	if owner := text(b.row(t, schema.SendRateKey(name, b.Stage)), schema.Owner); owner != "rival" {
		t.Errorf("the last move is %s's", owner)
	}
}

// crowd has many workers take at once: what they got lies side by side, without a gap and without an overlap.
func crowd(t *testing.T, b *bench) {
	const workers, each = 8, 5
	name := b.place().schedule
	var mu sync.Mutex
	var all []window
	var wg sync.WaitGroup
	for i := range workers {
		own := *b.Store
		own.DB, own.Pause = b.tap.DynamoDB, func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		wg.Go(func() {
			for j := range each {
				got, err := takeSecond(t.Context(), &own, name, fmt.Sprintf("w%d-%d", i, j))
				mu.Lock()
				if all = append(all, got); err != nil {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b window) int { return a.from.Compare(b.from) })
	for i, got := range all {
		if want := wall.Add(time.Duration(i) * time.Second); !got.from.Equal(want) {
			t.Fatalf("window %d begins at %s, want %s", i, got.from, want)
		}
	}
}

// doubled sends each update twice, and answers what the second one was answered.
type doubled struct{ store.DynamoDB }

func (d doubled) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if _, err := d.DynamoDB.UpdateItem(ctx, in, o...); err != nil {
		return nil, err
	}
	return d.DynamoDB.UpdateItem(ctx, in, o...)
}

// sendTimeFaults fails each call before and after its effect. Success means that the row bears this move; a failure
// passes, and at most one move is lost.
func sendTimeFaults(t *testing.T, b *bench) {
	for _, f := range faultKinds {
		for n := range 2 {
			for _, after := range []bool{false, true} {
				if after && f.retry {
					continue // what asks for another try was not served
				}
				name := b.place().schedule
				b.tap.reset()
				struck := func(call int, operation string) error {
					if call == n {
						return f.err(operation)
					}
					return nil
				}
				if after {
					b.tap.after = struck
				} else {
					b.tap.before = struck
				}
				got, err := takeSecond(t.Context(), b.Store, name, "w")
				b.tap.reset()
				what := fmt.Sprintf("call %d, %s, after: %v", n, f.name, after)
				it := b.row(t, schema.SendRateKey(name, b.Stage))
				landed := text(it, schema.Owner) == "w"
				switch {
				case err == nil && (!landed || !got.until.Equal(wall.Add(time.Second))):
					t.Errorf("%s: success, and the row is %s", what, show(it))
				case err != nil && landed:
					t.Errorf("%s: the move took effect and carries our token, yet: %v", what, err)
				case err != nil:
					if failuretest.Want(t, err, f.code); !failure.From(err).Passing() {
						t.Errorf("%s: %v does not pass", what, err)
					}
				}
				if n == 1 && f.retry && err != nil {
					t.Errorf("%s: a write that met it was not sent again: %v", what, err)
				}
			}
		}
	}
	// Sent again by the SDK: the second is refused because of the first, and is the first.
	name := b.place().schedule
	twice := *b.Store
	twice.DB = doubled{b.tap}
	for i := range 2 {
		got, err := takeSecond(t.Context(), &twice, name, fmt.Sprint("w", i))
		if want := wall.Add(time.Duration(i) * time.Second); err != nil || !got.from.Equal(want) {
			t.Errorf("sent again: from %s, %v; want from %s", got.from, err, want)
		}
	}
	var c *schedule.Conflict
	b.tap.before = func(int, string) error { return answered(400, &types.ResourceNotFoundException{Message: new(string)}) }
	if _, err := takeSecond(t.Context(), b.Store, name, "w"); !failure.Is(err, failure.InternalError) || errors.As(err, &c) {
		t.Errorf("a request that DynamoDB does not understand: %v, want internal_error", err)
	}
	b.tap.reset()
}
