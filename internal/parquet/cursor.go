package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// cursor reads one column of one row group.
type cursor struct {
	column Column
	typ    parquet.Type
	packed []byte // pages that are not read yet
	dict   parquet.Dictionary

	levels []byte // by row of the page: 1 where it holds a value
	row    int
	values parquet.ValueReader // of the page
	batch  []parquet.Value     // of them, taken out
	at     int                 // of batch[:taken]
	taken  int

	page, decoded []byte
	offsets       []uint32
}

var errShort = errors.New("a page ends before its values do")

func (c *cursor) open(from io.ReaderAt, at, size int64) error {
	c.dict, c.levels, c.row, c.at, c.taken = nil, c.levels[:0], 0, 0, 0
	if int64(cap(c.packed)) < size {
		c.packed = make([]byte, size)
	}
	c.packed = c.packed[:size]
	_, err := from.ReadAt(c.packed, at)
	return err
}

// safely calls what decodes with parquet-go, which panics at some bytes that are no page's.
func safely(decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a page cannot be decoded: %v", p)
		}
	}()
	return decode()
}

func (c *cursor) next(out *Cell) error {
	for c.row == len(c.levels) {
		if err := safely(c.turn); err != nil {
			return err
		}
	}
	out.Null = c.levels[c.row] == 0
	if c.row++; out.Null {
		return nil
	}
	if c.at == c.taken {
		if err := safely(c.take); err != nil {
			return err
		}
	}
	v := &c.batch[c.at]
	c.at++
	switch {
	case c.column.texts():
		out.Text = v.ByteArray()
	case c.column.Wide():
		b := v.ByteArray()
		out.High, out.Low = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	case c.column.Type == Double:
		out.Float = v.Double()
	case c.column.Type == Date:
		out.Int = int64(v.Int32())
	default:
		out.Int = v.Int64()
	}
	return nil
}

// take takes values out of the page.
func (c *cursor) take() (err error) {
	c.at = 0
	if c.taken, err = c.values.ReadValues(c.batch); c.taken > 0 {
		return nil
	}
	return errors.Join(errShort, err)
}

// turn reads the next page. Its bytes are those that were written, by their checksum, before anything is made of the numbers
// in them.
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
	if sum := crc32.ChecksumIEEE(body); sum != uint32(h.CRC) {
		return fmt.Errorf("a page's checksum is %08x, of its bytes %08x", uint32(h.CRC), sum)
	}
	page, err := decoder.DecodeAll(body, c.page[:0])
	if err != nil || len(page) != int(h.UncompressedPageSize) {
		return fmt.Errorf("a page of %d bytes cannot be decompressed: %d bytes, %v", h.UncompressedPageSize, len(page), err)
	}
	c.page = page
	switch {
	case h.DictionaryPageHeader.Valid && c.dict == nil && c.column.texts():
		return c.dictionary(page)
	case h.DataPageHeader.Valid:
		return c.data(page, &h.DataPageHeader.V)
	}
	return errors.New("a page is of a kind that this product does not write")
}

func (c *cursor) dictionary(page []byte) error {
	texts, err := c.typ.Decode(c.typ.NewValues(make([]byte, 0, len(page)), nil), page, &parquet.Plain)
	if err != nil {
		return err
	}
	_, offsets := texts.Data()
	c.dict = c.typ.NewDictionary(0, len(offsets)-1, texts)
	return nil
}

// data reads a page's levels and makes its values ready.
func (c *cursor) data(page []byte, h *format.DataPageHeader) (err error) {
	if h.NumValues < 1 || h.NumValues > GroupRows || len(page) < 4 {
		return fmt.Errorf("a page has %d rows in %d bytes", h.NumValues, len(page))
	}
	n := int64(binary.LittleEndian.Uint32(page))
	if n > int64(len(page)-4) {
		return errShort
	}
	if c.levels, err = (&rle.Encoding{BitWidth: 1}).DecodeLevels(c.levels, page[4:4+n]); err != nil {
		return err
	}
	if len(c.levels) < int(h.NumValues) {
		return errShort
	}
	c.levels, c.row, c.at, c.taken = c.levels[:h.NumValues], 0, 0, 0
	if present := len(c.levels) - bytes.Count(c.levels, []byte{0}); present > 0 {
		return c.decode(page[4+n:], h.Encoding, present)
	}
	return nil
}

func (c *cursor) decode(page []byte, by format.Encoding, present int) (err error) {
	typ, into := c.typ, c.typ.NewValues(c.decoded[:0], c.offsets[:0])
	switch {
	case by == format.RLEDictionary && c.dict != nil:
		typ = c.dict.Type()
		into, err = encoding.DecodeInt32(encoding.Int32ValuesFromBytes(c.decoded[:0]), page, &parquet.RLEDictionary)
	case by == format.DeltaBinaryPacked && c.column.delta(), by == format.Plain && !c.column.delta():
		into, err = c.typ.Decode(into, page, parquet.LookupEncoding(by))
	default:
		err = fmt.Errorf("a page has the encoding %s, which this product does not write for the column", by)
	}
	if err != nil {
		return err
	}
	c.decoded, c.offsets = into.Data()
	c.values = typ.NewPage(0, present, into).Values()
	return nil
}
