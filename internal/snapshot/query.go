package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// What is put around a definition's queries stands here alone, so that an engine which spells it in another way has one
// place to differ. The query is one derived table: a second statement, or one that is no SELECT, does not compile in it.

// cursorParam is where the next chunk begins; it is one of Reserved.
const cursorParam = "almanac_cursor"

// rowsSQL is the month in the order of its key, after the cursor if there is one. Text is compared byte by byte, as keys
// are compared here; how that is said the engine knows.
func rowsSQL(view source.View, query, key string, typ source.Type, after bool) string {
	order, where := view.ByteOrder(quoteName(key), typ), ""
	if after {
		where = fmt.Sprintf("\nwhere %s > :%s", order, cursorParam)
	}
	return fmt.Sprintf("select * from (\n%s\n) as month%s\norder by %s", bare(query), where, order)
}

// shapeSQL has the columns of a query and none of its rows.
func shapeSQL(query string) string {
	return fmt.Sprintf("select * from (\n%s\n) as month limit 0", bare(query))
}

// bare takes off the semicolon that ends a statement.
func bare(query string) string { return strings.TrimRight(query, "; \t\r\n") }

// quoteName spells a column's name whatever it holds.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

var paramUse = regexp.MustCompile(`:([A-Za-z_][A-Za-z0-9_]*)`)

// params are those of the run that the query names: the workspace, the month's bounds and the definition's own.
func params(r Run, d Definition, query string) map[string]any {
	all := map[string]any{}
	for name, v := range d.Params {
		all[name] = v
	}
	all["workspace"], all["period_start"], all["period_end"] = r.Workspace, r.Start.UTC(), r.End.UTC()
	used := map[string]any{}
	for _, m := range paramUse.FindAllStringSubmatch(query, -1) {
		if v, ok := all[m[1]]; ok {
			used[m[1]] = v
		}
	}
	return used
}

// limits are a definition's for one query; committed rows count against those of the month.
func (d Definition) limits(committed int64) (source.Limits, error) {
	l := source.Limits{Rows: d.Limits.Rows, Bytes: d.Limits.Bytes, Timeout: d.Limits.Timeout.Std()}
	if l.Rows == 0 {
		l.Rows = source.Defaults.Rows
	}
	if l.Rows -= committed; l.Rows <= 0 {
		return l, failure.New(failure.QueryTooManyRows, "the month has %d rows already and is not at its end; its limit is %d: narrow the query, or raise limits.rows", committed, l.Rows+committed)
	}
	return l, nil
}

// columnsOf asks for a query's columns.
func columnsOf(ctx context.Context, view source.View, r Run, d Definition, query string) ([]source.Column, error) {
	rows, err := view.Open(ctx, source.Query{SQL: shapeSQL(query), Params: params(r, d, query), Limits: source.Limits{Timeout: d.Limits.Timeout.Std()}})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return rows.Columns(), nil
}

// Control is what a control query said.
type Control struct {
	Rows    int64
	Columns []string // the columns to be summed, in the query's order
	Sums    map[string]Sum
}

// rowsColumn is the control query's column that holds the number of rows.
const rowsColumn = "rows"

// control reads a control query, which has exactly one row.
func control(ctx context.Context, open func(context.Context, source.Query) (source.Rows, error), r Run, d Definition) (Control, error) {
	c := Control{Sums: map[string]Sum{}}
	rows, err := open(ctx, source.Query{SQL: bare(d.Control), Params: params(r, d, d.Control), Limits: source.Limits{Timeout: d.Limits.Timeout.Std()}})
	if err != nil {
		return c, err
	}
	defer rows.Close()
	columns := rows.Columns()
	if c.Columns, err = controlled(columns); err != nil {
		return c, err
	}
	row, err := rows.Next(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return c, failure.New(failure.DefinitionInvalid, "the control query returned no row; want one with a column %q", rowsColumn)
	case err != nil:
		return c, err
	}
	for i, col := range columns {
		v := &row[i]
		if col.Name == rowsColumn {
			if v.Kind != source.KindInt || v.Int < 0 {
				return c, failure.New(failure.DefinitionInvalid, "the control query's column %q is %s; want the number of rows as an integer", rowsColumn, cellText(v))
			}
			c.Rows = v.Int
			continue
		}
		var s Sum
		s.Add(v)
		if s.misfits > 0 {
			return c, failure.New(failure.DefinitionInvalid, "the control query's column %q is %s; want a number, the sum of the column of that name", col.Name, cellText(v))
		}
		c.Sums[col.Name] = s
	}
	if _, err := rows.Next(ctx); !errors.Is(err, io.EOF) {
		if err != nil {
			return c, err
		}
		return c, failure.New(failure.DefinitionInvalid, "the control query returned more than one row; want one with a column %q", rowsColumn)
	}
	return c, nil
}

// controlled are the columns of a control query that name sums.
func controlled(columns []source.Column) (sums []string, err error) {
	found, seen := false, map[string]bool{}
	for _, c := range columns {
		if seen[c.Name] {
			return nil, failure.New(failure.DefinitionInvalid, "the control query has two columns %q; want one", c.Name)
		}
		seen[c.Name] = true
		if c.Name == rowsColumn {
			found = true
			continue
		}
		sums = append(sums, c.Name)
	}
	if !found {
		return nil, failure.New(failure.DefinitionInvalid, "the control query has no column %q; want select count(*) as rows, sum(x) as x, …", rowsColumn)
	}
	return sums, nil
}

func cellText(v *source.Value) string {
	switch v.Kind {
	case source.KindInt:
		return fmt.Sprint(v.Int)
	case source.KindFloat:
		return fmt.Sprint(v.Float)
	case source.KindText, source.KindDecimal:
		return fmt.Sprintf("%q", failure.Cut(strings.ToValidUTF8(string(v.Text), "?"), 60))
	}
	return kindName(v.Kind)
}
