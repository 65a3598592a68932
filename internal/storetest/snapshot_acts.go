package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/input"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/source"
)

func snapshotActs(t *testing.T, b *bench) {
	t.Run("what is not there", func(t *testing.T) { nothingThere(t, b) })
	t.Run("the first plan of a month", func(t *testing.T) { firstPlan(t, b) })
	t.Run("a series", func(t *testing.T) { seriesPlace(t, b) })
	t.Run("a definition", func(t *testing.T) { definitionVersions(t, b) })
	t.Run("a run comes back as it was planned", func(t *testing.T) { readBack(t, b) })
	t.Run("a query that was noted", func(t *testing.T) { notedQueries(t, b) })
	t.Run("months side by side", func(t *testing.T) { monthsSideBySide(t, b) })
	t.Run("rows that cannot be read", func(t *testing.T) { brokenMonths(t, b) })
}

func nothingThere(t *testing.T, b *bench) {
	p, l, ctx := b.place(), b.ledger(), t.Context()
	for _, id := range []string{p.snapshot(), "", "no id of ours", p.schedule + "_departures_2013-13_v1"} {
		if _, err := l.Run(ctx, id); !errors.Is(err, snapshot.ErrNotFound) {
			t.Errorf("run %q: %v, want ErrNotFound", id, err)
		}
	}
	if h, err := l.Head(ctx, p.period()); err != nil || h != (snapshot.Head{Period: p.period()}) {
		t.Errorf("%+v, %v; want a head without a version", h, err)
	}
	if at, err := l.Pointer(ctx, p.period()); err != nil || at != (snapshot.Pointer{Period: p.period()}) {
		t.Errorf("%+v, %v; want a pointer to nothing", at, err)
	}
	scope := snapshot.Scope{Workspace: p.schedule}
	_, present := l.Present(ctx, scope, typ)
	_, version := l.Definition(ctx, scope, typ, 1)
	_, series := l.Series(ctx, p.period().Series)
	for name, err := range map[string]error{"present": present, "version": version, "series": series, "cleaned": l.Cleaned(ctx, "no id of ours")} {
		if !errors.Is(err, snapshot.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	refusedWith(t, l.Cleaned(ctx, p.snapshot()))
	if d := diff(b.read(t, p), world{}); d != "" {
		t.Error(d)
	}
}

// firstPlan has no head to stand on: it makes one. A version that does not follow the head is refused before it is sent.
func firstPlan(t *testing.T, b *bench) {
	for event, state := range map[snapshot.Event]snapshot.State{snapshot.Plan: snapshot.Planned, snapshot.PlanIneligible: snapshot.Skipped, snapshot.Request: snapshot.Planned} {
		p := b.place()
		b.write(t, world{}.add(p.capsKey(), ownerRow(p, nil, nil)))
		a := firstPlanning(p, "planner-2")
		a.Event = event
		head := row{schema.OwnerOf: p.schedule, schema.Latest: 1, schema.LatestState: string(state), schema.Active: 1, schema.LateShard: schema.LateShardOf(p.schedule, typ), schema.LateAt: lateSince}
		run := row{}
		if state == snapshot.Skipped {
			a.Run.Reason = snapshot.ReasonLoading
			head = head.with(row{schema.Active: nil, schema.LatestWhy: "loading"})
			run = row{schema.State: "skipped", schema.Work: nil, schema.WorkAt: nil, schema.SettledAt: wall, schema.Reason: "loading"}
		}
		for range 2 { // the second time it is known by its token
			must(t, b.ledger().Plan(t.Context(), a))
		}
		want := world{}.add(p.capsKey(), ownerRow(p, nil, nil)).add(p.headKey(), head).after([]change{{key: p.firstKey(), set: plannedMonth(p, event, run)}})
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s: %s", event, d)
		}
		a.Token = "planner-3"
		if c := refusedWith(t, b.ledger().Plan(t.Context(), a)); c.snap == nil || c.snap.State != state {
			t.Errorf("%s again by another: told %+v, want the run", event, c)
		}
		a.Run.Version = 3
		b.tap.reset()
		if refusedWith(t, b.ledger().Plan(t.Context(), a)); b.tap.calls.Load() > 0 {
			t.Errorf("%s of a version that does not follow: %d calls, want none", event, b.tap.calls.Load())
		}
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s, refused: %s", event, d)
		}
	}
}

