package storetest

import (
	"context"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/source"
	"almanac/internal/store"
)

// onMonth is an operation on the run as read.
func onMonth(do func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error) func(context.Context, *store.Store, place, seen) error {
	return func(ctx context.Context, s *store.Store, _ place, r seen) error { return do(ctx, over(s), r.snap) }
}

func inMonth(state string, changes row) func(place) world {
	return func(p place) world { return monthWorld(p, state, changes) }
}

// onMonthRow is what an operation does to the run alone.
func onMonthRow(set row, line string) func(place) []change {
	return func(p place) []change {
		if line != "" {
			line := stamp + line
			return []change{{p.snapshotKey(), set, line}}
		}
		return []change{{key: p.snapshotKey(), set: set}}
	}
}

// planningOf plans the fourth version after a third that stands as the head says.
func planningOf(p place, event snapshot.Event) snapshot.Planning {
	return snapshot.Planning{Event: event, Token: "planner-2", LateAt: lateSince, Head: snapshot.Head{Period: p.period(), Owner: p.schedule, Latest: 3, LatestState: snapshot.Skipped, LatestWhy: "loading"},
		Run: snapshot.Run{Period: p.period(), Version: 4, Owner: p.schedule, Scope: snapshot.Scope{Owner: p.schedule}, Definition: 3, Start: mayStart, End: mayEnd,
			Zone: "America/New_York", CreatedAt: wall}}
}

// plannedMonth is the whole row of a run that was just planned.
func plannedMonth(p place, event snapshot.Event, changes row) row {
	return planRow(p).lay(row{schema.State: "planned", schema.CreatedAt: wall, schema.AdmittedBy: "planner-2", schema.Timeline: []string{stamp + string(event)},
		schema.Work: schema.WorkPlanned(p.schedule, false), schema.WorkAt: at("2013-05-01T00:00:00.000Z")}).lay(changes)
}

func idleHead(p place, state, why string) row {
	r := monthHead(p).with(row{schema.Latest: 3, schema.LatestState: state, schema.Active: nil, schema.LatestWhy: why})
	if why == "" {
		delete(r, schema.LatestWhy)
	}
	return r
}

func planWays() []way {
	after := func(state, why string) func(place) world {
		return func(p place) world {
			return world{}.add(p.headKey(), idleHead(p, state, why)).add(p.capsKey(), ownerRow(p, nil, nil))
		}
	}
	plan := func(event snapshot.Event, adjust func(*snapshot.Planning)) func(context.Context, *store.Store, place, seen) error {
		return func(ctx context.Context, s *store.Store, p place, _ seen) error {
			a := planningOf(p, event)
			adjust(&a)
			return over(s).Plan(ctx, a)
		}
	}
	head := func(p place, set row) change { return change{key: p.headKey(), set: set} }
	active := breakage{snapshot.HeadFree, place.headKey, row{schema.Active: 3}}
	later := breakage{snapshot.HeadFree, place.headKey, row{schema.Latest: 4}}
	asked := func(a *snapshot.Planning) {
		act := monthAct(a.Run.Workspace, "rerun")
		a.Audit, a.Run.RequestedBy, a.Run.RequestWhy, a.Run.Backfill, a.LateAt = &act, "ann@example.com", "late rows", true, time.Time{}
		a.Run.Accepted = []snapshot.Acceptance{{Check: "drift rows", Found: "40", By: "ann@example.com", Why: "new airline"}}
	}
	return []way{
		{event: "plan", token: true, given: after("skipped", "loading"), do: plan(snapshot.Plan, func(*snapshot.Planning) {}),
			want: func(p place) []change {
				return []change{{key: p.snapshotKey(), set: plannedMonth(p, "plan", nil)}, head(p, row{schema.Latest: 4, schema.LatestState: "planned", schema.LatestWhy: nil, schema.Active: 4})}
			},
			also: []breakage{active, later, {snapshot.HeadFree, place.headKey, row{schema.LatestState: "failed"}}, {snapshot.HeadFree, place.headKey, row{schema.LatestState: "published"}}}},
		{event: "plan ineligible", token: true, given: after("skipped", "loading"),
			do: plan(snapshot.PlanIneligible, func(a *snapshot.Planning) {
				a.Run.Reason, a.Run.ReasonText, a.LateAt = snapshot.ReasonPolicy, "switched off", time.Time{}
			}),
			want: func(p place) []change {
				return []change{head(p, row{schema.Latest: 4, schema.LatestState: "skipped", schema.LatestWhy: "policy", schema.LateShard: nil, schema.LateAt: nil}),
					{key: p.snapshotKey(), set: plannedMonth(p, "plan ineligible", row{schema.State: "skipped", schema.Work: nil, schema.WorkAt: nil, schema.SettledAt: wall,
						schema.Reason: "policy", schema.ReasonText: "switched off"})}}
			},
			also: []breakage{active, later, {snapshot.OtherReason, place.headKey, row{schema.LatestWhy: "policy"}}, {snapshot.HeadFree, place.headKey, row{schema.LatestState: "cancelled"}}}},
		{event: "request", token: true, given: after("published", ""), do: plan(snapshot.Request, asked),
			want: func(p place) []change {
				return []change{actRow(monthAct(p.schedule, "rerun")), head(p, row{schema.Latest: 4, schema.LatestState: "planned", schema.Active: 4, schema.LateShard: nil, schema.LateAt: nil}),
					{key: p.snapshotKey(), set: plannedMonth(p, "request", row{schema.Backfill: true, schema.Work: schema.WorkPlanned(p.schedule, true), schema.RequestedBy: "ann@example.com",
						schema.RequestWhy: "late rows", schema.Accepts: `[{"Check":"drift rows","Found":"40","By":"ann@example.com","Why":"new airline"}]`})}}
			},
			also: []breakage{{snapshot.HeadNotActive, place.headKey, row{schema.Active: 3}}, {snapshot.HeadNotActive, place.headKey, row{schema.Latest: 4}}}},
	}
}

