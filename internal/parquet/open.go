package parquet

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// maxFooter bounds the footer that is read: MaxChunks with names of common length.
const maxFooter = 128 << 20

// Reader reads a file row by row, holding one row group.
type Reader struct {
	from    io.ReaderAt
	columns []Column
	meta    format.FileMetaData
	group   int // the next one
	left    int64
	cursors []cursor
	cells   []Cell
	err     error
}

// Cell is one cell. Which field holds its value, the column's type says.
type Cell struct {
	Null      bool
	Int       int64
	Float     float64
	Text      []byte // valid until the next row
	High, Low uint64 // of a wide decimal, in two's complement
}

// Open reads the footer of a file of so many bytes.
func Open(from io.ReaderAt, size int64) (*Reader, error) {
	tail := make([]byte, 8)
	if size < 12 {
		return nil, fmt.Errorf("a Parquet file has at least 12 bytes, this one %d", size)
	}
	if _, err := from.ReadAt(tail, size-8); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if string(tail[4:]) != magic || n > size-12 || n > maxFooter {
		return nil, fmt.Errorf("the file does not end as a Parquet file does: % x", tail)
	}
	footer := make([]byte, n)
	if _, err := from.ReadAt(footer, size-8-n); err != nil {
		return nil, err
	}
	r := &Reader{from: from}
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), footer, &r.meta); err != nil {
		return nil, fmt.Errorf("the footer cannot be read: %w", err)
	}
	if err := r.schema(); err != nil {
		return nil, err
	}
	return r, r.places(size - 8 - n)
}

// schema turns the footer's schema into columns.
func (r *Reader) schema() error {
	elements := r.meta.Schema
	if len(elements) < 2 || int(elements[0].NumChildren.V) != len(elements)-1 {
		return fmt.Errorf("the schema is not flat: %d elements", len(elements))
	}
	elements = elements[1:]
	r.cursors, r.cells = make([]cursor, len(elements)), make([]Cell, len(elements))
	for i := range elements {
		e := &elements[i]
		c := columnOf(e)
		if c.Type == Undecided || !c.sound() || e.RepetitionType.V != format.Optional {
			return fmt.Errorf("the column %q is of a type that this product does not write", e.Name)
		}
		typ := c.leaf().Type()
		if !e.Type.Valid || e.Type.V != *typ.PhysicalType() || c.Wide() && e.TypeLength.V != 16 {
			return fmt.Errorf("the column %q is %s, stored as %s of %d bytes, which this product does not write", e.Name, c.Spelled(), e.Type.V, e.TypeLength.V)
		}
		r.columns = append(r.columns, c)
		r.cursors[i] = cursor{column: c, typ: typ, batch: make([]parquet.Value, max(1, min(batch, 1<<16/len(elements))))}
	}
	return nil
}

func columnOf(e *format.SchemaElement) Column {
	c := Column{Name: e.Name}
	switch t := e.LogicalType.Value.(type) {
	case *format.IntType:
		if t.BitWidth == 64 && t.IsSigned {
			c.Type = Int64
		}
	case *format.StringType:
		c.Type = String
	case *format.DecimalType:
		c.Type, c.Precision, c.Scale = Decimal, int(t.Precision), int(t.Scale)
	case *format.DateType:
		c.Type = Date
	case *format.TimestampType:
		if _, micros := t.Unit.Value.(*format.MicroSeconds); micros {
			if c.Type = Civil; t.IsAdjustedToUTC {
				c.Type = Timestamp
			}
		}
	case nil:
		c.Type = map[format.Type]Type{format.Double: Double, format.ByteArray: Bytes, format.Boolean: Bool}[e.Type.V]
	}
	return c
}

// places checks that what the footer points at lies within the file's pages.
func (r *Reader) places(end int64) error {
	total := int64(0)
	for i := range r.meta.RowGroups {
		g := &r.meta.RowGroups[i]
		if len(g.Columns) != len(r.columns) || g.NumRows < 1 || g.NumRows > GroupRows {
			return fmt.Errorf("row group %d has %d columns and %d rows; want %d columns and at most %d rows", i, len(g.Columns), g.NumRows, len(r.columns), GroupRows)
		}
		total += g.NumRows
		for j := range g.Columns {
			m := &g.Columns[j].MetaData
			if at := first(m); at < 4 || m.TotalCompressedSize < 1 || m.TotalCompressedSize > end-at || m.NumValues != g.NumRows || m.Codec != format.Zstd {
				return fmt.Errorf("row group %d, column %q: %d values in %d bytes at %d; the file's pages end at %d, the row group has %d rows", i, r.columns[j].Name, m.NumValues, m.TotalCompressedSize, at, end, g.NumRows)
			}
		}
	}
	if total != r.meta.NumRows {
		return fmt.Errorf("the row groups have %d rows, the file %d", total, r.meta.NumRows)
	}
	return nil
}

// first is where a column's pages begin.
func first(m *format.ColumnMetaData) int64 {
	if m.DictionaryPageOffset > 0 {
		return min(m.DataPageOffset, m.DictionaryPageOffset)
	}
	return m.DataPageOffset
}

// Columns are the file's.
func (r *Reader) Columns() []Column { return r.columns }

// Rows is how many rows the file has.
func (r *Reader) Rows() int64 { return r.meta.NumRows }

// Next is the next row, valid until the one after, or io.EOF.
func (r *Reader) Next() ([]Cell, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.left == 0 {
		if r.err = r.advance(); r.err != nil {
			return nil, r.err
		}
	}
	r.left--
	for i := range r.cursors {
		if r.err = r.cursors[i].next(&r.cells[i]); r.err != nil {
			r.err = fmt.Errorf("column %q: %w", r.columns[i].Name, r.err)
			return nil, r.err
		}
	}
	return r.cells, nil
}

// advance goes to the next row group.
func (r *Reader) advance() error {
	if r.group == len(r.meta.RowGroups) {
		return io.EOF
	}
	g := &r.meta.RowGroups[r.group]
	for i := range r.cursors {
		m := &g.Columns[i].MetaData
		if err := r.cursors[i].open(r.from, first(m), m.TotalCompressedSize); err != nil {
			return fmt.Errorf("row group %d, column %q: %w", r.group, r.columns[i].Name, err)
		}
	}
	r.group++
	r.left = g.NumRows
	return nil
}
