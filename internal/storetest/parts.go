package storetest

import (
	"slices"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
)

// parts hold parts of conditions to what each of them refuses by itself: those that the walks always meet together with
// another that refuses as well.
func parts(t *testing.T, b *bench) {
	t.Run("an act sent again after another's", func(t *testing.T) { actsWithoutAState(t, b) })
	t.Run("a schedule that changes under a settle", func(t *testing.T) { settledMeanwhile(t, b) })
	t.Run("feedback whose write never came there", func(t *testing.T) {
		p := b.place()
		before := world{}.add(p.subKey(), subRow(p, "submitted"))
		b.write(t, before)
		b.tap.reset()
		b.tap.before = func(n int, _ string) error {
			if n == 0 {
				return timedOut()
			}
			return nil
		}
		err := b.RecordFeedback(t.Context(), newSubmission(p), bounced)
		b.tap.reset()
		failuretest.Want(t, err, failure.StoreUnavailable)
		if d := diff(b.read(t, p), before); d != "" {
			t.Error(d)
		}
	})
	t.Run("a settle beside a schedule that cannot be read", func(t *testing.T) {
		p := b.place()
		b.write(t, withSchedule("running", row{schema.LeaseOwner: "worker-1"})(p).add(p.scheduleKey(), scheduleRow(p, "active").with(row{schema.NextDueAt: "soon"})))
		r, err := b.Run(t.Context(), p.run())
		if err != nil {
			t.Fatal(err)
		}
		before := b.read(t, p)
		err = b.Settle(t.Context(), r, schedule.Lease{Token: "worker-1", Now: wall}, schedule.Outcome{Event: schedule.Fail, Code: failure.QueryInvalid})
		if err == nil || schedule.IsConflict(err) {
			t.Errorf("got %v, want an error that names the row", err)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Error(d)
		}
	})
	t.Run("a released run comes out of the dead-letter queue before its time", func(t *testing.T) {
		p := b.place()
		b.write(t, withSchedule("running", row{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: wall.Add(time.Hour)})(p))
		r, err := b.Run(t.Context(), p.run())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Reoffer(t.Context(), r, wall, wall.Add(2*time.Hour), true); err != nil {
			t.Errorf("%v, want it offered again", err)
		}
		if now, err := b.Run(t.Context(), p.run()); err != nil || !now.WakeAt.Equal(wall.Add(2*time.Hour)) || now.DeadLetters != r.DeadLetters+1 {
			t.Errorf("%+v, %v; want its wake_at moved and the visit counted", now, err)
		}
	})
	t.Run("a lease given back that another holds until the same time", func(t *testing.T) {
		p := b.place()
		b.write(t, withSchedule("running", row{schema.LeaseOwner: "worker-9", schema.WakeAt: held.Wake})(p))
		r, err := b.Run(t.Context(), p.run())
		if err != nil {
			t.Fatal(err)
		}
		before := b.read(t, p)
		if err := b.Release(t.Context(), r, held, failure.New(failure.SourceUnavailable, "no answer"), time.Minute); !schedule.IsConflict(err) {
			t.Errorf("release: got %v, want a Conflict", err)
		}
		if err := b.Yield(t.Context(), r, held, 200, "time is nearly up"); !schedule.IsConflict(err) {
			t.Errorf("yield: got %v, want a Conflict", err)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Error(d)
		}
	})
	t.Run("an attempt on a run that has settled", func(t *testing.T) {
		p := b.place()
		b.write(t, withSchedule("succeeded", nil)(p))
		r, err := b.Run(t.Context(), p.run())
		if err != nil {
			t.Fatal(err)
		}
		before := b.read(t, p)
		if _, err = b.Begin(t.Context(), r, schedule.Lease{Token: "worker-9", Now: wall, End: wall.Add(time.Minute), Wake: wall.Add(time.Hour)}); !schedule.IsConflict(err) {
			t.Errorf("got %v, want a Conflict", err)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Error(d)
		}
	})
	t.Run("a submission that another owner left alike", func(t *testing.T) {
		leftAlike(t, b, submissions(b), row{schema.Owner: "worker-99"}, ofOwners)
	})
	t.Run("acceptance that comes after a person's word", func(t *testing.T) { acceptedTooLate(t, b) })
}