func monthAct(workspace, what string) snapshot.Audit {
	a := actOf(workspace, "act-1", what)
	return snapshot.Audit{ID: a.ID, Subject: a.Subject, At: a.At, Who: a.Who, What: a.What, Why: a.Why, Before: a.Before, After: a.After}
}

func actRow(a snapshot.Audit) change {
	return auditRow(actOf(a.Subject, a.ID, a.What))
}

// slotsOf is what an owner's item has after a claim of the place's run.
func slotsOf(p place, slots, backfills []string) change {
	return change{key: p.capsKey(), set: row{schema.Slots: taken(slots...), schema.Backfill: taken(backfills...)}}
}

func claimWays() []way {
	five := snapshot.Owner{ID: "x", Cap: 5, Backfill: 2}
	claim := func(o snapshot.Owner) func(context.Context, *store.Store, place, seen) error {
		return onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
			_, err := s.Claim(ctx, r, o, wall)
			return err
		})
	}
	claimed := func(p place, changes row) change {
		return change{p.snapshotKey(), row{schema.State: "queued", schema.Job: 4, schema.ClaimedAt: wall, schema.OfferedAt: wall, schema.Execution: nil, schema.NextAttempt: nil,
			schema.AdmittedBy: nil, schema.Work: schema.WorkOpen(p.schedule), schema.WorkAt: wall}.lay(changes), stamp + "claim, job 4"}
	}
	caps := func(slots, backfills []string) breakage {
		return breakage{snapshot.CapsPermit, place.capsKey, row{schema.Slots: taken(slots...), schema.Backfill: taken(backfills...)}}
	}
	held := func(slots, backfills []string) func(place) world {
		return func(p place) world {
			return monthWorld(p, "planned", nil).add(p.capsKey(), ownerRow(p, slots, backfills))
		}
	}
	with := func(slots, backfills []string) func(place) []change {
		return func(p place) []change {
			return []change{claimed(p, nil), slotsOf(p, append([]string{p.snapshot()}, slots...), backfills)}
		}
	}
	two, one := []string{"other-1", "other-2"}, []string{"other-2"}
	four := []string{"a", "b", "c", "d"}
	noBackfills := func(p place) world {
		return monthWorld(p, "planned", nil).add(p.capsKey(), ownerRow(p, four, nil).with(row{schema.BackfillCap: 0}))
	}
	raised := breakage{snapshot.CapsPermit, place.capsKey, row{schema.BackfillCap: 1}} // meanwhile: a slot is left to backfills now
	return []way{
		{from: "planned", event: "claim", name: "a current month", token: true, given: inMonth("planned", nil), do: claim(five), want: with(two, one),
			also: []breakage{caps([]string{"a", "b", "c", "d", "e"}, []string{"e"}), caps(four, nil)}},
		{from: "planned", event: "claim", name: "the last slot while a backfill runs", token: true, given: held(four, []string{"d"}), do: claim(five), want: with(four, []string{"d"}),
			also: []breakage{caps(four, nil)}},
		{from: "planned", event: "claim", name: "the last slot where backfills have none", token: true, given: noBackfills, do: claim(snapshot.Owner{Cap: 5}), want: with(four, nil),
			also: []breakage{caps([]string{"a", "b", "c", "d", "e"}, nil), raised}},
		{from: "planned", event: "claim", name: "a backfill", token: true,
			given: inMonth("planned", row{schema.Backfill: true}), do: claim(five),
			want: func(p place) []change {
				return []change{claimed(p, nil), slotsOf(p, append([]string{p.snapshot()}, two...), append([]string{p.snapshot()}, one...))}
			},
			also: []breakage{caps([]string{"a", "b"}, []string{"a", "b"}), caps([]string{"a", "b", "c", "d", "e"}, nil)}},
		{from: "failed", event: "claim", token: true, given: inMonth("failed", row{schema.Verdict: "failed", schema.Manifest: "cd34", schema.ComparedTo: 3, schema.CheckList: "[]"}), do: claim(five),
			want: func(p place) []change {
				return []change{claimed(p, row{schema.Verdict: nil, schema.Manifest: nil, schema.ComparedTo: nil, schema.CheckList: nil}), slotsOf(p, append([]string{p.snapshot()}, two...), one)}
			},
			also: []breakage{caps(four, nil)}},
		{from: "failed", event: "retry now", token: true, given: inMonth("failed", row{schema.NextAttempt: wall.Add(time.Hour), schema.WorkAt: wall.Add(time.Hour)}),
			do: func(ctx context.Context, s *store.Store, p place, r seen) error {
				return over(s).RetryNow(ctx, r.snap, wall, monthAct(p.schedule, "retry now"))
			},
			want: func(p place) []change {
				return []change{actRow(monthAct(p.schedule, "retry now")), {p.snapshotKey(), row{schema.NextAttempt: wall, schema.WorkAt: wall}, stamp + "retry now"}}
			}},
		{from: "queued", event: "re-offer", name: "N8", token: true, given: inMonth("queued", nil),
			do: onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
				_, err := s.Reoffer(ctx, r, wall, wall.Add(-5*time.Minute))
				return err
			}),
			want: onMonthRow(row{schema.OfferedAt: wall}, "")},
	}
}

