package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// CreatedBy stands in every footer.
const CreatedBy = "almanac version 2"

// Bounds of a row group: rows, and bytes of its cells in memory, which one row may pass. Where there are many columns a
// group has 4 KiB for each, since every column of every group costs about 100 bytes of the footer.
const (
	GroupRows   = 1 << 17
	GroupBytes  = 16 << 20
	columnBytes = 4 << 10
)

// MaxChunks bounds the columns of all row groups together: the writer keeps where each lies until the file ends, a KiB of
// memory, and readers hold the footer whole.
const MaxChunks = 1 << 17

// ErrTooManyChunks is of a file that would pass MaxChunks.
var ErrTooManyChunks = fmt.Errorf("the file has more than %d columns in all its row groups together", MaxChunks)

const (
	magic     = "PAR1"
	pageBytes = 256 << 10 // of a column's cells, which the writer holds of each until they are a page
	batch     = 512       // rows whose cells go to the pages at once
	kept      = 64 << 10  // of a chunk's memory, from batch to batch
)

// Writer writes a file. For each row, call one adding method of each Chunk, then EndRow; whenever Full says so, Flush; at
// the end Close, which does not close the io.Writer. After an error the file is worthless.
type Writer struct {
	chunks  []Chunk
	out     *sink
	limit   int64           // bytes of a group
	fixed   int64           // bytes of a row that no Chunk counts
	size    int64           // bytes of the group that the chunks count
	rows    int             // of the group
	pending int             // of them, in the chunks
	file    *parquet.Writer // once the schema is made
	placed  int             // columns of all row groups that are written
	err     error           // that ended the file
	values  []parquet.Value
}

// sink is where parquet-go writes, until what it writes is dropped.
type sink struct {
	to      io.Writer
	dropped bool
}

func (s *sink) Write(b []byte) (int, error) {
	if s.dropped {
		return len(b), nil
	}
	return s.to.Write(b)
}

// NewWriter begins a file of these columns. Their names are UTF-8 and differ.
func NewWriter(w io.Writer, columns []Column) *Writer {
	out := &Writer{out: &sink{to: w}, chunks: make([]Chunk, len(columns)), values: make([]parquet.Value, batch)}
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
func (w *Writer) EndRow() {
	w.rows++
	w.pending++
	w.size += w.fixed
	if w.pending >= batch && w.file != nil && w.err == nil {
		w.err = w.put(false)
	}
}

// Full reports whether the row group has as many rows or bytes as it may.
func (w *Writer) Full() bool { return w.rows >= GroupRows || w.size >= w.limit || w.err != nil }

// Flush writes the row group.
func (w *Writer) Flush() error {
	if w.err == nil && w.rows > 0 {
		w.err = w.group()
	}
	return w.err
}

func (w *Writer) group() error {
	if w.placed += len(w.chunks); w.placed > MaxChunks {
		return ErrTooManyChunks
	}
	if err := w.put(true); err != nil {
		return err
	}
	w.rows, w.size = 0, 0
	return w.file.Flush()
}

// put hands what the chunks hold to the columns' writers. Where the row group ends, each makes its last page at once, so that the
// next one has its memory.
func (w *Writer) put(ends bool) error {
	if err := w.begin(); err != nil {
		return err
	}
	for i, to := range w.file.ColumnWriters() {
		c := &w.chunks[i]
		if len(c.there) != w.pending {
			return fmt.Errorf("the column %q has %d cells, the row group %d rows", c.Name, len(c.there), w.pending)
		}
		if err := c.put(to, w.values); err != nil {
			return err
		}
		if ends {
			if err := to.Flush(); err != nil {
				return err
			}
		}
		c.reset(c.held() <= min(kept, int(w.limit)/len(w.chunks))) // columns that are large by turns must not each keep their largest
	}
	clear(w.values)
	w.pending = 0
	return nil
}

// begin makes the schema, once the first row group's cells have decided what the columns are.
func (w *Writer) begin() error {
	if w.file != nil {
		return nil
	}
	root := row{}
	options := []parquet.WriterOption{&parquet.WriterConfig{CreatedBy: CreatedBy}, parquet.Compression(codec{}), parquet.DataPageVersion(1), parquet.WriteBufferSize(0),
		parquet.ColumnPageBuffers(parquet.NewChunkBufferPool(4 << 10)), parquet.DataPageStatistics(false), parquet.PageBufferSize(pageBytes), parquet.DictionaryMaxBytes(maxEntry)}
	for i := range w.chunks {
		c := &w.chunks[i]
		if c.Type == Undecided || !c.sound() {
			return fmt.Errorf("the column %q has no type", c.Name)
		}
		root.fields = append(root.fields, field{c.node(c.repeats()), c.Name})
		if !c.delta() {
			options = append(options, parquet.SkipPageBounds(c.Name))
		}
	}
	w.file = parquet.NewWriter(w.out, append(options, parquet.NewSchema("rows", root))...)
	return nil
}

// Close writes what is left and the footer.
func (w *Writer) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	if w.err = w.end(); w.err != nil {
		return w.err
	}
	w.err = errors.New("the file is closed")
	return nil
}

// end writes the footer. What parquet-go writes when it closes a file is dropped: an index of the pages that cannot be left
// out, which of columns whose bounds are skipped says that they are all 0 or empty, and a footer that points there.
func (w *Writer) end() error {
	if err := w.begin(); err != nil {
		return err
	}
	if w.placed == 0 {
		if _, err := w.out.Write([]byte(magic)); err != nil {
			return err
		}
	}
	w.out.dropped = true
	if err := w.file.Close(); err != nil {
		return err
	}
	w.out.dropped = false
	meta := w.file.File().Metadata()
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = 0, 0, 0, 0
		}
	}
	return w.footer(meta)
}

func (w *Writer) footer(meta *format.FileMetaData) error {
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return err
	}
	footer = append(binary.LittleEndian.AppendUint32(footer, uint32(len(footer))), magic...)
	_, err = w.out.Write(footer)
	return err
}
