package snapshot_test

import (
	"context"
	"fmt"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/source"
	"almanac/internal/source/postgres"
	"almanac/internal/source/postgres/pgtest"
)

// database is a source whatever its name is.
type database struct{ *postgres.Source }

func (d database) View(ctx context.Context, _, _ string) (source.View, error) {
	return d.Source.View(ctx)
}

// Months of a real PostgreSQL: in one pass, in chunks by a text key in whatever collation, by calls that are killed and see
// another state of the database each; and what changed behind the cursor is found by the control query and not published.
func TestMonthsOfPostgreSQL(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	run := func(sql ...string) {
		t.Helper()
		if err := server.Exec(context.Background(), "postgres", sql...); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE trips (id text COLLATE "en-x-icu" PRIMARY KEY, workspace text, carrier text, delay int, fare numeric, km float8, at timestamptz)`,
		"INSERT INTO trips SELECT (array['a','B','b','A','é'])[1 + g % 5] || g, 'EWR', 'UA', g % 7, 0.1000000000000000055 * g, g / 2.0, '2013-01-01 05:00Z'::timestamptz + g * interval '1 hour' FROM generate_series(0, 249) AS g",
		"GRANT SELECT ON trips TO "+pgtest.Reader)
	src := &postgres.Source{Config: postgres.Config{Host: "localhost", Port: server.Port, Database: "postgres", CA: server.CA}, SignIn: func(context.Context, bool) (postgres.Login, error) {
		return postgres.Login{User: pgtest.Reader, Password: pgtest.Password}, nil
	}}
	world := func(mode snapshot.Mode) *attempts {
		d := trips()
		d.Mode = mode
		d.Control = "select count(*) as rows, sum(delay) as delay, sum(fare) as fare from trips where workspace = :workspace and at >= :period_start and at < :period_end"
		a := newAttempts(t, d)
		a.steps.Sources = database{src}
		return a
	}
	whole := map[snapshot.Mode]*attempts{}
	var rows []string
	for _, mode := range []snapshot.Mode{snapshot.Single, snapshot.Chunked} {
		a := world(mode)
		whole[mode] = a
		a.publish(newark)
		m := a.current(newark)
		got := a.rows(m)
		if chunks := map[snapshot.Mode]int{snapshot.Single: 1, snapshot.Chunked: 3}[mode]; len(m.Chunks) != chunks || m.Totals.Rows != 250 || m.Totals.Sums["fare"] != "3112.5000000000001711875" || m.Source.Version != "" || m.Chunks[0].First != "t:A103" {
			t.Fatalf("%s: %d chunks, %+v, first %s", mode, len(m.Chunks), m.Totals, m.Chunks[0].First)
		}
		if rows == nil {
			rows = got
		}
		if fmt.Sprint(got) != fmt.Sprint(rows) {
			t.Fatalf("%s has other rows than %s", snapshot.Chunked, snapshot.Single)
		}
	}
	for n := 1; n <= whole[snapshot.Chunked].calls; n += 5 {
		a := world(snapshot.Chunked)
		r := a.plan(newark)
		a.fault = func(i int, _ memcloud.Call, after bool) bool { return i == n && after }
		if w := a.walk(a.claim(r.ID())); w.Failed {
			t.Fatalf("killed at call %d: the execution failed\n%s", n, a.log.String())
		}
		a.published(r.ID())
		if got := a.rows(a.current(newark)); fmt.Sprint(got) != fmt.Sprint(rows) {
			t.Fatalf("killed at call %d: %d rows, want %d", n, len(got), len(rows))
		}
	}
	// a row comes behind the cursor between two calls
	a := world(snapshot.Chunked)
	r := a.plan(newark)
	added := false
	a.fault = func(_ int, _ memcloud.Call, after bool) bool {
		if now, err := a.ledger.Run(bg, r.ID()); added || !after || err != nil || now.Cursor.Chunk == 0 {
			return false
		}
		added = true
		run("INSERT INTO trips VALUES ('0', 'EWR', 'UA', 1, 1, 1, '2013-01-15Z')")
		return true
	}
	w := a.walk(a.claim(r.ID()))
	if !added || !w.Failed {
		t.Fatalf("added %t, failed %t\n%s", added, w.Failed, a.log.String())
	}
	got, err := a.ledger.Run(bg, r.ID())
	if err != nil || got.ErrorCode != string(failure.ValidationMismatch) {
		t.Fatalf("%s %v; want validation_mismatch", got.ErrorCode, err)
	}
}
