package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/transition"
)

type scheduleStep = step[schedule.State, schedule.Event]

// Schedule reads a schedule's hot row consistently.
func (s *Store) Schedule(ctx context.Context, id string) (schedule.Schedule, error) {
	it, err := s.get(ctx, schema.ScheduleKey(id))
	if err != nil {
		return schedule.Schedule{}, err
	}
	return decodeSchedule(it)
}

// CreateSchedule records a schedule and its first version.
func (s *Store) CreateSchedule(ctx context.Context, v schedule.Version, sched schedule.Schedule, skips []schedule.Skip, ttl time.Time, a schedule.Audit) error {
	put := compact(map[string]any{
		schema.Workspace: sched.Workspace, schema.Name: sched.Name, schema.Version: v.Number, schema.Streak: 0, schema.CreatedAt: v.CreatedAt,
		schema.DirKind: schema.DirSchedules, schema.DirName: schema.DirScheduleName(sched.Workspace, sched.ID),
	})
	for k, val := range compact(due(sched.ID, sched.NextDue)) {
		put[k] = val
	}
	w, err := advance(scheduleStep{table: schedule.Schedules, from: transition.Absent, event: schedule.Create, key: schema.ScheduleKey(sched.ID), put: put})
	if err != nil {
		return err
	}
	def, err := s.definitionWrite(ctx, v)
	if err != nil {
		return err
	}
	return s.transact(ctx, withSkips([]write{w, def, auditWrite(a)}, skips, ttl)...)
}

// definitionWrite puts a version, after its recipients where they stand apart. It carries no condition of its own: it only
// ever goes with the write that moves the schedule to this version, and what a deleted schedule of the same id left behind
// may be overwritten.
func (s *Store) definitionWrite(ctx context.Context, v schedule.Version) (write, error) {
	var err error
	groups := v.GroupsOf()
	if v.List = (schedule.ListRef{}); v.Apart() {
		if v.List, err = s.freeze(ctx, v.Recipients, len(v.Recipients)); err != nil {
			return write{}, err
		}
		v.Recipients = nil
	}
	body, err := json.Marshal(v.Definition)
	if err != nil {
		return write{}, fmt.Errorf("definition %s: %w", v.ID, err)
	}
	key := schema.DefinitionKey(v.ID, v.Number)
	w := write{event: "save definition", key: key, put: keyItem(key)}
	for k, val := range compact(map[string]any{schema.Version: v.Number, schema.Hash: v.Hash, schema.Body: string(body), schema.CreatedBy: v.CreatedBy, schema.CreatedAt: v.CreatedAt,
		schema.RecipientsHash: v.List.Hash}) {
		w.put[k] = val
	}
	if len(groups) > 0 { // also where the recipients stand apart: who admits needs no more than these
		w.put[schema.Groups] = attr(groups)
	}
	if v.List.Hash != "" {
		w.put[schema.RecipientsCount] = attr(v.List.Count)
	}
	return w, nil
}

func withSkips(ws []write, skips []schedule.Skip, ttl time.Time) []write {
	for _, sk := range skips {
		ws = append(ws, skipWrite(sk, ttl))
	}
	return ws
}

// skipWrite puts a skip record if it is absent; one that stands is left as it is, and is no reason to refuse the
// transaction around it.
func skipWrite(sk schedule.Skip, ttl time.Time) write {
	w := write{event: "record skip", key: schema.SkipKey(sk.Schedule, sk.First, string(sk.Kind))}
	w.update = w.expr.update(update{first: map[string]any{schema.First: schema.Time(sk.First), schema.Last: schema.Time(sk.Last),
		schema.Count: sk.Count, schema.Reason: sk.Reason, schema.ExpiresAt: ttl.Unix()}})
	return w
}

// EditSchedule saves a new version. sched is the row as read, next where its next due moves to.
func (s *Store) EditSchedule(ctx context.Context, v schedule.Version, sched schedule.Schedule, next time.Time, skips []schedule.Skip, ttl time.Time, a schedule.Audit) error {
	set := map[string]any{schema.Version: v.Number, schema.Name: v.Name}
	if sched.State == schedule.Active {
		for k, val := range due(sched.ID, next) {
			set[k] = val
		}
	}
	w, err := s.scheduleWrite(sched, schedule.Edit, nil, update{set: set})
	if err != nil {
		return err
	}
	def, err := s.definitionWrite(ctx, v)
	if err != nil {
		return err
	}
	return s.transact(ctx, withSkips([]write{w, def, auditWrite(a)}, skips, ttl)...)
}

