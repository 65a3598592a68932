package store

import (
	"context"
	"strconv"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// MoveSendTimes moves the instant up to which a channel's send times are taken, on the condition that it is as read. A
// rival's move is read again after a pause, as often as ctx allows. Where the reply was lost and the row has moved on, the
// send times are nobody's, and lost. Instants are kept in microseconds, rounded up.
func (s *Store) MoveSendTimes(ctx context.Context, channel, by string, move func(taken time.Time) (until time.Time, ok bool)) error {
	key := schema.SendRateKey(channel, s.Stage)
	for n := 0; ; n++ {
		row, err := s.get(ctx, key)
		if err != nil {
			return err
		}
		until, ok := move(takenUntil(row))
		if !ok {
			return nil
		}
		w := write{event: "take send times", key: key, mine: func(it item) bool { return str(it, schema.Owner) == by }}
		var read any = ""
		if v, ok := row[schema.TakenUntil]; ok {
			read = v
		}
		w.condition = w.expr.equals(schema.TakenUntil, read)
		w.update = w.expr.update(update{set: map[string]any{schema.Owner: by, schema.TakenUntil: until.Add(time.Microsecond - 1).UnixMicro()}})
		if err = s.send(ctx, w); !schedule.IsConflict(err) {
			return err
		}
		if err := s.Pause(ctx, jitter(min(n, maxTries))); err != nil {
			return classify(err)
		}
	}
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
