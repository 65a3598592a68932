package storetest

import (
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// settle is what a run's end does to its schedule, whatever became of the schedule meanwhile. It never fails for that.
func settle(t *testing.T, b *bench) {
	t.Run("V5 streak and last run", func(t *testing.T) { streaks(t, b) })
	t.Run("V20 the schedule is deleted or gone", func(t *testing.T) { goneSchedules(t, b) })
	t.Run("the schedule changes between read and write", func(t *testing.T) { changingSchedules(t, b) })
	t.Run("another settles first", func(t *testing.T) { settledByAnother(t, b) })
}

var (
	succeeded    = schedule.Outcome{Event: schedule.Succeed, Submitted: 1}
	failedOnce   = schedule.Outcome{Event: schedule.Fail, Code: failure.QueryInvalid, Message: "no"}
	deniedAccess = schedule.Outcome{Event: schedule.Fail, Code: failure.SourceAccessDenied, Message: "no"}
	skippedOnce  = schedule.Outcome{Event: schedule.SkipEmpty}
)

// running is a run in work, with an empty file, so that it may end in every way.
func running(p place, on row) world {
	return world{}.add(p.runKey(), runRow(p, "running").with(row{schema.File: emptied(recordedFile)})).add(p.scheduleKey(), on)
}

func streaks(t *testing.T, b *bench) {
	active := func(p place) row { return scheduleRow(p, "active") }
	for _, c := range []struct {
		name    string
		given   func(p place) row
		outcome schedule.Outcome
		want    func(p place) row
	}{
		{"a failure adds one", func(p place) row { return active(p).with(row{schema.Streak: 4}) }, failedOnce,
			func(p place) row {
				return lastRun(p, schedule.Failed, row{schema.Streak: 5, schema.LastRunCode: "query_invalid"})
			}},
		{"a success ends it", active, succeeded,
			func(p place) row {
				return lastRun(p, schedule.Succeeded, row{schema.Streak: 0, schema.LastRunCode: nil, schema.LastSuccess: nominal})
			}},
		{"a skip leaves it", active, skippedOnce, func(p place) row { return lastRun(p, schedule.Skipped, row{schema.LastRunCode: nil}) }},
		{"a schedule's deletion is no failure of it", active, schedule.Outcome{Event: schedule.Fail, Code: failure.ScheduleDeleted},
			func(p place) row { return lastRun(p, schedule.Failed, row{schema.LastRunCode: "schedule_deleted"}) }},
		{"a run older than the last one recorded changes neither", func(p place) row { return active(p).with(row{schema.LastRunNominal: nominal.Add(time.Hour)}) }, failedOnce,
			func(place) row { return row{schema.OpenRun: nil} }},
		{"nor does one of the same time", func(p place) row { return active(p).with(row{schema.LastRunNominal: nominal}) }, failedOnce,
			func(place) row { return row{schema.OpenRun: nil} }},
		{"an older success is still the last success", func(p place) row { return active(p).with(row{schema.LastRunNominal: nominal.Add(time.Hour)}) }, succeeded,
			func(place) row { return row{schema.OpenRun: nil, schema.LastSuccess: nominal} }},
		{"an older success does not take its place", func(p place) row {
			return active(p).with(row{schema.LastRunNominal: nominal.Add(time.Hour), schema.LastSuccess: nominal.Add(time.Hour)})
		}, succeeded, func(place) row { return row{schema.OpenRun: nil} }},
		{"open_run stays where it names another run", func(p place) row { return active(p).with(row{schema.OpenRun: "2013-06-03T13:00:00Z"}) }, failedOnce,
			func(p place) row {
				return lastRun(p, schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "query_invalid"}).with(row{schema.OpenRun: nil})
			}},
		{"nothing to change on the schedule", func(p place) row {
			return active(p).with(row{schema.OpenRun: "2013-06-03T13:00:00Z", schema.LastRunNominal: nominal.Add(time.Hour)})
		}, failedOnce, func(place) row { return nil }},
		{"a code pauses an active schedule", active, deniedAccess, func(p place) row {
			return lastRun(p, schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "source_access_denied", schema.State: "paused", schema.NextDueAt: nil,
				schema.DueShard: nil, schema.PauseReason: "source_access_denied", schema.PausedBy: "system", schema.PausedAt: wall})
		}},
		{"an older run's code pauses too", func(p place) row { return active(p).with(row{schema.LastRunNominal: nominal.Add(time.Hour)}) }, deniedAccess, func(place) row {
			return row{schema.OpenRun: nil, schema.State: "paused", schema.NextDueAt: nil, schema.DueShard: nil, schema.PauseReason: "source_access_denied",
				schema.PausedBy: "system", schema.PausedAt: wall}
		}},
		{"no code pauses a paused schedule again", func(p place) row { return scheduleRow(p, "paused") }, deniedAccess, func(p place) row {
			return lastRun(p, schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "source_access_denied"})
		}},
		{"the first run of a schedule", func(p place) row {
			return active(p).with(row{schema.LastRun: nil, schema.LastRunNominal: nil, schema.LastRunState: nil, schema.LastRunCode: nil, schema.Streak: 0})
		}, failedOnce, func(p place) row {
			return lastRun(p, schedule.Failed, row{schema.Streak: 1, schema.LastRunCode: "query_invalid"})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := b.place()
			before := running(p, c.given(p))
			b.write(t, before)
			b.settles(t, p, c.outcome)
			want := before.after([]change{{key: p.scheduleKey(), set: c.want(p)}})
			if lines := diffItem(p.scheduleKey(), b.row(t, p.scheduleKey()), want[p.scheduleKey()]); len(lines) > 0 {
				t.Errorf("%v", lines)
			}
		})
	}
}

