package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// put writes a row that may be written twice: the latest wins.
func (s *Store) put(ctx context.Context, event string, k schema.Key, attrs map[string]any) error {
	w := write{event: event, key: k, put: keyItem(k)}
	for name, v := range compact(attrs) {
		w.put[name] = v
	}
	return s.send(ctx, w)
}

// putOnce writes a row if it is absent; one that stands is left as it is.
func (s *Store) putOnce(ctx context.Context, event string, k schema.Key, attrs map[string]any) error {
	w := write{event: event, key: k, put: keyItem(k), mine: func(item) bool { return true }}
	for name, v := range compact(attrs) {
		w.put[name] = v
	}
	w.condition = "attribute_not_exists(" + w.expr.name(schema.PK) + ")"
	return s.send(ctx, w)
}

func (s *Store) document(ctx context.Context, k schema.Key, into any) error {
	it, err := s.get(ctx, k)
	if err != nil {
		return err
	}
	if len(it) == 0 {
		return schedule.ErrNotFound
	}
	if err := json.Unmarshal([]byte(str(it, schema.Body)), into); err != nil {
		return fmt.Errorf("%s: %w", k, err)
	}
	return nil
}

func (s *Store) putDocument(ctx context.Context, event string, k schema.Key, dirKind, dirName string, doc any, a schedule.Audit) error {
	body, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", k, err)
	}
	w := write{event: event, key: k, put: keyItem(k)}
	for name, v := range compact(map[string]any{schema.Body: string(body), schema.DirKind: dirKind, schema.DirName: dirName, schema.CreatedBy: a.Who, schema.UpdatedAt: a.At}) {
		w.put[name] = v
	}
	return s.transact(ctx, w, auditWrite(a))
}

// PutWorkspace and PutSource save configuration; the latest wins.
func (s *Store) PutWorkspace(ctx context.Context, w schedule.Workspace, a schedule.Audit) error {
	return s.putDocument(ctx, "save workspace", schema.WorkspaceKey(w.ID), schema.DirWorkspaces, w.ID, w, a)
}

func (s *Store) PutSource(ctx context.Context, c schedule.SourceConfig, a schedule.Audit) error {
	return s.putDocument(ctx, "save source", schema.SourceKey(c.Name), schema.DirSources, c.Name, c, a)
}

// Workspace and Source read configuration.
func (s *Store) Workspace(ctx context.Context, id string) (w schedule.Workspace, err error) {
	err = s.document(ctx, schema.WorkspaceKey(id), &w)
	return w, err
}

func (s *Store) Source(ctx context.Context, name string) (c schedule.SourceConfig, err error) {
	err = s.document(ctx, schema.SourceKey(name), &c)
	return c, err
}

// Workspaces and Sources list all of them by name.
func (s *Store) Workspaces(ctx context.Context) ([]schedule.Workspace, error) {
	return documents[schedule.Workspace](ctx, s, schema.DirWorkspaces)
}

func (s *Store) Sources(ctx context.Context) ([]schedule.SourceConfig, error) {
	return documents[schedule.SourceConfig](ctx, s, schema.DirSources)
}

func documents[T any](ctx context.Context, s *Store, kind string) ([]T, error) {
	var all []T
	from := ""
	for {
		keys, next, err := s.directory(ctx, kind, "", from, 100)
		if err != nil {
			return nil, err
		}
		rows, err := s.batch(ctx, keys)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if len(rows[k]) == 0 {
				continue // the index is behind
			}
			var doc T
			if err := json.Unmarshal([]byte(str(rows[k], schema.Body)), &doc); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			all = append(all, doc)
		}
		if from = next; from == "" {
			return all, nil
		}
	}
}

func decodeControl(it item) schedule.Control {
	return schedule.Control{DispatchOff: flag(it, schema.DispatchOff), SendOff: flag(it, schema.SendOff)}
}

// Control reads the stage's switches; a stage without an item has both on.
func (s *Store) Control(ctx context.Context) (schedule.Control, error) {
	it, err := s.get(ctx, schema.ControlKey(s.Stage))
	return decodeControl(it), err
}

