package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

func (s suite) values(t *testing.T) {
	src := s.open(t, []string{
		fmt.Sprintf("CREATE TABLE v (k TEXT, i BIGINT, r DOUBLE PRECISION, t TEXT, d %s, b %s)", s.d.Decimal, s.d.Bytes),
		fmt.Sprintf("INSERT INTO v VALUES ('a', 9007199254740993, 0.1, 'é☃', '0.1000000000000000055', %s)", s.d.Hex),
		"INSERT INTO v VALUES ('b', -9223372036854775808, -1e300, '', '-5.00', NULL)",
		"INSERT INTO v VALUES ('c', NULL, NULL, NULL, NULL, NULL)",
	})
	out := s.must(t, src, source.Query{SQL: "SELECT i, r, t, d, b FROM v ORDER BY k"})
	if len(out.Rows) != 3 {
		t.Fatalf("%d rows, want 3", len(out.Rows))
	}
	a, b, c := out.Rows[0], out.Rows[1], out.Rows[2]
	t.Run("V10 int64 beyond 2^53 is exact", func(t *testing.T) {
		if a[0].Kind != source.KindInt || a[0].Int != 9007199254740993 || b[0].Int != math.MinInt64 {
			t.Fatalf("got %+v and %+v", a[0], b[0])
		}
	})
	t.Run("V10 decimals keep their digits", func(t *testing.T) {
		for want, v := range map[string]source.Value{"0.1000000000000000055": a[3], "-5.00": b[3]} {
			if v.Kind != source.KindDecimal || string(v.Text) != want {
				t.Errorf("got kind %d %q, want the decimal %s", v.Kind, v.Text, want)
			}
		}
	})
	t.Run("floats", func(t *testing.T) {
		if a[1].Kind != source.KindFloat || a[1].Float != 0.1 || b[1].Float != -1e300 {
			t.Fatalf("got %+v and %+v", a[1], b[1])
		}
	})
	t.Run("text and bytes", func(t *testing.T) {
		if a[2].Kind != source.KindText || string(a[2].Text) != "é☃" {
			t.Errorf("text: %+v", a[2])
		}
		if a[4].Kind != source.KindBytes || !bytes.Equal(a[4].Text, []byte{0, 0xff, '\n'}) {
			t.Errorf("bytes: %+v", a[4])
		}
	})
	t.Run("NULL is not the empty text", func(t *testing.T) {
		if b[2].Kind != source.KindText || len(b[2].Text) != 0 {
			t.Errorf("empty text: %+v", b[2])
		}
		for i, v := range c {
			if v.Kind != source.KindNull {
				t.Errorf("column %d: %+v, want NULL", i, v)
			}
		}
	})
	t.Run("a cell of one megabyte and wide rows", func(t *testing.T) {
		expr, big, params := s.d.long(1 << 16)
		out := s.must(t, src, source.Query{SQL: "SELECT " + expr + " AS x FROM v", Params: params})
		if len(out.Rows) != 3 || string(out.Rows[2][0].Text) != big {
			t.Fatal("the cell came back changed")
		}
		var sql strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&sql, ", i + %d AS c%d", i, i)
		}
		wide := s.must(t, src, source.Query{SQL: "SELECT " + sql.String()[2:] + " FROM v WHERE k = 'a'"})
		if len(wide.Columns) != 1000 || wide.Rows[0][999].Int != 9007199254740993+999 || wide.Columns[999].Name != "c999" {
			t.Fatalf("%d columns, last %+v", len(wide.Columns), wide.Rows[0][len(wide.Columns)-1])
		}
	})
}

