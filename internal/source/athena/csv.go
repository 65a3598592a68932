package athena

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"almanac/internal/source"
)

// reader takes Athena's CSV apart. Unlike RFC 4180's it tells a field in quotes from one without, since that is how NULL
// and the empty text differ, and an empty line is a row: of one column, NULL.
type reader struct {
	from   counted
	in     *bufio.Reader
	buf    []byte // the fields of one row, one after the other
	fields []field
}

// field is a part of the reader's buffer.
type field struct {
	from, to int
	null     bool
}

const readBuffer = 256 << 10

// errTooLarge is a row of more than source.MaxRow bytes, errTorn a result that ends within a row.
var (
	errTooLarge = errors.New("the row is too large")
	errTorn     = errors.New("the result ends within a row")
	errForm     = errors.New("the result is no CSV as Athena writes it")
)

func newReader(in io.Reader) *reader {
	r := &reader{from: counted{in: in}}
	r.in = bufio.NewReaderSize(&r.from, readBuffer)
	return r
}

// counted counts what is read.
type counted struct {
	in io.Reader
	n  int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// place is how many bytes the rows so far have.
func (r *reader) place() int64 { return r.from.n - int64(r.in.Buffered()) }

// row reads the next row; io.EOF after the last one. Its fields are valid until the one after.
func (r *reader) row() error {
	r.buf, r.fields = r.buf[:0], r.fields[:0]
	if _, err := r.in.Peek(1); err != nil {
		return err
	}
	for {
		last, err := r.field()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errTorn
		}
		if err != nil || last {
			return err
		}
	}
}

// field reads one field and the comma or line end behind it.
func (r *reader) field() (last bool, err error) {
	from := len(r.buf)
	c, err := r.in.ReadByte()
	if err != nil {
		return false, err
	}
	if c != '"' {
		if err := r.in.UnreadByte(); err != nil {
			return false, err
		}
		last, err = r.bare()
		r.fields = append(r.fields, field{from, len(r.buf), len(r.buf) == from})
		return last, err
	}
	last, err = r.quoted()
	r.fields = append(r.fields, field{from, len(r.buf), false})
	return last, err
}

// bare reads up to the next comma or line end.
func (r *reader) bare() (last bool, err error) {
	for {
		c, err := r.in.ReadByte()
		switch {
		case err != nil:
			return false, err
		case c == ',':
			return false, nil
		case c == '\n':
			return true, nil
		case c == '\r':
			return true, r.expect('\n')
		case c == '"':
			return false, errForm
		}
		if err := r.add(c); err != nil {
			return false, err
		}
	}
}

// quoted reads up to the quote that ends the field; two of them are one within it.
func (r *reader) quoted() (last bool, err error) {
	for {
		part, err := r.in.ReadSlice('"')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return false, err
		}
		if err := r.add(bytes.TrimSuffix(part, quote)...); err != nil {
			return false, err
		}
		if err != nil {
			continue
		}
		switch c, err := r.in.ReadByte(); {
		case err != nil:
			return false, err
		case c == '"':
			if err := r.add('"'); err != nil {
				return false, err
			}
		case c == ',':
			return false, nil
		case c == '\n':
			return true, nil
		case c == '\r':
			return true, r.expect('\n')
		default:
			return false, errForm
		}
	}
}

var quote = []byte{'"'}

func (r *reader) expect(want byte) error {
	c, err := r.in.ReadByte()
	if err == nil && c != want {
		err = errForm
	}
	return err
}

func (r *reader) add(part ...byte) error {
	if len(r.buf)+len(part) > source.MaxRow {
		return errTooLarge
	}
	r.buf = append(r.buf, part...)
	return nil
}
