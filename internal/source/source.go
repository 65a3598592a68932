// Package source reads rows out of a saved query: typed columns and a row iterator, streaming, with bounded memory
// (design.md §4). Engines live in packages below it; each passes the same conformance suite (sourcetest).
package source

import (
	"context"
	"time"
)

// Type is a column's type as the engine declares it. A cell's own Kind decides how it is written; Type is for headers
// and for formats with a schema.
type Type int

const (
	Unknown Type = iota // the engine cannot tell (an SQLite expression)
	Integer
	Real
	Decimal
	Text
	Bytes
	Boolean
	Date
	Timestamp
)

// Column is one column of a result.
type Column struct {
	Name string
	Type Type
	// Precision and Scale are those of a Decimal that has them: digits in all, and behind the point. Precision 0: the
	// engine does not bound them.
	Precision, Scale int
	// Zoned says that a Timestamp column holds instants. Without it a cell is a civil time, given as if in UTC.
	Zoned bool
}

// Kind is what one cell holds.
type Kind uint8

const (
	KindNull      Kind = iota
	KindInt            // Int, exact over the whole of int64
	KindFloat          // Float
	KindDecimal        // Text: digits as the engine wrote them, never through a float
	KindText           // Text, UTF-8
	KindBytes          // Text holds the raw bytes
	KindBool           // Int: 0 or 1
	KindDate           // Time, at midnight UTC
	KindTimestamp      // Time
)

// Value is one cell. Text is valid until the next call of Rows.Next only: the iterator reuses its buffers.
type Value struct {
	Kind  Kind
	Int   int64
	Float float64
	Text  []byte
	Time  time.Time
}

// Rows iterates over a result. Close may be called at any time and more than once, and frees the engine.
type Rows interface {
	// Columns are known before the first row, also where there is none.
	Columns() []Column
	// Next returns the next row, io.EOF after the last one, or a *failure.Failure. A failure is never io.EOF: a result
	// that broke is not an empty one (case V7). The slice is reused.
	Next(ctx context.Context) ([]Value, error)
	Close() error
}

// Query is what a source is asked. Params are bound by the engine, never pasted into the text.
type Query struct {
	SQL    string
	Params map[string]any // name without the colon → nil, bool, int64, float64, string or time.Time
	Limits Limits
	Ticket *Ticket // nil: the query ends with its caller
}

// Limits bound a query. Zero means the source's default.
type Limits struct {
	Rows    int64         // rows returned
	Bytes   int64         // bytes of cell contents returned
	Timeout time.Duration // from Open to the last row
}

// Defaults are the limits where a definition has none of its own.
var Defaults = Limits{Rows: 5_000_000, Bytes: 4 << 30, Timeout: 4 * time.Minute}

// Or fills what l leaves open from d.
func (l Limits) Or(d Limits) Limits {
	if l.Rows == 0 {
		l.Rows = d.Rows
	}
	if l.Bytes == 0 {
		l.Bytes = d.Bytes
	}
	if l.Timeout == 0 {
		l.Timeout = d.Timeout
	}
	return l
}

// Source opens queries. Errors are *failure.Failure with a code that package failure lists for "source".
type Source interface {
	Open(ctx context.Context, q Query) (Rows, error)
}

// Viewer is a source that can be held at one version.
type Viewer interface {
	View(ctx context.Context) (View, error)
}

// View is a source held at one version: all queries that are opened on it see the same rows, whatever is written
// meanwhile, as in one transaction.
type View interface {
	Source
	// Version names what is seen: views of equal versions see the same rows. "" where the engine cannot tell.
	Version() string
	// ByteOrder spells an expression of the engine's SQL that orders and compares the column, a name in the engine's
	// quotes, of the type as Columns gave it, as package snapshot compares keys: numbers by their value, text byte by byte.
	ByteOrder(column string, t Type) string
	// Close lets go of the version, once the last rows are closed. It may be called more than once.
	Close() error
}