func seriesPlace(t *testing.T, b *bench) {
	p, l, ctx := b.place(), b.ledger(), t.Context()
	begun := snapshot.SeriesRow{Series: p.period().Series, Owner: p.schedule, Scope: snapshot.Scope{Workspace: p.schedule}, Next: may, PlanAt: mayEnd}
	must(t, l.PutSeries(ctx, begun, lateSince))
	other := begun
	other.Next = may.Add(5)
	must(t, l.PutSeries(ctx, other, lateSince)) // one that stands is left as it is
	read, err := l.Series(ctx, begun.Series)
	if err != nil || !reflect.DeepEqual(read, begun) {
		t.Fatalf("%+v, %v; want %+v", read, err, begun)
	}
	key := schema.SeriesKey(p.schedule, typ)
	plain := row{schema.OwnerOf: p.schedule, schema.Scope: "WS#" + p.schedule, schema.NextMonth: "2013-05", schema.PlanAt: mayEnd, schema.PlanShard: schema.PlanShardOf(p.schedule, typ),
		schema.LateAt: lateSince, schema.LateShard: schema.LateShardOf(p.schedule, typ), schema.DirKind: "series", schema.DirName: p.schedule + "/departures"}
	if d := diff(b.read(t, p), world{}.add(key, plain)); d != "" {
		t.Error(d)
	}
	to := snapshot.SeriesRow{Series: begun.Series, Owner: "airports", Scope: snapshot.Scope{Owner: "airports"}, Next: may.Add(1), PlanAt: mayEnd.Add(time.Hour), Revisiting: []calendar.Month{may, may.Add(-1)}}
	contest(t, 4, func(ctx context.Context, i int) error {
		mine := to
		mine.PlanAt = to.PlanAt.Add(time.Duration(i) * time.Second)
		return b.rival().ledger().MoveSeries(ctx, read, mine, lateSince.Add(time.Hour))
	})
	now, err := l.Series(ctx, begun.Series)
	must(t, err)
	to.PlanAt = now.PlanAt
	if !reflect.DeepEqual(now, to) {
		t.Errorf("%+v, want %+v", now, to)
	}
	b.tap.reset()
	b.tap.after = func(n int, operation string) error {
		if isWrite(operation) {
			return timedOut()
		}
		return nil
	}
	off := now
	off.PlanAt, off.Off, off.Revisiting = time.Time{}, "workspace removed", nil
	err = l.MoveSeries(ctx, now, off, time.Time{})
	b.tap.reset()
	must(t, err) // its reply was lost
	if d := diff(b.read(t, p), world{}.add(key, plain.with(row{schema.OwnerOf: "airports", schema.Scope: "OWNER#airports", schema.NextMonth: "2013-06", schema.Off: "workspace removed",
		schema.PlanAt: nil, schema.PlanShard: nil, schema.LateAt: nil, schema.LateShard: nil}))); d != "" {
		t.Error(d)
	}
	for name, change := range map[string]func(*snapshot.SeriesRow){
		"next": func(s *snapshot.SeriesRow) { s.Next = may }, "plan at": func(s *snapshot.SeriesRow) { s.PlanAt = mayEnd }, "off": func(s *snapshot.SeriesRow) { s.Off = "" },
		"revisit": func(s *snapshot.SeriesRow) { s.Revisiting = []calendar.Month{may} },
	} {
		stale := off
		change(&stale)
		if err := l.MoveSeries(ctx, stale, begun, lateSince); !snapshot.IsConflict(err) {
			t.Errorf("moved with another %s: %v, want a Conflict", name, err)
		}
	}
	q := b.place()
	refusedWith(t, l.MoveSeries(ctx, snapshot.SeriesRow{Series: q.period().Series}, snapshot.SeriesRow{Series: q.period().Series, Next: may}, lateSince))
	if d := diff(b.read(t, q), world{}); d != "" {
		t.Errorf("a move made a series: %s", d)
	}
}

func definitionVersions(t *testing.T, b *bench) {
	p, l, ctx := b.place(), b.ledger(), t.Context()
	five := 5.0
	scope := snapshot.Scope{Workspace: p.schedule}
	of := func(n int) snapshot.Version {
		return snapshot.Version{Number: n, Hash: fmt.Sprint("hash-", n), CreatedBy: "ann@example.com", CreatedAt: wall, Definition: snapshot.Definition{Scope: scope, Type: typ, Name: "Departures",
			Source: "flights", Start: may, Query: "select 1", Key: "id", Control: "select count(*) rows", Mode: snapshot.Chunked, Checks: snapshot.Checks{DriftRows: snapshot.Drift{ByMonth: &five}},
			LoadDelay: input.Duration(time.Hour), Waived: []snapshot.Waiver{{Month: may, Reason: "no data"}}, Params: input.Parameters{"min": int64(9007199254740993)}}}
	}
	act := func(n int) snapshot.Audit {
		a := monthAct(p.schedule, "save definition")
		a.ID = fmt.Sprint("act-", n)
		return a
	}
	for n := 1; n <= 2; n++ {
		for range 2 { // sent again: the act is there
			must(t, l.SaveDefinition(ctx, of(n), n-1, act(n)))
		}
		got, err := l.Present(ctx, scope, typ)
		if err != nil || !reflect.DeepEqual(got, of(n)) {
			t.Errorf("%+v, %v; want %+v", got, err, of(n))
		}
	}
	first, err := l.Definition(ctx, scope, typ, 1)
	if err != nil || !reflect.DeepEqual(first, of(1)) {
		t.Errorf("%+v, %v; want %+v", first, err, of(1))
	}
	before := b.read(t, p)
	for name, read := range map[string]int{"as if there were none": 0, "over an old one": 1, "over one to come": 3} {
		if err := l.SaveDefinition(ctx, of(3), read, act(3)); !snapshot.IsConflict(err) {
			t.Errorf("saved %s: %v, want a Conflict", name, err)
		}
	}
	if err := l.SaveDefinition(ctx, of(1), 2, act(3)); !snapshot.IsConflict(err) {
		t.Errorf("an old version written again: %v, want a Conflict", err)
	}
	if d := diff(b.read(t, p), before); d != "" {
		t.Error(d)
	}
	contest(t, 6, func(ctx context.Context, i int) error {
		return b.rival().ledger().SaveDefinition(ctx, of(3), 2, act(10+i))
	})
}

