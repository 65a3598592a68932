package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TakeSendTimes takes a span of send times by moving the instant up to which all are taken. Where the instant is of use it
// moves by an addition, which DynamoDB does to the row as it stands: a rival's in between refuses nothing, and the row
// that comes back tells where the span begins. Else it is set on the condition that it is as read. A refusal brings the row
// as it stood, which decides what the next try does.
//
// Every write is conditional on not being its own repetition, so that a request sent twice moves the instant once. Only
// where a rival moved it between the two does it move again: the span of the first is then nobody's, and lost. So it is
// where a reply was lost and a rival moved the row before it was read.
func (s *Store) TakeSendTimes(ctx context.Context, channel, by string, ask func() schedule.Wanted) (schedule.Taken, error) {
	key := schema.SendRateKey(channel, s.Stage)
	row, err := s.get(ctx, key)
	if err != nil {
		return schedule.Taken{}, err
	}
	for n := 0; ; n++ {
		want, until := ask(), takenUntil(row)
		start, anew := want.Begins(until)
		if start.After(want.Last) {
			return schedule.Taken{Start: start, Late: true}, nil
		}
		span := (want.Span + time.Microsecond - 1).Truncate(time.Microsecond)
		w := write{event: "take send times", key: key, row: &row, mine: func(it item) bool { return str(it, schema.Owner) == by }}
		if anew {
			w.setTaken(row, start.Add(span), by)
		} else {
			w.addTaken(want, span, by)
		}
		if err := s.send(ctx, w); err == nil {
			got := schedule.Taken{Start: takenUntil(row).Add(-span)}
			if anew && until.After(want.Limit) {
				got.Wrong = until
			}
			return got, nil
		} else if !schedule.IsConflict(err) {
			return schedule.Taken{}, err
		}
		if err := s.Pause(ctx, jitter(min(n, maxTries))); err != nil {
			return schedule.Taken{}, classify(err)
		}
	}
}

// setTaken lets send times begin anew, on the condition that the instant is as read.
func (w *write) setTaken(row item, until time.Time, by string) {
	var read any = ""
	if v, ok := row[schema.TakenUntil]; ok {
		read = v
	}
	w.condition = w.expr.equals(schema.TakenUntil, read)
	w.update = w.expr.update(update{set: map[string]any{schema.Owner: by, schema.TakenUntil: until.UnixMicro()}})
}

// addTaken moves the instant on from where it stands, as long as that is where the span may begin.
func (w *write) addTaken(want schedule.Wanted, span time.Duration, by string) {
	last := want.Last
	if want.Limit.Before(last) {
		last = want.Limit
	}
	w.condition = fmt.Sprintf("%s BETWEEN %s AND %s AND %s <> %s", w.expr.name(schema.TakenUntil), w.expr.value(want.Idle.UnixMicro()),
		w.expr.value(last.UnixMicro()), w.expr.name(schema.Owner), w.expr.value(by))
	w.update = w.expr.update(update{set: map[string]any{schema.Owner: by}, add: map[string]int{schema.TakenUntil: int(span.Microseconds())}})
}

// takenUntil reads the instant; one that is absent or cannot be read is the zero time.
func takenUntil(row item) time.Time {
	n, ok := row[schema.TakenUntil].(*types.AttributeValueMemberN)
	if !ok {
		return time.Time{}
	}
	us, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