func (s *Store) scheduleWrite(sched schedule.Schedule, event schedule.Event, decided []transition.Guard, u update) (write, error) {
	w, err := advance(scheduleStep{table: schedule.Schedules, from: sched.State, event: event, key: schema.ScheduleKey(sched.ID),
		facts: facts{schedule: &sched, decided: decided}, with: u})
	if err != nil {
		return w, &schedule.Conflict{Event: string(event), Why: fmt.Sprintf("the schedule is %s", sched.State), Schedule: &sched}
	}
	return w, nil
}

// PassOver moves a schedule on past occurrences without a run: a skip record says which did not run and why, and is
// extended while the range goes on.
func (s *Store) PassOver(ctx context.Context, sched schedule.Schedule, p schedule.Passage, ttl time.Time) error {
	set := map[string]any{schema.LastNominal: schema.Time(p.Range.Last), schema.SkipFirst: schema.Time(p.Range.First), schema.SkipKind: string(p.Range.Kind)}
	for k, v := range due(sched.ID, p.Next) {
		set[k] = v
	}
	w, err := s.scheduleWrite(sched, schedule.PassOver, nil, update{set: set})
	if err != nil {
		return err
	}
	record := skipWrite(p.Range, ttl)
	if p.Extends {
		record = extendWrite(p.Range, ttl)
	}
	return s.transact(ctx, withSkips([]write{w, record}, p.Gaps, ttl)...)
}

// extendWrite makes a skip record longer. It carries no condition of its own: the schedule's, in the same transaction,
// lets nobody else extend the range meanwhile, and a record that has expired begins anew.
func extendWrite(sk schedule.Skip, ttl time.Time) write {
	w := write{event: "extend skip", key: schema.SkipKey(sk.Schedule, sk.First, string(sk.Kind))}
	w.update = w.expr.update(update{
		set:   map[string]any{schema.Last: schema.Time(sk.Last), schema.ExpiresAt: ttl.Unix()},
		first: map[string]any{schema.First: schema.Time(sk.First), schema.Reason: sk.Reason},
		add:   map[string]int{schema.Count: sk.Count},
	})
	return w
}

// pauseWrite takes a schedule out of the due index, together with what else is written on it.
func pauseWrite(sched schedule.Schedule, reason, by string, now time.Time, also map[string]any) (write, error) {
	set := map[string]any{schema.PauseReason: reason, schema.PausedBy: by, schema.PausedAt: schema.Time(now)}
	for k, v := range due(sched.ID, time.Time{}) {
		set[k] = v
	}
	for k, v := range also {
		set[k] = v
	}
	return advance(scheduleStep{table: schedule.Schedules, from: sched.State, event: schedule.Pause, key: schema.ScheduleKey(sched.ID),
		facts: facts{schedule: &sched, decided: []transition.Guard{schedule.PauseReason}}, with: update{set: set}})
}

// PauseSchedule pauses by a person's hand.
func (s *Store) PauseSchedule(ctx context.Context, sched schedule.Schedule, a schedule.Audit) error {
	w, err := pauseWrite(sched, a.Why, a.Who, a.At, nil)
	if err != nil {
		return &schedule.Conflict{Event: string(schedule.Pause), Why: fmt.Sprintf("the schedule is %s", sched.State), Schedule: &sched}
	}
	return s.transact(ctx, w, auditWrite(a))
}

// ResumeSchedule puts a paused schedule back into the due index, at a time in the future.
func (s *Store) ResumeSchedule(ctx context.Context, sched schedule.Schedule, next time.Time, skips []schedule.Skip, ttl time.Time, a schedule.Audit) error {
	set := map[string]any{schema.PauseReason: nil, schema.PausedBy: nil, schema.PausedAt: nil}
	for k, v := range due(sched.ID, next) {
		set[k] = v
	}
	w, err := s.scheduleWrite(sched, schedule.ResumeIt, nil, update{set: set})
	if err != nil {
		return err
	}
	return s.transact(ctx, withSkips([]write{w, auditWrite(a)}, skips, ttl)...)
}

// DeleteSchedule marks a schedule deleted; the item stays until its runs expire, and leaves the directory.
func (s *Store) DeleteSchedule(ctx context.Context, sched schedule.Schedule, expires time.Time, a schedule.Audit) error {
	set := map[string]any{schema.ExpiresAt: expires.Unix(), schema.DirKind: nil, schema.DirName: nil}
	for k, v := range due(sched.ID, time.Time{}) {
		set[k] = v
	}
	w, err := s.scheduleWrite(sched, schedule.Delete, nil, update{set: set})
	if err != nil {
		return err
	}
	return s.transact(ctx, w, auditWrite(a))
}