// readBack plans a run with all that planning can give it, and lets it run: what was written is what is read.
func readBack(t *testing.T, b *bench) {
	p, l, ctx := b.place(), b.ledger(), t.Context()
	a := firstPlanning(p, "planner-1")
	a.Event, a.Run.Backfill, a.Run.RequestedBy, a.Run.RequestWhy = snapshot.Request, true, "ann@example.com", "late rows"
	a.Run.Scope = snapshot.Scope{Workspace: p.schedule}
	a.Run.Accepted = []snapshot.Acceptance{{Check: "drift rows", Found: "40", By: "ann@example.com", Why: "new airline"}}
	must(t, l.Plan(ctx, a))
	want := a.Run
	want.State, want.Timeline = snapshot.Planned, []string{stamp + "request"}
	r, err := l.Run(ctx, want.ID())
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v\nwant %+v", r, err, want)
	}
	r, err = l.Claim(ctx, r, snapshot.Owner{Cap: 5, Backfill: 2}, wall)
	must(t, err)
	basis := snapshot.Basis{Definition: 3, Start: mayStart, End: mayEnd, Source: "a version with spaces"}
	r, err = l.Begin(ctx, r, snapshot.Beginning{Mode: snapshot.Single, Generation: 1, Cursor: snapshot.Cursor{Chunk: 2, Key: "i:7", Rows: 9007199254740993, Done: true, Place: 12}, Execution: arn, Basis: basis, Now: wall})
	must(t, err)
	r, err = l.BeginValidation(ctx, r, wall)
	must(t, err)
	verdict := snapshot.Verdict{Passed: true, Manifest: "cd34", Checks: []snapshot.Check{{Name: "rows", Expected: "2", Found: "2", Passed: true, Accepted: "ann"}}}
	must(t, l.RecordVerdict(ctx, r, verdict, wall))
	must(t, l.RecordQuery(ctx, r, snapshot.Query{For: "1 control", ID: "query-1"}))
	r.Query.ID = "query-1"
	_, err = l.NoteQuery(ctx, r, true, source.Cost{Scanned: 9007199254740993, Micros: 48})
	must(t, err)
	want.State, want.Job, want.Execution, want.ClaimedAt, want.StartedAt, want.Attempts = snapshot.Validating, 1, arn, wall, wall, 1
	want.Mode, want.Generation, want.Basis, want.Verdict = snapshot.Single, 1, basis, &verdict
	want.Cursor = snapshot.Cursor{Chunk: 2, Key: "i:7", Rows: 9007199254740993, Done: true, Place: 12}
	want.Query = snapshot.Query{Number: 1, For: "1 control", ID: "query-1", Ended: true, Noted: true}
	want.QueryCost = source.Cost{Scanned: 9007199254740993, Micros: 48}
	want.Timeline = []string{stamp + "request", stamp + "claim, job 1", stamp + "start, attempt 1", stamp + "begin validation"}
	if r, err = l.Run(ctx, want.ID()); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v\nwant %+v", r, err, want)
	}
	if r.Manifest() != "cd34" || a.Run.Manifest() != "" {
		t.Errorf("manifests %q and %q", r.Manifest(), a.Run.Manifest())
	}
}

