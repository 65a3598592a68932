package storetest

import (
	"context"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/source"
	"almanac/internal/store"
)

// The lease of the worker that holds, and of the one that comes next.
var (
	held = schedule.Lease{Token: "worker-1", Now: wall, End: wall.Add(5 * time.Minute), Wake: wall.Add(6 * time.Minute)}
	next = schedule.Lease{Token: "worker-2", Now: wall, End: wall.Add(15 * time.Minute), Wake: wall.Add(16 * time.Minute)}
)

const stamp = "2026-11-30T08:00:00.000Z " // how a line of the timeline begins at wall

// runRow is a valid run in a state.
func runRow(p place, state string) row {
	r := row{
		schema.Nominal: nominal, schema.DefVersion: 1, schema.Workspace: "EWR",
		schema.State: state, schema.Attempts: 0, schema.AttemptsLeft: 5, schema.Yields: 0, schema.Offers: 1, schema.DeadLetters: 1,
		schema.WakeAt: wall.Add(-time.Minute), schema.OpenShard: schema.OpenShardOf(p.run(), state != "queued"), schema.CreatedAt: wall.Add(-time.Hour),
		schema.AdmittedBy: "dispatcher-1", schema.ExpiresAt: expires.Unix(), schema.Timeline: []string{"2026-11-30T07:00:00.000Z admitted"},
	}
	switch schedule.RunState(state) {
	case schedule.Queued:
	case schedule.Running:
		r = r.with(row{schema.Attempts: 1, schema.AttemptsLeft: 4, schema.LeaseOwner: held.Token, schema.LeaseEnd: held.End})
	default:
		r = r.with(row{schema.Attempts: 1, schema.AttemptsLeft: 4, schema.WakeAt: nil, schema.OpenShard: nil, schema.SettledAt: wall.Add(-time.Minute),
			schema.SettledBy: "worker-0", schema.Submitted: 0, schema.Skipped: 0})
	}
	return r
}

// settled is what every settle does to the run.
func settled(by string, changes row) row {
	return row{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: nil, schema.OpenShard: nil, schema.SettledAt: wall, schema.SettledBy: by}.lay(changes)
}

// lay lays one set of changes over another, removals kept.
func (r row) lay(changes row) row {
	out := row{}
	for k, v := range r {
		out[k] = v
	}
	for k, v := range changes {
		out[k] = v
	}
	return out
}

// lastRun is what a settle writes on a schedule that this run is the latest of.
func lastRun(p place, state schedule.RunState, changes row) row {
	return row{schema.LastRun: p.occurrence, schema.LastRunNominal: nominal, schema.LastRunState: string(state), schema.OpenRun: nil}.lay(changes)
}

// admitted is the whole row of a fresh run.
func admitted(p place, changes row) row {
	return row{
		schema.Nominal: nominal, schema.DefVersion: 2, schema.Workspace: "EWR",
		schema.State: "queued", schema.Attempts: 0, schema.AttemptsLeft: 5, schema.Yields: 0, schema.Offers: 0, schema.DeadLetters: 0,
		schema.WakeAt: wall.Add(5 * time.Minute), schema.OpenShard: schema.OpenShardOf(p.run(), false), schema.CreatedAt: wall,
		schema.AdmittedBy: "dispatcher-2", schema.ExpiresAt: expires.Unix(), schema.Timeline: []string{stamp + "admitted"},
	}.lay(changes)
}

func admission0(p place) schedule.Admission {
	return schedule.Admission{Token: "dispatcher-2", TTL: expires, Run: schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence, Nominal: nominal,
		Version: 2, Workspace: "EWR", AttemptsLeft: 5, WakeAt: wall.Add(5 * time.Minute), CreatedAt: wall}}
}

// dueAdmission admits a due occurrence of the schedule as scheduleRow has it.
func dueAdmission(p place) schedule.Admission {
	a := admission0(p)
	a.Schedule = &schedule.Schedule{ID: p.schedule, State: schedule.Active, Version: 2, NextDue: nextDue, OpenRun: p.occurrence}
	a.NextDue = nextDue.Add(24 * time.Hour)
	a.Skips = []schedule.Skip{skipOf(p)}
	return a
}

