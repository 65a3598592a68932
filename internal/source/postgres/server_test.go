package postgres

import (
	"context"
	"fmt"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/postgres/pgtest"
	"almanac/internal/source/sourcetest"
)

// own starts a server for one test.
func own(t *testing.T, settings ...string) (*pgtest.Server, *Source) {
	t.Helper()
	s, err := pgtest.Start(settings...)
	must(t, err)
	t.Cleanup(s.Stop)
	must(t, s.Exec(context.Background(), "postgres", append(numbers, "GRANT SELECT ON numbers TO "+pgtest.Reader)...))
	return s, &Source{Config: Config{Host: "localhost", Port: s.Port, Database: "postgres", CA: s.CA}, SignIn: known(reader)}
}

// V7: a server that dies while rows are read is no end of the rows.
func TestV7AServerThatDies(t *testing.T) {
	for name, end := range map[string]func(*pgtest.Server, *testing.T){
		"at once": func(s *pgtest.Server, _ *testing.T) { s.Kill() },
		"by an administrator": func(s *pgtest.Server, t *testing.T) {
			must(t, s.Exec(context.Background(), "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+pgtest.Reader+"'"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, src := own(t)
			rows, err := src.Open(t.Context(), source.Query{SQL: "SELECT g, repeat('x', 1000) FROM generate_series(1, 1000000) AS g"})
			must(t, err)
			defer rows.Close()
			_, err = rows.Next(t.Context())
			must(t, err)
			end(s, t)
			n := 1
			for err == nil {
				_, err = rows.Next(t.Context())
				n++
			}
			if f := failuretest.Want(t, err, failure.SourceUnavailable); !f.Passing() || n > 1000000 {
				t.Errorf("%d rows and %v", n, f)
			}
		})
	}
	t.Run("while a view is held", func(t *testing.T) {
		s, src := own(t)
		v, err := src.View(t.Context())
		must(t, err)
		s.Kill()
		_, err = one(t.Context(), v)
		failuretest.Want(t, err, failure.SourceUnavailable)
		_, err = one(t.Context(), v)
		failuretest.Want(t, err, failure.SourceUnavailable)
		_ = v.Close()
		_, err = one(t.Context(), src)
		wants(t, err, failure.SourceUnavailable, "does not answer")
	})
}

func TestServersThatCannotServeNow(t *testing.T) {
	s, src := own(t, "max_connections=8", "superuser_reserved_connections=3", "idle_in_transaction_session_timeout=200")
	t.Run("too many connections", func(t *testing.T) {
		var held []source.View
		defer func() {
			for _, v := range held {
				_ = v.Close()
			}
		}()
		must(t, s.Exec(t.Context(), "postgres", "ALTER ROLE "+pgtest.Reader+" SET idle_in_transaction_session_timeout = 0"))
		for {
			v, err := src.View(t.Context())
			if err != nil {
				wants(t, err, failure.SourceUnavailable, "cannot serve the query now")
				break
			}
			if held = append(held, v); len(held) > 8 {
				t.Fatal("the server takes more than it may")
			}
		}
		if len(held) == 0 {
			t.Fatal("not one was taken")
		}
		must(t, s.Exec(t.Context(), "postgres", "ALTER ROLE "+pgtest.Reader+" RESET ALL"))
	})
	t.Run("a transaction that stood too long", func(t *testing.T) {
		v, err := src.View(t.Context())
		must(t, err)
		defer v.Close()
		for count := "1"; count != "0"; {
			count, err = s.Value(t.Context(), "postgres", "SELECT count(*) FROM pg_stat_activity WHERE usename = '"+pgtest.Reader+"'")
			must(t, err)
		}
		_, err = one(t.Context(), v)
		if f := failuretest.Want(t, err, failure.SourceUnavailable); !f.Passing() {
			t.Error(f)
		}
	})
	t.Run("a query that an administrator stopped", func(t *testing.T) {
		rows, err := src.Open(t.Context(), source.Query{SQL: runaway, Params: map[string]any{"least": 0}})
		must(t, err)
		defer rows.Close()
		said := make(chan error)
		go func() { _, err := rows.Next(t.Context()); said <- err }()
		for stopped := ""; stopped != "t"; {
			stopped, err = s.Value(t.Context(), "postgres", "SELECT coalesce(bool_or(pg_cancel_backend(pid)), false) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'WITH RECURSIVE%' AND pid <> pg_backend_pid()")
			must(t, err)
		}
		wants(t, <-said, failure.SourceUnavailable, "stopped in the database")
	})
}

func TestViews(t *testing.T) {
	src := openTest(t, numbers...)
	v, err := src.View(t.Context())
	must(t, err)
	defer v.Close()
	must(t, server.Exec(t.Context(), src.Config.Database, "DELETE FROM numbers WHERE n > 10"))
	count := func(want int64, s source.Source) {
		t.Helper()
		if n, err := one(t.Context(), s); err != nil || n != want {
			t.Fatalf("%d rows, %v; want %d", n, err, want)
		}
	}
	count(2000, v)
	count(10, src)
	all, err := v.Open(t.Context(), source.Query{SQL: "SELECT n FROM numbers ORDER BY n"})
	must(t, err)
	defer all.Close()
	_, err = all.Next(t.Context())
	must(t, err)
	count(2000, v)                         // on a second connection
	eventually(t, sessions(src, "%"), "1") // a session that was left takes the server a moment to end
	must(t, all.Close())
	count(2000, v)
	// a query that was stopped leaves the view as it was
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := v.Open(ctx, source.Query{SQL: runaway, Params: map[string]any{"least": 0}})
	must(t, err)
	said := make(chan error)
	go func() { _, err := rows.Next(ctx); said <- err }()
	eventually(t, sessions(src, "active"), "1")
	cancel()
	failuretest.Want(t, <-said, failure.SourceUnavailable)
	must(t, rows.Close())
	count(2000, v)
	if v.Version() != "" {
		t.Errorf("version %q", v.Version())
	}
	must(t, v.Close())
	_, err = one(t.Context(), v)
	wants(t, err, failure.SourceUnavailable, "was closed")
	eventually(t, sessions(src, "%"), "0")
}

// A server that exports no snapshots holds its state for one query at a time.
func TestAViewWithoutSnapshots(t *testing.T) {
	src := openTest(t, append(numbers, "CREATE SCHEMA s", "CREATE TABLE x AS SELECT 1")...)
	must(t, server.Exec(t.Context(), src.Config.Database, "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_export_snapshot() FROM PUBLIC"))
	v, err := src.View(t.Context())
	must(t, err)
	defer v.Close()
	must(t, server.Exec(t.Context(), src.Config.Database, "DELETE FROM numbers"))
	if n, err := one(t.Context(), v); err != nil || n != 2000 {
		t.Fatalf("%d rows, %v", n, err)
	}
	rows, err := v.Open(t.Context(), source.Query{SQL: "SELECT n FROM numbers"})
	must(t, err)
	_, err = one(t.Context(), v)
	wants(t, err, failure.SourceUnavailable, "one query at a time")
	must(t, rows.Close())
	if n, err := one(t.Context(), v); err != nil || n != 2000 {
		t.Fatalf("%d rows, %v", n, err)
	}
}

func TestByteOrder(t *testing.T) {
	src := openTest(t, `CREATE TABLE k (t text COLLATE "en-x-icu", u uuid, n int)`, "INSERT INTO k VALUES ('b', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 3), ('A', 'c0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 10), ('a', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 9), ('é', 'd0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', -1)")
	v, err := src.View(t.Context())
	must(t, err)
	defer v.Close()
	for column, want := range map[string]struct {
		typ   source.Type
		order string
		after any
	}{`"t"`: {source.Text, "[a b é]", "A"}, `"u"`: {source.Text, "[b A é]", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, `"n"`: {source.Integer, "[a A]", int64(3)}} {
		order := v.ByteOrder(column, want.typ)
		out, err := sourcetest.Read(t.Context(), v, source.Query{SQL: "select * from (\nselect t, u, n from k\n) as month where " + order + " > :after order by " + order, Params: map[string]any{"after": want.after}})
		must(t, err)
		var got []string
		for _, row := range out.Rows {
			got = append(got, string(row[0].Text))
		}
		if fmt.Sprint(got) != want.order {
			t.Errorf("%s: %v, want %s", column, got, want.order)
		}
	}
}
