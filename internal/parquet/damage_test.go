package parquet

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// page is a page of this body, whose header is as it should be but for what change does to it.
func page(t *testing.T, body string, change func(h *format.PageHeader)) []byte {
	t.Helper()
	packed := encoder.EncodeAll([]byte(body), nil)
	h := format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(len(body)), CompressedPageSize: int32(len(packed)), CRC: int32(crc32.ChecksumIEEE(packed))}
	change(&h)
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, packed...)
}

// rows makes a page one of data.
func rows(n int32, by format.Encoding) func(h *format.PageHeader) {
	return func(h *format.PageHeader) {
		h.DataPageHeader = thrift.New(format.DataPageHeader{NumValues: n, Encoding: by, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
	}
}

// texts makes a page one of a dictionary.
func texts(h *format.PageHeader) {
	h.Type, h.DictionaryPageHeader = format.DictionaryPage, thrift.New(format.DictionaryPageHeader{NumValues: 1, Encoding: format.Plain})
}

func TestPagesThatAreRefused(t *testing.T) {
	const two = "\x02\x00\x00\x00\x04\x01" // levels: two rows that hold values
	one, eight := "\x01\x00\x00\x00x", "12345678"
	number, text := Column{Name: "x", Type: Int64}, Column{Name: "x", Type: String}
	with := func(change ...func(h *format.PageHeader)) func(h *format.PageHeader) {
		return func(h *format.PageHeader) {
			for _, c := range change {
				c(h)
			}
		}
	}
	delta := rows(2, format.DeltaBinaryPacked)
	for name, c := range map[string]struct {
		column Column
		pages  []byte
		want   string
	}{
		"no header":                       {number, []byte{0xff, 0xff}, "header cannot be read"},
		"longer than the column":          {number, page(t, "x", with(delta, func(h *format.PageHeader) { h.CompressedPageSize++ })), "are left of the column"},
		"of less than no bytes":           {number, page(t, "x", with(delta, func(h *format.PageHeader) { h.CompressedPageSize = -1 })), "are left of the column"},
		"too large":                       {number, page(t, "x", with(delta, func(h *format.PageHeader) { h.UncompressedPageSize = maxPage + 1 })), "when it is decompressed"},
		"of less than none decompressed":  {number, page(t, "x", with(delta, func(h *format.PageHeader) { h.UncompressedPageSize = -1 })), "when it is decompressed"},
		"another checksum":                {number, page(t, "x", with(delta, func(h *format.PageHeader) { h.CRC++ })), "checksum"},
		"no checksum":                     {number, page(t, "x", with(delta, func(h *format.PageHeader) { h.CRC = 0 })), "checksum"},
		"another size":                    {number, page(t, "x", with(delta, func(h *format.PageHeader) { h.UncompressedPageSize++ })), "cannot be decompressed"},
		"an index":                        {number, page(t, "x", func(h *format.PageHeader) { h.Type = format.IndexPage }), "of a kind"},
		"a dictionary of numbers":         {number, page(t, one, texts), "of a kind"},
		"two dictionaries":                {text, append(page(t, one, texts), page(t, one, texts)...), "of a kind"},
		"a dictionary of a text cut off":  {text, page(t, one[:4], texts), ""},
		"a dictionary of a length":        {text, page(t, one[:3], texts), ""},
		"of no row":                       {number, page(t, two, rows(0, format.DeltaBinaryPacked)), "0 rows"},
		"of too many rows":                {number, page(t, two, rows(GroupRows+1, format.DeltaBinaryPacked)), "131073 rows"},
		"no levels":                       {number, page(t, "\x00\x00\x00", delta), "2 rows in 3 bytes"},
		"levels cut off":                  {number, page(t, two[:5], delta), errShort.Error()},
		"levels of a run without a value": {number, page(t, "\x01\x00\x00\x00\x04", delta), "run-length"},
		"levels of one row":               {number, page(t, "\x02\x00\x00\x00\x02\x01", delta), errShort.Error()},
		"numbers one after another":       {number, page(t, two+eight+eight, rows(2, format.Plain)), "the encoding PLAIN"},
		"differences of texts":            {text, page(t, two+eight, delta), "the encoding DELTA_BINARY_PACKED"},
		"numbers of no dictionary":        {text, page(t, two+"\x01\x02\x00", rows(2, format.RLEDictionary)), "the encoding RLE_DICTIONARY"},
		"a number beyond the dictionary":  {text, append(page(t, one, texts), page(t, two+"\x01\x04\x01", rows(2, format.RLEDictionary))...), "cannot be decoded"},
		"differences cut off":             {number, page(t, two+"\x80\x01\x04\x02\x00", delta), "missing values"},
		"too few differences":             {number, page(t, two+"\x80\x01\x04\x01\x00", delta), ""},
		"no differences":                  {number, page(t, two, delta), ""},
		"one text of two":                 {text, page(t, two+one, rows(2, format.Plain)), errShort.Error()},
		"a double cut off":                {Column{Name: "x", Type: Double}, page(t, two+eight+"1234567", rows(2, format.Plain)), ""},
		"one double of two":               {Column{Name: "x", Type: Double}, page(t, two+eight, rows(2, format.Plain)), ""},
		"one wide decimal of two":         {Column{Name: "x", Type: Decimal, Precision: 38}, page(t, two+eight+eight, rows(2, format.Plain)), ""},
		"no booleans":                     {Column{Name: "x", Type: Bool}, page(t, two, rows(2, format.Plain)), ""},
	} {
		file := bytes.Clone(c.pages)
		r := &Reader{columns: []Column{c.column}, meta: format.FileMetaData{Schema: []format.SchemaElement{{NumChildren: thrift.New(int32(1))}, element(c.column)}}}
		if err := r.schema(); err != nil {
			t.Fatal(err)
		}
		if err := r.cursors[0].open(bytes.NewReader(file), 0, int64(len(file))); err != nil {
			t.Fatal(err)
		}
		var err error
		for range 2 {
			if err == nil {
				err = r.cursors[0].next(&r.cells[0])
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// element is how a column stands in a footer.
func element(c Column) format.SchemaElement {
	typ := c.leaf().Type()
	e := format.SchemaElement{Name: c.Name, RepetitionType: thrift.New(format.Optional), Type: thrift.New(*typ.PhysicalType())}
	if logical := typ.LogicalType(); logical != nil {
		e.LogicalType = *logical
	}
	if c.Wide() {
		e.TypeLength = thrift.New(int32(16))
	}
	return e
}

// footer is the description of a file, and where it begins.
func footer(t *testing.T, file []byte) (m format.FileMetaData, begins int) {
	t.Helper()
	begins = len(file) - 8 - int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), file[begins:len(file)-8], &m); err != nil {
		t.Fatal(err)
	}
	return m, begins
}

func TestFootersThatAreRefused(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, all())
	fill(t, w, 20, func(r, i int) bool { return r == i })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(m *format.FileMetaData)
		want   string
	}{
		"no schema":             {func(m *format.FileMetaData) { m.Schema = nil }, "not flat: 0 elements"},
		"a group in the schema": {func(m *format.FileMetaData) { m.Schema[0].NumChildren.V = 3 }, "not flat"},
		"a required column":     {func(m *format.FileMetaData) { m.Schema[1].RepetitionType.V = format.Required }, `"i" is of a type`},
		"a column of 32 bits": {func(m *format.FileMetaData) {
			m.Schema[1].LogicalType.Value = &format.IntType{BitWidth: 32, IsSigned: true}
		}, `"i" is of a type`},
		"milliseconds": {func(m *format.FileMetaData) {
			m.Schema[11].LogicalType.Value = &format.TimestampType{Unit: format.TimeUnit{Value: &format.MilliSeconds{}}}
		}, `"v" is of a type`},
		"digits that cannot be":   {func(m *format.FileMetaData) { m.Schema[3].LogicalType.Value = &format.DecimalType{Precision: 39} }, `"n" is of a type`},
		"a text kept as a number": {func(m *format.FileMetaData) { m.Schema[5].Type.V = format.Int64 }, `"s" is STRING, stored as INT64`},
		"a wide decimal too wide": {func(m *format.FileMetaData) { m.Schema[4].TypeLength.V = 17 }, "of 17 bytes"},
		"a type that is none":     {func(m *format.FileMetaData) { m.Schema[2].Type = thrift.Null[format.Type]{} }, `"f"`},
		"a column less":           {func(m *format.FileMetaData) { m.RowGroups[0].Columns = m.RowGroups[0].Columns[1:] }, "10 columns"},
		"a row group of no row":   {func(m *format.FileMetaData) { m.RowGroups[0].NumRows = 0 }, "0 rows"},
		"a row group too large":   {func(m *format.FileMetaData) { m.RowGroups[0].NumRows = GroupRows + 1 }, "131073 rows"},
		"a row more":              {func(m *format.FileMetaData) { m.NumRows++ }, "have 20 rows, the file 21"},
		"a value less":            {func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.NumValues-- }, "19 values"},
		"pages before the file":   {func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DataPageOffset = 3 }, "at 3"},
		"pages in the footer":     {func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = 1 << 40 }, "bytes at 4"},
		"no pages":                {func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = 0 }, "in 0 bytes"},
		"pages by gzip":           {func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Codec = format.Gzip }, `"i"`},
		"a dictionary before it":  {func(m *format.FileMetaData) { m.RowGroups[0].Columns[4].MetaData.DictionaryPageOffset = 1 }, `"s"`},
	} {
		m, begins := footer(t, file.Bytes())
		c.change(&m)
		var other bytes.Buffer
		other.Write(file.Bytes()[:begins])
		if err := (&Writer{out: &sink{to: &other}}).footer(&m); err != nil {
			t.Fatal(err)
		}
		_, err := Open(bytes.NewReader(other.Bytes()), int64(other.Len()))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The footer has bounds where they are cheap and certain, and nothing that leads to bounds that parquet-go invents.
func TestBounds(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, all())
	for _, v := range []int64{3, -7, 5} {
		for i, c := range all() {
			switch chunk := w.Chunk(i); {
			case c.texts():
				chunk.Text([]byte{byte('m' + v)})
			case c.Wide():
				chunk.Fixed(0, uint64(v))
			case c.Type == Double:
				chunk.Float(float64(v))
			default:
				chunk.Int(v)
			}
		}
		w.EndRow()
	}
	for i := range all() {
		w.Chunk(i).Null()
	}
	w.EndRow()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m, _ := footer(t, file.Bytes())
	if m.CreatedBy != CreatedBy || m.NumRows != 4 || len(m.ColumnOrders) != len(all()) {
		t.Errorf("%+v", m)
	}
	for i, c := range all() {
		column := m.RowGroups[0].Columns[i]
		s := column.MetaData.Statistics
		var least, most []byte
		if c.delta() {
			minus := int64(-7)
			least, most = binary.LittleEndian.AppendUint64(nil, uint64(minus)), binary.LittleEndian.AppendUint64(nil, 5)
		}
		if c.Type == Date {
			least, most = least[:4], most[:4]
		}
		if !slices.Equal(s.MinValue, least) || !slices.Equal(s.MaxValue, most) || s.NullCount != 1 {
			t.Errorf("%s: % x to % x with %d NULLs, want % x to % x with 1", c.Name, s.MinValue, s.MaxValue, s.NullCount, least, most)
		}
		if column.ColumnIndexOffset != 0 || column.ColumnIndexLength != 0 || column.OffsetIndexOffset != 0 || column.OffsetIndexLength != 0 {
			t.Errorf("%s: an index at %d", c.Name, column.ColumnIndexOffset)
		}
	}
}
