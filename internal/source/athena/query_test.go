package athena

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
)

func TestLiterals(t *testing.T) {
	for _, row := range []struct {
		value any
		want  string
	}{
		{nil, "NULL"}, {true, "TRUE"}, {false, "FALSE"}, {7, "7"}, {int64(-7), "-7"}, {int64(math.MaxInt64), "9223372036854775807"},
		{int64(math.MinInt64), "CAST('-9223372036854775808' AS BIGINT)"}, {0.1, "1e-01"}, {-1e300, "-1e+300"}, {0.0, "0e+00"}, {"", "''"}, {"O'Hare", "'O''Hare'"},
		{`a"\;--?:x`, `'a"\;--?:x'`}, {"two\nlines", "'two\nlines'"}, {time.Date(2013, 6, 1, 9, 0, 0, 123456789, time.FixedZone("", -4*3600)), "TIMESTAMP '2013-06-01 13:00:00.123456'"},
	} {
		text, literals, err := compile("SELECT a FROM t WHERE b = :x", map[string]any{"x": row.value}, false)
		if err != nil || text != "SELECT a FROM t WHERE b = ?" || len(literals) != 1 || literals[0] != row.want {
			t.Errorf("%v: %q %q %v, want %q", row.value, text, literals, err, row.want)
		}
	}
}

func TestNamesBecomeMarks(t *testing.T) {
	params := map[string]any{"a": int64(1), "b_2": int64(2), "workspace": "EWR"}
	for _, row := range []struct{ sql, want, literals string }{
		{"SELECT x WHERE y = :a AND z = :b_2 OR y=:a", "SELECT x WHERE y = ? AND z = ? OR y=?", "[1 2 1]"},
		{"SELECT ':a', \":a\", `:a` /* :a ? */ -- :a ;\nWHERE y = :b_2 AND z < :a;", "SELECT ':a', \":a\", `:a` /* :a ? */ -- :a ;\nWHERE y = ? AND z < ?", "[2 1]"},
		{"SELECT 'it''s ?' WHERE y = :a AND z = :b_2 ; -- the end; really", "SELECT 'it''s ?' WHERE y = ? AND z = ? ", "[1 2]"},
		{"SELECT a[1:2], time '10:30', x WHERE y = :a AND z = :b_2", "SELECT a[1:2], time '10:30', x WHERE y = ? AND z = ?", "[1 2]"},
	} {
		text, literals, err := compile(row.sql, params, false)
		if err != nil || text != row.want || fmt.Sprint(literals) != row.literals {
			t.Errorf("%q: %q %v %v", row.sql, text, literals, err)
		}
	}
}

func TestQueriesThatAreNotSent(t *testing.T) {
	for _, row := range []struct {
		sql    string
		params map[string]any
		code   failure.Code
		says   string
	}{
		{"SELECT a FROM t WHERE b = ?", nil, failure.ParameterInvalid, "parameter ?"},
		{"SELECT a FROM t WHERE b = :x", nil, failure.ParameterInvalid, ":x"},
		{"SELECT a FROM t", map[string]any{"x": "1"}, failure.ParameterInvalid, ":x"},
		{"SELECT 'open", map[string]any{"x": "1"}, failure.ParameterInvalid, ":x"},
		{"SELECT a FROM t WHERE b = :x", map[string]any{"x": strings.Repeat("'", 512)}, failure.ParameterInvalid, "1026 characters"},
		{"SELECT 1; SELECT 2", nil, failure.QueryInvalid, "more than one statement"},
		{"SELECT 1;;", nil, failure.QueryInvalid, "more than one statement"},
		{";", nil, failure.QueryInvalid, "empty"},
		{"/* never ends", nil, failure.QueryInvalid, "empty"},
		{"SELECT '" + strings.Repeat("x", maxQuery) + "'", nil, failure.QueryInvalid, "262153 bytes"},
	} {
		_, _, err := compile(row.sql, row.params, false)
		if f := failuretest.Want(t, err, row.code); !strings.Contains(f.Message, row.says) {
			t.Errorf("%.40q: %q does not say %q", row.sql, f.Message, row.says)
		}
	}
}

func TestWhatAQueryCosts(t *testing.T) {
	for _, row := range []struct {
		scanned int64
		state   types.QueryExecutionState
		kind    types.StatementType
		micros  int64
	}{
		{0, types.QueryExecutionStateSucceeded, types.StatementTypeDml, 48}, // ten megabytes at least
		{10 << 20, types.QueryExecutionStateSucceeded, types.StatementTypeDml, 48},
		{10<<20 + 1, types.QueryExecutionStateSucceeded, types.StatementTypeDml, 53},
		{1 << 40, types.QueryExecutionStateSucceeded, types.StatementTypeDml, 5_000_000},
		{1 << 40, types.QueryExecutionStateCancelled, types.StatementTypeDml, 5_000_000},
		{0, types.QueryExecutionStateCancelled, types.StatementTypeDml, 0},
		{1 << 40, types.QueryExecutionStateFailed, types.StatementTypeDml, 0},
		{1 << 40, types.QueryExecutionStateSucceeded, types.StatementTypeDdl, 0},
	} {
		x := &types.QueryExecution{Status: &types.QueryExecutionStatus{State: row.state}, StatementType: row.kind, Statistics: &types.QueryExecutionStatistics{DataScannedInBytes: aws.Int64(row.scanned)}}
		if c := costOf(x); c.Scanned != row.scanned || c.Micros != row.micros {
			t.Errorf("%+v: %+v", row, c)
		}
	}
	if c := costOf(&types.QueryExecution{Status: &types.QueryExecutionStatus{State: types.QueryExecutionStateQueued}}); c.Scanned != 0 {
		t.Errorf("without statistics: %+v", c)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"SELECT ':a' WHERE x = :a", "--", "/*", "'", ";", ":a:a", "?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		text, literals, err := compile(sql, map[string]any{"a": "'; DROP", "workspace": "w"}, false)
		if err == nil && len(text) > len(sql) {
			t.Fatalf("%q became %q with %q", sql, text, literals)
		}
	})
}
