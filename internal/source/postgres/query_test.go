package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/postgres/pgtest"
	"almanac/internal/source/sourcetest"
)

// eventually waits for a condition in the database.
func eventually(t *testing.T, sql, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		var err error
		got, err = server.Value(context.Background(), "postgres", sql)
		must(t, err)
		if got == want {
			return
		}
		runtime.Gosched()
	}
	t.Fatalf("%s: %s, want %s", sql, got, want)
}

// sessions counts those of a database that are in a state.
func sessions(src *Source, state string) string {
	return fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE datname = '%s' AND state LIKE '%s'", src.Config.Database, state)
}

const runaway = "WITH RECURSIVE c(n) AS (SELECT 1::bigint UNION ALL SELECT n+1 FROM c) SELECT n FROM c WHERE n < :least"

// endless returns rows for ever.
const endless = "WITH RECURSIVE c(n) AS (SELECT 1::bigint UNION ALL SELECT n+1 FROM c) SELECT n FROM c WHERE n > :least"

// Whatever ends a query here ends it in the server, with its connection.
func TestWhatEndsAQueryEndsItInTheServer(t *testing.T) {
	src := openTest(t, numbers...)
	open := func(t *testing.T, ctx context.Context, sql string, l source.Limits) source.Rows {
		t.Helper()
		rows, err := src.Open(ctx, source.Query{SQL: sql, Params: map[string]any{"least": 0}, Limits: l})
		must(t, err)
		t.Cleanup(func() { rows.Close() })
		return rows
	}
	for name, end := range map[string]func(*testing.T){
		"cancel": func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			rows := open(t, ctx, runaway, source.Limits{})
			said := make(chan error)
			go func() { _, err := rows.Next(ctx); said <- err }()
			eventually(t, sessions(src, "active"), "1")
			cancel()
			failuretest.Want(t, <-said, failure.SourceUnavailable)
		},
		"time": func(t *testing.T) {
			rows := open(t, t.Context(), runaway, source.Limits{Timeout: 300 * time.Millisecond})
			_, err := rows.Next(t.Context())
			failuretest.Want(t, err, failure.QueryTimeout)
		},
		"time while nobody reads": func(t *testing.T) {
			rows := open(t, t.Context(), endless, source.Limits{Timeout: 300 * time.Millisecond})
			_, err := rows.Next(t.Context())
			must(t, err)
			eventually(t, sessions(src, "%"), "0")
			for err == nil {
				_, err = rows.Next(t.Context())
			}
			failuretest.Want(t, err, failure.QueryTimeout)
		},
		"close": func(t *testing.T) {
			rows := open(t, t.Context(), endless, source.Limits{})
			_, err := rows.Next(t.Context())
			must(t, err)
			eventually(t, sessions(src, "active"), "1")
			must(t, rows.Close())
		},
		"close by another": func(t *testing.T) {
			rows := open(t, t.Context(), runaway, source.Limits{})
			said := make(chan error)
			go func() { _, err := rows.Next(t.Context()); said <- err }()
			eventually(t, sessions(src, "active"), "1")
			must(t, rows.Close())
			failuretest.Want(t, <-said, failure.SourceUnavailable)
		},
		"close before the first row": func(t *testing.T) {
			must(t, open(t, t.Context(), runaway, source.Limits{}).Close())
		},
		"too many rows": func(t *testing.T) {
			rows := open(t, t.Context(), endless, source.Limits{Rows: 10})
			var err error
			for err == nil {
				_, err = rows.Next(t.Context())
			}
			failuretest.Want(t, err, failure.QueryTooManyRows)
		},
		"the end": func(t *testing.T) {
			_, err := open(t, t.Context(), "SELECT n FROM numbers WHERE n < :least", source.Limits{}).Next(t.Context())
			if err != io.EOF {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			end(t)
			eventually(t, sessions(src, "%"), "0")
		})
	}
}

