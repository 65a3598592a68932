package parquet

import "encoding/binary"

// footer writes the file's description: https://parquet.apache.org/docs/file-format/metadata/
func (w *Writer) footer() error {
	var m compact
	m.open(0)
	m.i32(1, 2) // version
	m.list(2, typeStruct, 1+len(w.chunks))
	m.open(0)
	m.text(4, "rows")
	m.i32(5, int64(len(w.chunks)))
	m.close()
	for i := range w.chunks {
		m.column(w.chunks[i].Column)
	}
	rows := 0
	for _, n := range w.groups {
		rows += n
	}
	m.i64(3, int64(rows))
	m.list(4, typeStruct, len(w.groups))
	for i, n := range w.groups {
		m.group(w.chunks, w.placed[i*len(w.chunks):(i+1)*len(w.chunks)], int64(n))
		if err := w.write(m.b); err != nil {
			return err
		}
		m.b = m.b[:0]
	}
	m.text(6, CreatedBy)
	m.list(7, typeStruct, len(w.chunks)) // the order of each column is that of its type
	for range w.chunks {
		m.open(0)
		m.open(1)
		m.close()
		m.close()
	}
	m.close()
	return w.write(m.b)
}

// column is one element of the schema. The older annotations stand beside the logical types, for older readers.
func (m *compact) column(c Column) {
	const optional = 1
	m.open(0)
	m.i32(1, c.physical())
	if c.Wide() {
		m.i32(2, 16)
	}
	m.i32(3, optional)
	m.text(4, c.Name)
	switch c.Type {
	case String:
		m.i32(6, convertedUTF8)
		m.open(10)
		m.open(1)
		m.close()
		m.close()
	case Decimal:
		m.i32(6, convertedDecimal)
		m.i32(7, int64(c.Scale))
		m.i32(8, int64(c.Precision))
		m.open(10)
		m.open(5)
		m.i32(1, int64(c.Scale))
		m.i32(2, int64(c.Precision))
		m.close()
		m.close()
	case Date:
		m.i32(6, convertedDate)
		m.open(10)
		m.open(6)
		m.close()
		m.close()
	case Timestamp, Civil:
		adjusted := byte(typeFalse)
		if c.Type == Timestamp {
			adjusted = typeTrue
			m.i32(6, convertedMicros) // which stands for adjusted ones alone
		}
		m.open(10)
		m.open(8)
		m.field(1, adjusted) // isAdjustedToUTC
		m.open(2)
		m.open(2) // micros
		m.close()
		m.close()
		m.close()
		m.close()
	}
	m.close()
}

func (m *compact) group(columns []Chunk, places []placed, rows int64) {
	m.open(0)
	m.list(1, typeStruct, len(places))
	var bytes, plainBytes int64
	for i, p := range places {
		bytes, plainBytes = bytes+p.bytes, plainBytes+p.plainBytes
		m.open(0)
		m.i64(2, 0)
		m.place(columns[i].Column, p)
		m.close()
	}
	m.i64(2, plainBytes)
	m.i64(3, rows)
	m.i64(5, places[0].at)
	m.i64(6, bytes)
	m.close()
}

func (m *compact) place(c Column, p placed) {
	m.open(3)
	m.i32(1, c.physical())
	encodings := []int64{p.encoding, rle}
	if p.encoding == dictionaryIndex {
		encodings = append(encodings, plain)
	}
	m.list(2, typeI32, len(encodings))
	for _, e := range encodings {
		m.b = binary.AppendVarint(m.b, e)
	}
	m.list(3, typeBinary, 1)
	m.element(c.Name)
	m.i32(4, zstdCodec)
	m.i64(5, int64(p.values))
	m.i64(6, p.plainBytes)
	m.i64(7, p.bytes)
	m.i64(9, p.data)
	if p.data != p.at {
		m.i64(11, p.at)
	}
	m.open(12)
	m.i64(3, int64(p.nulls))
	if c.delta() && p.values > p.nulls {
		m.text(5, bound(c, p.most))
		m.text(6, bound(c, p.least))
	}
	m.close()
	m.close()
}

// bound is a least or greatest value as PLAIN spells it.
func bound(c Column, v int64) string {
	if c.Type == Date {
		return string(binary.LittleEndian.AppendUint32(nil, uint32(int32(v))))
	}
	return string(binary.LittleEndian.AppendUint64(nil, uint64(v)))
}
