package postgres

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/postgres/pgtest"
	"almanac/internal/source/sourcetest"
)

var (
	server    *pgtest.Server
	databases atomic.Int64
)

func TestMain(m *testing.M) {
	var err error
	if server, err = pgtest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := failuretest.Run(m, "source")
	server.Stop()
	os.Exit(status)
}

// database makes one in which the statements were run, and which the reader may read.
func database(t testing.TB, ddl ...string) string {
	t.Helper()
	name := fmt.Sprintf("d%d", databases.Add(1))
	must(t, server.Exec(context.Background(), "postgres", "CREATE DATABASE "+name))
	t.Cleanup(func() {
		if err := server.Exec(context.Background(), "postgres", "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	must(t, server.Exec(context.Background(), name, append([]string{"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO " + pgtest.Reader}, ddl...)...))
	return name
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func known(l Login) SignIn {
	return func(context.Context, bool) (Login, error) { return l, nil }
}

var reader = Login{pgtest.Reader, pgtest.Password}

// openTest is a source on a fresh database, with TLS in full.
func openTest(t testing.TB, ddl ...string) *Source {
	t.Helper()
	return &Source{Config: Config{Host: "localhost", Port: server.Port, Database: database(t, ddl...), CA: server.CA}, SignIn: known(reader)}
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t testing.TB, ddl []string) source.Source { return openTest(t, ddl...) }, sourcetest.Dialect{
		Decimal:    "NUMERIC",
		Bytes:      "BYTEA",
		Hex:        `'\x00ff0a'`,
		Runaway:    "WITH RECURSIVE c(n) AS (SELECT 1::bigint UNION ALL SELECT n+1 FROM c) SELECT n FROM c WHERE n < 0",
		Breaks:     "SELECT 1/(1500 - n) FROM (SELECT n FROM numbers ORDER BY n) AS sorted",
		Epoch:      "SELECT extract(epoch FROM :scheduled_time)::bigint",
		HugeRow:    "SELECT repeat('x', 33600000)",
		MaxColumns: 1664, // https://www.postgresql.org/docs/current/limits.html
		Cells:      cells,
		Writes: map[string]string{
			"insert":             "INSERT INTO numbers VALUES (1, 'x')",
			"insert returning":   "INSERT INTO numbers VALUES (1, 'x') RETURNING n",
			"update":             "UPDATE numbers SET n = 0",
			"delete":             "DELETE FROM numbers",
			"delete in a CTE":    "WITH gone AS (DELETE FROM numbers RETURNING n) SELECT n FROM gone",
			"merge":              "MERGE INTO numbers USING (SELECT 1) AS x ON true WHEN MATCHED THEN DELETE",
			"truncate":           "TRUNCATE numbers",
			"create":             "CREATE TABLE other (n int)",
			"create temporary":   "CREATE TEMP TABLE other (n int)",
			"create as":          "CREATE TABLE other AS SELECT 1",
			"select into":        "SELECT n INTO other FROM numbers",
			"drop":               "DROP TABLE numbers",
			"alter":              "ALTER TABLE numbers ADD COLUMN m int",
			"grant":              "GRANT ALL ON numbers TO PUBLIC",
			"copy in":            "COPY numbers FROM STDIN",
			"copy out":           "COPY numbers TO STDOUT",
			"copy to a program":  "COPY numbers TO PROGRAM 'cat'",
			"begin":              "BEGIN",
			"commit":             "COMMIT",
			"rollback":           "ROLLBACK",
			"savepoint":          "SAVEPOINT a",
			"release":            "RELEASE SAVEPOINT almanac",
			"set":                "SET search_path = pg_catalog",
			"set writable":       "SET TRANSACTION READ WRITE",
			"set_config":         "SELECT set_config('transaction_read_only', 'off', false)",
			"set role":           "SET ROLE " + pgtest.Superuser,
			"reset":              "RESET ALL",
			"lock":               "LOCK TABLE numbers",
			"row lock":           "SELECT n FROM numbers FOR UPDATE",
			"vacuum":             "VACUUM",
			"analyze":            "ANALYZE numbers",
			"listen":             "LISTEN x",
			"notify":             "NOTIFY x",
			"do":                 "DO $$ BEGIN DELETE FROM numbers; END $$",
			"prepare":            "PREPARE p AS DELETE FROM numbers",
			"declare":            "DECLARE c CURSOR FOR SELECT 1",
			"explain of a write": "EXPLAIN ANALYZE DELETE FROM numbers",
		},
	})
}