// A table that somebody else has locked keeps a query from being understood; its time ends that too.
func TestALockedTable(t *testing.T) {
	src := openTest(t, numbers...)
	held := make(chan error)
	go func() {
		held <- server.Exec(context.Background(), src.Config.Database, "BEGIN; LOCK TABLE numbers; SELECT pg_sleep(600)")
	}()
	eventually(t, "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = '"+src.Config.Database+"') AND relation IS NOT NULL", "1")
	_, err := src.Open(t.Context(), source.Query{SQL: "SELECT n FROM numbers", Limits: source.Limits{Timeout: 300 * time.Millisecond}})
	failuretest.Want(t, err, failure.QueryTimeout)
	must(t, server.Exec(t.Context(), "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()"))
	if <-held == nil {
		t.Error("the lock was not held to the end")
	}
	eventually(t, sessions(src, "%"), "0")
}

func TestRights(t *testing.T) {
	src := openTest(t, append(numbers, "CREATE SCHEMA hidden", "CREATE TABLE hidden.pay AS SELECT 1 AS n", "CREATE TABLE secret AS SELECT 1 AS n", "REVOKE ALL ON secret FROM "+pgtest.Reader,
		"CREATE FUNCTION forbidden() RETURNS int LANGUAGE sql AS 'SELECT 1'", "REVOKE ALL ON FUNCTION forbidden() FROM PUBLIC", "CREATE SEQUENCE counter", "GRANT ALL ON SEQUENCE counter TO PUBLIC")...)
	for sql, says := range map[string]string{
		"SELECT n FROM secret": "permission denied for table secret", "SELECT n FROM hidden.pay": "permission denied for schema hidden", "SELECT forbidden()": "permission denied for function forbidden",
		"SELECT set_config('role', '" + pgtest.Superuser + "', false)": "permission denied to set role", "SELECT pg_read_file('/etc/passwd')": "permission denied for function pg_read_file",
		"SELECT rolpassword FROM pg_authid": "permission denied", "SELECT pg_reload_conf()": "permission denied",
	} {
		_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: sql})
		wants(t, err, failure.SourceAccessDenied, says)
	}
	_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT nextval('counter')"})
	wants(t, err, failure.QueryNotReadOnly, "nextval")
}

// What one query does to its session does not reach the next: each has its own, or a savepoint in a view.
func TestSessionsDoNotLeak(t *testing.T) {
	src := openTest(t, append(numbers, "CREATE SCHEMA other", "CREATE TABLE other.numbers AS SELECT 1 AS n", "GRANT USAGE ON SCHEMA other TO PUBLIC", "GRANT SELECT ON other.numbers TO PUBLIC")...)
	v, err := src.View(t.Context())
	must(t, err)
	defer v.Close()
	for name, s := range map[string]source.Source{"source": src, "view": v} {
		for _, trick := range []string{"SELECT set_config('search_path', 'other', false)", "SELECT set_config('statement_timeout', '1', false)", "SELECT set_config('TimeZone', 'Asia/Tokyo', false)", "SELECT set_config('default_transaction_read_only', 'off', false)"} {
			_, err := sourcetest.Read(t.Context(), s, source.Query{SQL: trick})
			must(t, err)
		}
		out, err := sourcetest.Read(t.Context(), s, source.Query{SQL: "SELECT count(*), current_setting('TimeZone'), current_setting('search_path'), current_setting('statement_timeout'), current_setting('default_transaction_read_only') FROM numbers"})
		must(t, err)
		if row := out.Rows[0]; row[0].Int != 2000 || fmt.Sprintf("%s %s %s %s", row[1].Text, row[2].Text, row[3].Text, row[4].Text) != `UTC public, pg_temp 245s on` {
			t.Errorf("%s: %d %s %s %s %s", name, row[0].Int, row[1].Text, row[2].Text, row[3].Text, row[4].Text)
		}
	}
}

