package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/memcloud"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/store"
	"almanac/internal/storetest"
)

// meteredSnapshots is a store in memory whose write units are read step by step.
type meteredSnapshots struct {
	*store.Snapshots
	meter metered
}

const snapshotsTable = "Snapshots"

func newMeteredSnapshots(t *testing.T) *meteredSnapshots {
	t.Helper()
	db := memcloud.NewDynamo(time.Now)
	if _, err := db.CreateTable(t.Context(), storetest.SnapshotsTableInput(snapshotsTable)); err != nil {
		t.Fatal(err)
	}
	return &meteredSnapshots{store.NewSnapshots(db, snapshotsTable, store.New(db, "Schedules", "test")), metered{db: db}}
}

func (m *meteredSnapshots) last() meteredStep { return m.meter.rows[len(m.meter.rows)-1] }

var (
	month     = calendar.Month{Year: 2013, Month: time.May}
	departure = snapshot.Period{Series: snapshot.Series{Workspace: "EWR", Type: "departures"}, Month: month}
	wallNow   = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
)

// execution is as long as the name of a real one.
func execution(r snapshot.Run) string {
	return "arn:aws:states:us-east-1:123456789012:execution:almanac-production-snapshot-attempt:" + r.JobName()
}

func planning(version int, head snapshot.Head) snapshot.Planning {
	start := time.Date(2013, 5, 1, 4, 0, 0, 0, time.UTC)
	return snapshot.Planning{Event: snapshot.Plan, Head: head, Token: strings.Repeat("7", 32), LateAt: start.AddDate(0, 1, 3),
		Run: snapshot.Run{Period: departure, Version: version, Owner: snapshot.DefaultOwner, Backfill: true, Scope: snapshot.Scope{Owner: snapshot.DefaultOwner},
			Definition: 12, Start: start, End: start.AddDate(0, 1, 0), Zone: "America/New_York", CreatedAt: wallNow}}
}

func chunk(r snapshot.Run, n int) (snapshot.Chunk, snapshot.Cursor) {
	c := snapshot.Chunk{Number: n, SHA256: strings.Repeat("ab", 32), Bytes: 4_567_890, Rows: 10_000, First: fmt.Sprintf("i:%d", n*10_000), Last: fmt.Sprintf("i:%d", n*10_000+9_999),
		Object: fmt.Sprintf("snapshots/%s/g%d/%08d-%s.csv.gz", r.ID(), r.Generation, n, strings.Repeat("0", 32)), Sums: map[string]string{"dep_delay": "123456", "distance": "98765432"}, Increasing: true}
	return c, snapshot.Cursor{Chunk: n, Key: c.Last, Rows: int64(n) * c.Rows, Done: n == 100}
}