func snapshotParts(t *testing.T, b *bench) {
	t.Run("N8 offered again by another, or too soon", func(t *testing.T) { offeredOnce(t, b) })
	t.Run("a claim whose slot is held", func(t *testing.T) { slotHeld(t, b) })
	t.Run("an owner is made once", func(t *testing.T) { ownerMadeOnce(t, b) })
	t.Run("a roll back that read no current version", func(t *testing.T) { rolledBackFromNothing(t, b) })
	t.Run("N4 a row that another job left alike", func(t *testing.T) { leftAlike(t, b, monthly(b), row{schema.Job: 99}, ofJobs) })
	t.Run("a start that knows no execution", func(t *testing.T) { executionKept(t, b) })
	t.Run("writes that never came there", func(t *testing.T) { neverCame(t, b) })
	t.Run("an owner saved again after another's", func(t *testing.T) {
		p := b.place()
		save := func(id, name string) {
			t.Helper()
			a := monthAct(p.schedule, "save owner")
			a.ID = id
			must(t, b.ledger().SaveOwner(t.Context(), snapshot.Owner{ID: p.schedule, Name: name, Cap: 9, Backfill: 3}, a))
		}
		save("act-1", "first")
		save("act-2", "second")
		save("act-1", "first") // its reply was lost, and it is sent again
		if c, err := b.ledger().Caps(t.Context(), p.schedule); err != nil || c.Name != "second" {
			t.Errorf("the owner is called %q, %v; want what was saved last", c.Name, err)
		}
	})
}

// actsWithoutAState are known by their audits alone: their rows bear no version that a second try would be refused by.
func actsWithoutAState(t *testing.T, b *bench) {
	w := func(id, name string) {
		t.Helper()
		must(t, b.PutWorkspace(t.Context(), schedule.Workspace{ID: "TWICE", Name: name, Zone: "UTC"}, actOf("workspace TWICE", id, "save")))
	}
	w("act-1", "first")
	w("act-2", "second")
	w("act-1", "first")
	if got, err := b.Workspace(t.Context(), "TWICE"); err != nil || got.Name != "second" {
		t.Errorf("the workspace is called %q, %v; want what was saved last", got.Name, err)
	}
	b.audited(t, "workspace TWICE", 2)
	s := func(id, engine string) {
		t.Helper()
		must(t, b.PutSource(t.Context(), schedule.SourceConfig{Name: "twice", Engine: engine}, actOf("source twice", id, "save")))
	}
	s("act-1", "first")
	s("act-2", "second")
	s("act-1", "first")
	if got, err := b.Source(t.Context(), "twice"); err != nil || got.Engine != "second" {
		t.Errorf("the source is of %q, %v; want what was saved last", got.Engine, err)
	}
	b.audited(t, "source twice", 2)
	must(t, b.RecordDead(t.Context(), schedule.DeadLetter{MessageID: "twice", At: wall}, expires))
	r := func(id string, at time.Time) {
		t.Helper()
		a := actOf("dead letter twice", id, "redrive")
		a.At = at
		must(t, b.Redriven(t.Context(), "twice", a))
	}
	r("act-1", wall.Add(time.Minute))
	r("act-2", wall.Add(time.Hour))
	r("act-1", wall.Add(time.Minute))
	if got, err := b.DeadLetter(t.Context(), "twice"); err != nil || !got.RedrivenAt.Equal(wall.Add(time.Hour)) {
		t.Errorf("redriven at %s, %v; want the last time", got.RedrivenAt, err)
	}
}