// asked is a month whose query is recorded.
var asked = row{schema.QueryID: "query-0", schema.QueryFor: purpose, schema.QueryNumber: 1}

func stepWays() []way {
	attach := onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
		return s.Attach(ctx, r, "arn:new")
	})
	resume := onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
		_, err := s.Resume(ctx, r)
		return err
	})
	query := onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
		return s.RecordQuery(ctx, r, snapshot.Query{For: purpose, ID: "query-1"})
	})
	note := func(ended bool, c source.Cost) func(context.Context, *store.Store, place, seen) error {
		return onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
			_, err := s.NoteQuery(ctx, r, ended, c)
			return err
		})
	}
	begin := func(c snapshot.Cursor, generation int) func(context.Context, *store.Store, place, seen) error {
		return onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
			_, err := s.Begin(ctx, r, snapshot.Beginning{Mode: snapshot.Chunked, Generation: generation, Cursor: c, Execution: "arn:new", Now: wall,
				Basis: snapshot.Basis{Definition: 3, Start: mayStart, End: mayEnd, Source: `"etag" 2`}})
			return err
		})
	}
	begun := func(changes row) func(place) []change {
		return onMonthRow(row{schema.State: "running", schema.Attempts: 2, schema.StartedAt: wall, schema.Execution: "arn:new", schema.OfferedAt: nil,
			schema.Basis: `3 1367380800000 1370059200000 "etag" 2`}.lay(changes), "start, attempt 2")
	}
	chunk := snapshot.Chunk{Number: 13, Object: "s/g2/13-token", SHA256: "0badcafe", Bytes: 1234, Rows: 100, First: "i:1201", Last: "i:1300", Sums: map[string]string{"delay": "12.50"},
		Nulls: map[string]int64{"delay": 2}, Wrong: map[string]int64{"carrier": 1}, Increasing: true, Columns: []snapshot.Column{{Name: "delay", Type: "decimal"}}, Source: "v7"}
	ways := []way{
		{from: "queued", event: "attach", token: true, given: inMonth("queued", nil), do: attach, want: onMonthRow(row{schema.Execution: "arn:new"}, "")},
		{from: "running", event: "attach", token: true, given: inMonth("running", nil), do: attach, want: onMonthRow(row{schema.Execution: "arn:new"}, "")},
		{from: "queued", event: "start", name: "at the cursor", token: true, given: inMonth("queued", nil), do: begin(snapshot.Cursor{Chunk: 12, Key: "i:1200", Rows: 1200}, 2), want: begun(nil)},
		{from: "queued", event: "start", name: "from the beginning", token: true, given: inMonth("queued", row{schema.CursorDone: true, schema.CursorPlace: 77}), do: begin(snapshot.Cursor{}, 3),
			want: begun(row{schema.Generation: 3, schema.Cursor: 0, schema.CursorKey: nil, schema.CursorRows: 0, schema.CursorDone: nil, schema.CursorPlace: nil})},
		{from: "running", event: "resume", chooses: true, given: inMonth("running", nil), do: resume, want: onMonthRow(row{}, "")},
		{from: "validating", event: "resume validation", chooses: true, given: inMonth("validating", nil), do: resume, want: onMonthRow(row{}, "")},
		{from: "running", event: "commit chunk", token: true, given: inMonth("running", nil),
			do: onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
				return s.Commit(ctx, r, chunk, snapshot.Cursor{Chunk: 13, Key: "i:1300", Rows: 1300, Done: true, Place: 9007199254740993}, wall)
			}),
			want: func(p place) []change {
				return []change{{key: p.snapshotKey(), set: row{schema.Cursor: 13, schema.CursorKey: "i:1300", schema.CursorRows: 1300, schema.CursorDone: true, schema.CursorPlace: 9007199254740993}},
					{key: p.chunkKey(), set: row{schema.Object: "s/g2/13-token", schema.SHA: "0badcafe", schema.Size: 1234, schema.Rows: 100, schema.FirstKey: "i:1201", schema.LastKey: "i:1300",
						schema.Sums: `{"delay":"12.50"}`, schema.Nulls: `{"delay":2}`, schema.WrongTypes: `{"carrier":1}`, schema.Columns: `[{"name":"delay","type":"decimal"}]`,
						schema.SourceVersion: "v7", schema.Increasing: true, schema.CreatedAt: wall}}}
			}},
		{from: "running", event: "begin validation", token: true, done: []string{"validating"}, given: inMonth("running", row{schema.CursorDone: true}),
			do: onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
				_, err := s.BeginValidation(ctx, r, wall)
				return err
			}),
			want: onMonthRow(row{schema.State: "validating"}, "begin validation")},
		{from: "validating", event: "record verdict", token: true, given: inMonth("validating", row{schema.Verdict: nil, schema.Manifest: nil, schema.ComparedTo: nil, schema.CheckList: nil}),
			do: onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
				return s.RecordVerdict(ctx, r, snapshot.Verdict{Manifest: "ef56", Current: 3, Checks: []snapshot.Check{{Name: "rows", Expected: "3", Found: "2"}}}, wall)
			}),
			want: onMonthRow(row{schema.Verdict: "failed", schema.Manifest: "ef56", schema.ComparedTo: 3, schema.UpdatedAt: wall,
				schema.CheckList: `[{"name":"rows","expected":"3","found":"2","passed":false}]`}, "")},
	}
	for _, state := range []string{"running", "validating"} {
		ways = append(ways,
			way{from: state, event: "record query", token: true, given: inMonth(state, nil), do: query,
				want: onMonthRow(row{schema.QueryID: "query-1", schema.QueryFor: purpose, schema.QueryNumber: 1}, "")},
			way{from: state, event: "record query", name: "for another purpose", token: true, given: inMonth(state, row{schema.QueryID: "query-0", schema.QueryFor: "1 rows", schema.QueryNumber: 4}), do: query,
				want: onMonthRow(row{schema.QueryID: "query-1", schema.QueryFor: purpose, schema.QueryNumber: 5}, "")},
			way{from: state, event: "record query", alternative: 1, name: "after one that ended", token: true, do: query,
				given: inMonth(state, row{schema.QueryID: "query-0", schema.QueryFor: purpose, schema.QueryNumber: 1, schema.QueryEnded: true, schema.QueryNoted: true}),
				want:  onMonthRow(row{schema.QueryID: "query-1", schema.QueryFor: purpose, schema.QueryNumber: 2, schema.QueryEnded: nil, schema.QueryNoted: nil}, "")},
			way{from: state, event: "note query", token: true, given: inMonth(state, asked), do: note(false, source.Cost{Scanned: 1000, Micros: 48}),
				want: onMonthRow(row{schema.QueryNoted: true, schema.QueryScanned: 1000, schema.QueryMicros: 48}, "")},
			way{from: state, event: "note query", name: "without a result, after another one", token: true, given: inMonth(state, asked.lay(row{schema.QueryScanned: 5, schema.QueryMicros: 6})),
				do:   note(true, source.Cost{Scanned: 1000, Micros: 48}),
				want: onMonthRow(row{schema.QueryNoted: true, schema.QueryEnded: true, schema.QueryScanned: 1005, schema.QueryMicros: 54}, "")})
	}
	return ways
}