func skipOf(p place) schedule.Skip {
	return schedule.Skip{Schedule: p.schedule, Kind: schedule.SkipGap, First: nextDue, Last: nextDue, Count: 1, Reason: "no such local time"}
}

// missedOf begins where skipOf does: two kinds at one instant are two records.
func missedOf(p place) schedule.Skip {
	return schedule.Skip{Schedule: p.schedule, Kind: schedule.SkipMissed, First: nextDue, Last: passedLast, Count: 3, Reason: "seen too late"}
}

// passedLast is the latest occurrence that a pass-over leaves behind.
var passedLast = nextDue.Add(2 * time.Hour)

func skipRow(p place) change   { return recorded(skipOf(p), "gap") }
func missedRow(p place) change { return recorded(missedOf(p), "missed") }

func recorded(s schedule.Skip, kind string) change {
	return change{key: schema.SkipKey(s.Schedule, s.First, kind), set: row{schema.First: s.First, schema.Last: s.Last, schema.Count: s.Count, schema.Reason: s.Reason, schema.ExpiresAt: expires.Unix()}}
}

// runs is table A.
func runs(b *bench) subject {
	s := subjectOf(schedule.Runs)
	s.key = place.runKey
	s.given = func(p place, state string) world { return world{}.add(p.runKey(), runRow(p, state)) }
	s.blank = func(p place) seen { return seen{run: schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence}} }
	s.look = func(ctx context.Context, st *store.Store, p place) (seen, error) {
		r, err := st.Run(ctx, p.run())
		return seen{run: r}, err
	}
	s.ways = append(append(admitWays(), workWays()...), settleWays()...)
	return s
}

func withSchedule(state string, changes row) func(place) world {
	return func(p place) world {
		return world{}.add(p.runKey(), runRow(p, state).with(changes)).add(p.scheduleKey(), scheduleRow(p, "active"))
	}
}

func onRun(set row, line string) func(place) []change {
	return func(p place) []change { return []change{{p.runKey(), set, stamp + line}} }
}

