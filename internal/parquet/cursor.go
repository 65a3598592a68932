package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// maxPage bounds a page's bytes: one has a cell whole, and a dictionary or 1 MiB beside it.
const maxPage = 64 << 20

// cursor reads one column of one row group.
type cursor struct {
	column Column
	packed []byte // pages that are not read yet
	dict   [][]byte

	rows, row int    // of the page
	valid     []byte // a bit for each row; nil: all alike
	some      bool   // all alike: they hold values
	values    []byte // of the page: what is left of them
	nums      []int64
	at        int // of nums
	index     int // bits of a dictionary's index; 0: the values stand for themselves
	page      []byte
}

var errShort = errors.New("a page ends before its values do")

func (c *cursor) open(from io.ReaderAt, column Column, at, size int64) error {
	c.column, c.dict, c.rows, c.row = column, nil, 0, 0
	if int64(cap(c.packed)) < size {
		c.packed = make([]byte, size)
	}
	c.packed = c.packed[:size]
	_, err := from.ReadAt(c.packed, at)
	return err
}

func (c *cursor) next(out *Cell) error {
	for c.row == c.rows {
		if err := c.turn(); err != nil {
			return err
		}
	}
	there := c.some
	if c.valid != nil {
		there = c.valid[c.row/8]>>(c.row%8)&1 == 1
	}
	c.row++
	if out.Null = !there; out.Null {
		return nil
	}
	return c.value(out)
}

// value takes the next value of the page.
func (c *cursor) value(out *Cell) error {
	switch {
	case c.index > 0:
		return c.indexed(out)
	case c.column.delta():
		if c.at == len(c.nums) {
			return errShort
		}
		out.Int = c.nums[c.at]
	case c.column.Type == Bool:
		if c.at/8 >= len(c.values) {
			return errShort
		}
		out.Int = int64(c.values[c.at/8] >> (c.at % 8) & 1)
	case c.column.texts():
		text, err := c.text()
		out.Text = text
		return err
	case c.column.Wide():
		if len(c.values) < 16 {
			return errShort
		}
		out.High, out.Low = binary.BigEndian.Uint64(c.values), binary.BigEndian.Uint64(c.values[8:])
		c.values = c.values[16:]
	default:
		if len(c.values) < 8 {
			return errShort
		}
		out.Float = math.Float64frombits(binary.LittleEndian.Uint64(c.values))
		c.values = c.values[8:]
	}
	c.at++
	return nil
}

// text takes a text that stands behind its length.
func (c *cursor) text() ([]byte, error) {
	if len(c.values) < 4 {
		return nil, errShort
	}
	n := int64(binary.LittleEndian.Uint32(c.values))
	if n > int64(len(c.values)-4) {
		return nil, errShort
	}
	text := c.values[4 : 4+n : 4+n]
	c.values = c.values[4+n:]
	return text, nil
}

// indexed takes the next number of a text in the dictionary.
func (c *cursor) indexed(out *Cell) error {
	from := c.at * c.index
	if (from+c.index+7)/8 > len(c.values) {
		return errShort
	}
	var word uint64
	for i, b := range c.values[from/8 : (from+c.index+7)/8] {
		word |= uint64(b) << (8 * i)
	}
	n := word >> (from % 8) & (1<<c.index - 1)
	if n >= uint64(len(c.dict)) {
		return fmt.Errorf("the dictionary has %d texts, none of the number %d", len(c.dict), n)
	}
	out.Text = c.dict[n]
	c.at++
	return nil
}

