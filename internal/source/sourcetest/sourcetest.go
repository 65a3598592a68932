// Package sourcetest is the conformance suite that each engine below package source passes.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

// Opener makes a source over a fresh database in which the statements were run. What it takes is freed by t.Cleanup.
type Opener func(t testing.TB, ddl []string) source.Source

// Dialect is what the suite cannot say in SQL that every engine understands.
type Dialect struct {
	Decimal string // type of a column with exact decimals
	Bytes   string // type of a column with bytes
	Hex     string // literal of the bytes 00 ff 0a, such as x'00ff0a'
	Runaway string // a query with one column that never ends and returns no row
	// Breaks is a query on "numbers" (column n, 1 to 2000) that returns rows and fails at the one where n is 1500.
	Breaks string
	// Writes are statements on "numbers" that the engine itself must refuse.
	Writes map[string]string
	// Epoch is a query for the seconds since 1970 of the parameter :scheduled_time, one integer.
	Epoch string
	// HugeRow is a query for one row whose cells together pass source.MaxRow.
	HugeRow string
	// MaxColumns is how many columns a result of the engine has at most.
	MaxColumns int
	// MaxParameter is how many characters a parameter has at most; 0: any number. Then Long is an expression for the text
	// 0123456789abcdé, so often repeated as its %d says.
	MaxParameter int
	Long         string
	// Waits says that Open waits until the query has ended, so that only its own context ends a query that runs.
	Waits bool
	// NoView says that the engine cannot be held at one version.
	NoView bool
	// Cells are expressions of the engine's types and what they must come out as.
	Cells []Cell
}

// Cell is an expression and its value, to the bit; where Column has a name, it is the column that must be told besides.
type Cell struct {
	SQL    string
	Want   source.Value
	Column source.Column
}

// Text is the cell of a text.
func Text(s string) source.Value { return source.Value{Kind: source.KindText, Text: []byte(s)} }

// Run runs the suite.
func Run(t *testing.T, open Opener, d Dialect) {
	suite := suite{open: open, d: d}
	t.Run("Values", suite.values)
	t.Run("Columns", suite.columns)
	t.Run("Limits", suite.limits)
	t.Run("Ends", suite.ends)
	t.Run("ReadOnly", suite.readOnly)
	t.Run("Text", suite.text)
	t.Run("Parameters", suite.parameters)
	t.Run("Concurrency", suite.concurrency)
	t.Run("Cells", suite.cells)
	t.Run("TimeZones", suite.timeZones)
	t.Run("Sizes", suite.sizes)
	t.Run("View", suite.view)
}

type suite struct {
	open Opener
	d    Dialect
}

// numbers makes a table with n = 1 to 2000.
var numbers = []string{
	"CREATE TABLE numbers (n BIGINT, name TEXT)",
	"INSERT INTO numbers WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < 2000) SELECT n, 'row' FROM c",
}

// sixteen is what long texts are made of: 16 bytes.
const sixteen = "0123456789abcdé"

// long is an expression for a text of 16 bytes, repeated, with its parameters: a parameter where it may be so long.
func (d Dialect) long(times int) (expr, text string, params map[string]any) {
	text = strings.Repeat(sixteen, times)
	if d.MaxParameter == 0 {
		return "CAST(:big AS TEXT)", text, map[string]any{"big": text}
	}
	return fmt.Sprintf(d.Long, times), text, nil
}

// Table is a whole result, its cells copied.
type Table struct {
	Columns []source.Column
	Rows    [][]source.Value
}

// Read opens a query and reads it to its end. The rows that came before a failure are returned with it.
func Read(ctx context.Context, s source.Source, q source.Query) (Table, error) {
	rows, err := s.Open(ctx, q)
	if err != nil {
		return Table{}, err
	}
	defer rows.Close()
	out := Table{Columns: rows.Columns()}
	for {
		row, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		kept := make([]source.Value, len(row))
		for i, v := range row {
			kept[i] = v
			kept[i].Text = append([]byte{}, v.Text...)
		}
		out.Rows = append(out.Rows, kept)
	}
}

func (s suite) must(t *testing.T, src source.Source, q source.Query) Table {
	t.Helper()
	out, err := Read(t.Context(), src, q)
	if err != nil {
		t.Fatalf("%s: %v", q.SQL, err)
	}
	return out
}

func (s suite) refused(t *testing.T, src source.Source, q source.Query, code failure.Code) *failure.Failure {
	t.Helper()
	_, err := Read(t.Context(), src, q)
	f := failuretest.Want(t, err, code)
	if f.Message == "" {
		t.Fatalf("%s without a message", code)
	}
	return f
}

// soon is how long a query with a time-out of fractions of a second may take on a busy machine before the suite calls
// it a runaway.
const soon = 20 * time.Second
