package snapshot

import (
	"fmt"

	"github.com/klauspost/compress/gzip"
)

// csvChunk reads a file of CSV within gzip as it comes.
type csvChunk struct {
	rows    *csvReader
	columns int
	read    int64
}

// csv begins to read the chunk as CSV: its header must be the columns.
func (r *chunkReader) csv(columns []Column) (fileReader, error) {
	zip, err := gzip.NewReader(r.bytes)
	if err != nil {
		return nil, r.failed(err)
	}
	c := &csvChunk{rows: newCSVReader(zip), columns: len(columns)}
	header, err := c.rows.next()
	if err != nil {
		return nil, r.failed(err)
	}
	for j, h := range header {
		if j >= len(columns) || string(h.Text) != columns[j].Name {
			return nil, r.other(nil, "its header is not the manifest's columns")
		}
	}
	return c, nil
}

func (c *csvChunk) next() ([]Cell, error) {
	row, err := c.rows.next()
	if err != nil {
		return nil, err
	}
	if c.read++; len(row) != c.columns {
		return nil, fmt.Errorf("row %d has %d cells, want %d", c.read, len(row), c.columns)
	}
	return row, nil
}

func (*csvChunk) close() {}