func (s suite) columns(t *testing.T) {
	src := s.open(t, append([]string{fmt.Sprintf("CREATE TABLE c (i BIGINT, r DOUBLE PRECISION, t TEXT, d %s, b %s, day DATE, at TIMESTAMP, yes BOOLEAN)", s.d.Decimal, s.d.Bytes)}, numbers...))
	want := []source.Column{{Name: "i", Type: source.Integer}, {Name: "r", Type: source.Real}, {Name: "t", Type: source.Text},
		{Name: "d", Type: source.Decimal}, {Name: "b", Type: source.Bytes}, {Name: "day", Type: source.Date}, {Name: "at", Type: source.Timestamp}, {Name: "yes", Type: source.Boolean}}
	t.Run("an empty result has its header", func(t *testing.T) {
		out := s.must(t, src, source.Query{SQL: "SELECT * FROM c"})
		if len(out.Rows) != 0 || fmt.Sprint(out.Columns) != fmt.Sprint(want) {
			t.Fatalf("%d rows, columns %v, want %v", len(out.Rows), out.Columns, want)
		}
	})
	t.Run("an expression has its name", func(t *testing.T) {
		out := s.must(t, src, source.Query{SQL: `SELECT n * 2 AS "twice ""it""" FROM numbers WHERE n = 21`})
		if out.Columns[0].Name != `twice "it"` || out.Rows[0][0].Int != 42 {
			t.Fatalf("%+v", out)
		}
	})
}

func (s suite) limits(t *testing.T) {
	src := s.open(t, numbers)
	read := func(l source.Limits) (Table, error) {
		return Read(t.Context(), src, source.Query{SQL: "SELECT n, name FROM numbers", Limits: l})
	}
	t.Run("rows at the limit pass, one more is refused", func(t *testing.T) {
		if out, err := read(source.Limits{Rows: 2000}); err != nil || len(out.Rows) != 2000 {
			t.Fatalf("%d rows, %v", len(out.Rows), err)
		}
		out, err := read(source.Limits{Rows: 1999})
		f := failuretest.Want(t, err, failure.QueryTooManyRows)
		if len(out.Rows) > 1999 || !strings.Contains(f.Message, "1999") {
			t.Fatalf("%d rows, message %q", len(out.Rows), f.Message)
		}
	})
	t.Run("bytes at the limit pass, one less is refused", func(t *testing.T) {
		const size = 2000 * (8 + len("row"))
		if _, err := read(source.Limits{Bytes: int64(size)}); err != nil {
			t.Fatal(err)
		}
		_, err := read(source.Limits{Bytes: int64(size) - 1})
		if f := failuretest.Want(t, err, failure.QueryTooManyBytes); !strings.Contains(f.Message, "21999") {
			t.Fatal(f.Message)
		}
	})
	t.Run("negative limits are refused", func(t *testing.T) {
		for name, l := range map[string]source.Limits{"limits.rows is -1": {Rows: -1}, "limits.bytes is -1": {Bytes: -1}, "limits.timeout is -1ns": {Timeout: -1}} {
			_, err := read(l)
			if f := failuretest.Want(t, err, failure.QueryInvalid); !strings.Contains(f.Message, name) {
				t.Errorf("%q does not say %q", f.Message, name)
			}
		}
	})
}