func admitWays() []way {
	due := func(name string, adjust func(*schedule.Admission), want func(place) []change) way {
		return way{event: "admit", name: name, token: true,
			given: func(p place) world { return world{}.add(p.scheduleKey(), scheduleRow(p, "active")) },
			do: func(ctx context.Context, s *store.Store, p place, _ seen) error {
				a := dueAdmission(p)
				adjust(&a)
				return s.Admit(ctx, a)
			},
			want: want,
			also: []breakage{
				{schedule.ScheduleAsRead, place.scheduleKey, row{schema.State: "paused"}},
				{schedule.ScheduleAsRead, place.scheduleKey, row{schema.State: "deleted"}},
				{schedule.ScheduleAsRead, place.scheduleKey, row{schema.Version: 3}},
				{schedule.ScheduleAsRead, place.scheduleKey, row{schema.NextDueAt: nextDue.Add(time.Hour)}},
				{schedule.ScheduleAsRead, place.scheduleKey, row{schema.NextDueAt: nil, schema.DueShard: nil}},
			}}
	}
	return []way{
		due("due", func(*schedule.Admission) {}, func(p place) []change {
			return []change{{key: p.runKey(), set: admitted(p, nil)}, skipRow(p),
				{key: p.scheduleKey(), set: row{schema.NextDueAt: nextDue.Add(24 * time.Hour), schema.LastNominal: nominal, schema.OpenRun: p.occurrence}}}
		}),
		due("due for the last time", func(a *schedule.Admission) { a.NextDue, a.Skips = time.Time{}, nil }, func(p place) []change {
			return []change{{key: p.runKey(), set: admitted(p, nil)},
				{key: p.scheduleKey(), set: row{schema.NextDueAt: nil, schema.DueShard: nil, schema.LastNominal: nominal, schema.OpenRun: p.occurrence}}}
		}),
		{event: "admit", name: "manual", token: true,
			given: func(p place) world { return world{}.add(p.scheduleKey(), scheduleRow(p, "paused")) },
			do: func(ctx context.Context, s *store.Store, p place, _ seen) error {
				a := admission0(p)
				a.Run.Manual, a.Run.RequestedBy, a.Run.RequestHash = true, "ann@example.com", "0badcafe"
				a.Run.FileExpires, a.Run.LinkExpires = expires, expires.Add(-time.Hour) // not written: they come with the file
				act := onRunNow(p)
				a.Audit = &act
				return s.Admit(ctx, a)
			},
			want: func(p place) []change {
				return []change{auditRow(onRunNow(p)),
					{key: p.runKey(), set: admitted(p, row{schema.Manual: true, schema.RequestedBy: "ann@example.com", schema.RequestHash: "0badcafe"})}}
			}},
		{event: "admit", name: "retry as new", token: true,
			given: func(p place) world { return world{}.add(p.scheduleKey(), scheduleRow(p, "active")) },
			do: func(ctx context.Context, s *store.Store, p place, _ seen) error {
				a := admission0(p)
				a.Run.Manual, a.Run.RequestedBy, a.Run.RequestHash = true, "ann@example.com", "0badcafe"
				a.Run.RetryOf, a.Run.Targets = p.schedule+"@earlier", []string{"email#aa", "webhook#bb"}
				a.Run.File = &schedule.RecordedFile{Key: "30d/run/worker-0/delays.csv", Name: "delays.csv", Rows: 3, Bytes: 120, SHA256: "ab12", DataAsOf: wall}
				a.Run.FileExpires, a.Run.LinkExpires = expires, expires.Add(-time.Hour)
				act := onRetry(p)
				a.Audit = &act
				return s.Admit(ctx, a)
			},
			want: func(p place) []change {
				return []change{auditRow(onRetry(p)),
					{key: p.runKey(), set: admitted(p, row{schema.Manual: true, schema.RequestedBy: "ann@example.com", schema.RequestHash: "0badcafe",
						schema.RetryOf: p.schedule + "@earlier", schema.Targets: []string{"email#aa", "webhook#bb"}, schema.File: recordedFile,
						schema.FileExpires: expires, schema.LinkExpires: expires.Add(-time.Hour)})}}
			}},
		{event: "admit", name: "manual, nobody to name", token: true,
			do: func(ctx context.Context, s *store.Store, p place, _ seen) error { return s.Admit(ctx, admission0(p)) },
			want: func(p place) []change {
				return []change{{key: p.runKey(), set: admitted(p, nil)}}
			}},
	}
}

func onRetry(p place) schedule.Audit { return actOf(p.run(), "act-1", "retry as new") }