// freed is the owner's item without the place's run.
func freed(p place) change { return slotsOf(p, []string{"other-1", "other-2"}, []string{"other-2"}) }

// final is what every final transition does to the run.
func final(p place, changes row) row {
	return row{schema.Work: nil, schema.WorkAt: nil, schema.SettledAt: wall, schema.SettledShard: schema.SettledShardOf(p.snapshot())}.lay(changes)
}

func endWays() []way {
	stolen := breakage{snapshot.HeadNotActive, place.headKey, row{schema.Active: 5, schema.Latest: 5}}
	gone := breakage{snapshot.HeadNotActive, place.headKey, row{schema.Active: nil}}
	publish := func(read int) func(context.Context, *store.Store, place, seen) error {
		return func(ctx context.Context, s *store.Store, p place, r seen) error {
			return over(s).Publish(ctx, r.snap, snapshot.Pointer{Period: p.period(), Version: read}, wall)
		}
	}
	published := func(previous any) func(place) []change {
		return func(p place) []change {
			return []change{{p.snapshotKey(), final(p, row{schema.State: "published"}), stamp + "publish"}, freed(p),
				{key: p.headKey(), set: row{schema.Active: nil, schema.LatestState: "published", schema.LateShard: nil, schema.LateAt: nil}},
				{key: p.pointerKey(), set: row{schema.Version: 4, schema.Previous: previous, schema.Manifest: "cd34", schema.MovedAt: wall, schema.MovedBy: p.snapshot() + "-j3"}}}
		}
	}
	first := func(p place) world {
		w := monthWorld(p, "validating", row{schema.ComparedTo: 0})
		delete(w, p.pointerKey())
		return w
	}
	ways := []way{
		{from: "validating", event: "publish", token: true, done: []string{"published"}, given: inMonth("validating", nil), do: publish(3), want: published(3),
			also: []breakage{{snapshot.CurrentAsRead, place.pointerKey, row{schema.Version: 2}}, stolen, gone}},
		{from: "validating", event: "publish", name: "the first", token: true, done: []string{"published"}, given: first, do: publish(0), want: published(nil),
			also: []breakage{{snapshot.CurrentAsRead, place.pointerKey, current(place{})}}},
	}
	for _, state := range []string{"queued", "running", "validating"} {
		fail := func(next time.Time) func(context.Context, *store.Store, place, seen) error {
			return onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
				return s.Fail(ctx, r, snapshot.Settlement{Code: failure.SourceUnavailable, Text: "no answer", NextAt: next}, wall)
			})
		}
		failed := row{schema.State: "failed", schema.Failures: 2, schema.ErrorCode: "source_unavailable", schema.ErrorText: "no answer", schema.FailedIn: state}
		ways = append(ways,
			way{from: state, event: "fail", name: "N6, to be tried again", token: true, given: inMonth(state, nil), do: fail(wall.Add(time.Hour)),
				want: func(p place) []change {
					return []change{freed(p), {p.snapshotKey(), failed.lay(row{schema.NextAttempt: wall.Add(time.Hour), schema.Work: schema.WorkRetry(p.schedule, false), schema.WorkAt: wall.Add(time.Hour)}),
						stamp + "failed: source_unavailable; again at 2026-11-30T09:00:00.000Z"}}
				}},
			way{from: state, event: "fail", name: "N6, for good", token: true, given: inMonth(state, nil), do: fail(time.Time{}), also: []breakage{stolen, gone},
				want: func(p place) []change {
					return []change{freed(p), {p.snapshotKey(), final(p, failed.lay(row{schema.SettledShard: schema.FailedShardOf(p.snapshot())})), stamp + "failed: source_unavailable"},
						{key: p.headKey(), set: row{schema.Active: nil, schema.LatestState: "failed"}}}
				}})
	}
	ways = append(ways, way{from: "queued", event: "fail", name: "N14, never begun after a failed validation", token: true, given: inMonth("queued", row{schema.FailedIn: "validating"}),
		do: onMonth(func(ctx context.Context, s *store.Snapshots, r snapshot.Run) error {
			return s.Fail(ctx, r, snapshot.Settlement{Code: failure.JobLost, Text: "no job", NextAt: wall.Add(time.Hour)}, wall)
		}),
		want: func(p place) []change {
			return []change{freed(p), {p.snapshotKey(), row{schema.State: "failed", schema.Failures: 2, schema.ErrorCode: "job_lost", schema.ErrorText: "no job",
				schema.NextAttempt: wall.Add(time.Hour), schema.Work: schema.WorkRetry(p.schedule, false), schema.WorkAt: wall.Add(time.Hour)},
				stamp + "failed: job_lost; again at 2026-11-30T09:00:00.000Z"}}
		}})
	return append(ways, cancelWays(stolen, gone)...)
}