func TestParametersTakeTheTypeOfTheirPlace(t *testing.T) {
	src := openTest(t, "CREATE TABLE v (i int, b bigint, d numeric, f float8, day date, at timestamp, atz timestamptz, u uuid, j jsonb, s text, yes boolean)",
		"INSERT INTO v VALUES (30, 9007199254740993, 0.1, 0.1, '2013-06-01', '2013-06-01 13:00', '2013-06-01 13:00Z', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\":1}', 'x', true)")
	at := time.Date(2013, 6, 1, 13, 0, 0, 0, time.UTC)
	for where, x := range map[string]any{
		"i = :x": int64(30), "b = :x": int64(9007199254740993), "i < :x": int64(1) << 40, "d = :x": 0.1, "f = :x": 0.1, "day = :x": "2013-06-01", "at = :x": at, "atz = :x": at, "at >= :x AND atz = :x": at,
		"u = :x": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "j @> :x": `{"a":1}`, "s = :x": "x", "substr('abc', :x) = 'bc'": 2, "yes = :x": true, "(s = :x) IS NULL": nil,
		"atz >= :x - interval '24 hours'": at, "day = date_trunc('day', :x)": at, "i * :x = 60": int64(2), "s = ANY(:x)": "{x,y}", "i + :x > 30.4": 0.5,
	} {
		out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT i FROM v WHERE " + where, Params: map[string]any{"x": x}})
		if err != nil || len(out.Rows) != 1 {
			t.Errorf("%s with %v: %d rows, %v", where, x, len(out.Rows), err)
		}
	}
	out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT date_trunc(:unit, atz), count(*) FROM v GROUP BY date_trunc(:unit, atz)", Params: map[string]any{"unit": "month"}})
	if err != nil || out.Rows[0][0].Time.Day() != 1 {
		t.Errorf("one name is one parameter: %+v %v", out.Rows, err)
	}
	for sql, says := range map[string]string{
		"SELECT i FROM v WHERE i = :x":     `the parameter :x does not fit its place: invalid input syntax for type integer: "x"`,
		"SELECT i FROM v WHERE day = :x":   "the parameter :x does not fit its place",
		"SELECT :x IS NULL AND :y IS NULL": "the type of a parameter cannot be told: could not determine data type of parameter :x",
	} {
		params := map[string]any{"x": "x"}
		if strings.Contains(sql, ":y") {
			params["y"] = nil
		}
		_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: sql, Params: params})
		wants(t, err, failure.ParameterInvalid, says)
	}
	_, err = sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT s::int FROM v WHERE s = :x", Params: map[string]any{"x": "x"}})
	wants(t, err, failure.QueryFailed, "invalid input syntax") // the data's fault, not the parameter's
}

func TestErrorsOfQueries(t *testing.T) {
	src := openTest(t, append(numbers, `CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'closed for stocktaking' USING HINT = 'Ask tomorrow.'; END $$`)...)
	for sql, want := range map[string]struct {
		code failure.Code
		says string
	}{
		"SELECT FROM numbers":                                  {failure.QueryInvalid, "returns no columns"},
		"SELECT namme FROM numbers":                            {failure.QueryInvalid, `Perhaps you meant to reference the column "numbers.name"`},
		"SELECT count(*), n FROM numbers":                      {failure.QueryInvalid, "GROUP BY"},
		"SELECT 9223372036854775807 + n FROM numbers":          {failure.QueryFailed, "bigint out of range"},
		"SELECT fails()":                                       {failure.QueryFailed, "closed for stocktaking (Ask tomorrow)"},
		"SELECT (SELECT n FROM numbers)":                       {failure.QueryFailed, "more than one row"},
		"SELECT array_fill(1, array[1000000000]) FROM numbers": {failure.QueryFailed, "array size exceeds"},
	} {
		_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: sql})
		wants(t, err, want.code, want.says)
	}
}

