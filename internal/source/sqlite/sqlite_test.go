package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/sourcetest"
)

func TestMain(m *testing.M) { failuretest.Main(m, "source") }

// database makes a file and runs the statements in it by the ordinary driver.
func database(t testing.TB, path string, ddl ...string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range ddl {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return path
}

func openTest(t testing.TB, ddl []string) source.Source {
	dir := t.TempDir()
	odd := filepath.Join(dir, "data #1? 100%.sqlite") // what a URI would read as its own
	if err := os.Rename(database(t, filepath.Join(dir, "plain.sqlite"), ddl...), odd); err != nil {
		t.Fatal(err)
	}
	return &File{Path: odd}
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t testing.TB, ddl []string) source.Source {
		path := filepath.Join(t.TempDir(), "data.sqlite")
		return &File{Path: database(t, path, ddl...)}
	}, sourcetest.Dialect{
		Decimal:    "DECIMAL TEXT",
		Bytes:      "BLOB",
		Hex:        "x'00ff0a'",
		Runaway:    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT n FROM c WHERE n < 0",
		Breaks:     "SELECT abs(CASE WHEN n = 1500 THEN -9223372036854775807 - 1 ELSE n END) FROM numbers ORDER BY n",
		Epoch:      "SELECT unixepoch(:scheduled_time)",
		HugeRow:    "SELECT hex(zeroblob(7000000)) AS a, hex(zeroblob(7000000)) AS b, hex(zeroblob(7000000)) AS c",
		MaxColumns: 2000, // https://sqlite.org/limits.html#max_column
		Cells: []sourcetest.Cell{
			{SQL: "9223372036854775807", Want: source.Value{Kind: source.KindInt, Int: math.MaxInt64}},
			{SQL: "-9223372036854775807 - 1", Want: source.Value{Kind: source.KindInt, Int: math.MinInt64}},
			{SQL: "5e-324", Want: source.Value{Kind: source.KindFloat, Float: 5e-324}},
			{SQL: "1.7976931348623157e308", Want: source.Value{Kind: source.KindFloat, Float: math.MaxFloat64}},
			{SQL: "9e999", Want: source.Value{Kind: source.KindFloat, Float: math.Inf(1)}},
			{SQL: "1 < 2", Want: source.Value{Kind: source.KindInt, Int: 1}},
			{SQL: "'2013-11-03T01:30:00-04:00'", Want: sourcetest.Text("2013-11-03T01:30:00-04:00")},
			{SQL: "x''", Want: source.Value{Kind: source.KindBytes, Text: []byte{}}},
			{SQL: "json('{\"a\": 1.50}')", Want: sourcetest.Text(`{"a":1.50}`)},
		},
		Writes: map[string]string{
			"insert":            "INSERT INTO numbers VALUES (1, 'x')",
			"insert returning":  "INSERT INTO numbers VALUES (1, 'x') RETURNING n",
			"update":            "UPDATE numbers SET n = 0",
			"delete":            "DELETE FROM numbers",
			"delete with CTE":   "WITH x AS (SELECT 1) DELETE FROM numbers",
			"replace":           "REPLACE INTO numbers VALUES (1, 'x')",
			"create":            "CREATE TABLE other (n)",
			"create temporary":  "CREATE TEMP TABLE other (n)",
			"create as":         "CREATE TEMP TABLE other AS SELECT 1",
			"create view":       "CREATE VIEW w AS SELECT 1",
			"create virtual":    "CREATE VIRTUAL TABLE w USING fts5(a)",
			"drop":              "DROP TABLE numbers",
			"alter":             "ALTER TABLE numbers ADD COLUMN m",
			"attach":            "ATTACH DATABASE ':memory:' AS other",
			"attach a file":     "ATTACH DATABASE '/tmp/other.sqlite' AS other",
			"detach":            "DETACH DATABASE main",
			"pragma write":      "PRAGMA user_version = 7",
			"pragma query_only": "PRAGMA query_only = 0",
			"pragma journal":    "PRAGMA journal_mode = WAL",
			"vacuum":            "VACUUM",
			"vacuum into":       "VACUUM INTO '/tmp/copy.sqlite'",
			"begin":             "BEGIN IMMEDIATE",
			"savepoint":         "SAVEPOINT a",
			"analyze":           "ANALYZE",
			"load_extension":    "SELECT load_extension('/tmp/x.so')",
			"explain a write":   "EXPLAIN DELETE FROM numbers",
		},
	})
}

