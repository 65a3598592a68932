package storetest

import (
	"context"
	"encoding/json"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/store"
)

// scheduleRow is a valid schedule in a state, at its second version, with an open run and three failures behind it.
func scheduleRow(p place, state string) row {
	r := row{schema.Workspace: "EWR", schema.Name: "Delays", schema.State: state, schema.Version: 2, schema.Streak: 3, schema.CreatedAt: wall.Add(-time.Hour),
		schema.DirKind: schema.DirSchedules, schema.DirName: schema.DirScheduleName("EWR", p.schedule), schema.NextDueAt: nextDue,
		schema.DueShard: schema.DueShardOf(p.schedule), schema.LastNominal: nominal.Add(-24 * time.Hour), schema.OpenRun: p.occurrence,
		schema.LastRun: "2013-06-02T12:00:00Z", schema.LastRunNominal: nominal.Add(-24 * time.Hour), schema.LastRunState: "failed", schema.LastRunCode: "query_failed"}
	switch state {
	case "paused":
		r = r.with(row{schema.NextDueAt: nil, schema.DueShard: nil, schema.PauseReason: "by hand", schema.PausedBy: "ann@example.com", schema.PausedAt: wall.Add(-time.Minute)})
	case "deleted":
		r = r.with(row{schema.NextDueAt: nil, schema.DueShard: nil, schema.DirKind: nil, schema.DirName: nil, schema.ExpiresAt: expires.Unix()})
	}
	return r
}

func versionOf(p place, n int) schedule.Version {
	return schedule.Version{Number: n, Hash: "d00d", CreatedBy: "ann@example.com", CreatedAt: wall, Definition: schedule.Definition{
		ID: p.schedule, Workspace: "EWR", Name: "Late departures", Owner: "ann@example.com", Source: "flights", Query: "select 1",
		Recurrence: calendar.Spec{Cron: "0 8 * * 1-5", Zone: "America/New_York"}, Recipients: []schedule.Recipient{{Email: someone}}}}
}

func definitionRow(p place, n int) change { return versionRow(p, versionOf(p, n)) }

func versionRow(p place, v schedule.Version) change {
	n := v.Number
	body, err := json.Marshal(v.Definition)
	if err != nil {
		panic(err) // a literal of this package
	}
	return change{key: schema.DefinitionKey(p.schedule, n),
		set: row{schema.Version: n, schema.Hash: v.Hash, schema.Body: string(body), schema.CreatedBy: v.CreatedBy, schema.CreatedAt: v.CreatedAt}}
}

// schedules is table C.
func schedules(*bench) subject {
	s := subjectOf(schedule.Schedules)
	s.key = place.scheduleKey
	s.given = func(p place, state string) world { return world{}.add(p.scheduleKey(), scheduleRow(p, state)) }
	s.blank = func(p place) seen {
		return seen{sched: schedule.Schedule{ID: p.schedule, Workspace: "EWR", Name: "Late departures", NextDue: nextDue}}
	}
	s.look = func(ctx context.Context, st *store.Store, p place) (seen, error) {
		sched, err := st.Schedule(ctx, p.schedule)
		return seen{sched: sched}, err
	}
	s.ways = append(createWays(), changeWays()...)
	return s
}

func inState(state string, changes row) func(place) world {
	return func(p place) world { return world{}.add(p.scheduleKey(), scheduleRow(p, state).with(changes)) }
}

func createWays() []way {
	create := func(skips bool, next time.Time) func(context.Context, *store.Store, place, seen) error {
		return func(ctx context.Context, s *store.Store, p place, r seen) error {
			r.sched.NextDue = next
			var sk []schedule.Skip
			if skips {
				sk = []schedule.Skip{skipOf(p)}
			}
			return s.CreateSchedule(ctx, versionOf(p, 1), r.sched, sk, expires, onSchedule(p, "create"))
		}
	}
	whole := func(p place) row {
		return row{schema.State: "active", schema.Workspace: "EWR", schema.Name: "Late departures", schema.Version: 1, schema.Streak: 0, schema.CreatedAt: wall,
			schema.DirKind: schema.DirSchedules, schema.DirName: "EWR/" + p.schedule}
	}
	return []way{
		{event: "create", token: true, do: create(true, nextDue), want: func(p place) []change {
			return []change{definitionRow(p, 1), skipRow(p), auditRow(onSchedule(p, "create")),
				{key: p.scheduleKey(), set: whole(p).lay(row{schema.NextDueAt: nextDue, schema.DueShard: schema.DueShardOf(p.schedule)})}}
		}},
		{event: "create", name: "never due", token: true, do: create(false, time.Time{}), want: func(p place) []change {
			return []change{definitionRow(p, 1), auditRow(onSchedule(p, "create")), {key: p.scheduleKey(), set: whole(p)}}
		}},
	}
}

