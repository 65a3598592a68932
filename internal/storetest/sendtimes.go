package storetest

import (
	"context"
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

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// window is what one call took.
type window struct{ from, until time.Time }

// wanted is a second, as workers with the suite's clock want it.
func wanted() schedule.Wanted {
	return schedule.Wanted{Span: time.Second, Idle: wall.Add(-time.Second), Anew: wall, Last: wall.Add(time.Minute), Limit: wall.Add(10 * time.Minute)}
}

// takeSecond takes a second of a channel's send times.
func takeSecond(ctx context.Context, s schedule.SendTimes, channel, by string) (window, error) {
	got, err := s.TakeSendTimes(ctx, channel, by, wanted)
	if err == nil && (got.Late || !got.Wrong.IsZero()) {
		err = fmt.Errorf("unexpected: %+v", got)
	}
	return window{got.Start, got.Start.Add(time.Second)}, err
}

// sendTimes are the rows by which workers share a send rate. No two of them ever hold one instant, whatever is lost.
func sendTimes(t *testing.T, b *bench) {
	t.Run("absent, then one after the other", func(t *testing.T) {
		name, k := b.sendRate()
		for i := range 3 {
			got, err := takeSecond(t.Context(), b.Store, name, fmt.Sprint("w", i))
			if want := wall.Add(time.Duration(i) * time.Second); err != nil || !got.from.Equal(want) {
				t.Errorf("span %d from %s, %v; want from %s", i, got.from, err, want)
			}
			b.taken(t, k, got.until, fmt.Sprint("w", i))
		}
		other := *b.Store
		other.Stage = "another"
		if got, err := takeSecond(t.Context(), &other, name, "w"); err != nil || !got.from.Equal(wall) {
			t.Errorf("another stage: %+v, %v; want a row of its own", got, err)
		}
	})
	t.Run("rounded up to microseconds", func(t *testing.T) {
		name, k := b.sendRate()
		for i := range 2 {
			by, start := fmt.Sprint("w", i), wall.Add(time.Duration(1+2*i)*time.Microsecond)
			got, err := b.TakeSendTimes(t.Context(), name, by, func() schedule.Wanted {
				w := wanted()
				w.Span, w.Anew = time.Microsecond+1, wall.Add(1)
				return w
			})
			if err != nil || !got.Start.Equal(start) {
				t.Errorf("%+v, %v; want from %s", got, err, start)
			}
			b.taken(t, k, start.Add(2*time.Microsecond), by)
		}
	})
	t.Run("where a span begins", func(t *testing.T) { begins(t, b) })
	t.Run("a row that cannot be read counts as absent", func(t *testing.T) {
		for what, v := range map[string]types.AttributeValue{"text": av("soon"), "a fraction": number("1.5"), "too large": number("1" + strconv.Itoa(1<<62)), "an instant, as text": av(schema.Time(wall))} {
			name, k := b.sendRate()
			b.holdsTaken(t, k, v, "")
			got, err := takeSecond(t.Context(), b.Store, name, "w")
			if err != nil || !got.from.Equal(wall) {
				t.Errorf("%s: %+v, %v; want from now on", what, got, err)
			}
			b.taken(t, k, got.until, "w")
		}
	})
	t.Run("a rival between read and write", func(t *testing.T) { overtaken(t, b) })
	t.Run("refused again and again", func(t *testing.T) { refusedTakes(t, b) })
	t.Run("many at once", func(t *testing.T) { crowd(t, b) })
	t.Run("faults", func(t *testing.T) { sendTimeFaults(t, b) })
	t.Run("sent twice", func(t *testing.T) { sentTwice(t, b) })
}

func (b *bench) sendRate() (channel string, k schema.Key) {
	channel = b.place().schedule
	return channel, schema.SendRateKey(channel, b.Stage)
}

// holdsTaken makes the row of a send rate; an owner that is empty is absent.
func (b *bench) holdsTaken(t *testing.T, k schema.Key, v types.AttributeValue, owner string) {
	t.Helper()
	it := Item{schema.PK: av(string(k.PK)), schema.SK: av(string(k.SK)), schema.TakenUntil: v}
	if owner != "" {
		it[schema.Owner] = av(owner)
	}
	b.overwrite(t, k, it)
}

// taken asserts the row of a send rate.
func (b *bench) taken(t *testing.T, k schema.Key, until time.Time, by string) {
	t.Helper()
	if d := diff(world{k: b.row(t, k)}, world{}.add(k, row{schema.TakenUntil: until.UnixMicro(), schema.Owner: by})); d != "" {
		t.Error(d)
	}
}

func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

func micros(at time.Time) types.AttributeValue { return av(at.UnixMicro()) }

// begins holds each bound from either side: a read, a write where something is taken, and nothing else.
func begins(t *testing.T, b *bench) {
	w := wanted()
	const us = time.Microsecond
	for _, c := range []struct {
		what  string
		holds time.Time
		last  time.Time // zero: as wanted
		want  schedule.Taken
	}{
		{"just too far back", w.Idle.Add(-us), time.Time{}, schedule.Taken{Start: wall}},
		{"as far back as can be", w.Idle, time.Time{}, schedule.Taken{Start: w.Idle}},
		{"as late as can be", w.Last, time.Time{}, schedule.Taken{Start: w.Last}},
		{"just too late", w.Last.Add(us), time.Time{}, schedule.Taken{Start: w.Last.Add(us), Late: true}},
		{"as far ahead as can be", w.Limit, time.Time{}, schedule.Taken{Start: w.Limit, Late: true}},
		{"as far ahead as can be, and not late", w.Limit, w.Limit.Add(time.Hour), schedule.Taken{Start: w.Limit}},
		{"too far ahead", w.Limit.Add(us), time.Time{}, schedule.Taken{Start: wall, Wrong: w.Limit.Add(us)}},
		{"too far ahead, time is up", w.Limit.Add(us), wall.Add(-us), schedule.Taken{Start: wall, Late: true}},
		{"too far back, time is up", w.Idle.Add(-us), wall.Add(-us), schedule.Taken{Start: wall, Late: true}},
		{"absent, time is up", time.Time{}, wall.Add(-us), schedule.Taken{Start: wall, Late: true}},
	} {
		t.Run(c.what, func(t *testing.T) {
			name, k := b.sendRate()
			if !c.holds.IsZero() {
				b.holdsTaken(t, k, micros(c.holds), "")
			}
			before := b.row(t, k)
			b.tap.reset()
			got, err := b.TakeSendTimes(t.Context(), name, "w", func() schedule.Wanted {
				w := wanted()
				if !c.last.IsZero() {
					w.Last = c.last
				}
				return w
			})
			calls, writes := b.tap.calls.Load(), b.tap.writes.Load()
			if err != nil || !got.Start.Equal(c.want.Start) || got.Late != c.want.Late || !got.Wrong.Equal(c.want.Wrong) {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
			if c.want.Late {
				if now := b.row(t, k); show(now) != show(before) || calls != 1 || writes != 0 {
					t.Errorf("%d calls, %d writes, want a read alone: from %s to %s", calls, writes, show(before), show(now))
				}
				return
			}
			if calls != 2 || writes != 1 {
				t.Errorf("%d calls, %d writes, want a read and a write", calls, writes)
			}
			b.taken(t, k, c.want.Start.Add(time.Second), "w")
		})
	}
}

// overtaken lets the row change between the read and the first write. What the row holds then decides: an addition takes
// what comes behind it; else the refusal brings the row, and no second read is needed.
func overtaken(t *testing.T, b *bench) {
	w := wanted()
	for _, c := range []struct {
		what          string
		before, after types.AttributeValue // nil: absent
		start         time.Time
		late, wrong   bool
		writes        int64
	}{
		{"moved on", micros(wall), micros(wall.Add(5 * time.Second)), wall.Add(5 * time.Second), false, false, 1},
		{"moved on, as late as can be", micros(wall), micros(w.Last), w.Last, false, false, 1},
		{"moved on, later than that", micros(wall), micros(w.Last.Add(time.Second)), w.Last.Add(time.Second), true, false, 1},
		{"made", nil, micros(wall.Add(time.Second)), wall.Add(time.Second), false, false, 2},
		{"made, later than that", nil, micros(w.Last.Add(time.Second)), w.Last.Add(time.Second), true, false, 1},
		{"begun anew", micros(wall.Add(-time.Hour)), micros(wall.Add(time.Second)), wall.Add(time.Second), false, false, 2},
		{"corrected", micros(wall.Add(time.Hour)), micros(wall.Add(time.Second)), wall.Add(time.Second), false, false, 2},
		{"set too far ahead", micros(wall), micros(wall.Add(time.Hour)), wall, false, true, 2},
		{"set far back", micros(wall), micros(wall.Add(-time.Hour)), wall, false, false, 2},
		{"made unreadable", micros(wall), av("soon"), wall, false, false, 2},
	} {
		t.Run(c.what, func(t *testing.T) {
			name, k := b.sendRate()
			if c.before != nil {
				b.holdsTaken(t, k, c.before, "earlier")
			}
			b.tap.reset()
			b.pauses.asked = nil
			var once sync.Once
			b.tap.before = func(_ int, operation string) error {
				if operation == "UpdateItem" {
					once.Do(func() { b.holdsTaken(t, k, c.after, "rival") })
				}
				return nil
			}
			got, err := b.TakeSendTimes(t.Context(), name, "w", wanted)
			calls, writes := b.tap.calls.Load(), b.tap.writes.Load()
			b.tap.reset()
			if err != nil || !got.Start.Equal(c.start) || got.Late != c.late || got.Wrong.IsZero() == c.wrong {
				t.Errorf("%+v, %v; want from %s, late: %v, wrong: %v", got, err, c.start, c.late, c.wrong)
			}
			refusals := c.writes - 1
			if c.late {
				refusals = c.writes
				b.taken(t, k, c.start, "rival")
			} else {
				b.taken(t, k, c.start.Add(time.Second), "w")
			}
			if writes != c.writes || calls != c.writes+1 || len(b.pauses.asked) != int(refusals) {
				t.Errorf("%d writes of %d calls, %d pauses; want %d writes beside one read, %d pauses", writes, calls, len(b.pauses.asked), c.writes, refusals)
			}
		})
	}
}

// refusedTakes refuses each of the first writes. Each is tried again after a pause, as the clock stands then.
func refusedTakes(t *testing.T, b *bench) {
	const refusals = 9
	name, k := b.sendRate()
	b.tap.reset()
	b.pauses.asked = nil
	asked, met := 0, 0
	b.tap.before = func(_ int, operation string) error {
		if operation == "UpdateItem" && met < refusals {
			met++
			b.holdsTaken(t, k, micros(wall.Add(-time.Hour+time.Duration(met)*time.Second)), "rival") // of no use, and not as read
		}
		return nil
	}
	got, err := b.TakeSendTimes(t.Context(), name, "w", func() schedule.Wanted {
		w := wanted()
		w.Anew = wall.Add(time.Duration(asked) * time.Millisecond)
		asked++
		return w
	})
	b.tap.reset()
	if want := wall.Add(refusals * time.Millisecond); err != nil || asked != refusals+1 || !got.Start.Equal(want) {
		t.Errorf("%+v, %v after %d tries; want from %s, as the clock stood at the last of %d", got, err, asked, want, refusals+1)
	}
	if len(b.pauses.asked) != refusals {
		t.Errorf("%d pauses for %d refusals", len(b.pauses.asked), refusals)
	}
	for i, d := range b.pauses.asked {
		if limit := 25 * time.Millisecond << min(i, 6); d < 0 || d >= limit {
			t.Errorf("pause %d is %s, want less than %s", i, d, limit)
		}
	}
	// Who gives up while it waits has taken nothing.
	name, k = b.sendRate()
	ctx, cancel := context.WithCancel(t.Context())
	b.tap.before = func(_ int, operation string) error {
		if operation == "UpdateItem" {
			cancel()
			b.holdsTaken(t, k, micros(wall), "rival")
		}
		return nil
	}
	_, err = b.TakeSendTimes(ctx, name, "w", wanted)
	b.tap.reset()
	failuretest.Want(t, err, failure.StoreUnavailable)
	b.taken(t, k, wall, "rival")
}

// crowd has many workers take at once: what they got lies side by side, without a gap and without an overlap. Only where
// there is no row yet do they refuse each other anything, and none more than once.
func crowd(t *testing.T, b *bench) {
	const workers, each = 8, 5
	name := b.place().schedule
	var mu sync.Mutex
	var all []window
	var wg sync.WaitGroup
	b.tap.reset()
	for i := range workers {
		own := *b.Store
		own.Pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
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
	if n := b.tap.writes.Load(); n > workers*each+workers-1 {
		t.Errorf("%d spans took %d writes, want at most one refusal for each worker but the first", workers*each, n)
	}
	slices.SortFunc(all, func(a, b window) int { return a.from.Compare(b.from) })
	for i, got := range all {
		if want := wall.Add(time.Duration(i) * time.Second); !got.from.Equal(want) {
			t.Fatalf("window %d begins at %s, want %s", i, got.from, want)
		}
	}
}