func TestRefusalsSayWhatWasTried(t *testing.T) {
	src := openTest(t, []string{"CREATE TABLE flights (n)", "CREATE INDEX by_n ON flights (n)"})
	for query, says := range map[string]string{
		"INSERT INTO flights VALUES (1)":        "insert into flights",
		"ATTACH DATABASE 'x' AS y":              "attach another database",
		"PRAGMA user_version = 7":               "PRAGMA user_version",
		"SELECT load_extension('/tmp/x')":       "load_extension",
		"CREATE TEMP TABLE t AS SELECT 1":       "only read",
		"REINDEX":                               "rebuild the index by_n",
		"BEGIN":                                 "transaction",
		"SELECT data FROM sqlite_dbpage":        "insides (sqlite_dbpage)",
		"SELECT count(*) FROM SQLite_DBPage(1)": "insides (sqlite_dbpage)",
		"SELECT sum(pgsize) FROM main.dbstat":   "insides (dbstat)",
		"SELECT n FROM flights WHERE n IN (SELECT pageno FROM DBSTAT)": "insides (dbstat)",
		"CREATE INDEX flights_n ON flights (n)":                        "only read",
	} {
		_, err := src.Open(t.Context(), source.Query{SQL: query})
		if f := failuretest.Want(t, err, failure.QueryNotReadOnly); !strings.Contains(f.Message, says) {
			t.Errorf("%s: %q does not say %q", query, f.Message, says)
		}
	}
}

func TestMistakesComeWithAdvice(t *testing.T) {
	src := openTest(t, []string{"CREATE TABLE flights (n)", "CREATE VIEW late AS SELECT 1 AS n"})
	for query, says := range map[string]string{
		"SELECT n FROM flight":                      "the file's tables are: flights, late",
		"SELECT 1\nFROM flights\nWHERE é = m AND x": "line 3, column 7",
		`SELECT "UA" FROM flights`:                  "'single quotes'",
		"SELECT nosuch(n) FROM flights":             "lang_corefunc",
	} {
		_, err := src.Open(t.Context(), source.Query{SQL: query})
		if f := failuretest.Want(t, err, failure.QueryInvalid); !strings.Contains(f.Message, says) {
			t.Errorf("%s: %q does not say %q", query, f.Message, says)
		}
	}
}

