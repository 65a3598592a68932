package snapshot

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"almanac/internal/artifact"
	"almanac/internal/failure"
	"almanac/internal/source"
)

// inMemory is up to how many bytes a Parquet file is held; a larger one lies in a temporary file while it is read, since its
// description stands at its end.
const inMemory = 32 << 20

// parquetChunk reads a Parquet file whose digest was found right before its first row.
type parquetChunk struct {
	rows  *artifact.ParquetRows
	spool *os.File // nil where the file is in memory
	buf   []byte
	ends  []int
	cells []Cell
}

// parquet takes the whole chunk in, compares its digest, and begins to read it: its columns must be the manifest's.
func (r *chunkReader) parquet(columns []Column) (_ fileReader, err error) {
	c := &parquetChunk{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	from, err := c.take(r)
	if err != nil {
		return nil, err
	}
	if err := r.digest(); err != nil {
		return nil, err
	}
	if c.rows, err = artifact.OpenParquet(from, r.chunk.Bytes); err != nil {
		return nil, r.failed(err)
	}
	got := c.rows.Columns()
	if len(got) != len(columns) {
		return nil, r.other(nil, "it has %d columns, the manifest %d", len(got), len(columns))
	}
	for i, g := range got {
		if g.Name != columns[i].Name || g.Spelled() != columns[i].Parquet {
			return nil, r.other(nil, "its column %d is %q %s, the manifest's %q %s", i+1, g.Name, g.Spelled(), columns[i].Name, columns[i].Parquet)
		}
	}
	c.ends, c.cells = make([]int, len(got)), make([]Cell, len(got))
	return c, nil
}

// take reads the chunk's bytes to where they can be read in any order.
func (c *parquetChunk) take(r *chunkReader) (io.ReaderAt, error) {
	if r.chunk.Bytes <= inMemory {
		held := make([]byte, max(0, r.chunk.Bytes))
		if _, err := io.ReadFull(r.bytes, held); err != nil {
			return nil, r.failed(fmt.Errorf("it ends early: %w", err))
		}
		return bytes.NewReader(held), nil
	}
	spool, err := os.CreateTemp("", "almanac-chunk-*.parquet")
	if err != nil {
		return nil, failure.Wrap(failure.FileUnavailable, err, "there is no place for a temporary file of %d bytes", r.chunk.Bytes)
	}
	c.spool = spool
	if _, err := io.CopyN(spool, r.bytes, r.chunk.Bytes); err != nil {
		if r.bytes.err == nil && err != io.EOF {
			return nil, failure.Wrap(failure.FileUnavailable, err, "a temporary file of %d bytes could not be written", r.chunk.Bytes)
		}
		return nil, r.failed(fmt.Errorf("it ends early: %w", err))
	}
	return spool, nil
}

// next spells the cells of the next row as CSV does, so that months of both kinds can be compared.
func (c *parquetChunk) next() ([]Cell, error) {
	row, err := c.rows.Next()
	if err != nil {
		return nil, err
	}
	c.buf = c.buf[:0]
	for i := range row {
		c.buf = artifact.AppendCell(c.buf, &row[i])
		c.ends[i] = len(c.buf)
	}
	from := 0
	for i, end := range c.ends {
		c.cells[i] = Cell{Text: c.buf[from:end:end], Null: row[i].Kind == source.KindNull}
		from = end
	}
	return c.cells, nil
}

func (c *parquetChunk) close() {
	if c.spool != nil {
		_ = c.spool.Close()
		_ = os.Remove(c.spool.Name())
	}
}
