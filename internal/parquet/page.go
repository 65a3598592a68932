package parquet

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/delta"
)

// pageBytes is about how many bytes of texts a page holds; of other columns one page has the whole row group.
const pageBytes = 1 << 20

// encode writes the chunk's pages and notes where they lie.
func (w *Writer) encode(c *Chunk) error {
	p := placed{at: w.offset, values: int32(c.rows), nulls: int32(c.nulls), encoding: plain}
	w.body = c.levels(w.body[:0], 0, c.rows)
	switch {
	case c.rows == c.nulls: // and no value
	case c.texts():
		if !c.apart && 2*len(c.dict.ends) > len(c.index) {
			c.leave()
		}
		if c.apart {
			return w.texts(c, p)
		}
		if err := w.dictionary(c, &p); err != nil {
			return err
		}
	case c.delta():
		p.encoding = deltaPacked
		p.least, p.most = bounds(c.nums)
		w.scratch, _ = new(delta.BinaryPackedEncoding).EncodeInt64(w.scratch, c.nums) // its error is always nil
		w.body = append(w.body, w.scratch...)
	case c.Type == Bool:
		w.body = truths(w.body, c.nums)
	case c.Wide():
		w.body = append(w.body, c.data...)
	default:
		for _, v := range c.nums {
			w.body = binary.LittleEndian.AppendUint64(w.body, uint64(v))
		}
	}
	if p.data == 0 {
		p.data = w.offset
	}
	if err := w.page(&p, dataPage, c.rows, p.encoding); err != nil {
		return err
	}
	w.placed = append(w.placed, p)
	return nil
}

// dictionary writes the page of a chunk's distinct texts, and makes the body of that of their numbers.
func (w *Writer) dictionary(c *Chunk, p *placed) error {
	w.body = w.body[:0]
	for i := range c.dict.ends {
		w.body = appendText(w.body, c.dict.text(uint32(i)))
	}
	if err := w.page(p, dictionaryPage, len(c.dict.ends), plain); err != nil {
		return err
	}
	p.data, p.encoding = w.offset, dictionaryIndex
	width := max(1, bits.Len(uint(len(c.dict.ends)-1)))
	w.body = packed(append(c.levels(w.body[:0], 0, c.rows), byte(width)), c.index, width)
	return nil
}

// texts writes pages of texts one after another. They are cut at rows whose number can be divided by eight.
func (w *Writer) texts(c *Chunk, p placed) error {
	p.data = w.offset
	value, from := 0, 0
	for row := 0; row < c.rows; {
		start := row
		w.body = w.body[:0]
		first := value
		for at := from; row < c.rows && at-from < pageBytes; {
			step := min(8, c.rows-row)
			value += c.count(row, step)
			row += step
			if value > 0 {
				at = c.ends[value-1]
			}
		}
		w.body = c.levels(w.body, start, row-start)
		for _, end := range c.ends[first:value] {
			w.body = appendText(w.body, c.data[from:end])
			from = end
		}
		if err := w.page(&p, dataPage, row-start, plain); err != nil {
			return err
		}
	}
	w.placed = append(w.placed, p)
	return nil
}

func appendText(b, s []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

// count is how many of the rows, eight at most from a row that eight divides, hold a value.
func (c *Chunk) count(row, n int) int {
	if c.nulls == 0 {
		return n
	}
	return bits.OnesCount8(c.valid[row/8])
}

// levels appends which of the rows hold a value, 0 or 1 each, in the hybrid of runs and packed bits
// (https://parquet.apache.org/docs/file-format/data-pages/encodings/#run-length-encoding--bit-packing-hybrid-rle--3),
// with their length before them. from can be divided by eight.
func (c *Chunk) levels(b []byte, from, n int) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	switch {
	case c.nulls == 0:
		b = append(binary.AppendUvarint(b, uint64(n)<<1), 1)
	case c.nulls == c.rows:
		b = append(binary.AppendUvarint(b, uint64(n)<<1), 0)
	default:
		groups := (n + 7) / 8
		b = binary.AppendUvarint(b, uint64(groups)<<1|1)
		b = append(b, c.valid[from/8:from/8+groups]...)
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// packed appends numbers of so many bits each as one packed run.
func packed(b []byte, numbers []uint32, width int) []byte {
	groups := (len(numbers) + 7) / 8
	b = binary.AppendUvarint(b, uint64(groups)<<1|1)
	end := len(b) + groups*width
	var bitsHeld uint64
	held := 0
	for _, v := range numbers {
		bitsHeld |= uint64(v) << held
		if held += width; held >= 32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(bitsHeld))
			bitsHeld >>= 32
			held -= 32
		}
	}
	for ; len(b) < end; bitsHeld >>= 8 {
		b = append(b, byte(bitsHeld))
	}
	return b[:end]
}

func truths(b []byte, nums []int64) []byte {
	for i, v := range nums {
		if i%8 == 0 {
			b = append(b, 0)
		}
		b[len(b)-1] |= byte(v&1) << (i % 8)
	}
	return b
}

func bounds(nums []int64) (least, most int64) {
	least, most = nums[0], nums[0]
	for _, v := range nums[1:] {
		least, most = min(least, v), max(most, v)
	}
	return least, most
}

const (
	dataPage       = 0
	dictionaryPage = 2
)

// page compresses the body and writes it behind its header.
func (w *Writer) page(p *placed, typ int64, values int, encoding int64) error {
	w.squeezed = encoder.EncodeAll(w.body, w.squeezed[:0])
	h := &w.header
	h.b, h.last, h.outer = h.b[:0], 0, append(h.outer[:0], 0)
	h.i32(1, typ)
	h.i32(2, int64(len(w.body)))
	h.i32(3, int64(len(w.squeezed)))
	if typ == dictionaryPage {
		h.open(7)
		h.i32(1, int64(values))
		h.i32(2, encoding)
		h.close()
	} else {
		h.open(5)
		h.i32(1, int64(values))
		h.i32(2, encoding)
		h.i32(3, rle)
		h.i32(4, rle)
		h.close()
	}
	h.close()
	p.plainBytes += int64(len(h.b) + len(w.body))
	p.bytes += int64(len(h.b) + len(w.squeezed))
	if err := w.write(h.b); err != nil {
		return err
	}
	return w.write(w.squeezed)
}
