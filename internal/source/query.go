package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"almanac/internal/failure"
)

// What every engine asks of a query before it asks its database stands here, so that it is refused in the same words.

// Builtins are the parameters that every query is given (design.md §4) and need not use.
var Builtins = map[string]bool{
	"workspace": true, "period_start": true, "period_end": true, "scheduled_time": true, "last_success_time": true,
}

// Check refuses negative limits.
func (l Limits) Check() error {
	switch {
	case l.Rows < 0:
		return failure.New(failure.QueryInvalid, "limits.rows is %d; it must be positive", l.Rows)
	case l.Bytes < 0:
		return failure.New(failure.QueryInvalid, "limits.bytes is %d; it must be positive", l.Bytes)
	case l.Timeout < 0:
		return failure.New(failure.QueryInvalid, "limits.timeout is %s; it must be positive", l.Timeout)
	}
	return nil
}

// CheckText refuses a query that is no text.
func CheckText(sql string) error {
	if strings.ContainsRune(sql, 0) || !utf8.ValidString(sql) {
		return failure.New(failure.QueryInvalid, "the query contains a NUL character or bytes that are not UTF-8: write it as plain text")
	}
	return nil
}

// CheckValue refuses a parameter's value that no engine can hold.
func CheckValue(name string, value any) error {
	switch v := value.(type) {
	case nil, bool, int, int64, time.Time:
		return nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return failure.New(failure.ParameterInvalid, "the parameter :%s is %v: give a finite number", name, v)
		}
		return nil
	case string:
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return failure.New(failure.ParameterInvalid, "the parameter :%s is %q: give UTF-8 text without NUL characters", name, failure.Cut(v, 80))
		}
		return nil
	}
	return failure.New(failure.ParameterInvalid, "the parameter :%s is of the type %T: give null, a boolean, a number, a text or a time", name, value)
}

// Absent is the refusal of a parameter, spelled as in the query, that is used and not given.
func Absent(spelled string) error {
	return failure.New(failure.ParameterInvalid, "the query uses the parameter %s, which is not given: declare it, or correct its name", failure.Cut(spelled, 80))
}

// CheckUsed refuses parameters that are given and not used; Builtins may be.
func CheckUsed(params map[string]any, used func(name string) bool) error {
	var unused []string
	for name := range params {
		if !used(name) && !Builtins[name] {
			unused = append(unused, failure.Cut(":"+name, 80))
		}
	}
	if len(unused) == 0 {
		return nil
	}
	slices.Sort(unused)
	return failure.New(failure.ParameterInvalid, "the query does not use the parameter %s: use it in the query, or remove it", strings.Join(unused, ", "))
}

// Where quotes the text around a place in a query, given in bytes; "" for a place outside it.
func Where(sql string, offset int) string {
	if offset < 0 || offset >= len(sql) {
		return ""
	}
	rest := sql[offset:]
	if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
		rest = rest[:i]
	}
	line := 1 + strings.Count(sql[:offset], "\n")
	column := 1 + utf8.RuneCountInString(sql[1+strings.LastIndexByte(sql[:offset], '\n'):offset])
	return fmt.Sprintf(" (line %d, column %d, at %q)", line, column, failure.Cut(rest, 40))
}

// Ended says why a query was stopped: parent is the context given by the caller, limit the query's own time.
func Ended(parent context.Context, limit time.Duration) *failure.Failure {
	switch err := parent.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Wrap(failure.QueryTimeout, err, "the query did not end before its caller's deadline: make it cheaper, for instance with an index")
	case err != nil:
		return failure.Wrap(failure.SourceUnavailable, err, "the query was cancelled before it ended")
	}
	return failure.Wrap(failure.QueryTimeout, context.DeadlineExceeded, "the query did not end within its time of %s: make it cheaper, for instance with an index, or raise limits.timeout", limit)
}

// TooManyRows and TooManyBytes are the refusals of a result beyond its limits, TooLargeRow of a row beyond what is held
// in memory.
func TooManyRows(limit int64) error {
	return failure.New(failure.QueryTooManyRows, "the query returns more than its limit of %d rows: narrow it, or raise limits.rows", limit)
}

func TooManyBytes(limit int64) error {
	return failure.New(failure.QueryTooManyBytes, "the query returns more than its limit of %d bytes: narrow it, or raise limits.bytes", limit)
}

func TooLargeRow(row int64) error {
	return failure.New(failure.QueryFailed, "row %d has more than %d bytes: return fewer or smaller cells in a row", row, MaxRow)
}

// MaxRow bounds the contents of one row, in bytes: engines hold whole rows in memory.
const MaxRow = 32 << 20

// Closed is what rows say that were closed before their end.
func Closed() *failure.Failure {
	return failure.New(failure.SourceUnavailable, "the rows were closed before they were read to their end")
}