// notedQueries: a cost is counted once, whatever is noted of its query later, and of a run that no job holds beside its end.
func notedQueries(t *testing.T, b *bench) {
	cost, dear := source.Cost{Scanned: 1000, Micros: 48}, source.Cost{Scanned: 9000, Micros: 480}
	noted := row{schema.QueryNoted: true, schema.QueryScanned: 1000, schema.QueryMicros: 48}
	wantRow := func(p place, w world, set row) {
		t.Helper()
		if d := diff(b.read(t, p), w.after([]change{{key: p.snapshotKey(), set: set}})); d != "" {
			t.Error(d)
		}
	}
	p := b.place()
	w := monthWorld(p, "running", asked.lay(noted))
	b.write(t, w)
	r, err := b.ledger().NoteQuery(t.Context(), b.monthRun(t, p), true, cost) // its result was lost
	must(t, err)
	wantRow(p, w, row{schema.QueryEnded: true})
	if r.QueryCost != cost || !r.Query.Ended {
		t.Errorf("%+v", r)
	}
	r.Query.Noted, r.Query.Ended = false, false // as another call has read it before
	_, err = b.ledger().NoteQuery(t.Context(), r, false, cost)
	refusedWith(t, err)
	_, err = b.ledger().NoteQuery(t.Context(), r, true, dear) // whose reply was lost: what stands is not counted anew
	must(t, err)
	wantRow(p, w, row{schema.QueryEnded: true})
	for _, state := range []string{"running", "validating"} {
		p := b.place()
		b.write(t, monthWorld(p, state, asked))
		r := b.monthRun(t, p)
		r.Query.Noted = true // which no row has said: a sum that may be wrong is not written
		_, err := b.ledger().NoteQuery(t.Context(), r, false, cost)
		refusedWith(t, err)
	}
	for state, another := range map[string]snapshot.State{"cancelled": snapshot.Failed, "failed": snapshot.Published, "published": snapshot.Cancelled} {
		p := b.place()
		w := monthWorld(p, state, asked)
		b.write(t, w)
		read := b.monthRun(t, p)
		other, moved := read, read
		other.Query.ID, moved.State = "query-9", another
		for _, stale := range []snapshot.Run{other, moved} {
			_, err := b.ledger().NoteStopped(t.Context(), stale, cost)
			refusedWith(t, err)
		}
		wantRow(p, w, nil)
		r, err := b.ledger().NoteStopped(t.Context(), read, cost)
		must(t, err)
		wantRow(p, w, noted.lay(row{schema.QueryEnded: true}))
		if r.QueryCost != cost || string(r.State) != state {
			t.Errorf("%+v", r)
		}
		_, err = b.ledger().NoteStopped(t.Context(), read, dear) // whose reply was lost
		must(t, err)
		wantRow(p, w, noted.lay(row{schema.QueryEnded: true}))
	}
}

// brokenMonths are rows that someone else has written: an error says what is wrong with which.
func brokenMonths(t *testing.T, b *bench) {
	for name, set := range map[string]row{
		"period_start": {schema.PeriodStart: "yesterday"}, "basis": {schema.Basis: "3 x y"}, "basis, a word": {schema.Basis: "3 1 b c"}, "checks": {schema.CheckList: "{"}, "accepts": {schema.Accepts: "{"},
	} {
		p := b.place()
		b.write(t, monthWorld(p, "validating", set))
		if _, err := b.ledger().Run(t.Context(), p.snapshot()); err == nil {
			t.Errorf("%s: a run that cannot be read was read", name)
		}
		if _, err := b.ledger().Versions(t.Context(), p.period()); err == nil {
			t.Errorf("%s: versions that cannot be read were listed", name)
		}
	}
	p, l, ctx := b.place(), b.ledger(), t.Context()
	b.write(t, world{}.add(p.headKey(), monthHead(p).with(row{schema.LateAt: "soon"})).add(p.pointerKey(), current(p).with(row{schema.MovedAt: "soon"})).
		add(schema.SeriesKey(p.schedule, typ), row{schema.PlanAt: "soon"}).add(schema.SnapshotDefinitionKey("WS#"+p.schedule, typ), row{schema.Body: "{"}).
		add(p.chunkKey(), row{schema.Sums: "{"}).add(schema.Key{PK: p.chunkKey().PK, SK: "CHUNK#00000001x"}, row{}))
	_, head := l.Head(ctx, p.period())
	_, pointer := l.Pointer(ctx, p.period())
	_, months := l.Months(ctx, p.period().Series)
	_, series := l.Series(ctx, p.period().Series)
	_, present := l.Present(ctx, snapshot.Scope{Workspace: p.schedule}, typ)
	_, chunks := l.Chunks(ctx, p.snapshot(), 2, 2, 10)
	_, unnumbered := l.Chunks(ctx, p.snapshot(), 2, 0, 10)
	for name, err := range map[string]error{"head": head, "pointer": pointer, "months": months, "series": series, "present": present, "chunks": chunks, "a chunk without a number": unnumbered} {
		if err == nil {
			t.Errorf("%s: a row that cannot be read was read", name)
		}
	}
}
