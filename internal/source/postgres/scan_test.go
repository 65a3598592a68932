package postgres

import (
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/sourcetest"
)

// scans pairs queries with what the server is sent. Each is run besides: what it says after => is its one cell.
var scans = []struct{ in, out, cell string }{
	{"SELECT :a::text", "SELECT $1::text", "1"},
	{"SELECT :a::text || :b || :a::text", "SELECT $1::text || $2 || $1::text", "1two1"},
	{"SELECT ':a' || :b", "SELECT ':a' || $1", ":atwo"},
	{"SELECT 'it''s :a' || :b", "SELECT 'it''s :a' || $1", "it's :atwo"},
	{`SELECT 'a\' || :b || ':a'`, `SELECT 'a\' || $1 || ':a'`, `a\two:a`},
	{`SELECT E'a\' :a' || :b`, `SELECT E'a\' :a' || $1`, `a' :atwo`},
	{`SELECT e'a\\' || :b`, `SELECT e'a\\' || $1`, `a\two`},
	{"SELECT E'a' -- :a\n  '\\' :a' || :b", "SELECT E'a' -- :a\n  '\\' :a' || $1", "a' :atwo"},
	{"SELECT 'a'\n'\\' || :b", "SELECT 'a'\n'\\' || $1", `a\two`},
	{"SELECT E'a' || '\\' || :b", "SELECT E'a' || '\\' || $1", `a\two`},
	{`SELECT U&'d\0061t :a' || :b`, `SELECT U&'d\0061t :a' || $1`, "dat :atwo"},
	{`SELECT "x :a" || :b FROM (SELECT 'v' AS "x :a") AS s`, `SELECT "x :a" || $1 FROM (SELECT 'v' AS "x :a") AS s`, "vtwo"},
	{`SELECT "x"" :a" || :b FROM (SELECT 'v' AS "x"" :a") AS s`, `SELECT "x"" :a" || $1 FROM (SELECT 'v' AS "x"" :a") AS s`, "vtwo"},
	{"SELECT $$:a ' $$ || :b", "SELECT $$:a ' $$ || $1", ":a ' two"},
	{"SELECT $q$:a $$ $q $q$ || :b", "SELECT $q$:a $$ $q $q$ || $1", ":a $$ $q two"},
	{"SELECT $é1$:a$é1$ || :b", "SELECT $é1$:a$é1$ || $1", ":atwo"},
	{"SELECT a$1 || :b FROM (SELECT 'v' AS a$1) AS s", "SELECT a$1 || $1 FROM (SELECT 'v' AS a$1) AS s", "vtwo"},
	{"SELECT :b -- :a ' \n", "SELECT $1 -- :a ' \n", "two"},
	{"SELECT /* :a /* ' */ :a */ :b", "SELECT /* :a /* ' */ :a */ $1", "two"},
	{"SELECT :b /* :a", "", ""},
	{"SELECT (array[7,8,9])[2:3]::text || :b", "SELECT (array[7,8,9])[2:3]::text || $1", "{8,9}two"},
	{"SELECT (array[7,8,9])[:a]::text", "SELECT (array[7,8,9])[$1]::text", "7"},
	{"SELECT (array[7,8,9])[: 2]::text || :b", "SELECT (array[7,8,9])[: 2]::text || $1", "{7,8}two"},
	{"SELECT :_x1||:b", "SELECT $1||$2", "undertwo"},
	{"SELECT :é || :b", "SELECT $1 || $2", "accenttwo"},
	{"SELECT x::text || :b FROM (SELECT 1 AS x) AS s;  -- end\n;", "SELECT x::text || $1 FROM (SELECT 1 AS x) AS s;  -- end\n;", "1two"},
	{"SELECT '{\"k\": 5}'::jsonb ->> 'k' || :b", "SELECT '{\"k\": 5}'::jsonb ->> 'k' || $1", "5two"},
	{"SELECT ('{\"k\": 5}'::jsonb ? 'k')::text || :b", "SELECT ('{\"k\": 5}'::jsonb ? 'k')::text || $1", "truetwo"},
	{"; ;SELECT :b", "; ;SELECT $1", "two"},
	{"SELECT make_date(year := 2013, month => :a, day => 2)::text", "SELECT make_date(year := 2013, month => $1, day => 2)::text", "2013-01-02"},
}

