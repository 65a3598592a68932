package artifact

import (
	"bytes"
	"fmt"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/parquet"
	"almanac/internal/source"
)

// cell puts the i-th cell of a row into its column, exactly or not at all.
func (e *parquetFile) cell(i int, v *source.Value) error {
	c := e.w.Chunk(i)
	switch v.Kind {
	case source.KindNull:
		c.Null()
		return nil
	case source.KindInt:
		if c.Type == parquet.Int64 {
			c.Int(v.Int)
			return nil
		}
	case source.KindText:
		if c.Type == parquet.String {
			c.Text(valid(v.Text))
			return nil
		}
	}
	if took, why := e.take(c, i, v); took {
		return nil
	} else if why != "" {
		return e.refuse(c, i, v, why)
	}
	if e.soft[i] && e.adapt(c, i, v.Kind) {
		if took, why := e.take(c, i, v); took {
			return nil
		} else if why != "" {
			return e.refuse(c, i, v, why)
		}
	}
	return e.refuse(c, i, v, "")
}

// take adds a cell where the column's type has its value exactly. why says what is wrong with a cell of the right kind.
func (e *parquetFile) take(c *parquet.Chunk, i int, v *source.Value) (took bool, why string) {
	switch c.Type {
	case parquet.Int64:
		if v.Kind == source.KindInt {
			c.Int(v.Int)
			return true, ""
		}
	case parquet.Double:
		switch {
		case v.Kind == source.KindFloat:
			c.Float(v.Float)
			return true, ""
		case v.Kind == source.KindInt && parquet.Exact(v.Int):
			c.Float(float64(v.Int))
			return true, ""
		}
	case parquet.Decimal:
		return takeDecimal(c, v)
	case parquet.String:
		return e.takeText(c, i, v)
	case parquet.Bytes:
		if v.Kind == source.KindBytes {
			c.Text(v.Text)
			return true, ""
		}
	case parquet.Bool:
		if v.Kind == source.KindBool {
			c.Int(v.Int & 1)
			return true, ""
		}
	case parquet.Date, parquet.Timestamp, parquet.Civil:
		return takeTime(c, v)
	}
	return false, ""
}

func (e *parquetFile) takeText(c *parquet.Chunk, i int, v *source.Value) (bool, string) {
	switch {
	case v.Kind == source.KindInt && e.digits[i]:
		var digits [20]byte
		c.Text(strconv.AppendInt(digits[:0], v.Int, 10))
		return true, ""
	case v.Kind != source.KindText && v.Kind != source.KindDecimal:
		return false, ""
	}
	c.Text(valid(v.Text))
	return true, ""
}

// valid is a text in UTF-8, as STRING demands: bytes that are none become U+FFFD, as in the other kinds of files.
func valid(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	return bytes.ToValidUTF8(s, []byte("\uFFFD"))
}

