package parquet

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// Chunk holds one column's cells of the row group under way. Each row takes one call of Null, Int, Float, Text or Fixed.
type Chunk struct {
	Column
	rows  int
	nulls int
	valid []byte  // a bit for each row, while there are NULLs; none means that there are none
	nums  []int64 // whole numbers, the bits of doubles, truth values

	// of texts: as a dictionary and what each cell is in it, or once that does not pay, one after another
	dict  dictionary
	index []uint32
	apart bool
	data  []byte // wide decimals too, 16 bytes each
	ends  []int

	size *int64 // bytes that the row group holds, counted where they are not known from the rows
}

// Null adds a NULL.
func (c *Chunk) Null() {
	if c.nulls == 0 { // all before it are there
		c.valid = c.valid[:0]
		for range c.rows / 8 {
			c.valid = append(c.valid, 0xFF)
		}
		if rest := c.rows % 8; rest > 0 {
			c.valid = append(c.valid, 1<<rest-1)
		}
	}
	if c.rows%8 == 0 {
		c.valid = append(c.valid, 0)
	}
	c.nulls++
	c.rows++
}

// there notes a row that holds a value.
func (c *Chunk) there() {
	if c.nulls > 0 {
		if c.rows%8 == 0 {
			c.valid = append(c.valid, 0)
		}
		c.valid[c.rows/8] |= 1 << (c.rows % 8)
	}
	c.rows++
}

// Int adds a whole number: an integer, a date, a timestamp, the digits of a decimal, or 0 or 1.
func (c *Chunk) Int(v int64) {
	c.there()
	c.nums = append(c.nums, v)
}

// Float adds a double.
func (c *Chunk) Float(v float64) { c.Int(int64(math.Float64bits(v))) }

// Fixed adds the digits of a wide decimal, a number of 16 bytes in two's complement, the high half first.
func (c *Chunk) Fixed(high, low uint64) {
	c.there()
	c.data = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(c.data, high), low)
	*c.size += 16
}

// Text adds a text or bytes, which are copied.
func (c *Chunk) Text(s []byte) {
	c.there()
	if !c.apart {
		before := len(c.dict.ends)
		i := c.dict.find(s)
		c.index = append(c.index, i)
		*c.size += 4
		if len(c.dict.ends) == before {
			return
		}
		*c.size += int64(len(s)) + 16
		if c.dict.pays(len(c.index)) {
			return
		}
		c.leave()
		return
	}
	c.data = append(c.data, s...)
	c.ends = append(c.ends, len(c.data))
	*c.size += int64(len(s)) + 8
}

// leave gives the dictionary up: the texts stand one after another.
func (c *Chunk) leave() {
	c.apart = true
	for _, i := range c.index {
		s := c.dict.text(i)
		c.data = append(c.data, s...)
		c.ends = append(c.ends, len(c.data))
		*c.size += int64(len(s)) + 8
	}
	*c.size -= int64(len(c.dict.data)) + int64(16*len(c.dict.ends)+4*len(c.index))
	c.index = c.index[:0]
	c.dict.reset()
}

// Decide gives an undecided column its type, name and all else being kept.
func (c *Chunk) Decide(to Column) { c.Type, c.Precision, c.Scale = to.Type, to.Precision, to.Scale }

// IntsToDoubles makes a column of integers one of doubles; false where one of them has no double that equals it.
func (c *Chunk) IntsToDoubles() bool {
	for _, v := range c.nums {
		if !Exact(v) {
			return false
		}
	}
	for i, v := range c.nums {
		c.nums[i] = int64(math.Float64bits(float64(v)))
	}
	c.Type = Double
	return true
}

// Exact reports whether there is a double that equals v: one of at most 53 significant bits.
func Exact(v int64) bool {
	abs := uint64(v)
	if v < 0 {
		abs = -abs
	}
	return abs == 0 || bits.Len64(abs)-bits.TrailingZeros64(abs) <= 53
}

// IntsToTexts makes a column of integers one of their digits.
func (c *Chunk) IntsToTexts() {
	nums, rows, nulls, valid := c.nums, c.rows, c.nulls, c.valid
	c.nums, c.rows, c.nulls, c.valid, c.Type = nil, 0, 0, nil, String
	var digits [20]byte
	for _, v := range nums {
		c.Text(strconv.AppendInt(digits[:0], v, 10))
	}
	c.rows, c.nulls, c.valid = rows, nulls, valid
}

func (c *Chunk) reset(keep bool) {
	c.rows, c.nulls, c.apart = 0, 0, false
	c.dict.reset()
	if !keep {
		c.valid, c.nums, c.index, c.data, c.ends, c.dict = nil, nil, nil, nil, nil, dictionary{}
		return
	}
	c.valid, c.nums, c.index, c.data, c.ends = c.valid[:0], c.nums[:0], c.index[:0], c.data[:0], c.ends[:0]
}

// held is how much memory the chunk keeps for the next row group.
func (c *Chunk) held() int {
	return cap(c.valid) + 8*cap(c.nums) + 4*cap(c.index) + cap(c.data) + 8*cap(c.ends) + cap(c.dict.data) + 8*cap(c.dict.ends) + 4*cap(c.dict.table)
}