func (s suite) ends(t *testing.T) {
	src := s.open(t, numbers)
	within := func(t *testing.T, f func()) {
		t.Helper()
		begun := time.Now()
		f()
		if took := time.Since(begun); took > soon {
			t.Fatalf("ended after %s only", took)
		}
	}
	t.Run("a runaway query ends at its time-out", func(t *testing.T) {
		within(t, func() {
			s.refused(t, src, source.Query{SQL: s.d.Runaway, Limits: source.Limits{Timeout: 100 * time.Millisecond}}, failure.QueryTimeout)
		})
	})
	t.Run("a runaway query ends at the context's deadline", func(t *testing.T) {
		within(t, func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := Read(ctx, src, source.Query{SQL: s.d.Runaway})
			failuretest.Want(t, err, failure.QueryTimeout)
		})
	})
	for name, ofNext := range map[string]bool{"Open's context": false, "Next's context": true} {
		t.Run("a runaway query ends when cancelled by "+name, func(t *testing.T) {
			within(t, func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				opened, sql := t.Context(), s.d.Runaway
				if !ofNext {
					opened = ctx
				} else if s.d.Waits {
					sql = "SELECT n FROM numbers" // what runs away is never opened; the rows of another end
				}
				if s.d.Waits && !ofNext {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				rows, err := src.Open(opened, source.Query{SQL: sql})
				if err == nil {
					defer rows.Close()
					if s.d.Waits {
						cancel()
					} else {
						time.AfterFunc(50*time.Millisecond, cancel)
					}
					_, err = rows.Next(ctx)
				} else if !s.d.Waits || ofNext {
					t.Fatal(err)
				}
				f := failuretest.Want(t, err, failure.SourceUnavailable)
				if !errors.Is(err, context.Canceled) || !f.Passing() {
					t.Fatalf("%v, want a passing failure that wraps context.Canceled", err)
				}
			})
		})
	}
	t.Run("V7 an error after rows is a failure, never the end", func(t *testing.T) {
		out, err := Read(t.Context(), src, source.Query{SQL: s.d.Breaks})
		failuretest.Want(t, err, failure.QueryFailed)
		if len(out.Rows) > 1499 {
			t.Fatalf("%d rows before the failure, want at most 1499", len(out.Rows))
		}
	})
	t.Run("V7 a failure stays", func(t *testing.T) {
		rows, err := src.Open(t.Context(), source.Query{SQL: s.d.Breaks})
		if s.d.Waits {
			failuretest.Want(t, err, failure.QueryFailed) // there are no rows that it could come after
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for err == nil {
			_, err = rows.Next(t.Context())
		}
		_, again := rows.Next(t.Context())
		failuretest.Want(t, again, failure.QueryFailed)
	})
	t.Run("the end stays, Close may be called twice", func(t *testing.T) {
		rows, err := src.Open(t.Context(), source.Query{SQL: "SELECT n FROM numbers WHERE n < 0"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := rows.Next(t.Context()); err != io.EOF {
				t.Fatalf("%v, want io.EOF", err)
			}
		}
		if err := errors.Join(rows.Close(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("closed rows are not at their end", func(t *testing.T) {
		rows, err := src.Open(t.Context(), source.Query{SQL: "SELECT n FROM numbers"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rows.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows.Close()
		_, err = rows.Next(t.Context())
		failuretest.Want(t, err, failure.SourceUnavailable)
	})
}

func (s suite) readOnly(t *testing.T) {
	src := s.open(t, numbers)
	for name, sql := range s.d.Writes {
		t.Run(name, func(t *testing.T) {
			f := s.refused(t, src, source.Query{SQL: sql}, failure.QueryNotReadOnly)
			if f.Passing() {
				t.Fatal("trying again cannot help")
			}
			out := s.must(t, src, source.Query{SQL: "SELECT COUNT(*), SUM(n) FROM numbers"})
			if row := out.Rows[0]; row[0].Int != 2000 || row[1].Kind == source.KindInt && row[1].Int != 2001000 {
				t.Fatalf("the table has changed: %+v", row)
			}
		})
	}
}

func (s suite) text(t *testing.T) {
	src := s.open(t, numbers)
	for _, c := range []struct{ name, sql, says string }{
		{"two statements", "SELECT n FROM numbers; SELECT 1", "more than one statement"},
		{"a second statement that writes", "SELECT n FROM numbers; DELETE FROM numbers", "more than one statement"},
		{"empty", "", "empty"},
		{"white space", " \n\t", "empty"},
		{"a comment only", "-- nothing\n/* here */", "empty"},
		{"syntax", "SELECT n FROM numbers WHERE WHERE", "WHERE"},
		{"missing table", "SELECT n FROM nombers", "nombers"},
		{"missing column", "SELECT nn FROM numbers", "nn"},
		{"missing column in double quotes", `SELECT "nn" FROM numbers`, "nn"},
		{"NUL", "SELECT n FROM numbers\x00; DELETE FROM numbers", "NUL"},
		{"not UTF-8", "SELECT '\xff'", "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if f := s.refused(t, src, source.Query{SQL: c.sql}, failure.QueryInvalid); !strings.Contains(f.Message, c.says) {
				t.Fatalf("%q does not say %q", f.Message, c.says)
			}
		})
	}
	t.Run("a last semicolon and comments are fine", func(t *testing.T) {
		out := s.must(t, src, source.Query{SQL: "/* a; b */ SELECT n FROM numbers WHERE name <> ';' AND n = 1; -- the end; really"})
		if len(out.Rows) != 1 {
			t.Fatalf("%d rows", len(out.Rows))
		}
	})
}

func (s suite) parameters(t *testing.T) {
	texts := []string{"'; DROP TABLE numbers; --", `"`, "a\r\nb\tc", "é☃🚚", ":name", "?", "%_\\", ""}
	ddl := append([]string{"CREATE TABLE texts (t TEXT)"}, numbers...)
	for _, text := range texts {
		ddl = append(ddl, "INSERT INTO texts VALUES ('"+strings.ReplaceAll(text, "'", "''")+"')")
	}
	src := s.open(t, ddl)
	query := func(sql string, params map[string]any) source.Query { return source.Query{SQL: sql, Params: params} }
	t.Run("bound, never pasted", func(t *testing.T) {
		for _, hostile := range texts {
			out := s.must(t, src, query("SELECT t FROM texts WHERE t = :x AND 3 = :n", map[string]any{"x": hostile, "n": int64(3)}))
			if len(out.Rows) != 1 || string(out.Rows[0][0].Text) != hostile {
				t.Fatalf("%q came back as %+v", hostile, out.Rows)
			}
		}
	})
	if most := s.d.MaxParameter; most > 0 {
		t.Run("as long as it may be, and one character more", func(t *testing.T) {
			longest := strings.Repeat("é", most-len("''"))
			s.must(t, src, query("SELECT t FROM texts WHERE t = :x", map[string]any{"x": longest}))
			s.refused(t, src, query("SELECT t FROM texts WHERE t = :x", map[string]any{"x": longest + "é"}), failure.ParameterInvalid)
		})
	}
	t.Run("one name used twice", func(t *testing.T) {
		out := s.must(t, src, query("SELECT n FROM numbers WHERE n >= :n AND n <= :n", map[string]any{"n": int64(7)}))
		if len(out.Rows) != 1 || out.Rows[0][0].Int != 7 {
			t.Fatalf("%+v", out.Rows)
		}
	})
	t.Run("NULL", func(t *testing.T) {
		out := s.must(t, src, query("SELECT COUNT(*) FROM numbers WHERE CAST(:x AS TEXT) IS NULL", map[string]any{"x": nil}))
		if out.Rows[0][0].Int != 2000 {
			t.Fatalf("%+v", out.Rows)
		}
	})
	t.Run("built-in ones need not be used", func(t *testing.T) {
		s.must(t, src, query("SELECT n FROM numbers", map[string]any{"workspace": "EWR", "period_start": time.Now(), "period_end": time.Now(),
			"scheduled_time": time.Now(), "last_success_time": nil}))
	})
	for _, c := range []struct {
		name, sql string
		params    map[string]any
		says      string
	}{
		{"used and absent", "SELECT n FROM numbers WHERE name = :carrier", nil, ":carrier"},
		{"given and unused", "SELECT n FROM numbers", map[string]any{"carrier": "UA"}, ":carrier"},
		{"case matters", "SELECT n FROM numbers WHERE name = :Carrier", map[string]any{"carrier": "UA"}, ":Carrier"},
		{"wrong type", "SELECT n FROM numbers WHERE name = :x", map[string]any{"x": []string{"a"}}, "[]string"},
		{"not a number", "SELECT n FROM numbers WHERE n = :x", map[string]any{"x": math.NaN()}, "NaN"},
		{"infinite", "SELECT n FROM numbers WHERE n = :x", map[string]any{"x": math.Inf(-1)}, "-Inf"},
		{"not UTF-8", "SELECT n FROM numbers WHERE name = :x", map[string]any{"x": "\xff"}, "UTF-8"},
		{"NUL", "SELECT n FROM numbers WHERE name = :x", map[string]any{"x": "a\x00b"}, "NUL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if f := s.refused(t, src, query(c.sql, c.params), failure.ParameterInvalid); !strings.Contains(f.Message, c.says) {
				t.Fatalf("%q does not say %q", f.Message, c.says)
			}
		})
	}
}

func (s suite) concurrency(t *testing.T) {
	src := s.open(t, numbers)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			out, err := Read(t.Context(), src, source.Query{SQL: "SELECT n FROM numbers WHERE n > :i ORDER BY n", Params: map[string]any{"i": int64(i)}})
			if err != nil || len(out.Rows) != 2000-i || out.Rows[0][0].Int != int64(i+1) || out.Rows[1999-i][0].Int != 2000 {
				t.Errorf("reader %d: %d rows, %v", i, len(out.Rows), err)
			}
		})
	}
	group.Wait()
}
