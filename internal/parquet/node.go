package parquet

import (
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// row is a schema's root. parquet.Group sorts its fields by name; these stay in the order of the columns.
type row struct {
	parquet.Group
	fields []parquet.Field
}

func (r row) Fields() []parquet.Field { return r.fields }

// field is a column of a row.
type field struct {
	parquet.Node
	name string
}

func (f field) Name() string { return f.name }

// Value is of rows that are Go values, which none here are.
func (f field) Value(row reflect.Value) reflect.Value { return row }

// leaf is the column's type as parquet-go has it.
func (c Column) leaf() parquet.Node {
	switch c.Type {
	case Double:
		return parquet.Leaf(parquet.DoubleType)
	case Decimal:
		if c.Wide() {
			return parquet.Decimal(c.Scale, c.Precision, parquet.FixedLenByteArrayType(16))
		}
		return parquet.Decimal(c.Scale, c.Precision, parquet.Int64Type)
	case String:
		return parquet.String()
	case Bytes:
		return parquet.Leaf(parquet.ByteArrayType)
	case Bool:
		return parquet.Leaf(parquet.BooleanType)
	case Date:
		return parquet.Date()
	case Timestamp, Civil:
		return parquet.TimestampAdjusted(parquet.Microsecond, c.Type == Timestamp)
	}
	return parquet.Int(64)
}

// node is the column of a file that is written. dictionary: its texts are numbered.
func (c Column) node(dictionary bool) parquet.Node {
	n := c.leaf()
	switch {
	case c.delta():
		n = parquet.Encoded(n, &parquet.DeltaBinaryPacked)
	case dictionary:
		n = parquet.Encoded(n, &parquet.RLEDictionary)
	default:
		n = parquet.Encoded(n, &parquet.Plain)
	}
	return parquet.Optional(n)
}