// settles ends the run of a place, and demands that it ended as it should.
func (b *bench) settles(t *testing.T, p place, o schedule.Outcome) {
	t.Helper()
	r, err := b.Run(t.Context(), p.run())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Settle(t.Context(), r, held, o); err != nil {
		t.Fatal(err)
	}
	want, _ := schedule.Runs.Next(schedule.Running, o.Event)
	if r, err = b.Run(t.Context(), p.run()); err != nil || r.State != want.To || r.SettledBy != held.Token {
		t.Errorf("the run is %s by %q, %v; want %s by %s", r.State, r.SettledBy, err, want.To, held.Token)
	}
}

func goneSchedules(t *testing.T, b *bench) {
	t.Run("deleted: the run settles, and the schedule stays deleted", func(t *testing.T) {
		for _, o := range []schedule.Outcome{succeeded, failedOnce, deniedAccess, skippedOnce} {
			p := b.place()
			b.write(t, running(p, scheduleRow(p, "deleted")))
			b.settles(t, p, o)
			s, err := b.Schedule(t.Context(), p.schedule)
			if err != nil || s.State != schedule.Deleted || !s.NextDue.IsZero() || s.PauseReason != "" || s.OpenRun != "" {
				t.Errorf("after %s: %+v, %v", o.Event, s, err)
			}
		}
	})
	t.Run("gone: the run settles, and no ghost appears", func(t *testing.T) {
		for _, o := range []schedule.Outcome{succeeded, failedOnce, deniedAccess, skippedOnce} {
			p := b.place()
			w := running(p, scheduleRow(p, "active"))
			delete(w, p.scheduleKey())
			b.write(t, w)
			b.settles(t, p, o)
			if it := b.row(t, p.scheduleKey()); len(it) > 0 {
				t.Errorf("after %s a ghost: %s", o.Event, show(it))
			}
		}
	})
}