// turn reads the next page.
func (c *cursor) turn() error {
	from := new(thrift.CompactProtocol).NewReaderFromBytes(c.packed)
	var h format.PageHeader
	if err := thrift.NewDecoder(from).Decode(&h); err != nil {
		return fmt.Errorf("a page's header cannot be read: %w", err)
	}
	body := c.packed[from.BytesRead():]
	if h.CompressedPageSize < 0 || int(h.CompressedPageSize) > len(body) || h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxPage {
		return fmt.Errorf("a page has %d bytes, %d when it is decompressed; %d are left of the column", h.CompressedPageSize, h.UncompressedPageSize, len(body))
	}
	body, c.packed = body[:h.CompressedPageSize], body[h.CompressedPageSize:]
	page, err := decoder.DecodeAll(body, c.page[:0])
	if err != nil || len(page) != int(h.UncompressedPageSize) {
		return fmt.Errorf("a page of %d bytes cannot be decompressed: %d bytes, %v", h.UncompressedPageSize, len(page), err)
	}
	switch {
	case h.DictionaryPageHeader.Valid && c.dict == nil && c.column.texts():
		return c.dictionary(page, int(h.DictionaryPageHeader.V.NumValues))
	case h.DataPageHeader.Valid:
		c.page = page
		return c.data(page, &h.DataPageHeader.V)
	}
	return errors.New("a page is of a kind that this product does not write")
}

func (c *cursor) dictionary(page []byte, n int) error {
	c.values, c.dict = page, [][]byte{}
	for range n {
		text, err := c.text()
		if err != nil {
			return err
		}
		c.dict = append(c.dict, text)
	}
	c.page = nil // the dictionary is in it
	return nil
}

// data reads a page's levels and makes its values ready.
func (c *cursor) data(page []byte, h *format.DataPageHeader) error {
	c.rows, c.row, c.at, c.index, c.nums = int(h.NumValues), 0, 0, 0, c.nums[:0]
	if c.rows < 1 || c.rows > GroupRows || len(page) < 4 {
		return fmt.Errorf("a page has %d rows in %d bytes", c.rows, len(page))
	}
	n := int64(binary.LittleEndian.Uint32(page))
	if n > int64(len(page)-4) {
		return errShort
	}
	values, err := c.levels(page[4 : 4+n])
	if err != nil {
		return err
	}
	c.values = page[4+n:]
	if values == 0 {
		return nil
	}
	switch {
	case int64(h.Encoding) == dictionaryIndex && c.dict != nil:
		return c.indices()
	case int64(h.Encoding) == deltaPacked && c.column.delta():
		return c.differences(values)
	case int64(h.Encoding) == plain && !c.column.delta():
		return nil
	}
	return fmt.Errorf("a page has the encoding %s, which this product does not write for the column", h.Encoding)
}

// levels reads which rows hold values, and how many do.
func (c *cursor) levels(b []byte) (values int, err error) {
	run, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, errShort
	}
	b = b[n:]
	if run&1 == 0 {
		if run>>1 != uint64(c.rows) || len(b) != 1 || b[0] > 1 {
			return 0, errors.New("a page's levels are not those of its rows")
		}
		if c.valid, c.some = nil, b[0] == 1; c.some {
			return c.rows, nil
		}
		return 0, nil
	}
	if groups := (c.rows + 7) / 8; run>>1 != uint64(groups) || len(b) != groups {
		return 0, errors.New("a page's levels are not those of its rows")
	}
	c.valid = b
	for _, bitmap := range b {
		values += bits.OnesCount8(bitmap)
	}
	return values, nil
}

// indices makes ready one packed run of a dictionary's numbers.
func (c *cursor) indices() error {
	if len(c.values) < 1 || c.values[0] < 1 || c.values[0] > 32 {
		return errors.New("a page's numbers of texts have no width")
	}
	c.index = int(c.values[0])
	run, n := binary.Uvarint(c.values[1:])
	if n <= 0 || run&1 == 0 {
		return errors.New("a page's numbers of texts are not one packed run")
	}
	c.values = c.values[1+n:]
	return nil
}

// differences decodes whole numbers, once it is certain that there are as many as the page has values.
func (c *cursor) differences(values int) error {
	rest := c.values
	for _, want := range []uint64{128, 4, uint64(values)} {
		got, n := binary.Uvarint(rest)
		if n <= 0 || got != want {
			return fmt.Errorf("a page has %d whole numbers, or in other blocks; want %d", got, values)
		}
		rest = rest[n:]
	}
	nums, err := new(delta.BinaryPackedEncoding).DecodeInt64(c.nums, c.values)
	if err == nil && len(nums) != values {
		err = errShort
	}
	c.nums = nums
	return err
}