// What cannot be had at will is read off the table of codes; the codes are those of PostgreSQL's appendix.
func TestCodesOfTheServer(t *testing.T) {
	for code, want := range map[string]failure.Code{
		"40001": failure.SourceUnavailable, "40P01": failure.SourceUnavailable, "08006": failure.SourceUnavailable, "53300": failure.SourceUnavailable, "53200": failure.SourceUnavailable,
		"53100": failure.SourceUnavailable, "53400": failure.QueryFailed, "55P03": failure.SourceUnavailable, "57P01": failure.SourceUnavailable, "57P02": failure.SourceUnavailable,
		"57P03": failure.SourceUnavailable, "57P04": failure.SourceUnknown, "57P05": failure.SourceUnavailable, "57014": failure.SourceUnavailable, "58030": failure.SourceUnavailable,
		"25P03": failure.SourceUnavailable, "25P04": failure.SourceUnavailable, "25006": failure.QueryNotReadOnly, "25001": failure.QueryNotReadOnly, "72000": failure.SourceUnavailable,
		"28P01": failure.SourceAccessDenied, "28000": failure.SourceAccessDenied, "42501": failure.SourceAccessDenied, "3D000": failure.SourceUnknown, "XX001": failure.QueryFailed,
		"XX000": failure.QueryFailed, "22012": failure.QueryFailed, "54001": failure.QueryFailed, "0A000": failure.QueryInvalid, "42P01": failure.QueryInvalid, "42P08": failure.ParameterInvalid, "": failure.QueryFailed,
	} {
		f := refused(&pgconn.PgError{Code: code, Message: "said"}, reading)
		failuretest.Want(t, f, want)
		if !strings.Contains(f.Message, "said") {
			t.Errorf("%s: %q", code, f.Message)
		}
	}
	failuretest.Want(t, refused(&pgconn.PgError{Code: "XX000"}, signingIn), failure.SourceUnavailable)
	failuretest.Want(t, refused(&pgconn.PgError{Code: "54000"}, compiling), failure.QueryInvalid)
	failuretest.Want(t, broken(errors.New("reset"), reading, statement{}, 1), failure.SourceUnavailable)
}

// TestAHugeResultNeedsLittleMemory: a result of 600 MB passes through a process that stays small.
func TestAHugeResultNeedsLittleMemory(t *testing.T) {
	src := openTest(t)
	rows, err := src.Open(t.Context(), source.Query{SQL: "SELECT n, repeat('0123456789', 30) AS a, repeat('x', 300) AS b FROM generate_series(1::bigint, 1000000) AS n"})
	must(t, err)
	defer rows.Close()
	var m runtime.MemStats
	peak, size, next := uint64(0), int64(0), int64(0)
	for {
		row, err := rows.Next(t.Context())
		if err == io.EOF {
			break
		}
		must(t, err)
		if next++; row[0].Int != next || len(row[1].Text) != 300 {
			t.Fatalf("row %d: %+v", next, row)
		}
		size += int64(8 + len(row[1].Text) + len(row[2].Text))
		if next%20000 == 0 {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}
	}
	t.Logf("%d MB of cells at a heap of at most %d MB", size>>20, peak>>20)
	if next != 1000000 || size != 608e6 || peak > 128<<20 {
		t.Errorf("%d rows, %d bytes, heap %d", next, size, peak)
	}
}

func TestDecodeRefusesWhatIsNone(t *testing.T) {
	for text, oid := range map[string]uint32{"": oidInt8, "12x": oidInt4, "9223372036854775808": oidInt8, "-9223372036854775809": oidInt8, "99999999999999999999": oidInt8, "one": oidFloat8, "true": oidBool,
		"2013-0a-01": oidDate, "2013-01-01T00:00:00": oidTimestamp, "2013-01-01 00:00:00+0x": oidTimestamptz, "2013-01-01 00:00:00.": oidTimestamp, "2013-01-01 00:00": oidTimestamp, `\x0`: oidBytea, "abc": oidBytea} {
		var v source.Value
		if decode(oid, []byte(text), &v) {
			t.Errorf("%q passes for type %d: %+v", text, oid, v)
		}
	}
	r := &rows{oids: []uint32{oidInt4}, columns: []source.Column{{Name: "n"}}, cells: make([]source.Value, 1), limits: source.Defaults}
	f := failuretest.Want(t, r.row([][]byte{[]byte("x")}), failure.QueryFailed)
	if !strings.Contains(f.Message, `row 1, column "n": PostgreSQL sent "x" for type `+strconv.Itoa(oidInt4)) {
		t.Error(f.Message)
	}
}
