package artifact_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	reference "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"almanac/internal/source"
)

// readParquet is the suite's reader: parquet-go's.
func readParquet(file []byte, columns []source.Column, take func([]source.Value) error) (names []string, err error) {
	f, err := reference.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	fields := f.Schema().Fields()
	for _, field := range fields {
		names = append(names, field.Name())
	}
	if len(fields) != len(columns) {
		return names, fmt.Errorf("%d columns, want %d", len(fields), len(columns))
	}
	row := make([]source.Value, len(columns))
	for _, g := range f.RowGroups() {
		if err := rowsOf(g, fields, columns, row, take); err != nil {
			return names, err
		}
	}
	return names, nil
}

func rowsOf(g reference.RowGroup, fields []reference.Field, columns []source.Column, row []source.Value, take func([]source.Value) error) error {
	from := g.Rows()
	defer from.Close()
	for buffer := make([]reference.Row, 16); ; {
		n, err := from.ReadRows(buffer)
		for _, read := range buffer[:n] {
			for i, v := range read {
				row[i] = cellOf(v, fields[i], columns[i].Type)
			}
			if err := take(row); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// cellOf turns a stored value into a cell of the kind that the column is of.
func cellOf(v reference.Value, field reference.Field, of source.Type) source.Value {
	if v.IsNull() {
		return source.Value{}
	}
	switch of {
	case source.Integer:
		return integer(v.Int64())
	case source.Real:
		return float(v.Double())
	case source.Boolean:
		return truth(map[bool]int64{true: 1}[v.Boolean()])
	case source.Bytes:
		return raws(string(v.ByteArray()))
	case source.Date:
		return date(time.Unix(int64(v.Int32())*86400, 0).UTC())
	case source.Timestamp:
		return stamp(time.UnixMicro(v.Int64()).UTC())
	case source.Decimal:
		if logical := field.Type().LogicalType(); logical != nil {
			if d, ok := logical.Value.(*format.DecimalType); ok {
				return decimal(digitsOf(v, int(d.Scale)))
			}
		}
		return decimal(string(v.ByteArray()))
	}
	return text(string(v.ByteArray()))
}

// digitsOf spells a stored decimal.
func digitsOf(v reference.Value, scale int) string {
	n := new(big.Int)
	if v.Kind() == reference.FixedLenByteArray {
		b := v.ByteArray()
		n.SetBytes(b)
		if b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	} else {
		n.SetInt64(v.Int64())
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(n, unit).FloatString(scale)
}