// Clock is business time as the local profile reads it: Base is the business time at the wall time Wall; it flows on
// from there unless Frozen. The zero Clock is wall time.
func (s *Store) Clock(ctx context.Context) (schedule.ClockSetting, error) {
	it, err := s.get(ctx, schema.ClockKey(s.Stage))
	if err != nil {
		return schedule.ClockSetting{}, err
	}
	var t times
	c := schedule.ClockSetting{Base: t.read(it, schema.ClockBase), Wall: t.read(it, schema.ClockWall), Frozen: flag(it, schema.ClockFrozen)}
	return c, t.err
}

// SetClock sets business time.
func (s *Store) SetClock(ctx context.Context, c schedule.ClockSetting) error {
	return s.put(ctx, "set clock", schema.ClockKey(s.Stage), map[string]any{schema.ClockBase: c.Base, schema.ClockWall: c.Wall, schema.ClockFrozen: c.Frozen})
}

// Unsubscribe records that a recipient wants no more of a schedule.
func (s *Store) Unsubscribe(ctx context.Context, channel, recipientHash, sched string, at time.Time) error {
	return s.putOnce(ctx, "unsubscribe", schema.UnsubscriptionKey(channel, recipientHash, sched), map[string]any{schema.CreatedAt: at})
}

// Unsubscribed reports whether a recipient said no to a schedule.
func (s *Store) Unsubscribed(ctx context.Context, channel, recipientHash, sched string) (bool, error) {
	it, err := s.get(ctx, schema.UnsubscriptionKey(channel, recipientHash, sched))
	return len(it) > 0, err
}

// RecordAccess notes one use of a link.
func (s *Store) RecordAccess(ctx context.Context, sub schedule.Submission, at time.Time, id, what string, expires time.Time) error {
	return s.put(ctx, "record access", schema.AccessKey(sub.Run, sub.Channel, sub.RecipientHash, at, id), map[string]any{schema.What: what, schema.ExpiresAt: expires.Unix()})
}

// auditWrite notes who did what and why, in the transaction of the act itself: neither is there without the other. Its
// key is the act's own, so that an act whose reply was lost is recognised when it is sent again.
func auditWrite(a schedule.Audit) write {
	key := schema.AuditKey(a.Subject, a.At, a.ID)
	w := write{event: "audit", key: key, put: keyItem(key), mine: func(item) bool { return true }}
	for name, v := range compact(map[string]any{schema.Who: a.Who, schema.What: a.What, schema.Why: a.Why, schema.Before: a.Before, schema.After: a.After}) {
		w.put[name] = v
	}
	w.condition = "attribute_not_exists(" + w.expr.name(schema.PK) + ")"
	return w
}

// Audits lists what people did to a subject, the latest first.
func (s *Store) Audits(ctx context.Context, subject, from string, limit int) ([]schedule.Audit, string, error) {
	p, err := s.list(ctx, below(schema.AuditKey(subject, time.Time{}, "").PK, "", true), from, limit)
	if err != nil {
		return nil, "", err
	}
	var list []schedule.Audit
	for _, it := range p.items {
		at, id, _ := strings.Cut(string(keyOf(it).SK), "#")
		when, err := schema.ParseTime(at)
		if err != nil {
			return nil, "", err
		}
		list = append(list, schedule.Audit{ID: id, Subject: subject, At: when, Who: str(it, schema.Who), What: str(it, schema.What), Why: str(it, schema.Why),
			Before: str(it, schema.Before), After: str(it, schema.After)})
	}
	return list, cursor(p.next), nil
}

// RecordDead keeps a message that nobody can read, for a person.
func (s *Store) RecordDead(ctx context.Context, d schedule.DeadLetter, expires time.Time) error {
	return s.putOnce(ctx, "record dead letter", schema.DeadLetterKey(d.MessageID),
		map[string]any{schema.Message: d.Body, schema.Queue: d.Queue, schema.Reason: d.Reason, schema.CreatedAt: d.At, schema.ExpiresAt: expires.Unix()})
}

// DeadLetters lists what could not be read, the latest last.
func (s *Store) DeadLetters(ctx context.Context) ([]schedule.DeadLetter, error) {
	var all []schedule.DeadLetter
	var from item
	for {
		p, err := s.query(ctx, below(schema.DeadLetterKey("").PK, schema.DeadPrefix, false), from, 0)
		if err != nil {
			return nil, err
		}
		for _, it := range p.items {
			d, err := decodeDead(it)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		if from = p.next; len(from) == 0 {
			return all, nil
		}
	}
}