func takeTime(c *parquet.Chunk, v *source.Value) (bool, string) {
	date := c.Type == parquet.Date
	if date != (v.Kind == source.KindDate) || !date && v.Kind != source.KindTimestamp {
		return false, ""
	}
	seconds := v.Time.Unix()
	switch {
	case seconds < firstSecond || seconds > lastSecond:
		return false, "is not in the years 0 to 9999: select the column as text"
	case date:
		c.Int(floorDiv(seconds, day))
	case v.Time.Nanosecond()%1000 != 0:
		return false, "has a fraction finer than a microsecond: round the column to microseconds in the query, or select it as text"
	default:
		c.Int(seconds*1_000_000 + int64(v.Time.Nanosecond()/1000))
	}
	return true, ""
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// takeDecimal adds a decimal or an integer whose digits are no more than the column has.
func takeDecimal(c *parquet.Chunk, v *source.Value) (bool, string) {
	text := v.Text
	var digits [20]byte
	switch v.Kind {
	case source.KindInt:
		text = strconv.AppendInt(digits[:0], v.Int, 10)
	case source.KindDecimal:
	default:
		return false, ""
	}
	high, low, negative, ok := unscaled(text, c.Precision, c.Scale)
	if !ok {
		return false, fmt.Sprintf("has more digits than %s: cast the column to a decimal that holds all of them, or to text", c.Spelled())
	}
	if !c.Wide() {
		n := int64(low)
		if negative {
			n = -n
		}
		c.Int(n)
		return true, ""
	}
	if negative {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	c.Fixed(high, low)
	return true, ""
}

// unscaled is a decimal's magnitude in units of 10 to the power of -scale; false where it is no plain decimal, or has more
// than precision digits, or more than scale of them behind the point that are not 0.
func unscaled(s []byte, precision, scale int) (high, low uint64, negative, ok bool) {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	left, point, any := scale, false, false
	digits := 0 // without leading zeros
	add := func(d byte) bool {
		if digits > 0 || d > 0 {
			digits++
		}
		if digits > precision {
			return false
		}
		over, l := bits.Mul64(low, 10)
		high = high*10 + over
		var carry uint64
		low, carry = bits.Add64(l, uint64(d), 0)
		high += carry
		return true
	}
	for _, ch := range s {
		switch {
		case ch == '.' && !point && any:
			point = true
			continue
		case ch < '0' || ch > '9':
			return 0, 0, false, false
		}
		any = true
		if point {
			if left == 0 {
				if ch != '0' {
					return 0, 0, false, false
				}
				continue
			}
			left--
		}
		if !add(ch - '0') {
			return 0, 0, false, false
		}
	}
	for ; left > 0; left-- {
		if !add(0) {
			return 0, 0, false, false
		}
	}
	return high, low, negative, any
}

// adapt gives a column whose type is not settled the type that fits the cells so far and one of this kind; false if there is
// none.
func (e *parquetFile) adapt(c *parquet.Chunk, i int, k source.Kind) bool {
	switch {
	case c.Type == parquet.Undecided:
		c.Decide(parquet.Column{Type: typeOf(k, e.source[i])})
		e.digits[i] = k == source.KindDecimal
		return c.Type != parquet.Undecided
	case c.Type == parquet.Int64 && k == source.KindFloat:
		return c.IntsToDoubles()
	case c.Type == parquet.Int64 && k == source.KindDecimal:
		c.IntsToTexts()
		e.digits[i] = true
		return true
	}
	return false
}

func typeOf(k source.Kind, c source.Column) parquet.Type {
	switch k {
	case source.KindInt:
		return parquet.Int64
	case source.KindFloat:
		return parquet.Double
	case source.KindDecimal, source.KindText:
		return parquet.String
	case source.KindBytes:
		return parquet.Bytes
	case source.KindBool:
		return parquet.Bool
	case source.KindDate:
		return parquet.Date
	case source.KindTimestamp:
		return stampOf(c)
	}
	return parquet.Undecided
}

var kindNames = [...]string{source.KindInt: "the integer", source.KindFloat: "the real", source.KindDecimal: "the decimal", source.KindText: "the text",
	source.KindBytes: "bytes", source.KindBool: "the boolean", source.KindDate: "the date", source.KindTimestamp: "the timestamp"}

// refuse says which cell does not fit its column, and what helps.
func (e *parquetFile) refuse(c *parquet.Chunk, i int, v *source.Value, why string) error {
	if int(v.Kind) >= len(kindNames) {
		return unknownKind(i, v)
	}
	if why == "" {
		name := quoted(c.Name)
		why = fmt.Sprintf("does not fit the column's type in the file, %s: give all its cells one type with CAST(%s AS %s) or CAST(%s AS TEXT) in the query", c.Spelled(), name, castType(c.Type), name)
	}
	return failure.New(failure.FileUnsupported, "column %d (%q): %s in row %d %s", i+1, failure.Cut(c.Name, 60), shown(v), e.rows+1, why)
}

// shown is a cell as a message has it.
func shown(v *source.Value) string {
	name := kindNames[v.Kind]
	switch v.Kind {
	case source.KindInt:
		return fmt.Sprintf("%s %d", name, v.Int)
	case source.KindFloat:
		return name + " " + string(appendFloat(nil, v.Float))
	case source.KindDecimal, source.KindText:
		return fmt.Sprintf("%s %q", name, failure.Cut(string(v.Text), 40))
	case source.KindBool:
		return fmt.Sprintf("%s %t", name, v.Int != 0)
	case source.KindDate, source.KindTimestamp:
		return name + " " + v.Time.UTC().Format(time.RFC3339Nano)
	}
	return name
}

// castType is a type's name in a CAST, as SQLite takes it; PostgreSQL calls a BLOB bytea.
func castType(t parquet.Type) string {
	switch t {
	case parquet.Int64:
		return "BIGINT"
	case parquet.Double:
		return "DOUBLE PRECISION"
	case parquet.Decimal:
		return "NUMERIC"
	case parquet.Bytes:
		return "BLOB"
	case parquet.Bool:
		return "BOOLEAN"
	case parquet.Date:
		return "DATE"
	case parquet.Timestamp, parquet.Civil:
		return "TIMESTAMP"
	}
	return "TEXT"
}
