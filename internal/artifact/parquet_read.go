package artifact

import (
	"io"
	"math/big"
	"strconv"
	"time"

	"almanac/internal/failure"
	"almanac/internal/parquet"
	"almanac/internal/source"
)

// ParquetRows reads back a file that WriteParquet wrote.
type ParquetRows struct {
	from  *parquet.Reader
	cells []source.Value
	text  []byte // digits of the row's decimals
}

// OpenParquet reads the description of a file of so many bytes. Bytes that are no such file are file_inconsistent.
func OpenParquet(from io.ReaderAt, size int64) (*ParquetRows, error) {
	r, err := parquet.Open(from, size)
	if err != nil {
		return nil, unreadable(err)
	}
	return &ParquetRows{from: r, cells: make([]source.Value, len(r.Columns()))}, nil
}

func unreadable(err error) error {
	return failure.Wrap(failure.FileInconsistent, err, "the file cannot be read as the Parquet file that was written: %v", err)
}

// Columns are the file's.
func (r *ParquetRows) Columns() []parquet.Column { return r.from.Columns() }

// Next is the next row, valid until the one after, or io.EOF. A decimal has as many digits behind the point as its column.
func (r *ParquetRows) Next() ([]source.Value, error) {
	row, err := r.from.Next()
	if err == io.EOF {
		return nil, err
	}
	if err != nil {
		return nil, unreadable(err)
	}
	r.text = r.text[:0]
	for i, c := range r.from.Columns() {
		r.cells[i] = r.value(c, &row[i])
	}
	return r.cells, nil
}

func (r *ParquetRows) value(c parquet.Column, cell *parquet.Cell) source.Value {
	if cell.Null {
		return source.Value{}
	}
	switch c.Type {
	case parquet.Double:
		return source.Value{Kind: source.KindFloat, Float: cell.Float}
	case parquet.String:
		return source.Value{Kind: source.KindText, Text: cell.Text}
	case parquet.Bytes:
		return source.Value{Kind: source.KindBytes, Text: cell.Text}
	case parquet.Bool:
		return source.Value{Kind: source.KindBool, Int: cell.Int}
	case parquet.Date:
		return source.Value{Kind: source.KindDate, Time: time.Unix(cell.Int*day, 0).UTC()}
	case parquet.Timestamp, parquet.Civil:
		return source.Value{Kind: source.KindTimestamp, Time: time.UnixMicro(cell.Int).UTC()}
	case parquet.Decimal:
		from := len(r.text)
		r.text = appendDecimal(r.text, c, cell)
		return source.Value{Kind: source.KindDecimal, Text: r.text[from:len(r.text):len(r.text)]}
	}
	return source.Value{Kind: source.KindInt, Int: cell.Int}
}

func appendDecimal(b []byte, c parquet.Column, cell *parquet.Cell) []byte {
	var digits []byte
	var buffer [48]byte
	if c.Wide() {
		n := new(big.Int).Lsh(big.NewInt(int64(cell.High)), 64)
		digits = n.Add(n, new(big.Int).SetUint64(cell.Low)).Append(buffer[:0], 10)
	} else {
		digits = strconv.AppendInt(buffer[:0], cell.Int, 10)
	}
	if digits[0] == '-' {
		b, digits = append(b, '-'), digits[1:]
	}
	for i := len(digits); i <= c.Scale; i++ { // a digit before the point
		if b = append(b, '0'); i == len(digits) && c.Scale > 0 {
			b = append(b, '.')
		}
	}
	if whole := len(digits) - c.Scale; whole > 0 {
		b, digits = append(b, digits[:whole]...), digits[whole:]
		if c.Scale > 0 {
			b = append(b, '.')
		}
	}
	return append(b, digits...)
}

// AppendCell spells a cell as CSV does, without quotes and without neutralising; NULL is nothing.
func AppendCell(b []byte, v *source.Value) []byte {
	switch v.Kind {
	case source.KindInt:
		return strconv.AppendInt(b, v.Int, 10)
	case source.KindFloat:
		return appendFloat(b, v.Float)
	case source.KindDecimal, source.KindText:
		return append(b, v.Text...)
	case source.KindBytes:
		return appendHex(b, v.Text)
	case source.KindBool:
		return strconv.AppendBool(b, v.Int != 0)
	case source.KindDate, source.KindTimestamp:
		return new(dayCache).append(b, v.Time, v.Kind == source.KindTimestamp)
	}
	return b
}