// changingSchedules lets the schedule change after the settle has read it and before it writes.
func changingSchedules(t *testing.T, b *bench) {
	later := nominal.Add(time.Hour)
	latest := row{schema.LastRun: "latest", schema.LastRunNominal: later.Add(time.Hour), schema.LastRunState: "skipped", schema.LastRunCode: nil}
	for _, c := range []struct {
		name string
		to   func(p place) row // nil: gone
		want func(p place) row
		do   schedule.Outcome
		was  row // how it stood before, besides scheduleRow
	}{
		{"a later run settled", func(p place) row {
			return scheduleRow(p, "active").with(row{schema.Streak: 0, schema.LastRun: "later", schema.LastRunNominal: later, schema.LastRunState: "succeeded", schema.LastSuccess: later})
		}, func(place) row { return row{schema.OpenRun: nil} }, failedOnce, nil},
		{"a later run was skipped", func(p place) row { return scheduleRow(p, "active").with(latest) }, func(place) row { return row{schema.OpenRun: nil} }, failedOnce, nil},
		{"a later success", func(p place) row { return scheduleRow(p, "active").with(latest).with(row{schema.LastSuccess: later}) },
			func(place) row { return row{schema.OpenRun: nil} }, succeeded, latest},
		{"an earlier run failed", func(p place) row { return scheduleRow(p, "active").with(row{schema.Streak: 4}) },
			func(p place) row {
				return lastRun(p, schedule.Failed, row{schema.Streak: 5, schema.LastRunCode: "query_invalid"})
			}, failedOnce, nil},
		{"an earlier success", func(p place) row {
			return scheduleRow(p, "active").with(row{schema.LastSuccess: nominal.Add(-time.Hour)})
		},
			func(p place) row {
				return lastRun(p, schedule.Succeeded, row{schema.Streak: 0, schema.LastRunCode: nil, schema.LastSuccess: nominal})
			}, succeeded, nil},
		{"the next occurrence was admitted", func(p place) row {
			return scheduleRow(p, "active").with(row{schema.OpenRun: "next", schema.LastNominal: nextDue})
		},
			func(p place) row {
				return lastRun(p, schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "query_invalid", schema.OpenRun: "next"})
			}, failedOnce, nil},
		{"it was edited, and the code pauses", func(p place) row {
			return scheduleRow(p, "active").with(row{schema.Version: 3, schema.NextDueAt: later})
		},
			func(p place) row {
				return lastRun(p, schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "source_access_denied", schema.State: "paused", schema.NextDueAt: nil,
					schema.DueShard: nil, schema.PauseReason: "source_access_denied", schema.PausedBy: "system", schema.PausedAt: wall})
			}, deniedAccess, nil},
		{"a person paused it, and the code would", func(p place) row { return scheduleRow(p, "paused") },
			func(p place) row {
				return lastRun(p, schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "source_access_denied"})
			}, deniedAccess, nil},
		{"it was deleted", func(p place) row { return scheduleRow(p, "deleted") },
			func(p place) row {
				return lastRun(p, schedule.Failed, row{schema.Streak: 4, schema.LastRunCode: "query_invalid"})
			}, failedOnce, nil},
		{"it is gone", nil, nil, failedOnce, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := b.place()
			before := running(p, scheduleRow(p, "active").with(c.was))
			b.write(t, before)
			changed, once := world{}, false
			if c.to != nil {
				changed = world{}.add(p.scheduleKey(), c.to(p))
			}
			b.tap.reset()
			b.tap.before = func(_ int, operation string) error {
				if isWrite(operation) && !once {
					once = true
					b.overwrite(t, p.scheduleKey(), changed[p.scheduleKey()])
				}
				return nil
			}
			b.settles(t, p, c.do)
			b.tap.reset()
			got := b.row(t, p.scheduleKey())
			if c.to == nil {
				if len(got) > 0 {
					t.Errorf("a ghost: %s", show(got))
				}
				return
			}
			want := changed.after([]change{{key: p.scheduleKey(), set: c.want(p)}})
			if lines := diffItem(p.scheduleKey(), got, want[p.scheduleKey()]); len(lines) > 0 {
				t.Errorf("%v", lines)
			}
		})
	}
}

// settledByAnother lets another worker settle between read and write: its outcome stands, and the schedule hears it once.
func settledByAnother(t *testing.T, b *bench) {
	p := b.place()
	w := running(p, scheduleRow(p, "active"))
	over := row{schema.AttemptsLeft: 0, schema.LeaseEnd: wall.Add(-time.Millisecond)}
	b.write(t, w.after([]change{{key: p.runKey(), set: over}}))
	read, err := b.Run(t.Context(), p.run())
	if err != nil {
		t.Fatal(err)
	}
	once := false
	b.tap.reset()
	b.tap.before = func(_ int, operation string) error {
		if isWrite(operation) && !once {
			once = true
			return b.rival().Settle(t.Context(), read, next, failedOnce)
		}
		return nil
	}
	err = b.Settle(t.Context(), read, held, succeeded)
	b.tap.reset()
	if !schedule.IsConflict(err) {
		t.Errorf("the second settle: %v, want a Conflict", err)
	}
	r, err := b.Run(t.Context(), p.run())
	if err != nil || r.State != schedule.Failed || r.SettledBy != next.Token {
		t.Errorf("the run is %s by %s, %v; want failed by %s", r.State, r.SettledBy, err, next.Token)
	}
	if s, err := b.Schedule(t.Context(), p.schedule); err != nil || s.Streak != 4 || s.LastRunState != schedule.Failed {
		t.Errorf("the schedule says %d, %s, %v; want 4, failed", s.Streak, s.LastRunState, err)
	}
}
