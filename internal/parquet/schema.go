package parquet

import (
	"fmt"
	"strconv"
	"strings"
)

// Type is what a column's values are.
type Type uint8

const (
	Undecided Type = iota // holds NULLs only, and has to be decided before its row group is written
	Int64
	Double
	Decimal // exact, Precision digits of which Scale stand behind the point
	String  // UTF-8
	Bytes
	Bool
	Date      // days since 1970-01-01
	Timestamp // microseconds since 1970-01-01T00:00:00Z: instants, isAdjustedToUTC
	Civil     // a date and a time of day of no zone, as microseconds since 1970-01-01T00:00:00; not adjusted
)

// MaxPrecision is how many digits a decimal has at most: DuckDB and Athena take 38
// (https://docs.aws.amazon.com/athena/latest/ug/data-types.html).
const MaxPrecision = 38

// narrow is how many digits fit an INT64 (https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#decimal).
const narrow = 18

// Column is one column. Precision and Scale are of decimals.
type Column struct {
	Name             string
	Type             Type
	Precision, Scale int
}

var names = [...]string{Undecided: "UNDECIDED", Int64: "INT64", Double: "DOUBLE", String: "STRING", Bytes: "BYTE_ARRAY", Bool: "BOOLEAN", Date: "DATE", Timestamp: "TIMESTAMP(MICROS,UTC)", Civil: "TIMESTAMP(MICROS)"}

// Spelled is the column's type as people read it and ParseType takes it: INT64, DOUBLE, DECIMAL(10,2), STRING, BYTE_ARRAY,
// BOOLEAN, DATE, TIMESTAMP(MICROS,UTC) or TIMESTAMP(MICROS).
func (c Column) Spelled() string {
	if c.Type == Decimal {
		return fmt.Sprintf("DECIMAL(%d,%d)", c.Precision, c.Scale)
	}
	return names[c.Type]
}

// ParseType reads what Spelled spelled.
func ParseType(spelled string) (c Column, err error) {
	for t, name := range names {
		if Type(t) != Undecided && name != "" && name == spelled {
			return Column{Type: Type(t)}, nil
		}
	}
	if digits, ok := strings.CutPrefix(spelled, "DECIMAL("); ok {
		p, s, _ := strings.Cut(strings.TrimSuffix(digits, ")"), ",")
		c.Type = Decimal
		if c.Precision, err = strconv.Atoi(p); err == nil {
			c.Scale, err = strconv.Atoi(s)
		}
		if err == nil && c.sound() && c.Spelled() == spelled {
			return c, nil
		}
	}
	return Column{}, fmt.Errorf("%q is no type of a column; want INT64, DOUBLE, DECIMAL(p,s) with up to %d digits, STRING, BYTE_ARRAY, BOOLEAN, DATE, TIMESTAMP(MICROS,UTC) or TIMESTAMP(MICROS)", spelled, MaxPrecision)
}

// sound reports whether a decimal's digits can be.
func (c Column) sound() bool {
	return c.Type != Decimal || c.Precision >= 1 && c.Precision <= MaxPrecision && c.Scale >= 0 && c.Scale <= c.Precision
}

// Wide reports whether the column's values are numbers of 16 bytes: decimals that do not fit an INT64.
func (c Column) Wide() bool { return c.Type == Decimal && c.Precision > narrow }

func (c Column) texts() bool { return c.Type == String || c.Type == Bytes }

// delta reports whether the values are whole numbers that are written as their differences.
func (c Column) delta() bool {
	return c.Type == Int64 || c.Type == Date || c.Type == Timestamp || c.Type == Civil || c.Type == Decimal && !c.Wide()
}
