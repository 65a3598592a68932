package storetest

import (
	"context"
	"errors"
	"fmt"
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

// doubled sends each update twice, and answers what the second one was answered. between, where set, comes between them.
type doubled struct {
	store.DynamoDB
	between func()
}

func (d doubled) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if _, err := d.DynamoDB.UpdateItem(ctx, in, o...); err != nil {
		return nil, err
	}
	if d.between != nil {
		d.between()
	}
	return d.DynamoDB.UpdateItem(ctx, in, o...)
}

// sendTimeFaults fails each call before and after its effect, where send times begin anew and where they are added to.
// Success means that the row bears this span; a failure passes, and at most one span is lost.
func sendTimeFaults(t *testing.T, b *bench) {
	for _, f := range faultKinds {
		for n := range 2 {
			for _, after := range []bool{false, true} {
				if after && f.retry {
					continue // what asks for another try was not served
				}
				for _, found := range []bool{false, true} {
					b.takeFailing(t, f, n, after, found)
				}
			}
		}
	}
	name, _ := b.sendRate()
	var c *schedule.Conflict
	b.tap.before = func(int, string) error { return answered(400, &types.ResourceNotFoundException{Message: new(string)}) }
	if _, err := takeSecond(t.Context(), b.Store, name, "w"); !failure.Is(err, failure.InternalError) || errors.As(err, &c) {
		t.Errorf("a request that DynamoDB does not understand: %v, want internal_error", err)
	}
	b.tap.reset()
}

// takeFailing takes a second while call n meets a fault; found: of a row that is of use.
func (b *bench) takeFailing(t *testing.T, f fault, n int, after, found bool) {
	name, k := b.sendRate()
	start := wall
	if found {
		start = wall.Add(3 * time.Second)
		b.holdsTaken(t, k, micros(start), "earlier")
	}
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
	what := fmt.Sprintf("call %d, %s, after: %v, found: %v", n, f.name, after, found)
	it := b.row(t, k)
	landed := text(it, schema.Owner) == "w"
	switch {
	case err == nil:
		if !got.from.Equal(start) {
			t.Errorf("%s: from %s, want from %s", what, got.from, start)
		}
		b.taken(t, k, start.Add(time.Second), "w")
	case landed:
		t.Errorf("%s: it took effect and the row carries our token, yet: %v", what, err)
	default:
		if failuretest.Want(t, err, f.code); !failure.From(err).Passing() {
			t.Errorf("%s: %v does not pass", what, err)
		}
		if found {
			b.taken(t, k, start, "earlier")
		} else if len(it) != 0 {
			t.Errorf("%s: the row is %s", what, show(it))
		}
	}
	if n == 1 && (f.retry || after) && err != nil {
		t.Errorf("%s: what it took was not found out: %v", what, err)
	}
}

// sentTwice sends each update again, as the SDK does where a reply is lost. The second is refused because of the first,
// and is the first. Where a rival came between the two it is a span of its own: the first is lost, and nobody's.
func sentTwice(t *testing.T, b *bench) {
	name, k := b.sendRate()
	twice := *b.Store
	twice.DB = doubled{b.tap, nil}
	for i := range 3 {
		got, err := takeSecond(t.Context(), &twice, name, fmt.Sprint("w", i))
		if want := wall.Add(time.Duration(i) * time.Second); err != nil || !got.from.Equal(want) {
			t.Errorf("from %s, %v; want from %s", got.from, err, want)
		}
		b.taken(t, k, got.until, fmt.Sprint("w", i))
	}
	for _, found := range []bool{false, true} {
		name, k := b.sendRate()
		start := wall
		if found {
			start = wall.Add(3 * time.Second)
			b.holdsTaken(t, k, micros(start), "earlier")
		}
		var rival window
		var err error
		var once sync.Once
		twice.DB = doubled{b.tap, func() {
			once.Do(func() { rival, err = takeSecond(t.Context(), b.Store, name, "rival") })
		}}
		ours, ourErr := takeSecond(t.Context(), &twice, name, "w")
		if err != nil || ourErr != nil || !rival.from.Equal(start.Add(time.Second)) || !ours.from.Equal(rival.until) {
			t.Errorf("found: %v: the rival has %+v, %v; we have %+v, %v; want ours behind the rival's, and one second lost before it", found, rival, err, ours, ourErr)
		}
		b.taken(t, k, ours.until, "w")
	}
}
