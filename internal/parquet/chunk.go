package parquet

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// Chunk holds one column's cells until they go to the column's pages: those of the first row group while it is filled, so that
// what the column is can still be decided, and of later ones a batch. Each row takes one call of Null, Int, Float, Text or
// Fixed.
type Chunk struct {
	Column
	there []bool  // by row: it holds a value
	nums  []int64 // whole numbers, the bits of doubles, truth values
	data  []byte  // texts one after another; wide decimals, 16 bytes each
	ends  []int   // of texts

	size *int64 // bytes that the row group holds, counted where they are not known from the rows
}

// Null adds a NULL.
func (c *Chunk) Null() { c.there = append(c.there, false) }

// Int adds a whole number: an integer, a date, a timestamp, the digits of a decimal, or 0 or 1.
func (c *Chunk) Int(v int64) {
	c.there = append(c.there, true)
	c.nums = append(c.nums, v)
}

// Float adds a double.
func (c *Chunk) Float(v float64) { c.Int(int64(math.Float64bits(v))) }

// Fixed adds the digits of a wide decimal, a number of 16 bytes in two's complement, the high half first.
func (c *Chunk) Fixed(high, low uint64) {
	c.there = append(c.there, true)
	c.data = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(c.data, high), low)
	*c.size += 16
}

// Text adds a text or bytes, which are copied.
func (c *Chunk) Text(s []byte) {
	c.there = append(c.there, true)
	c.text(s)
}

func (c *Chunk) text(s []byte) {
	c.data = append(c.data, s...)
	c.ends = append(c.ends, len(c.data))
	*c.size += int64(len(s))
}

// Decide gives an undecided column its type, name and all else being kept. As the two below it is for the first row group.
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
	c.Type = String
	var digits [20]byte
	for _, v := range c.nums {
		c.text(strconv.AppendInt(digits[:0], v, 10))
	}
	c.nums = nil
}

// A dictionary is for texts that come again: of at least fewest texts, half of them or more. Its own texts are few enough
// that every reader holds them whole.
const (
	fewest   = 1 << 10
	trial    = 1 << 14 // texts after which a dictionary is given up that does not pay so far
	maxEntry = 512 << 10
)

// repeats reports whether a dictionary pays for the texts so far.
func (c *Chunk) repeats() bool {
	if !c.texts() || len(c.ends) < fewest {
		return false
	}
	seen, size, from := map[string]struct{}{}, 0, 0
	for i, end := range c.ends {
		text := c.data[from:end]
		if _, ok := seen[string(text)]; !ok {
			seen[string(text)] = struct{}{}
			size += len(text)
		}
		if from = end; size > maxEntry || 2*len(seen) > len(c.ends) || i >= trial && 2*len(seen) > i {
			return false
		}
	}
	return true
}

// put hands the cells to the column's writer, a batch at a time; one ends where its texts are as large as a page.
func (c *Chunk) put(to *parquet.ColumnWriter, batch []parquet.Value) error {
	left := *c
	for at := 0; len(left.there) > 0; {
		n := min(len(left.there), len(batch))
		if !c.texts() && !c.Wide() {
			left.numbers(batch[:n])
		} else {
			n, at = left.bytes(batch[:n], at)
		}
		left.there = left.there[n:]
		if _, err := to.WriteRowValues(batch[:n]); err != nil {
			return err
		}
	}
	return nil
}

// numbers makes values of the next numbers, which it takes out of the chunk. What a value is of stands in each branch, since
// building it elsewhere and copying it takes several times as long.
func (c *Chunk) numbers(values []parquet.Value) {
	nums := c.nums
	for i, there := range c.there[:len(values)] {
		if !there {
			values[i] = parquet.Value{}
			continue
		}
		v := nums[0]
		nums = nums[1:]
		switch c.Type {
		case Bool:
			values[i] = parquet.BooleanValue(v == 1)
		case Date:
			values[i] = parquet.Int32Value(int32(v))
		case Double:
			values[i] = parquet.DoubleValue(math.Float64frombits(uint64(v)))
		default:
			values[i] = parquet.Int64Value(v)
		}
		values[i].SetDefinitionLevel(1)
	}
	c.nums = nums
}

// bytes makes values of the next texts or wide decimals, the first of which begins at so many bytes. It returns how many it
// made and where the next one begins.
func (c *Chunk) bytes(values []parquet.Value, at int) (n, next int) {
	for start := at; n < len(values) && at-start < pageBytes; n++ {
		if !c.there[n] {
			values[n] = parquet.Value{}
			continue
		}
		if c.Wide() {
			values[n] = parquet.FixedLenByteArrayValue(c.data[at : at+16])
			at += 16
		} else {
			values[n] = parquet.ByteArrayValue(c.data[at:c.ends[0]])
			at, c.ends = c.ends[0], c.ends[1:]
		}
		values[n].SetDefinitionLevel(1)
	}
	return n, at
}

func (c *Chunk) reset(keep bool) {
	if !keep {
		c.there, c.nums, c.data, c.ends = nil, nil, nil, nil
	}
	c.there, c.nums, c.data, c.ends = c.there[:0], c.nums[:0], c.data[:0], c.ends[:0]
}

// held is how much memory the chunk keeps for the next row group.
func (c *Chunk) held() int { return cap(c.there) + 8*cap(c.nums) + cap(c.data) + 8*cap(c.ends) }