func changeWays() []way {
	type doing = func(context.Context, *store.Store, place, seen) error
	edit := func(next time.Time) doing {
		return func(ctx context.Context, s *store.Store, p place, r seen) error {
			return s.EditSchedule(ctx, versionOf(p, 3), r.sched, next, []schedule.Skip{skipOf(p)}, expires, onSchedule(p, "edit"))
		}
	}
	edited := func(set row) func(place) []change {
		return func(p place) []change {
			return []change{definitionRow(p, 3), skipRow(p), auditRow(onSchedule(p, "edit")), {key: p.scheduleKey(), set: set.lay(row{schema.Version: 3, schema.Name: "Late departures"})}}
		}
	}
	on := func(what string, set row) func(place) []change {
		return func(p place) []change {
			return []change{auditRow(onSchedule(p, what)), {key: p.scheduleKey(), set: set}}
		}
	}
	remove := func(ctx context.Context, s *store.Store, p place, r seen) error {
		return s.DeleteSchedule(ctx, r.sched, expires, onSchedule(p, "delete"))
	}
	removed := on("delete", row{schema.State: "deleted", schema.NextDueAt: nil, schema.DueShard: nil, schema.DirKind: nil, schema.DirName: nil, schema.ExpiresAt: expires.Unix()})
	passOver := func(ctx context.Context, s *store.Store, p place, r seen) error {
		return s.PassOver(ctx, r.sched, schedule.Passage{Range: missedOf(p), Gaps: []schedule.Skip{skipOf(p)}, Next: nextDue.Add(24 * time.Hour)}, expires)
	}
	extend := func(ctx context.Context, s *store.Store, p place, r seen) error {
		return s.PassOver(ctx, r.sched, schedule.Passage{Range: missedOf(p), Extends: true, Next: nextDue.Add(24 * time.Hour)}, expires)
	}
	moved := func(p place) change {
		m := missedOf(p)
		return change{key: p.scheduleKey(), set: row{schema.LastNominal: m.Last, schema.NextDueAt: nextDue.Add(24 * time.Hour), schema.SkipFirst: m.First, schema.SkipKind: string(m.Kind)}}
	}
	passed := func(p place) []change { return []change{skipRow(p), missedRow(p), moved(p)} }
	return []way{
		{from: "active", event: "edit", given: inState("active", nil), token: true, do: edit(nextDue.Add(time.Hour)), want: edited(row{schema.NextDueAt: nextDue.Add(time.Hour)})},
		{from: "active", event: "edit", name: "due no more", given: inState("active", nil), token: true, do: edit(time.Time{}), want: edited(row{schema.NextDueAt: nil, schema.DueShard: nil})},
		{from: "paused", event: "edit", given: inState("paused", nil), token: true, do: edit(nextDue.Add(time.Hour)), want: edited(nil)},
		{from: "active", event: "pass over", given: inState("active", nil), do: passOver, want: passed},
		{from: "active", event: "pass over", name: "its range is recorded already", do: passOver,
			given: func(p place) world {
				k := schema.SkipKey(p.schedule, skipOf(p).First, "gap")
				return inState("active", nil)(p).add(k, row{schema.First: skipOf(p).First, schema.Last: skipOf(p).Last, schema.Count: 1, schema.Reason: "paused", schema.ExpiresAt: 7})
			},
			want: func(p place) []change { return passed(p)[1:] }},
		{from: "active", event: "pass over", name: "never due again", given: inState("active", nil),
			do: func(ctx context.Context, s *store.Store, p place, r seen) error {
				return s.PassOver(ctx, r.sched, schedule.Passage{Range: missedOf(p)}, expires)
			},
			want: func(p place) []change {
				return []change{missedRow(p), {key: p.scheduleKey(), set: moved(p).set.lay(row{schema.NextDueAt: nil, schema.DueShard: nil})}}
			}},
		{from: "active", event: "pass over", name: "the range goes on", do: extend,
			given: func(p place) world {
				m := missedOf(p)
				return inState("active", row{schema.SkipFirst: m.First, schema.SkipKind: string(m.Kind)})(p).
					add(schema.SkipKey(p.schedule, m.First, string(m.Kind)), row{schema.First: m.First, schema.Last: m.First, schema.Count: 4, schema.Reason: "as before", schema.ExpiresAt: 7})
			},
			want: func(p place) []change {
				m := missedOf(p)
				return []change{{key: schema.SkipKey(p.schedule, m.First, string(m.Kind)), set: row{schema.Last: m.Last, schema.Count: 4 + m.Count, schema.ExpiresAt: expires.Unix()}},
					{key: p.scheduleKey(), set: row{schema.LastNominal: m.Last, schema.NextDueAt: nextDue.Add(24 * time.Hour)}}}
			}},
		{from: "active", event: "pass over", name: "the range's record has expired", given: inState("active", nil), do: extend,
			want: func(p place) []change { return []change{missedRow(p), moved(p)} }},
		{from: "active", event: "pause", token: true, given: inState("active", nil),
			do: func(ctx context.Context, s *store.Store, p place, r seen) error {
				return s.PauseSchedule(ctx, r.sched, onSchedule(p, "pause"))
			},
			want: on("pause", row{schema.State: "paused", schema.PauseReason: "holidays", schema.PausedBy: "ann@example.com", schema.PausedAt: actAt, schema.NextDueAt: nil, schema.DueShard: nil})},
		{from: "paused", event: "resume", token: true, given: inState("paused", nil),
			do: func(ctx context.Context, s *store.Store, p place, r seen) error {
				return s.ResumeSchedule(ctx, r.sched, nextDue.Add(time.Hour), []schedule.Skip{skipOf(p)}, expires, onSchedule(p, "resume"))
			},
			want: func(p place) []change {
				return []change{skipRow(p), auditRow(onSchedule(p, "resume")), {key: p.scheduleKey(), set: row{schema.State: "active", schema.PauseReason: nil, schema.PausedBy: nil, schema.PausedAt: nil,
					schema.NextDueAt: nextDue.Add(time.Hour), schema.DueShard: schema.DueShardOf(p.schedule)}}}
			}},
		{from: "active", event: "delete", token: true, given: inState("active", nil), do: remove, want: removed},
		{from: "paused", event: "delete", token: true, given: inState("paused", nil), do: remove, want: removed},
	}
}
