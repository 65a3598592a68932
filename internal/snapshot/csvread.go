package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxField bounds one cell of a file that is read back: sources give cells of at most 16 MB.
const maxField = 64 << 20

// Cell is one cell of a published month, spelled as its file spells it.
type Cell struct {
	Text []byte // valid until the next row is asked for
	Null bool
}

// csvReader reads back what the chunks hold: RFC 4180 with CRLF, NULL an empty field without quotes. Package encoding/csv
// cannot tell that from an empty text.
type csvReader struct {
	from  *bufio.Reader
	buf   []byte
	ends  []int
	nulls []bool
	cells []Cell
}

func newCSVReader(r io.Reader) *csvReader { return &csvReader{from: bufio.NewReaderSize(r, 64<<10)} }

// next is the next record, or io.EOF. A record that breaks off is io.ErrUnexpectedEOF.
func (c *csvReader) next() ([]Cell, error) {
	c.buf, c.ends, c.nulls = c.buf[:0], c.ends[:0], c.nulls[:0]
	for first := true; ; first = false {
		last, err := c.field(first)
		if err != nil {
			return nil, err
		}
		if last {
			break
		}
	}
	c.cells = c.cells[:0]
	from := 0
	for i, end := range c.ends {
		c.cells = append(c.cells, Cell{Text: c.buf[from:end:end], Null: c.nulls[i]})
		from = end
	}
	return c.cells, nil
}

// field reads one field and the separator behind it; last reports the end of the record.
func (c *csvReader) field(first bool) (last bool, err error) {
	b, err := c.from.ReadByte()
	if err != nil {
		if errors.Is(err, io.EOF) && !first {
			return false, io.ErrUnexpectedEOF
		}
		return false, err
	}
	start, quoted := len(c.buf), b == '"'
	if quoted {
		if b, err = c.quoted(); err != nil {
			return false, broken(err)
		}
	} else {
		for ; b != ',' && b != '\r'; b, err = c.from.ReadByte() {
			if err != nil {
				return false, broken(err)
			}
			if c.buf = append(c.buf, b); len(c.buf) > maxField {
				return false, fmt.Errorf("a record passes %d bytes", maxField)
			}
		}
		if err != nil {
			return false, broken(err)
		}
	}
	c.ends = append(c.ends, len(c.buf))
	c.nulls = append(c.nulls, !quoted && len(c.buf) == start)
	switch b {
	case ',':
		return false, nil
	case '\r':
		if b, err = c.from.ReadByte(); err != nil {
			return false, broken(err)
		}
		if b == '\n' {
			return true, nil
		}
	}
	return false, fmt.Errorf("a record has %q where a comma or CRLF should be", b)
}

// quoted reads to the closing quote, and returns the byte behind it.
func (c *csvReader) quoted() (byte, error) {
	for {
		b, err := c.from.ReadByte()
		if err != nil {
			return 0, err
		}
		if b == '"' {
			if b, err = c.from.ReadByte(); err != nil || b != '"' {
				return b, err
			}
		}
		if c.buf = append(c.buf, b); len(c.buf) > maxField {
			return 0, fmt.Errorf("a record passes %d bytes", maxField)
		}
	}
}

func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
