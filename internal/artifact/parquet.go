package artifact

import (
	"context"
	"errors"
	"io"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/parquet"
	"almanac/internal/source"
)

// MaxParquetColumns bounds a Parquet file's columns, as many as XLSX has: each keeps its cells apart until its row group is
// whole.
const MaxParquetColumns = 16_384

// WriteParquet writes a Parquet file as Write does, and tells what its columns are. Where the caller gives columns, such as
// those of another file that this one is to be read with, they are the file's, and cells that do not fit them are refused.
func WriteParquet(ctx context.Context, rows source.Rows, columns []parquet.Column, w io.Writer, maxBytes int64) (Result, []parquet.Column, error) {
	var e *parquetFile
	r, err := write(ctx, rows, w, "", maxBytes, func(o *out) encoder {
		e = &parquetFile{out: o, given: columns}
		return e
	})
	if err != nil {
		return r, nil, err
	}
	return r, e.decided, nil
}

// parquetFile sorts cells into the columns of a Parquet file.
type parquetFile struct {
	out     *out
	given   []parquet.Column // the file's columns, where the caller has decided
	w       *parquet.Writer
	source  []source.Column
	soft    []bool // by column: its type may still be decided by its cells
	digits  []bool // by column: a text that holds numbers digit by digit
	settled bool   // nothing is soft any more
	rows    int64  // whole ones
	wrong   error  // of the file below, which is no cell's fault
	decided []parquet.Column
}

func newParquet(_ Format, o *out) encoder { return &parquetFile{out: o} }

func (e *parquetFile) begin(columns []source.Column) error {
	if len(columns) > MaxParquetColumns {
		return failure.New(failure.FileUnsupported, "the query has %d columns; a Parquet file takes at most %d: select fewer", len(columns), MaxParquetColumns)
	}
	e.source, e.soft, e.digits = columns, make([]bool, len(columns)), make([]bool, len(columns))
	file := make([]parquet.Column, len(columns))
	names := uniqueNames(columns)
	for i, c := range columns {
		file[i], e.soft[i] = columnOf(c)
		file[i].Name = names[i]
		e.digits[i] = c.Type == source.Decimal
	}
	if e.given != nil {
		if err := e.as(file); err != nil {
			return err
		}
	}
	e.w = parquet.NewWriter(e.out, file)
	return nil
}

// columnOf is what a column of a source is in the file. soft: what the cells of its first row group are goes before what the
// engine calls it: an expression of SQLite has no type, a decimal without digits is no DECIMAL, and SQLite keeps dates,
// times and truth values as texts or numbers.
func columnOf(c source.Column) (to parquet.Column, soft bool) {
	switch c.Type {
	case source.Integer:
		to.Type = parquet.Int64
	case source.Real:
		to.Type = parquet.Double
	case source.Text:
		to.Type = parquet.String
	case source.Bytes:
		to.Type = parquet.Bytes
	case source.Decimal:
		if c.Precision < 1 || c.Precision > parquet.MaxPrecision || c.Scale < 0 || c.Scale > c.Precision {
			return to, true
		}
		to.Type, to.Precision, to.Scale = parquet.Decimal, c.Precision, c.Scale
	default:
		return to, true
	}
	return to, false
}

// unheld is the type of a column whose cells are all NULL in the first row group.
func unheld(c source.Column) parquet.Type {
	switch c.Type {
	case source.Boolean:
		return parquet.Bool
	case source.Date:
		return parquet.Date
	case source.Timestamp:
		return stampOf(c)
	}
	return parquet.String
}

// stampOf is the type of a column of time stamps: instants, unless the engine says that they have no zone.
func stampOf(c source.Column) parquet.Type {
	if c.Type == source.Timestamp && !c.Zoned {
		return parquet.Civil
	}
	return parquet.Timestamp
}

// as takes the given columns; a type that is left open is decided as if it were not given.
func (e *parquetFile) as(file []parquet.Column) error {
	if len(e.given) != len(file) {
		return failure.New(failure.FileUnsupported, "the query has %d columns, the file is to have %d", len(file), len(e.given))
	}
	for i, g := range e.given {
		if g.Name != file[i].Name {
			return failure.New(failure.FileUnsupported, "column %d of the query is %q, of the file %q", i+1, failure.Cut(file[i].Name, 60), failure.Cut(g.Name, 60))
		}
		if g.Type != parquet.Undecided {
			file[i], e.soft[i] = g, false
			e.digits[i] = e.digits[i] && g.Type == parquet.String
		}
	}
	return nil
}

func (e *parquetFile) row(cells []source.Value) error {
	for i := range cells {
		if err := e.cell(i, &cells[i]); err != nil {
			return err
		}
	}
	e.w.EndRow()
	e.rows++
	if !e.w.Full() {
		return nil
	}
	e.settle()
	return e.put(e.w.Flush())
}

// settle decides the columns that held NULL alone so far, and lets no type change after it.
func (e *parquetFile) settle() {
	if e.settled {
		return
	}
	e.settled = true
	for i := range e.soft {
		if c := e.w.Chunk(i); c.Type == parquet.Undecided {
			c.Decide(parquet.Column{Type: unheld(e.source[i])})
		}
		e.soft[i] = false
	}
}

func (e *parquetFile) end() error {
	e.settle()
	e.decided = e.w.Columns()
	return e.put(e.w.Close())
}

func (e *parquetFile) put(err error) error {
	if errors.Is(err, parquet.ErrTooManyChunks) {
		return failure.New(failure.FileUnsupported, "%s: select fewer columns or fewer rows", err)
	}
	return err
}

// quoted spells a column's name as SQL does, for advice.
func quoted(name string) string {
	return `"` + strings.ReplaceAll(failure.Cut(name, 60), `"`, `""`) + `"`
}
