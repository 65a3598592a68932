package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// noticeWrite puts a notice. It carries no condition of its own: it only ever goes with the settle that it tells of, and
// a run settles once.
func noticeWrite(n schedule.Notice) (write, error) {
	body, err := json.Marshal(n.Notice)
	if err != nil {
		return write{}, fmt.Errorf("notice %s: %w", n.ID, err)
	}
	w := write{event: "put notice", key: schema.NoticeKey(n.ID)}
	w.put = keyItem(w.key)
	for k, v := range compact(map[string]any{schema.Body: string(body), schema.NextAt: n.NextAt, schema.Tries: n.Tries, schema.ExpiresAt: n.Expires.Unix()}) {
		w.put[k] = v
	}
	return w, nil
}

// wishWrite puts a person's wish to resend. Its key names the wish, which is put once, with the mark on its submission.
func wishWrite(sub schedule.Submission, wish string, next, expires time.Time) write {
	w := write{event: "put wish", key: schema.NoticeKey(schema.ResendID(sub.Run, sub.Channel, sub.RecipientHash, wish))}
	w.put = keyItem(w.key)
	for k, v := range compact(map[string]any{schema.ResendWish: wish, schema.NextAt: next, schema.Tries: 0, schema.ExpiresAt: expires.Unix()}) {
		w.put[k] = v
	}
	return w
}

// decodeNotice reads an item of the outbox. A resend's carries its wish, and nothing to tell.
func decodeNotice(it item) (schedule.Notice, error) {
	if len(it) == 0 {
		return schedule.Notice{}, schedule.ErrNotFound
	}
	id := strings.TrimPrefix(string(keyOf(it).SK), schema.OutPrefix)
	_, channelName, _, ok := schema.SplitNoticeID(id)
	resend := str(it, schema.ResendWish) != ""
	if resend {
		_, channelName, _, _, ok = schema.SplitResendID(id)
	}
	if !ok {
		return schedule.Notice{}, fmt.Errorf("notice %s: its key is none", keyOf(it))
	}
	var t times
	n := schedule.Notice{Channel: channelName, NextAt: t.read(it, schema.NextAt), Tries: num(it, schema.Tries), Expires: time.Unix(int64(num(it, schema.ExpiresAt)), 0).UTC()}
	if n.Resend = resend; resend {
		n.ID = id
		return n, t.err
	}
	if err := json.Unmarshal([]byte(str(it, schema.Body)), &n.Notice); err != nil {
		return n, fmt.Errorf("notice %s: %w", id, err)
	}
	return n, t.err
}

// BeforeNotice reads, in one consistent batch, all that must be looked at before a notice is sent.
func (s *Store) BeforeNotice(ctx context.Context, id string) (schedule.NoticeLook, error) {
	_, channelName, hash, ok := schema.SplitNoticeID(id)
	if !ok {
		return schedule.NoticeLook{}, schedule.ErrNotFound
	}
	key, control, suppression := schema.NoticeKey(id), schema.ControlKey(s.Stage), schema.SuppressionKey(channelName, hash)
	rows, err := s.batch(ctx, []schema.Key{key, control, suppression})
	if err != nil {
		return schedule.NoticeLook{}, err
	}
	n, err := decodeNotice(rows[key])
	if err == nil && n.Resend {
		err = schedule.ErrNotFound // a wish is no notice, whatever a message says
	}
	return schedule.NoticeLook{Notice: n, Control: decodeControl(rows[control]), Suppressed: suppresses(rows[suppression])}, err
}

// Outbox lists the notices and resends of one partition, a page, consistently. What cannot be read is no reason to hide the rest: it
// is left out, and TTL takes it.
func (s *Store) Outbox(ctx context.Context, shard int, from string, limit int) (ns []schedule.Notice, next string, err error) {
	p, err := s.list(ctx, below(schema.OutboxAt(shard), schema.OutPrefix, false), from, limit)
	if err != nil {
		return nil, "", err
	}
	for _, it := range p.items {
		if n, err := decodeNotice(it); err == nil {
			ns = append(ns, n)
		}
	}
	return ns, cursor(p.next), nil
}

// PostponeNotice moves the time from which on a notice is offered again, on the condition that it is as read: each
// move goes to a later time. A notice that has left the outbox does not come back.
func (s *Store) PostponeNotice(ctx context.Context, n schedule.Notice, next time.Time) error {
	w := write{event: "postpone notice", key: schema.NoticeKey(n.ID)}
	w.condition = w.expr.equals(schema.NextAt, schema.Time(n.NextAt))
	w.update = w.expr.update(update{set: map[string]any{schema.NextAt: schema.Time(next)}, add: map[string]int{schema.Tries: 1}})
	return s.send(ctx, w)
}

// RemoveNotice takes a notice out of the outbox. One that is not there is no error: sent again, the request changes
// nothing.
func (s *Store) RemoveNotice(ctx context.Context, id string) error {
	key := schema.NoticeKey(id)
	for n := 0; ; n++ {
		_, err := s.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.Table, Key: keyItem(key)})
		if err == nil {
			return nil
		}
		if again(err) && n < maxTries {
			if err := s.Pause(ctx, jitter(n)); err == nil {
				continue
			}
		}
		return classify(err)
	}
}