// A month of 100 chunks costs 400 units for its chunks, the floor, and few more for all the rest: as long as the run's
// row stays within one KB. Index writes are apart.
func TestWriteUnitsOfASnapshotAreAtTheFloor(t *testing.T) {
	m := newMeteredSnapshots(t)
	run := planning(1, snapshot.Head{Period: departure}).Run
	ask := func(name string, floor float64, do func(context.Context) error) { m.meter.step(t, name, floor, do) }
	ask("plan", 5, func(ctx context.Context) error { return m.Plan(ctx, planning(1, snapshot.Head{Period: departure})) }) // 1 for the owner's item, once
	run, err := m.Run(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	caps, err := m.Caps(t.Context(), snapshot.DefaultOwner)
	if err != nil {
		t.Fatal(err)
	}
	ask("claim", 4, func(ctx context.Context) error { run, err = m.Claim(ctx, run, caps.Owner, wallNow); return err })
	ask("attach", 1, func(ctx context.Context) error { return m.Attach(ctx, run, execution(run)) })
	ask("begin", 1, func(ctx context.Context) error {
		run, err = m.Begin(ctx, run, snapshot.Beginning{Mode: snapshot.Chunked, Generation: 1, Execution: execution(run), Now: wallNow,
			Basis: snapshot.Basis{Definition: 12, Start: run.Start, End: run.End, Source: `"` + strings.Repeat("e", 32) + `-14"`}})
		return err
	})
	for n := 1; n <= 100; n++ {
		c, to := chunk(run, n)
		if n == 1 {
			c.Columns = []snapshot.Column{{Name: "year", Type: "integer"}, {Name: "dep_delay", Type: "integer"}, {Name: "distance", Type: "integer"}}
		}
		ask(fmt.Sprintf("chunk %d", n), 4, func(ctx context.Context) error { return m.Commit(ctx, run, c, to, wallNow) })
		run.Cursor = to
	}
	ask("begin validation", 1, func(ctx context.Context) error { run, err = m.BeginValidation(ctx, run, wallNow); return err })
	verdict := snapshot.Verdict{Passed: true, Manifest: strings.Repeat("cd", 32)}
	for _, name := range []string{"rows", "sum dep_delay", "sum distance", "increasing key", "digests"} {
		verdict.Checks = append(verdict.Checks, snapshot.Check{Name: name, Expected: "1000000", Found: "1000000", Passed: true})
	}
	ask("record verdict", 2, func(ctx context.Context) error { return m.RecordVerdict(ctx, run, verdict, wallNow) })
	if run, err = m.Run(t.Context(), run.ID()); err != nil {
		t.Fatal(err)
	}
	ask("publish", 10, func(ctx context.Context) error {
		return m.Publish(ctx, run, snapshot.Pointer{Period: departure}, wallNow)
	})
	var table, index, chunks float64
	t.Logf("%-22s %6s %6s %7s %7s %6s", "step", "calls", "floor", "table", "index", "read")
	for _, r := range m.meter.rows {
		table, index = table+r.table, index+r.index
		if strings.HasPrefix(r.name, "chunk") {
			chunks += r.table
		} else {
			t.Logf("%-22s %6d %6.0f %7.1f %7.1f %6.1f", r.name, r.calls, r.floor, r.table, r.index, r.read)
		}
		if r.table > r.floor {
			t.Errorf("%s costs %.0f write units, want at most %.0f", r.name, r.table, r.floor)
		}
	}
	t.Logf("100 chunks %.0f, floor 400; the rest %.0f, floor about 20; indexes %.0f", chunks, table-chunks, index)
	if chunks != 400 || table-chunks > 25 {
		t.Errorf("chunks cost %.0f and the rest %.0f write units, want 400 and about 20", chunks, table-chunks)
	}
	for _, it := range m.meter.db.Items(snapshotsTable) {
		if !strings.HasPrefix(textOf(it, schema.SK), schema.ChunkPrefix) {
			t.Logf("%4d bytes: %s / %s", sizeOf(it), textOf(it, schema.PK), textOf(it, schema.SK))
		}
	}
}

// The row that is written with each chunk stays within one KB for the longest names that are let in.
func TestAChunkCostsFourUnitsForTheLongestNames(t *testing.T) {
	m := newMeteredSnapshots(t)
	p := planning(1, snapshot.Head{})
	p.Run.Workspace, p.Run.Type, p.Run.Owner = strings.Repeat("w", 40), strings.Repeat("t", snapshot.MaxType), strings.Repeat("o", 40)
	p.Run.Scope.Owner, p.Head.Period = p.Run.Owner, p.Run.Period
	if err := m.Plan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(t.Context(), p.Run.ID())
	if err != nil {
		t.Fatal(err)
	}
	if r, err = m.Claim(t.Context(), r, snapshot.Owner{Cap: 5, Backfill: 2}, wallNow); err != nil {
		t.Fatal(err)
	}
	if r, err = m.Begin(t.Context(), r, snapshot.Beginning{Mode: snapshot.Chunked, Generation: 1, Execution: execution(r), Now: wallNow,
		Basis: snapshot.Basis{Definition: 12, Start: r.Start, End: r.End, Source: `"` + strings.Repeat("e", 32) + `-14"`}}); err != nil {
		t.Fatal(err)
	}
	c, to := chunk(r, 1)
	m.meter.step(t, "chunk", 4, func(ctx context.Context) error { return m.Commit(ctx, r, c, to, wallNow) })
	if got := m.last(); got.table != got.floor {
		t.Errorf("a chunk costs %.0f units, want %.0f", got.table, got.floor)
	}
}

// What a write costs in the indexes of the table Snapshots, as internal/schema says.
func TestIndexUnitsOfSnapshotsAreAsDocumented(t *testing.T) {
	m := newMeteredSnapshots(t)
	act := func(what string) snapshot.Audit {
		return snapshot.Audit{ID: what, Subject: "EWR", At: wallNow, Who: "ann@example.com", What: what, Why: "because"}
	}
	caps := snapshot.Owner{ID: snapshot.DefaultOwner, Cap: 5, Backfill: 2}
	version := 0
	of := func(adjust func(*snapshot.Planning)) snapshot.Planning {
		h, err := m.Head(t.Context(), departure)
		if err != nil {
			t.Fatal(err)
		}
		version = h.Latest + 1
		p := planning(version, h)
		adjust(&p)
		return p
	}
	run := func() snapshot.Run {
		t.Helper()
		r, err := m.Run(t.Context(), snapshot.Run{Period: departure, Version: version}.ID())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	plan := func(adjust func(*snapshot.Planning)) func(context.Context) error {
		return func(ctx context.Context) error { return m.Plan(ctx, of(adjust)) }
	}
	request := plan(func(p *snapshot.Planning) { p.Event = snapshot.Request; p.LateAt = p.Head.LateAt })
	claim := func(ctx context.Context) error {
		_, err := m.Claim(ctx, run(), caps, wallNow.Add(time.Hour))
		return err
	}
	begin := func(ctx context.Context) error {
		_, err := m.Begin(ctx, run(), snapshot.Beginning{Mode: snapshot.Chunked, Generation: 1, Now: wallNow})
		return err
	}
	fail := func(next time.Time) func(context.Context) error {
		return func(ctx context.Context) error {
			return m.Fail(ctx, run(), snapshot.Settlement{Code: "source_unavailable", NextAt: next}, wallNow)
		}
	}
	cancel := func(reason string) func(context.Context) error {
		return func(ctx context.Context) error {
			return m.Cancel(ctx, run(), snapshot.Cancellation{Reason: reason, By: "ann", At: wallNow})
		}
	}
	validate := func(ctx context.Context) error { _, err := m.BeginValidation(ctx, run(), wallNow); return err }
	series := snapshot.SeriesRow{Series: departure.Series, Next: month, PlanAt: wallNow}
	moved := series
	moved.PlanAt = wallNow.Add(time.Hour)
	definition := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			return m.SaveDefinition(ctx, snapshot.Version{Number: n, Definition: snapshot.Definition{Scope: snapshot.Scope{Owner: "default"}, Type: "departures", Start: month}}, n-1, act(fmt.Sprint("save ", n)))
		}
	}
	for _, c := range []struct {
		name  string
		index float64
		do    func(context.Context) error
	}{
		{"save an owner", 1, func(ctx context.Context) error { return m.SaveOwner(ctx, caps, act("save owner")) }},
		{"save the owner again", 0, func(ctx context.Context) error { return m.SaveOwner(ctx, caps, act("save owner again")) }},
		{"save a definition", 1, definition(1)},
		{"save a version of it", 0, definition(2)},
		{"put a series", 3, func(ctx context.Context) error { return m.PutSeries(ctx, series, wallNow) }},
		{"move it, its late time stays", 2, func(ctx context.Context) error { return m.MoveSeries(ctx, series, moved, wallNow) }},
		{"move it, and its late time", 4, func(ctx context.Context) error { return m.MoveSeries(ctx, moved, series, wallNow.Add(time.Hour)) }},
		{"plan ineligible, loading", 1, plan(func(p *snapshot.Planning) { p.Event, p.Run.Reason = snapshot.PlanIneligible, snapshot.ReasonLoading })},
		{"plan ineligible, policy", 1, plan(func(p *snapshot.Planning) {
			p.Event, p.Run.Reason, p.LateAt = snapshot.PlanIneligible, snapshot.ReasonPolicy, time.Time{}
		})},
		{"plan", 2, plan(func(*snapshot.Planning) {})},
		{"claim", 2, claim},
		{"re-offer", 0, func(ctx context.Context) error {
			_, err := m.Reoffer(ctx, run(), wallNow.Add(2*time.Hour), wallNow.Add(time.Hour))
			return err
		}},
		{"attach", 0, func(ctx context.Context) error { return m.Attach(ctx, run(), execution(run())) }},
		{"start", 0, begin},
		{"resume", 0, func(ctx context.Context) error { _, err := m.Resume(ctx, run()); return err }},
		{"record query", 0, func(ctx context.Context) error {
			return m.RecordQuery(ctx, run(), snapshot.Query{For: "1 rows", ID: "q"})
		}},
		{"commit chunk", 0, func(ctx context.Context) error {
			c, to := chunk(run(), 1)
			to.Done = true
			return m.Commit(ctx, run(), c, to, wallNow)
		}},
		{"fail, again later", 2, fail(wallNow.Add(3 * time.Hour))},
		{"retry now", 2, func(ctx context.Context) error { return m.RetryNow(ctx, run(), wallNow, act("retry now")) }},
		{"claim again", 2, claim},
		{"start again", 0, begin},
		{"begin validation", 0, func(ctx context.Context) error {
			c, to := chunk(run(), 2)
			to.Done = true
			if err := m.Commit(ctx, run(), c, to, wallNow); err != nil {
				return err
			}
			return validate(ctx)
		}},
		{"record verdict", 0, func(ctx context.Context) error {
			return m.RecordVerdict(ctx, run(), snapshot.Verdict{Passed: true, Manifest: "cd"}, wallNow)
		}},
		{"publish", 3, func(ctx context.Context) error {
			return m.Publish(ctx, run(), snapshot.Pointer{Period: departure}, wallNow)
		}},
		{"cleaned", 1, func(ctx context.Context) error { return m.Cleaned(ctx, run().ID()) }},
		{"request of a published month", 1, request},
		{"cancel by a person", 2, cancel(snapshot.ReasonOperator)},
		{"request of a month that is late", 2, plan(func(p *snapshot.Planning) { p.Event = snapshot.Request })},
		{"cancel by the planner", 3, cancel(snapshot.ReasonRemoved)},
		{"request once more", 1, request},
		{"claim once more", 2, claim},
		{"fail for good", 2, fail(time.Time{})},
		{"free", 0, func(ctx context.Context) error { return m.Free(ctx, caps.ID, run().ID()) }},
		{"roll back", 0, func(ctx context.Context) error {
			at, err := m.Pointer(ctx, departure)
			if err != nil {
				return err
			}
			to, err := m.Run(ctx, snapshot.Run{Period: departure, Version: at.Version}.ID())
			if err != nil {
				return err
			}
			return m.RollBack(ctx, at, to, act("roll back"))
		}},
	} {
		m.meter.step(t, c.name, 0, c.do)
		got := m.last()
		t.Logf("%-32s table %4.1f  indexes %4.1f", c.name, got.table, got.index)
		if got.index != c.index {
			t.Errorf("%s costs %.0f units in the indexes, want %.0f", c.name, got.index, c.index)
		}
	}
}