func TestNamesBecomeNumbers(t *testing.T) {
	src := openTest(t)
	given := map[string]any{"a": 1, "b": "two", "_x1": "under", "é": "accent"}
	for _, c := range scans {
		st, err := scan(c.in)
		must(t, err)
		if c.out == "" { // only the server can refuse it
			_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: c.in, Params: map[string]any{"b": "two"}})
			failuretest.Want(t, err, failure.QueryInvalid)
			continue
		}
		if st.sql != c.out {
			t.Errorf("%s\nbecame %s\nwant   %s", c.in, st.sql, c.out)
			continue
		}
		params := map[string]any{}
		for _, n := range st.names {
			params[n] = given[n]
		}
		out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: c.in, Params: params})
		if err != nil || len(out.Rows) != 1 || string(out.Rows[0][0].Text) != c.cell && out.Rows[0][0].Kind == source.KindText {
			t.Errorf("%s gave %+v, %v; want %q", c.in, out.Rows, err, c.cell)
		}
	}
}

func TestTextsThatAreNoSingleQuery(t *testing.T) {
	for in, says := range map[string]string{
		"SELECT 1; SELECT 2": "more than one statement", "SELECT 1;;'": "more than one statement", "SELECT ';'; x": `("x" follows`,
		"": "empty", ";;": "empty", "/* ; */ ;": "empty", "--": "empty", "/* /* */": "empty",
	} {
		_, err := scan(in)
		if f := failuretest.Want(t, err, failure.QueryInvalid); !strings.Contains(f.Message, says) {
			t.Errorf("%q: %q does not say %q", in, f.Message, says)
		}
	}
	for in, says := range map[string]string{"SELECT $1": "$1", "SELECT $12, :a": "$12", "SELECT " + strings.Repeat(":a, ", 3) + many(1001): "more than 1000"} {
		_, err := scan(in)
		if f := failuretest.Want(t, err, failure.ParameterInvalid); !strings.Contains(f.Message, says) {
			t.Errorf("%.40q: %q does not say %q", in, f.Message, says)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("x", i%7+1) + ":p" + strings.Repeat("q", i) + " ")
	}
	return b.String()
}

func TestPlacesAreThoseOfTheWrittenText(t *testing.T) {
	src := openTest(t, numbers...)
	for sql, says := range map[string]string{
		"SELECT n FROM numbers\nWHERE name = :carrier AND é = :carrier AND m = 1": `(line 2, column 27, at "é = :carrier`,
		"SELECT n FROM numbers WHERE n = :n AND nosuch(:n) AND n":                 `at "nosuch(:n)`,
		"SELECT n FROM nombers": `(line 1, column 15, at "nombers")`,
		"SELECT 'open":          `at "'open"`,
	} {
		params := map[string]any{}
		if strings.Contains(sql, ":carrier") {
			params["carrier"] = "UA"
		} else if strings.Contains(sql, ":n") {
			params["n"] = 1
		}
		_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: sql, Params: params})
		wants(t, err, failure.QueryInvalid, says)
	}
	st, err := scan("SELECT :a")
	must(t, err)
	for position, want := range map[int]int{1: 0, 8: 7, 9: 7, 10: 9, 99: -1} {
		if got := st.original(position); got != want {
			t.Errorf("position %d is at %d, want %d", position, got, want)
		}
	}
	if got := st.named("parameter $1 of $2"); got != "parameter :a of $2" {
		t.Error(got)
	}
}

func FuzzScan(f *testing.F) {
	for _, c := range scans {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		st, err := scan(in)
		if err != nil {
			return
		}
		// what is not a parameter stays, and numbering is done once
		at, out := 0, 0
		for _, e := range st.edits {
			if in[at:e.from] != st.sql[out:e.to] || in[e.from] != ':' || st.sql[e.to] != '$' {
				t.Fatalf("%q became %q", in, st.sql)
			}
			at, out = e.fromEnd, e.toEnd
		}
		if in[at:] != st.sql[out:] {
			t.Fatalf("%q became %q", in, st.sql)
		}
		for i := range len(st.sql) + 2 {
			if p := st.original(i + 1); p > len(in) {
				t.Fatalf("%q: character %d is at %d", in, i+1, p)
			}
		}
	})
}