// workWays are the rows that do not settle a run.
func workWays() []way {
	var ways []way
	for _, state := range []string{"queued", "running"} {
		ended := row{}
		if state == "running" {
			ended = row{schema.LeaseEnd: wall.Add(-time.Millisecond)}
		}
		offer := func(dlq bool) func(context.Context, *store.Store, place, seen) error {
			return func(ctx context.Context, s *store.Store, _ place, r seen) error {
				return s.Reoffer(ctx, r.run, wall, wall.Add(10*time.Minute), dlq)
			}
		}
		ways = append(ways,
			way{from: state, event: "re-offer", given: withSchedule(state, ended), do: offer(false),
				want: onRun(row{schema.WakeAt: wall.Add(10 * time.Minute), schema.Offers: 2}, "offered again")},
			way{from: state, event: "re-offer", alternative: 1, name: "out of the DLQ", given: withSchedule(state, ended.with(row{schema.WakeAt: wall.Add(time.Hour)})), do: offer(true),
				want: onRun(row{schema.WakeAt: wall.Add(10 * time.Minute), schema.Offers: 2, schema.DeadLetters: 2}, "came out of the dead-letter queue, offered again")},
			way{from: state, event: "re-offer", name: "the twelfth", given: withSchedule(state, ended.with(row{schema.Offers: 11})), do: offer(false),
				want: onRun(row{schema.WakeAt: wall.Add(10 * time.Minute), schema.Offers: 12}, "offered again")},
			way{from: state, event: "re-offer", name: "the thirteenth says no more", given: withSchedule(state, ended.with(row{schema.Offers: 12})), do: offer(false),
				want: func(p place) []change {
					return []change{{key: p.runKey(), set: row{schema.WakeAt: wall.Add(10 * time.Minute), schema.Offers: 13}}}
				}},
			way{from: state, event: "ask to stop", token: true, given: withSchedule(state, nil),
				do: func(ctx context.Context, s *store.Store, p place, r seen) error {
					return s.AskToStop(ctx, r.run, onStop(p))
				},
				want: func(p place) []change {
					return []change{auditRow(onStop(p)), {p.runKey(), row{schema.StopBy: "ann@example.com", schema.StopWhy: "holidays"}, schema.Time(actAt) + " asked to stop"}}
				}},
		)
	}
	leased := row{schema.State: "running", schema.LeaseOwner: next.Token, schema.LeaseEnd: next.End, schema.WakeAt: next.Wake, schema.Offers: 0, schema.DeadLetters: 0}
	begin := func(ctx context.Context, s *store.Store, _ place, r seen) error {
		_, err := s.Begin(ctx, r.run, next)
		return err
	}
	begun := func(changes row, line string) func(place) []change {
		return func(p place) []change {
			return onRun(leased.lay(row{schema.OpenShard: schema.OpenShardOf(p.run(), true)}).lay(changes), line)(p)
		}
	}
	mine := func(do func(ctx context.Context, s *store.Store, r schedule.Run) error) func(context.Context, *store.Store, place, seen) error {
		return func(ctx context.Context, s *store.Store, _ place, r seen) error { return do(ctx, s, r.run) }
	}
	file := schedule.RecordedFile{Key: "30d/run/worker-1/delays.csv", Name: "delays.csv", Rows: 3, Bytes: 120, SHA256: "ab12", DataAsOf: wall,
		Expires: expires, LinksEnd: expires.Add(-time.Hour)}
	recordQuery := mine(func(ctx context.Context, s *store.Store, r schedule.Run) error {
		return s.RecordQuery(ctx, r, held, "query-1")
	})
	return append(ways,
		way{from: "queued", event: "begin", token: true, chooses: true, given: withSchedule("queued", nil), do: begin,
			want: begun(row{schema.Attempts: 1, schema.AttemptsLeft: 4}, "begin, attempt 1")},
		way{from: "running", event: "resume", token: true, chooses: true, given: withSchedule("running", row{schema.LeaseEnd: wall.Add(-time.Millisecond), schema.File: recordedFile}), do: begin,
			want: begun(row{schema.Attempts: 2, schema.AttemptsLeft: 3}, "resume, attempt 2")},
		way{from: "running", event: "resume", name: "released", token: true, chooses: true,
			given: withSchedule("running", row{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.AttemptsLeft: 1, schema.Attempts: 4}), do: begin,
			want: begun(row{schema.Attempts: 5, schema.AttemptsLeft: 0}, "resume, attempt 5")},
		way{from: "running", event: "release", token: true, given: withSchedule("running", nil),
			do: mine(func(ctx context.Context, s *store.Store, r schedule.Run) error {
				return s.Release(ctx, r, held, failure.New(failure.SourceUnavailable, "no answer"), time.Minute)
			}),
			want: onRun(row{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: held.Wake, schema.ErrorCode: "source_unavailable", schema.ErrorText: "no answer"},
				"released: source_unavailable; again in 1m0s")},
		way{from: "running", event: "release", name: "its query has ended", token: true, given: withSchedule("running", row{schema.QueryID: "query-0", schema.QueryNumber: 1}),
			do: mine(func(ctx context.Context, s *store.Store, r schedule.Run) error {
				r.QueryEnded, r.QueryCost = true, source.Cost{Scanned: 1000, Micros: 48}
				return s.Release(ctx, r, held, failure.New(failure.SourceUnavailable, "no answer"), time.Minute)
			}),
			want: onRun(row{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: held.Wake, schema.ErrorCode: "source_unavailable", schema.ErrorText: "no answer",
				schema.QueryEnded: true, schema.QueryScanned: 1000, schema.QueryMicros: 48}, "released: source_unavailable; again in 1m0s")},
		way{from: "running", event: "yield", token: true, given: withSchedule("running", nil),
			do: mine(func(ctx context.Context, s *store.Store, r schedule.Run) error {
				return s.Yield(ctx, r, held, 200, "out of time")
			}),
			want: onRun(row{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: held.Wake, schema.Yields: 1, schema.AttemptsLeft: 5}, "yielded: out of time")},
		way{from: "running", event: "record file", token: true, given: withSchedule("running", nil),
			do: mine(func(ctx context.Context, s *store.Store, r schedule.Run) error {
				return s.RecordFile(ctx, r, held, file)
			}),
			want: onRun(row{schema.File: row{schema.FileKey: file.Key, schema.FileName: "delays.csv", schema.FileRows: 3, schema.FileBytes: 120, schema.FileSHA: "ab12", schema.FileAsOf: wall},
				schema.FileExpires: expires, schema.LinkExpires: expires.Add(-time.Hour)}, "file recorded: 3 rows, 120 bytes")},
		way{from: "running", event: "record file", name: "of a query that cost", token: true, given: withSchedule("running", nil),
			do: mine(func(ctx context.Context, s *store.Store, r schedule.Run) error {
				r.QueryCost = source.Cost{Scanned: 1000, Micros: 48}
				return s.RecordFile(ctx, r, held, file)
			}),
			want: onRun(row{schema.File: row{schema.FileKey: file.Key, schema.FileName: "delays.csv", schema.FileRows: 3, schema.FileBytes: 120, schema.FileSHA: "ab12", schema.FileAsOf: wall},
				schema.FileExpires: expires, schema.LinkExpires: expires.Add(-time.Hour), schema.QueryScanned: 1000, schema.QueryMicros: 48}, "file recorded: 3 rows, 120 bytes")},
		way{from: "running", event: "record query", token: true, given: withSchedule("running", nil), do: recordQuery,
			want: onRun(row{schema.QueryID: "query-1", schema.QueryNumber: 1}, "query recorded")},
		way{from: "running", event: "record query", alternative: 1, name: "after one that ended", token: true, do: recordQuery,
			given: withSchedule("running", row{schema.QueryID: "query-0", schema.QueryNumber: 1, schema.QueryEnded: true}),
			want:  onRun(row{schema.QueryID: "query-1", schema.QueryNumber: 2, schema.QueryEnded: nil}, "query recorded")},
	)
}