func TestSchemaMayBeRead(t *testing.T) {
	src := openTest(t, []string{"CREATE TABLE flights (n INTEGER, at TEXT)", "CREATE VIRTUAL TABLE notes USING fts5(body)", "INSERT INTO notes VALUES ('late again')"})
	for query, want := range map[string]string{
		"SELECT name FROM pragma_table_info('flights') WHERE cid = 1": "at",
		"PRAGMA table_list('flights')":                                "main",
		"SELECT name FROM sqlite_schema WHERE name = 'flights'":       "flights",
		"SELECT body FROM notes WHERE notes MATCH 'late'":             "late again",
		"SELECT value FROM json_each('[\"a\"]')":                      "a",
		"EXPLAIN QUERY PLAN SELECT * FROM flights":                    "",
	} {
		out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: query})
		if err != nil || len(out.Rows) != 1 {
			t.Errorf("%s: %d rows, %v", query, len(out.Rows), err)
		} else if got := string(out.Rows[0][0].Text); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestDeclaredTimesKeepTheirText(t *testing.T) {
	texts := []string{"2013-01-01", "2013-01-01 05:00:00", "2013-01-01T05:00:00.120Z", "2013-01-01 05:00:00 +0000 UTC", "soon", ""}
	ddl := []string{"CREATE TABLE d (i INTEGER, a DATE, b DATETIME, c TIMESTAMP, e TEXT, f BOOLEAN)"}
	for i, s := range texts {
		ddl = append(ddl, fmt.Sprintf("INSERT INTO d VALUES (%d, '%s', '%s', '%s', '%s', 1)", i, s, s, s, s))
	}
	out, err := sourcetest.Read(t.Context(), openTest(t, ddl), source.Query{SQL: "SELECT a, b, c, max(e), f FROM d GROUP BY i ORDER BY i"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range texts {
		for j, v := range out.Rows[i][:4] {
			if v.Kind != source.KindText || string(v.Text) != want {
				t.Errorf("row %d column %d: kind %d %q, want the text %q", i, j, v.Kind, v.Text, want)
			}
		}
		if v := out.Rows[i][4]; v.Kind != source.KindInt || v.Int != 1 {
			t.Errorf("boolean: %+v", v)
		}
	}
}

func TestDecimalColumns(t *testing.T) {
	src := openTest(t, []string{"CREATE TABLE d (x DECIMAL TEXT)", "INSERT INTO d VALUES ('=1+1'), ('-'), ('1.'), ('.5'), ('1e5'), ('-00.10'), ('+7'), ('1.2.3')"})
	out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT x FROM d ORDER BY rowid"})
	if err != nil {
		t.Fatal(err)
	}
	want := []source.Kind{source.KindText, source.KindText, source.KindText, source.KindText, source.KindText, source.KindDecimal, source.KindDecimal, source.KindText}
	for i, k := range want {
		if v := out.Rows[i][0]; v.Kind != k {
			t.Errorf("%q has kind %d, want %d", v.Text, v.Kind, k)
		}
	}
}

func TestParametersAreBoundByType(t *testing.T) {
	src := openTest(t, []string{"CREATE TABLE one (n)", "INSERT INTO one VALUES (1)"})
	at := time.Date(2013, 6, 1, 9, 0, 0, 0, time.FixedZone("", -4*3600))
	for want, value := range map[string]any{
		"text 2013-06-01T13:00:00Z": at, "text 2013-06-01T13:00:00.5Z": at.Add(time.Second / 2), "integer 1": true, "integer 0": false,
		"integer 9007199254740993": int64(9007199254740993), "integer 3": 3, "real 0.5": 0.5, "text 12": "12",
	} {
		out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT typeof(:x) || ' ' || :x", Params: map[string]any{"x": value}})
		if err != nil || string(out.Rows[0][0].Text) != want {
			t.Errorf("%v: %+v %v, want %s", value, out.Rows, err, want)
		}
	}
	out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT unixepoch(:scheduled_time) - unixepoch('2013-06-01 12:00:00')", Params: map[string]any{"scheduled_time": at}})
	if err != nil || out.Rows[0][0].Int != 3600 {
		t.Errorf("a time cannot be compared: %+v %v", out.Rows, err)
	}
	for _, spelled := range []string{"?", "?1", "@x", "$x"} {
		_, err := src.Open(t.Context(), source.Query{SQL: "SELECT " + spelled, Params: map[string]any{"x": "1"}})
		if f := failuretest.Want(t, err, failure.ParameterInvalid); !strings.Contains(f.Message, spelled) {
			t.Errorf("%q does not name %s", f.Message, spelled)
		}
	}
}

func TestErrorsWhileReading(t *testing.T) {
	src := openTest(t, []string{"CREATE TABLE t (n, j)", "INSERT INTO t VALUES (1, '{\"a\":1}'), (2, '{\"a\":'), (3, '{}')"})
	for query, says := range map[string]string{
		"SELECT json_extract(j, '$.a') FROM t":                                                  "malformed JSON",
		"SELECT sum(9223372036854775807) FROM t":                                                "integer overflow",
		"SELECT hex(zeroblob(60000000)) FROM t":                                                 "passes 16777216 bytes",
		"SELECT n FROM t WHERE json_valid(j) AND j->>'$.a' = 1 OR json_extract(j, '$') IS NULL": "malformed JSON",
	} {
		_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: query})
		if f := failuretest.Want(t, err, failure.QueryFailed); !strings.Contains(f.Message, says) {
			t.Errorf("%s: %q does not say %q", query, f.Message, says)
		}
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	good := database(t, filepath.Join(dir, "good.sqlite"), "CREATE TABLE t (n, s)",
		"INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < 5000) SELECT n, hex(randomblob(20)) FROM c")
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := append([]byte{}, whole...)
	for i := 20 * 4096; i < 24*4096; i++ {
		damaged[i] = 0xa5
	}
	for _, c := range []struct {
		name, path string
		code       failure.Code
	}{
		{"missing", filepath.Join(dir, "nowhere.sqlite"), failure.SourceUnknown},
		{"a folder", dir, failure.SourceUnknown},
		{"empty", write("empty", nil), failure.SourceUnknown},
		{"another format", write("text", []byte(strings.Repeat("carrier,flight\n", 500))), failure.SourceUnknown},
		{"cut off", write("cut", whole[:len(whole)/2]), failure.QueryFailed},
		{"damaged pages", write("damaged", damaged), failure.QueryFailed},
	} {
		t.Run("V7 "+c.name, func(t *testing.T) {
			out, err := sourcetest.Read(t.Context(), &File{Path: c.path}, source.Query{SQL: "SELECT n, s FROM t"})
			failuretest.Want(t, err, c.code)
			if len(out.Rows) >= 5000 {
				t.Fatal("every row came out of a broken file")
			}
		})
	}
}

func TestWALFileIsReadWithoutItsJournal(t *testing.T) {
	path := database(t, filepath.Join(t.TempDir(), "wal.sqlite"), "PRAGMA journal_mode = WAL", "CREATE TABLE t (n)", "INSERT INTO t VALUES (1)")
	if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(path), 0o700)
	out, err := sourcetest.Read(t.Context(), &File{Path: path}, source.Query{SQL: "SELECT n FROM t"})
	if err != nil || len(out.Rows) != 1 {
		t.Fatalf("%+v %v", out.Rows, err)
	}
	beside, _ := filepath.Glob(path + "-*")
	if len(beside) != 0 {
		t.Fatalf("files were made beside the database: %v", beside)
	}
}

// A locked or full machine cannot be had at will, so the table of codes is read directly.
func TestCodesOfTheMachine(t *testing.T) {
	for rc, code := range map[int32]failure.Code{
		lib.SQLITE_BUSY: failure.SourceUnavailable, lib.SQLITE_LOCKED: failure.SourceUnavailable, lib.SQLITE_IOERR_READ: failure.SourceUnavailable,
		lib.SQLITE_NOMEM: failure.QueryFailed, lib.SQLITE_IOERR_NOMEM: failure.QueryFailed, lib.SQLITE_CANTOPEN: failure.SourceUnavailable, lib.SQLITE_FULL: failure.QueryFailed,
		lib.SQLITE_READONLY: failure.QueryNotReadOnly, lib.SQLITE_CORRUPT: failure.QueryFailed, lib.SQLITE_MISMATCH: failure.QueryFailed,
	} {
		failuretest.Want(t, classify(&codeError{rc: rc, msg: "x"}, reading), code)
	}
	failuretest.Want(t, (*conn)(nil).fail(errors.New("no memory"), reading, ""), failure.SourceUnavailable)
}