// acceptedTooLate lets a person resolve an unknown between the two writes of an answer that comes late.
func acceptedTooLate(t *testing.T, b *bench) {
	for _, resolved := range []string{"submitted", "skipped"} {
		p := b.place()
		sub := newSubmission(p)
		unknown := subRow(p, "unknown")
		sub.Owner = unknown[schema.Owner].(string)
		b.write(t, world{}.add(p.subKey(), unknown))
		want := world{}.add(p.subKey(), unknown.with(row{schema.State: resolved}))
		b.tap.reset()
		b.tap.before = func(n int, _ string) error {
			if n == 1 {
				b.write(t, want)
			}
			return nil
		}
		err := b.Accepted(t.Context(), sub, "provider-1")
		b.tap.reset()
		if resolved == "skipped" && !schedule.IsConflict(err) {
			t.Errorf("%s by a person: %v, want a Conflict", resolved, err)
		}
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s by a person, and then: %s", resolved, d)
		}
	}
}

func offeredOnce(t *testing.T, b *bench) {
	for name, c := range map[string]struct{ stands, before time.Time }{
		"another offered it since it was read": {offered.Add(-time.Minute), offered},
		"it has not waited":                    {offered, offered.Add(-time.Millisecond)},
	} {
		p, r := b.month(t, "queued", row{schema.OfferedAt: c.stands})
		r.OfferedAt = offered
		before := b.read(t, p)
		_, err := b.ledger().Reoffer(t.Context(), r, wall, c.before)
		refusedWith(t, err)
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// ofJobs and ofOwners are the events that a job, and the owner of a submission, record.
var (
	ofJobs = []snapshot.Event{snapshot.Claim, snapshot.Reoffer, snapshot.Attach, snapshot.Start, snapshot.BeginValidation, snapshot.RecordVerdict, snapshot.RecordQuery, snapshot.NoteQuery,
		snapshot.Publish, snapshot.Fail}
	ofOwners = []schedule.SubmissionEvent{schedule.Accept, schedule.AcceptLate, schedule.Refuse, schedule.NoteNotAccepted, schedule.LoseTrack}
)

// leftAlike lets each write of a job or an owner fail before its effect, and finds a row after it that looks as if it had
// taken effect but is another's: that is no success.
func leftAlike[E ~string](t *testing.T, b *bench, s subject, anothers row, events []E) {
	tried := 0
	for _, w := range s.ways {
		if !slices.Contains(events, E(w.event)) {
			continue
		}
		tried++
		p, before := b.stage(t, w)
		r := b.seen(t, s, w, p)
		alike := before.after(append(w.want(p), change{key: s.key(p), set: anothers}))
		b.tap.reset()
		b.tap.before = func(_ int, operation string) error {
			if !isWrite(operation) {
				return nil
			}
			b.write(t, alike)
			return timedOut()
		}
		err := w.do(t.Context(), b.Store, p, r)
		b.tap.reset()
		if err == nil {
			t.Errorf("%s: success by another's row", w.title())
		}
		if d := diff(b.read(t, p), alike); d != "" {
			t.Errorf("%s: %s", w.title(), d)
		}
	}
	if tried < len(events) {
		t.Errorf("%d ways were tried, want one of each event at least", tried)
	}
}

// neverCame fails the writes that no table has before their effect: an error, and rows as they were.
func neverCame(t *testing.T, b *bench) {
	series := func(p place) snapshot.SeriesRow {
		return snapshot.SeriesRow{Series: p.period().Series, Owner: p.schedule, Scope: snapshot.Scope{Owner: p.schedule}, Next: may, PlanAt: wall}
	}
	for name, do := range map[string]func(p place) error{
		"save an owner": func(p place) error {
			return b.ledger().SaveOwner(t.Context(), snapshot.Owner{ID: p.schedule, Name: "x", Cap: 9}, monthAct(p.schedule, "save owner"))
		},
		"make a series":                 func(p place) error { return b.ledger().PutSeries(t.Context(), series(p), lateSince) },
		"plan a month of a new owner":   func(p place) error { return b.ledger().Plan(t.Context(), firstPlanning(p, "planner-1")) },
		"free a slot of no run's":       func(p place) error { return b.ledger().Free(t.Context(), p.schedule, "no id of ours") },
		"note that a run is cleaned up": func(p place) error { return b.ledger().Cleaned(t.Context(), p.snapshot()) },
	} {
		p := b.place()
		before := b.read(t, p)
		struck := false
		b.tap.reset()
		b.tap.before = func(_ int, operation string) error {
			if struck || !isWrite(operation) {
				return nil
			}
			struck = true
			return timedOut()
		}
		err := do(p)
		b.tap.reset()
		if !struck {
			t.Errorf("%s: wrote nothing", name)
		}
		if !failure.Is(err, failure.StoreUnavailable) {
			t.Errorf("%s: got %v, want %s", name, err, failure.StoreUnavailable)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// executionKept: who begins without knowing the execution leaves the one that was attached.
func executionKept(t *testing.T, b *bench) {
	p, r := b.month(t, "queued", row{schema.Execution: "arn:attached"})
	got, err := b.ledger().Begin(t.Context(), r, snapshot.Beginning{Mode: snapshot.Chunked, Generation: 1, Now: wall})
	if err != nil || got.Execution != "arn:attached" || b.monthRun(t, p).Execution != "arn:attached" {
		t.Errorf("the run's execution is %q, %v; want the one that was attached", got.Execution, err)
	}
}

// slotHeld: a slot that stands for a run that is not admitted is drift, and is freed before the run is claimed.
func slotHeld(t *testing.T, b *bench) {
	for name, c := range map[string]struct {
		backfill  bool
		backfills int
	}{"current": {false, 2}, "current, no backfills": {false, 0}, "backfill": {true, 2}} {
		p, r := b.month(t, "planned", row{schema.Backfill: c.backfill})
		b.write(t, world{}.add(p.capsKey(), ownerRow(p, []string{p.snapshot()}, nil).with(row{schema.BackfillCap: c.backfills})))
		before := b.read(t, p)
		_, err := b.ledger().Claim(t.Context(), r, snapshot.Owner{ID: p.schedule, Cap: 5, Backfill: c.backfills}, wall)
		if told := refusedWith(t, err); told.caps == nil {
			t.Errorf("%s: the refusal tells %+v, want the caps", name, told)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// ownerMadeOnce lets another make the owner, and take slots, after the first plan saw that there is none.
func ownerMadeOnce(t *testing.T, b *bench) {
	p := b.place()
	b.tap.reset()
	b.tap.before = func(_ int, operation string) error {
		if operation == "PutItem" {
			b.write(t, world{}.add(p.capsKey(), ownerRow(p, others, nil)))
		}
		return nil
	}
	err := b.ledger().Plan(t.Context(), firstPlanning(p, "planner-1"))
	b.tap.reset()
	must(t, err)
	b.holds(t, p, []string{"other-1", "other-2"}, nil)
}

func rolledBackFromNothing(t *testing.T, b *bench) {
	p := b.place()
	b.write(t, monthWorld(p, "failed", nil).add(p.headKey(), monthHead(p).with(row{schema.Active: nil})).add(p.versionKey(2), monthRow(p, "published").with(row{schema.Manifest: "22"})))
	second, err := b.ledger().Run(t.Context(), snapshot.Run{Period: p.period(), Version: 2}.ID())
	must(t, err)
	before := b.read(t, p)
	err = b.ledger().RollBack(t.Context(), snapshot.Pointer{Period: p.period()}, second, monthAct(p.schedule, "roll back"))
	if c := refusedWith(t, err); c.pointer == nil {
		t.Errorf("the refusal tells %+v, want the pointer that stands", c)
	}
	if d := diff(b.read(t, p), before); d != "" {
		t.Error(d)
	}
}