// settleWays are the rows that settle a run, together with what they write on its schedule.
func settleWays() []way {
	end := func(l schedule.Lease, o schedule.Outcome) func(context.Context, *store.Store, place, seen) error {
		return func(ctx context.Context, s *store.Store, _ place, r seen) error { return s.Settle(ctx, r.run, l, o) }
	}
	both := func(set row, line string, state schedule.RunState, on row) func(place) []change {
		return func(p place) []change {
			return []change{{p.runKey(), set, stamp + line}, {key: p.scheduleKey(), set: lastRun(p, state, on)}}
		}
	}
	oldError := row{schema.ErrorCode: "source_unavailable", schema.ErrorText: "no answer"}
	skippedEmpty := settled("worker-1", row{schema.State: "skipped", schema.History: "skipped_empty", schema.Submitted: 0, schema.Skipped: 0})
	fail := schedule.Outcome{Event: schedule.Fail, Code: failure.QueryInvalid, Message: "no such column: dely"}
	spent := schedule.Outcome{Event: schedule.Fail, Code: failure.AttemptsExhausted, Message: "five attempts"}
	failed := func(by, code, message string) row {
		return settled(by, row{schema.State: "failed", schema.ErrorCode: code, schema.ErrorText: message, schema.Submitted: 0, schema.Skipped: 0})
	}
	return append(noticedWays(), []way{
		{from: "running", event: "succeed", token: true, given: withSchedule("running", oldError.with(row{schema.File: recordedFile})),
			do: end(held, schedule.Outcome{Event: schedule.Succeed, Submitted: 2, Skipped: 1}),
			want: both(settled("worker-1", row{schema.State: "succeeded", schema.Submitted: 2, schema.Skipped: 1, schema.ErrorCode: nil, schema.ErrorText: nil}), "succeed",
				schedule.Succeeded, row{schema.Streak: 0, schema.LastSuccess: nominal, schema.LastRunCode: nil})},
		{from: "running", event: "skip empty", token: true, given: withSchedule("running", nil), do: end(held, schedule.Outcome{Event: schedule.SkipEmpty}),
			want: both(skippedEmpty, "skip empty", schedule.Skipped, row{schema.LastRunCode: nil})},
		{from: "running", event: "skip empty", alternative: 1, name: "file of 0 rows", token: true, given: withSchedule("running", row{schema.File: emptied(recordedFile)}),
			do: end(held, schedule.Outcome{Event: schedule.SkipEmpty}), want: both(skippedEmpty, "skip empty", schedule.Skipped, row{schema.LastRunCode: nil})},
		{from: "running", event: "fail", token: true, given: withSchedule("running", nil), do: end(held, fail),
			want: both(failed("worker-1", "query_invalid", fail.Message), "failed: query_invalid", schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "query_invalid"})},
		{from: "running", event: "fail", name: "with its file", token: true, given: withSchedule("running", row{schema.File: recordedFile}), do: end(held, fail),
			want: both(failed("worker-1", "query_invalid", fail.Message), "failed: query_invalid", schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "query_invalid"})},
		{from: "running", event: "fail", name: "a code that pauses", token: true, given: withSchedule("running", nil),
			do: end(held, schedule.Outcome{Event: schedule.Fail, Code: failure.SourceAccessDenied, Message: "no access"}),
			want: both(failed("worker-1", "source_access_denied", "no access"), "failed: source_access_denied", schedule.Failed,
				row{schema.Streak: 4, schema.LastRunCode: "source_access_denied", schema.State: "paused", schema.PauseReason: "source_access_denied",
					schema.PausedBy: "system", schema.PausedAt: wall, schema.NextDueAt: nil, schema.DueShard: nil})},
		{from: "running", event: "fail", alternative: 1, name: "no attempt left", token: true, do: end(next, spent),
			given: withSchedule("running", row{schema.AttemptsLeft: 0, schema.Attempts: 5, schema.LeaseEnd: wall.Add(-time.Millisecond)}),
			want: both(failed("worker-2", "attempts_exhausted", "five attempts"), "failed: attempts_exhausted", schedule.Failed,
				row{schema.Streak: 4, schema.LastRunCode: "attempts_exhausted"})},
		{from: "running", event: "fail", alternative: 1, name: "no attempt left, with its file", token: true, do: end(next, spent),
			given: withSchedule("running", row{schema.AttemptsLeft: 0, schema.Attempts: 5, schema.LeaseEnd: wall.Add(-time.Millisecond), schema.File: recordedFile}),
			want: both(failed("worker-2", "attempts_exhausted", "five attempts"), "failed: attempts_exhausted", schedule.Failed,
				row{schema.Streak: 4, schema.LastRunCode: "attempts_exhausted"})},
		{from: "running", event: "fail", alternative: 1, name: "no attempt left, released, with its file", token: true, do: end(next, spent),
			given: withSchedule("running", row{schema.AttemptsLeft: 0, schema.Attempts: 5, schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.File: recordedFile}),
			want: both(failed("worker-2", "attempts_exhausted", "five attempts"), "failed: attempts_exhausted", schedule.Failed,
				row{schema.Streak: 4, schema.LastRunCode: "attempts_exhausted"})},
		{from: "running", event: "fail", alternative: 1, name: "no attempt left, released", token: true, do: end(next, spent),
			given: withSchedule("running", row{schema.AttemptsLeft: 0, schema.Attempts: 5, schema.LeaseOwner: nil, schema.LeaseEnd: nil}),
			want: both(failed("worker-2", "attempts_exhausted", "five attempts"), "failed: attempts_exhausted", schedule.Failed,
				row{schema.Streak: 4, schema.LastRunCode: "attempts_exhausted"})},
	}...)
}