func cancelWays(also ...breakage) (ways []way) {
	for _, state := range []string{"planned", "queued", "running", "validating", "failed"} {
		cancel := func(reason string, act bool) func(context.Context, *store.Store, place, seen) error {
			return func(ctx context.Context, s *store.Store, p place, r seen) error {
				c := snapshot.Cancellation{Reason: reason, Text: "not needed", By: "ann@example.com", At: wall}
				if act {
					a := monthAct(p.schedule, "cancel")
					c.Audit = &a
				}
				return over(s).Cancel(ctx, r.snap, c)
			}
		}
		cancelled := func(reason string, more ...func(place) change) func(place) []change {
			return func(p place) []change {
				head := row{schema.Active: nil, schema.LatestState: "cancelled", schema.LatestWhy: reason}
				if reason != snapshot.ReasonOperator {
					head = head.lay(row{schema.LateShard: nil, schema.LateAt: nil})
				}
				cs := []change{{key: p.headKey(), set: head}, {p.snapshotKey(), final(p, row{schema.State: "cancelled", schema.Reason: reason, schema.ReasonText: "not needed",
					schema.CancelledBy: "ann@example.com", schema.NextAttempt: nil}), stamp + "cancelled: " + reason}}
				if state != "planned" && state != "failed" {
					cs = append(cs, freed(p))
				}
				for _, m := range more {
					cs = append(cs, m(p))
				}
				return cs
			}
		}
		ways = append(ways,
			way{from: state, event: "cancel", name: "by a person", token: true, given: inMonth(state, nil), do: cancel(snapshot.ReasonOperator, true), also: also,
				want: cancelled(snapshot.ReasonOperator, func(p place) change { return actRow(monthAct(p.schedule, "cancel")) })},
			way{from: state, event: "cancel", name: "by the planner", token: true, given: inMonth(state, nil), do: cancel(snapshot.ReasonRemoved, false), also: also,
				want: cancelled(snapshot.ReasonRemoved)})
	}
	return ways
}
