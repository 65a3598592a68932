package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// CreatedBy stands in every footer.
const CreatedBy = "almanac version 1"

// Bounds of a row group: rows, and bytes of its cells in memory, which one row may pass. Where there are many columns a
// group has 4 KiB for each, since every column of every group costs about 100 bytes of the footer.
const (
	GroupRows   = 1 << 17
	GroupBytes  = 16 << 20
	columnBytes = 4 << 10
)

// MaxChunks bounds the columns of all row groups together: the writer keeps where each lies until the file ends, 64 bytes
// of memory, and readers hold the footer whole.
const MaxChunks = 1 << 20

// ErrTooManyChunks is of a file that would pass MaxChunks.
var ErrTooManyChunks = fmt.Errorf("the file has more than %d columns in all its row groups together", MaxChunks)

const magic = "PAR1"

// Writer writes a file. For each row, call one adding method of each Chunk, then EndRow; whenever Full says so, Flush; at
// the end Close, which does not close the io.Writer. After an error the file is worthless.
type Writer struct {
	chunks  []Chunk
	out     io.Writer
	offset  int64
	limit   int64 // bytes of a group
	fixed   int64 // bytes of a row that no Chunk counts
	size    int64 // bytes of the group that the chunks count
	rows    int   // of the group
	placed  []placed
	groups  []int // rows of each
	created bool
	closed  bool

	header   compact
	body     []byte
	scratch  []byte
	squeezed []byte
}

// placed is where one column of one row group lies.
type placed struct {
	at, data          int64 // of its first page, and of its first data page
	bytes, plainBytes int64 // compressed and not, headers included
	least, most       int64 // of whole numbers
	values, nulls     int32
	encoding          int64
}

// NewWriter begins a file of these columns. Their names are UTF-8 and differ.
func NewWriter(w io.Writer, columns []Column) *Writer {
	out := &Writer{out: w, chunks: make([]Chunk, len(columns))}
	out.limit = max(GroupBytes, int64(len(columns))*columnBytes)
	out.fixed = int64(8 * len(columns))
	for i, c := range columns {
		out.chunks[i] = Chunk{Column: c, size: &out.size}
	}
	return out
}

// Chunk is the cells of a column in the row group under way.
func (w *Writer) Chunk(i int) *Chunk { return &w.chunks[i] }

// Columns are the file's, as they are decided.
func (w *Writer) Columns() []Column {
	out := make([]Column, len(w.chunks))
	for i := range w.chunks {
		out[i] = w.chunks[i].Column
	}
	return out
}

// EndRow ends a row.
func (w *Writer) EndRow() { w.rows++; w.size += w.fixed }

// Full reports whether the row group has as many rows or bytes as it may.
func (w *Writer) Full() bool { return w.rows >= GroupRows || w.size >= w.limit }

// Flush writes the row group.
func (w *Writer) Flush() error {
	if err := w.begin(); err != nil || w.rows == 0 {
		return err
	}
	if len(w.placed)+len(w.chunks) > MaxChunks {
		return ErrTooManyChunks
	}
	held := 0
	for i := range w.chunks {
		c := &w.chunks[i]
		if c.Type == Undecided || !c.sound() {
			return fmt.Errorf("the column %q has no type", c.Name)
		}
		if c.rows != w.rows {
			return fmt.Errorf("the column %q has %d cells, the row group %d rows", c.Name, c.rows, w.rows)
		}
		if err := w.encode(c); err != nil {
			return err
		}
		held += c.held()
	}
	for i := range w.chunks { // columns that are large by turns must not each keep their largest
		w.chunks[i].reset(int64(held) <= 2*w.limit)
	}
	w.groups = append(w.groups, w.rows)
	w.rows, w.size = 0, 0
	return nil
}

func (w *Writer) begin() error {
	if w.created {
		return nil
	}
	w.created = true
	return w.write([]byte(magic))
}

// Close writes what is left and the footer.
func (w *Writer) Close() error {
	if w.closed {
		return errors.New("the file is closed")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	begun := w.offset
	if err := w.footer(); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint32(nil, uint32(w.offset-begun))
	if err := w.write(append(end, magic...)); err != nil {
		return err
	}
	w.closed = true
	return nil
}

func (w *Writer) write(b []byte) error {
	n, err := w.out.Write(b)
	w.offset += int64(n)
	return err
}
