package source

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"almanac/internal/failure"
)

// Tester is a source that can say, step by step, whether it can be used.
type Tester interface {
	// Test ends with the context at the latest. sql is the query whose first rows are wanted; empty: those of some table.
	Test(ctx context.Context, sql string) Report
}

// Report is what a test found.
type Report struct {
	Findings []Finding // in order, up to the first that is not OK
	Columns  []Column
	Rows     [][]*string // the first ones, at most PreviewRows; nil: NULL
}

// Finding is one step of a test.
type Finding struct {
	Step string // such as login, network, TLS, sign-in, rights, time
	OK   bool
	Took time.Duration
	Says string       // what was found, or what helps
	Code failure.Code // of a step that is not OK
}

// The rows that a report shows, and the bytes of a cell.
const (
	PreviewRows = 5
	previewCell = 200
)

// OK reports whether every step was.
func (r *Report) OK() bool { return len(r.Findings) > 0 && r.Findings[len(r.Findings)-1].OK }

// Add notes a step; err is why it failed, nil if it did not.
func (r *Report) Add(step string, took time.Duration, says string, err error) {
	f := Finding{Step: step, OK: err == nil, Took: took, Says: says}
	if err != nil {
		why := failure.From(err)
		f.Says, f.Code = why.Cut(), why.Code
	}
	r.Findings = append(r.Findings, f)
}

// Step does a step and notes it; it reports whether it succeeded.
func (r *Report) Step(step string, do func() (says string, err error)) bool {
	begun := time.Now()
	says, err := do()
	r.Add(step, time.Since(begun), says, err)
	return err == nil
}

// Preview is the step "time": it reads the first rows of a query.
func (r *Report) Preview(ctx context.Context, s Source, sql string) {
	r.Step("time", func() (string, error) {
		var err error
		r.Columns, r.Rows, err = First(ctx, s, sql, PreviewRows)
		return fmt.Sprintf("%d rows were read", len(r.Rows)), err
	})
}

// First reads a query's first rows as text.
func First(ctx context.Context, s Source, sql string, most int) (columns []Column, out [][]*string, err error) {
	rows, err := s.Open(ctx, Query{SQL: sql})
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for len(out) < most {
		row, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return rows.Columns(), out, err
		}
		cells := make([]*string, len(row))
		for i := range row {
			cells[i] = display(&row[i])
		}
		out = append(out, cells)
	}
	return rows.Columns(), out, nil
}

// display is a cell for a person to read, nil for NULL.
func display(v *Value) *string {
	var text string
	switch v.Kind {
	case KindNull:
		return nil
	case KindInt:
		text = strconv.FormatInt(v.Int, 10)
	case KindFloat:
		text = strconv.FormatFloat(v.Float, 'g', -1, 64)
	case KindBool:
		text = strconv.FormatBool(v.Int != 0)
	case KindDate:
		text = v.Time.Format(time.DateOnly)
	case KindTimestamp:
		text = v.Time.Format(time.RFC3339Nano)
	case KindBytes:
		text = `\x` + hex.EncodeToString(v.Text[:min(len(v.Text), previewCell)])
	default:
		text = string(v.Text)
	}
	text = failure.Cut(text, previewCell)
	return &text
}
