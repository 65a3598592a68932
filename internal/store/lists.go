package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Due suggests schedules whose next due time has come, a page of one shard of the due index. next is the cursor of the
// following page; the base row decides.
func (s *Store) Due(ctx context.Context, shard int, until time.Time, from string, limit int) (ids []string, next string, err error) {
	keys, next, err := s.suggest(ctx, index(schema.IndexDue, schema.DueShard, schema.DueShardAt(shard), schema.NextDueAt, schema.Time(until)), from, limit)
	for _, k := range keys {
		ids = append(ids, strings.TrimPrefix(string(k.PK), "SCHED#"))
	}
	return ids, next, err
}

// Open suggests runs that the sweep should look at, those begun or those queued, a page of one shard of the open-run index.
func (s *Store) Open(ctx context.Context, begun bool, shard int, until time.Time, from string, limit int) (runs []string, next string, err error) {
	keys, next, err := s.suggest(ctx, index(schema.IndexOpen, schema.OpenShard, schema.OpenShardAt(shard, begun), schema.WakeAt, schema.Time(until)), from, limit)
	for _, k := range keys {
		runs = append(runs, schema.RunID(strings.TrimPrefix(string(k.PK), "SCHED#"), strings.TrimPrefix(string(k.SK), schema.RunPrefix)))
	}
	return runs, next, err
}

func (s *Store) suggest(ctx context.Context, sp span, from string, limit int) ([]schema.Key, string, error) {
	p, err := s.list(ctx, sp, from, limit)
	if err != nil {
		return nil, "", err
	}
	keys := make([]schema.Key, len(p.items))
	for i, it := range p.items {
		keys[i] = keyOf(it)
	}
	return keys, cursor(p.next), nil
}

// list reads one page from a cursor on.
func (s *Store) list(ctx context.Context, sp span, from string, limit int) (page, error) {
	start, err := sp.parse(from)
	if err != nil {
		return page{}, err
	}
	return s.query(ctx, sp, start, limit)
}

// decoded reads one page from a cursor on, each row by its own reader.
func decoded[T any](ctx context.Context, s *Store, sp span, from string, limit int, decode func(item) (T, error)) ([]T, string, error) {
	p, err := s.list(ctx, sp, from, limit)
	if err != nil {
		return nil, "", err
	}
	rows := make([]T, len(p.items))
	for i, it := range p.items {
		if rows[i], err = decode(it); err != nil {
			return nil, "", err
		}
	}
	return rows, cursor(p.next), nil
}

// cursor spells the key at which a page ended; every key attribute of the product is text.
func cursor(next item) string {
	if len(next) == 0 {
		return ""
	}
	m := map[string]string{}
	for k := range next {
		m[k] = str(next, k)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic("store: a cursor that JSON cannot hold: " + err.Error()) // cannot happen: text only
	}
	return string(b)
}

// parse reads a cursor that this very span handed out. Callers hold cursors, so they are input: one of another list, or
// of nobody, is a wrong field, where DynamoDB would answer as if the request were our mistake. A sort key has at most
// 1,024 bytes (AWS: "Constraints in Amazon DynamoDB"); no key of ours is longer.
func (sp span) parse(text string) (item, error) {
	if text == "" {
		return nil, nil
	}
	wrong := schedule.Problems{{Field: "cursor", Value: fmt.Sprintf("%.40q", text), Want: "the `next` of an earlier page of this list"}}
	var m map[string]string
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, wrong
	}
	it := item{}
	for _, k := range []string{schema.PK, schema.SK, sp.partition, sp.sort} {
		if m[k] == "" || len(m[k]) > 1024 {
			return nil, wrong
		}
		it[k] = attr(m[k])
	}
	if len(m) != len(it) || m[sp.partition] != sp.of || !sp.holds(m[sp.sort]) {
		return nil, wrong
	}
	return it, nil
}

// directory lists one kind of the directory, by name, below a prefix.
func (s *Store) directory(ctx context.Context, kind, prefix, from string, limit int) ([]schema.Key, string, error) {
	sp := beginning(schema.DirKind, kind, schema.DirName, prefix)
	sp.in.IndexName = aws.String(schema.IndexDirectory)
	return s.suggest(ctx, sp, from, limit)
}

// Schedules lists the schedules of a workspace, or all of them, by workspace and id. Deleted ones are not listed.
func (s *Store) Schedules(ctx context.Context, workspace, from string, limit int) ([]schedule.Schedule, string, error) {
	prefix := ""
	if workspace != "" {
		prefix = schema.DirScheduleName(workspace, "")
	}
	keys, next, err := s.directory(ctx, schema.DirSchedules, prefix, from, limit)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.batch(ctx, keys)
	if err != nil {
		return nil, "", err
	}
	var list []schedule.Schedule
	for _, k := range keys {
		if len(rows[k]) == 0 {
			continue
		}
		sched, err := decodeSchedule(rows[k])
		if err != nil {
			return nil, "", err
		}
		if sched.State != schedule.Deleted {
			list = append(list, sched)
		}
	}
	return list, next, nil
}

// Runs lists the runs of a schedule, manual runs first, then due occurrences, the latest first.
func (s *Store) Runs(ctx context.Context, sched, from string, limit int) ([]schedule.Run, string, error) {
	p, err := s.list(ctx, below(schema.ScheduleKey(sched).PK, schema.RunPrefix, true), from, limit)
	if err != nil {
		return nil, "", err
	}
	runs := make([]schedule.Run, len(p.items))
	for i, it := range p.items {
		if runs[i], err = decodeRun(it); err != nil {
			return nil, "", err
		}
	}
	return runs, cursor(p.next), nil
}

// Skips lists the skip records of a schedule, the latest first.
func (s *Store) Skips(ctx context.Context, sched, from string, limit int) ([]schedule.Skip, string, error) {
	p, err := s.list(ctx, below(schema.ScheduleKey(sched).PK, schema.SkipPrefix, true), from, limit)
	if err != nil {
		return nil, "", err
	}
	var t times
	skips := make([]schedule.Skip, len(p.items))
	for i, it := range p.items {
		skips[i] = schedule.Skip{Schedule: sched, Kind: skipKind(keyOf(it).SK), First: t.read(it, schema.First), Last: t.read(it, schema.Last), Count: num(it, schema.Count), Reason: str(it, schema.Reason)}
	}
	return skips, cursor(p.next), t.err
}

// skipKind reads the kind of a skip record out of its key.
func skipKind(sk schema.Sort) schedule.SkipKind {
	return schedule.SkipKind(string(sk)[strings.LastIndexByte(string(sk), '#')+1:])
}
