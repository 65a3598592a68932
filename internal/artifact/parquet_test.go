package artifact_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	reference "github.com/parquet-go/parquet-go"

	"almanac/internal/artifact"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/parquet"
	"almanac/internal/source"
)

var parquetFile = artifact.Format{Kind: "parquet"}

func truth(n int64) source.Value     { return source.Value{Kind: source.KindBool, Int: n} }
func date(t time.Time) source.Value  { return source.Value{Kind: source.KindDate, Time: t} }
func stamp(t time.Time) source.Value { return source.Value{Kind: source.KindTimestamp, Time: t} }

// columnar is a table of these columns.
func columnar(columns []source.Column, rows ...[]source.Value) *table {
	return &table{columns: columns, rows: rows}
}

func named(name string, typ source.Type, digits ...int) source.Column {
	c := source.Column{Name: name, Type: typ}
	if len(digits) == 2 {
		c.Precision, c.Scale = digits[0], digits[1]
	}
	return c
}

// spelled is the rows as CSV spells them, NULL as ∅, and the columns' types, read by this product's reader.
func spelled(t *testing.T, file string) (types, rows []string) {
	t.Helper()
	r, err := artifact.OpenParquet(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Columns() {
		types = append(types, c.Name+" "+c.Spelled())
	}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return types, rows
		}
		if err != nil {
			t.Fatal(err)
		}
		var cells []string
		for i := range row {
			if row[i].Kind == source.KindNull {
				cells = append(cells, "∅")
				continue
			}
			cells = append(cells, string(artifact.AppendCell(nil, &row[i])))
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
}

// byReference is the same, read by parquet-go: numbers as they are stored.
func byReference(t *testing.T, file string) (types, rows []string) {
	t.Helper()
	f, err := reference.OpenFile(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range f.Schema().Fields() {
		types = append(types, field.Name()+" "+field.Type().String())
		if !field.Optional() {
			t.Errorf("the column %s is not optional", field.Name())
		}
	}
	for _, g := range f.RowGroups() {
		from := g.Rows()
		defer from.Close()
		for buffer := make([]reference.Row, 64); ; {
			n, err := from.ReadRows(buffer)
			for _, row := range buffer[:n] {
				var cells []string
				for _, v := range row {
					if v.IsNull() {
						cells = append(cells, "∅")
					} else {
						cells = append(cells, v.String())
					}
				}
				rows = append(rows, strings.Join(cells, "|"))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return types, rows
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParquetV9TextIsExactAndNullIsNoEmptyText(t *testing.T) {
	texts := []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "NA", "", "NULL", "é☃🚚"}
	in := columnar([]source.Column{named("t", source.Text), named("n", source.Decimal, 10, 2)}, []source.Value{null, null})
	want := []string{"∅|∅"}
	for _, s := range texts {
		in.rows = append(in.rows, []source.Value{text(s), decimal("-5.00")})
		want = append(want, s+"|-5.00")
	}
	file := write(t, in, parquetFile)
	types, rows := spelled(t, file)
	same(t, "types", types, "t STRING", "n DECIMAL(10,2)")
	same(t, "rows", rows, want...)
	_, rows = byReference(t, file)
	for i := range want {
		want[i] = strings.Replace(want[i], "|-5.00", "|-500", 1)
	}
	same(t, "by parquet-go", rows, want...)
}

func TestParquetV10ExactNumbers(t *testing.T) {
	in := columnar([]source.Column{named("big", source.Integer), named("open", source.Decimal), named("narrow", source.Decimal, 18, 17), named("wide", source.Decimal, 38, 19)},
		[]source.Value{integer(9007199254740993), decimal("0.1000000000000000055"), decimal("0.10000000000000001"), decimal("0.1000000000000000055")},
		[]source.Value{integer(math.MinInt64), decimal("-00.10"), decimal("-9.99999999999999999"), decimal("-9999999999999999999.9999999999999999999")},
		[]source.Value{integer(math.MaxInt64), integer(7), integer(-3), decimal("9999999999999999999.9999999999999999999")})
	file := write(t, in, parquetFile)
	types, rows := spelled(t, file)
	same(t, "types", types, "big INT64", "open STRING", "narrow DECIMAL(18,17)", "wide DECIMAL(38,19)")
	same(t, "rows", rows, "9007199254740993|0.1000000000000000055|0.10000000000000001|0.1000000000000000055",
		"-9223372036854775808|-00.10|-9.99999999999999999|-9999999999999999999.9999999999999999999",
		"9223372036854775807|7|-3.00000000000000000|9999999999999999999.9999999999999999999")
	types, _ = byReference(t, file)
	same(t, "types by parquet-go", types, "big INT(64,true)", "open STRING", "narrow DECIMAL(18,17)", "wide DECIMAL(38,19)")
}

func TestParquetTypes(t *testing.T) {
	at := time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.FixedZone("", 3600))
	in := columnar([]source.Column{named("z", source.Integer), named("a", source.Real), named("m", source.Boolean), named("b", source.Bytes), named("d", source.Date), {Name: "s", Type: source.Timestamp, Zoned: true}, named("c", source.Timestamp)},
		[]source.Value{integer(1), float(math.Inf(-1)), truth(1), raws("\x00\xff"), date(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), stamp(at), stamp(at)},
		[]source.Value{null, null, null, null, null, null, null},
		[]source.Value{integer(-1), integer(1 << 60), truth(0), raws(""), date(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)), stamp(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)), stamp(time.Unix(1, 0))},
		[]source.Value{integer(0), float(math.NaN()), truth(1), raws("=x"), date(time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)), stamp(time.Unix(0, 0)), stamp(time.Unix(2, 0))})
	file := write(t, in, parquetFile)
	types, rows := spelled(t, file)
	same(t, "types, in the query's order", types, "z INT64", "a DOUBLE", "m BOOLEAN", "b BYTE_ARRAY", "d DATE", "s TIMESTAMP(MICROS,UTC)", "c TIMESTAMP(MICROS)")
	same(t, "rows", rows, `1|-Infinity|true|\x00ff|0000-01-01|1969-12-31T22:59:59.999999Z|1969-12-31T22:59:59.999999Z`, "∅|∅|∅|∅|∅|∅|∅",
		`-1|1152921504606847000|false|\x|9999-12-31|9999-12-31T23:59:59Z|1970-01-01T00:00:01Z`, `0|NaN|true|\x3d78|1969-12-31|1970-01-01T00:00:00Z|1970-01-01T00:00:02Z`)
	types, rows = byReference(t, file)
	same(t, "types by parquet-go", types, "z INT(64,true)", "a DOUBLE", "m BOOLEAN", "b BYTE_ARRAY", "d DATE", "s TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)", "c TIMESTAMP(isAdjustedToUTC=false,unit=MICROS)")
	same(t, "rows by parquet-go", rows, "1|-Inf|true|\x00\xff|-719528|-3600000001|-3600000001", "∅|∅|∅|∅|∅|∅|∅", "-1|1.152921504606847e+18|false||2932896|253402300799000000|1000000", "0|NaN|true|=x|-1|0|2000000")
}

func TestParquetColumnsThatTheirCellsDecide(t *testing.T) {
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		declared source.Type
		cells    []source.Value
		want     string // type and cells
	}{
		"integers":                    {source.Unknown, []source.Value{null, integer(1), integer(2)}, "INT64 ∅ 1 2"},
		"a real among integers":       {source.Unknown, []source.Value{integer(1 << 53), null, float(0.5), integer(3)}, "DOUBLE 9007199254740992 ∅ 0.5 3"},
		"integers among reals":        {source.Unknown, []source.Value{float(0.5), integer(3)}, "DOUBLE 0.5 3"},
		"a decimal among integers":    {source.Unknown, []source.Value{integer(1), null, integer(-7), decimal("0.10"), integer(2)}, "STRING 1 ∅ -7 0.10 2"},
		"texts":                       {source.Unknown, []source.Value{text("a"), null}, "STRING a ∅"},
		"bytes":                       {source.Unknown, []source.Value{raws("a")}, `BYTE_ARRAY \x61`},
		"booleans":                    {source.Unknown, []source.Value{truth(1)}, "BOOLEAN true"},
		"dates":                       {source.Unknown, []source.Value{date(day)}, "DATE 2024-02-29"},
		"timestamps":                  {source.Unknown, []source.Value{stamp(day)}, "TIMESTAMP(MICROS,UTC) 2024-02-29T00:00:00Z"},
		"NULLs alone":                 {source.Unknown, []source.Value{null, null}, "STRING ∅ ∅"},
		"no row":                      {source.Unknown, nil, "STRING"},
		"no row of dates":             {source.Date, nil, "DATE"},
		"no row of timestamps":        {source.Timestamp, nil, "TIMESTAMP(MICROS)"},
		"no row of booleans":          {source.Boolean, nil, "BOOLEAN"},
		"no row of decimals":          {source.Decimal, nil, "STRING"},
		"dates that are texts":        {source.Date, []source.Value{text("2024-02-29")}, "STRING 2024-02-29"},
		"booleans that are integers":  {source.Boolean, []source.Value{integer(1)}, "INT64 1"},
		"decimals of an open engine":  {source.Decimal, []source.Value{decimal("1.50"), integer(2)}, "STRING 1.50 2"},
		"decimals kept as reals":      {source.Decimal, []source.Value{integer(2), float(1.5)}, "DOUBLE 2 1.5"},
		"words in a decimal's column": {source.Decimal, []source.Value{text("n/a"), decimal("1.50")}, "STRING n/a 1.50"},
	} {
		t.Run(name, func(t *testing.T) {
			in := columnar([]source.Column{named("x", c.declared)})
			for _, v := range c.cells {
				in.rows = append(in.rows, []source.Value{v})
			}
			types, rows := spelled(t, write(t, in, parquetFile))
			if got := strings.TrimPrefix(strings.Join(append(types, rows...), " "), "x "); got != c.want {
				t.Fatalf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestParquetCellsThatDoNotFit(t *testing.T) {
	noon := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		column source.Column
		cells  []source.Value // the last one does not fit
		want   []string       // of the message
	}{
		"a text in a column of integers":    {named("qty", source.Integer), []source.Value{integer(1), text("n/a")}, []string{`column 2 ("qty"): the text "n/a" in row 2`, "INT64", `CAST("qty" AS BIGINT)`, `CAST("qty" AS TEXT)`}},
		"a real in a column of integers":    {named("qty", source.Integer), []source.Value{float(1.5)}, []string{"the real 1.5 in row 1"}},
		"a text in a column of reals":       {named("x", source.Real), []source.Value{text("")}, []string{`the text "" in row 1`, "DOUBLE"}},
		"an integer that no double equals":  {named("x", source.Real), []source.Value{float(1), integer(1<<53 + 1)}, []string{"the integer 9007199254740993 in row 2", "DOUBLE"}},
		"a real after such integers":        {named("x", source.Unknown), []source.Value{integer(1<<53 + 1), float(1)}, []string{"the real 1 in row 2", "INT64"}},
		"an integer in a column of texts":   {named(`a"b`, source.Text), []source.Value{text("a"), integer(5)}, []string{"the integer 5 in row 2", "STRING", `CAST("a""b" AS TEXT)`}},
		"an integer among unknown texts":    {named("x", source.Unknown), []source.Value{text("a"), integer(5)}, []string{"the integer 5 in row 2"}},
		"a text among unknown integers":     {named("x", source.Unknown), []source.Value{integer(5), text("a")}, []string{`the text "a" in row 2`, "INT64"}},
		"bytes in a column of texts":        {named("x", source.Text), []source.Value{raws("a")}, []string{"bytes in row 1"}},
		"a text in a column of bytes":       {named("x", source.Bytes), []source.Value{text("a")}, []string{"BYTE_ARRAY", "AS BLOB"}},
		"an integer among booleans":         {named("x", source.Boolean), []source.Value{truth(1), integer(1)}, []string{"the integer 1 in row 2", "BOOLEAN"}},
		"a boolean among integers":          {named("x", source.Integer), []source.Value{truth(1)}, []string{"the boolean true in row 1"}},
		"a timestamp among dates":           {named("x", source.Date), []source.Value{date(noon), stamp(noon)}, []string{"the timestamp 2024-02-29T12:00:00Z in row 2", "DATE"}},
		"a date among timestamps":           {named("x", source.Timestamp), []source.Value{stamp(noon), date(noon)}, []string{"the date 2024-02-29T12:00:00Z in row 2", "AS TIMESTAMP"}},
		"nanoseconds":                       {named("x", source.Timestamp), []source.Value{stamp(noon.Add(1))}, []string{"finer than a microsecond", "round"}},
		"the year 10000":                    {named("x", source.Timestamp), []source.Value{stamp(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}, []string{"years 0 to 9999"}},
		"the year -1":                       {named("x", source.Date), []source.Value{date(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC))}, []string{"years 0 to 9999"}},
		"digits behind the point":           {named("x", source.Decimal, 5, 2), []source.Value{decimal("1.500"), decimal("1.505")}, []string{`the decimal "1.505" in row 2`, "DECIMAL(5,2)"}},
		"digits before the point":           {named("x", source.Decimal, 5, 2), []source.Value{decimal("00999.99"), decimal("1000")}, []string{`the decimal "1000" in row 2`, "DECIMAL(5,2)"}},
		"an integer of too many digits":     {named("x", source.Decimal, 5, 2), []source.Value{integer(1000)}, []string{"the integer 1000 in row 1"}},
		"a wide decimal of too many digits": {named("x", source.Decimal, 38, 0), []source.Value{decimal(strings.Repeat("9", 38)), decimal("1" + strings.Repeat("0", 38))}, []string{"in row 2", "DECIMAL(38,0)"}},
		"NaN among decimals":                {named("x", source.Decimal, 5, 2), []source.Value{decimal("NaN")}, []string{`the decimal "NaN" in row 1`}},
		"a decimal without digits":          {named("x", source.Decimal, 5, 2), []source.Value{decimal("-.")}, []string{`the decimal "-." in row 1`}},
		"a real among decimals":             {named("x", source.Decimal, 5, 2), []source.Value{float(1.5)}, []string{"the real 1.5 in row 1", "AS NUMERIC"}},
		"a kind that is none":               {named("x", source.Unknown), []source.Value{{Kind: 200}}, []string{"unknown kind 200"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := columnar([]source.Column{named("other", source.Integer), c.column})
			for _, v := range c.cells {
				in.rows = append(in.rows, []source.Value{integer(0), v})
			}
			res, err := artifact.Write(t.Context(), in, parquetFile, io.Discard, 0)
			f := failuretest.Want(t, err, failure.FileUnsupported)
			for _, want := range append(c.want, "column 2") {
				if !strings.Contains(f.Message, want) {
					t.Errorf("%q does not say %q", f.Message, want)
				}
			}
			if res != (artifact.Result{}) {
				t.Errorf("%+v beside an error", res)
			}
		})
	}
}

// A type is settled with the first row group: what comes later must fit it.
func TestParquetTypesAreSettledWithTheFirstRowGroup(t *testing.T) {
	for name, c := range map[string]struct {
		first, later source.Value
		want         string
	}{
		"a real after integers": {integer(1), float(0.5), fmt.Sprintf("the real 0.5 in row %d", parquet.GroupRows+1)},
		"an integer after NULL": {null, integer(1), "STRING"},
	} {
		t.Run(name, func(t *testing.T) {
			in := columnar([]source.Column{named("x", source.Unknown)})
			for range parquet.GroupRows {
				in.rows = append(in.rows, []source.Value{c.first})
			}
			in.rows = append(in.rows, []source.Value{c.later})
			_, err := artifact.Write(t.Context(), in, parquetFile, io.Discard, 0)
			if f := failuretest.Want(t, err, failure.FileUnsupported); !strings.Contains(f.Message, c.want) {
				t.Fatalf("%q does not say %q", f.Message, c.want)
			}
		})
	}
}

func TestParquetColumnsAreNamed(t *testing.T) {
	types, _ := spelled(t, write(t, columnar([]source.Column{named("a", source.Text), named("", source.Text), named("a", source.Text), named("\xff", source.Text)}), parquetFile))
	same(t, "names", types, "a STRING", "column_2 STRING", "a_2 STRING", "\uFFFD STRING")
	wide := make([]source.Column, artifact.MaxParquetColumns+1)
	_, err := artifact.Write(t.Context(), columnar(wide), parquetFile, io.Discard, 0)
	if f := failuretest.Want(t, err, failure.FileUnsupported); !strings.Contains(f.Message, "16385 columns") {
		t.Errorf("%q", f.Message)
	}
}

func TestParquetTakesNoFieldsOfText(t *testing.T) {
	for field, f := range map[string]artifact.Format{"delimiter": {Kind: "parquet", Delimiter: ","}, "null": {Kind: "parquet", Null: "NULL"}, "bom": {Kind: "parquet", BOM: true}, "compression": {Kind: "parquet", Compression: "zstd"}} {
		errs := f.Validate()
		if len(errs) != 1 || errs[0].Field != field || !strings.HasPrefix(errs[0].Want, "absent, since the kind is \"parquet\"") {
			t.Errorf("%+v: %+v, want one error of %s", f, errs, field)
		}
		_, err := artifact.Write(t.Context(), row(text("x")), f, io.Discard, 0)
		failuretest.Want(t, err, failure.FileUnsupported)
	}
	if errs := (artifact.Format{Kind: "parquet", Delimiter: "x", Null: "+", BOM: true}).Validate(); len(errs) != 3 {
		t.Errorf("%+v, want all three errors at once", errs)
	}
	if errs := parquetFile.Validate(); errs != nil {
		t.Errorf("%+v", errs)
	}
	if artifact.Extension(parquetFile) != ".parquet" || artifact.MediaType(parquetFile) != "application/vnd.apache.parquet" {
		t.Error(artifact.Extension(parquetFile), artifact.MediaType(parquetFile))
	}
}

func TestParquetOfGivenColumns(t *testing.T) {
	columns := []source.Column{named("a", source.Unknown), named("b", source.Decimal), named("c", source.Unknown)}
	rows := [][]source.Value{{null, null, integer(1)}, {integer(1), integer(2), null}}
	given := []parquet.Column{{Name: "a", Type: parquet.Double}, {Name: "b", Type: parquet.String}, {Name: "c"}}
	var file bytes.Buffer
	res, decided, err := artifact.WriteParquet(t.Context(), columnar(columns, rows...), given, &file, 0)
	if err != nil || res.Rows != 2 || decided[0].Type != parquet.Double || decided[2].Type != parquet.Int64 {
		t.Fatalf("%+v %+v %v", res, decided, err)
	}
	types, got := spelled(t, file.String())
	same(t, "types", types, "a DOUBLE", "b STRING", "c INT64")
	same(t, "rows", got, "∅|∅|1", "1|2|∅")
	for want, given := range map[string][]parquet.Column{
		"3 columns":     given[:2],
		`the file "x"`:  {given[0], {Name: "x", Type: parquet.String}, given[2]},
		`the integer 1`: {given[0], given[1], {Name: "c", Type: parquet.Date}},
	} {
		_, decided, err := artifact.WriteParquet(t.Context(), columnar(columns, rows...), given, io.Discard, 0)
		if f := failuretest.Want(t, err, failure.FileUnsupported); decided != nil || !strings.Contains(strings.ReplaceAll(f.Message, "of the file", "the file"), want) {
			t.Errorf("%q does not say %q; %v", f.Message, want, decided)
		}
	}
}

func TestParquetEqualRowsGiveEqualBytes(t *testing.T) {
	one, other := &bytes.Buffer{}, &bytes.Buffer{}
	for _, w := range []*bytes.Buffer{one, other} {
		if _, err := artifact.Write(t.Context(), newGenerator(150_000), parquetFile, w, 0); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), other.Bytes()) {
		t.Fatal("two files of the same rows differ")
	}
	f, err := reference.OpenFile(bytes.NewReader(one.Bytes()), int64(one.Len()))
	if err != nil || f.Metadata().CreatedBy != parquet.CreatedBy || len(f.RowGroups()) != 2 {
		t.Fatalf("%v: created by %q, %d row groups", err, f.Metadata().CreatedBy, len(f.RowGroups()))
	}
}

func TestParquetF3WriterThatFailsAtAnyCall(t *testing.T) {
	random := func() source.Rows { return noise(20_000) }
	count := &faulty{}
	if _, err := artifact.Write(t.Context(), random(), parquetFile, count, 0); err != nil || count.calls < 3 {
		t.Fatalf("%d calls, %v; want several blocks", count.calls, err)
	}
	for n := 1; n <= count.calls; n++ {
		cause := errors.New("disk full")
		_, err := artifact.Write(t.Context(), random(), parquetFile, &faulty{n: n, err: cause}, 0)
		if failuretest.Want(t, err, failure.FileUnavailable); !errors.Is(err, cause) {
			t.Errorf("call %d: %v does not carry its cause", n, err)
		}
		_, err = artifact.Write(t.Context(), random(), parquetFile, &faulty{n: n, short: true}, 0)
		failuretest.Want(t, err, failure.FileUnavailable)
	}
	var out bytes.Buffer
	_, err := artifact.Write(t.Context(), random(), parquetFile, &out, 1<<20)
	if failuretest.Want(t, err, failure.FileTooLarge); out.Len() > 1<<20 {
		t.Errorf("%d bytes were written, more than the limit", out.Len())
	}
	broken := many(3)
	broken.err = failure.New(failure.QueryFailed, "broke")
	if _, err := artifact.Write(t.Context(), broken, parquetFile, io.Discard, 0); err != error(broken.err) {
		t.Errorf("V7: %v", err)
	}
}

func TestParquetWideRowsAndGiantCells(t *testing.T) {
	const width = artifact.MaxParquetColumns
	columns, cells := make([]source.Column, width), make([]source.Value, width)
	var want []string
	for i := range columns {
		columns[i], cells[i] = named(fmt.Sprintf("c%d", i), source.Text), text(fmt.Sprint(i%7))
		want = append(want, fmt.Sprint(i%7))
	}
	in := columnar(columns, cells, make([]source.Value, width), cells)
	_, rows := spelled(t, write(t, in, parquetFile))
	line := strings.Join(want, "|")
	same(t, "rows of 16,384 columns", rows, line, strings.TrimSuffix(strings.Repeat("∅|", width), "|"), line)

	big := strings.Repeat("ab", 1<<19)
	in = columnar([]source.Column{named("x", source.Text)})
	want = nil
	for i := range 40 { // more than a row group
		in.rows = append(in.rows, []source.Value{text(fmt.Sprint(i) + big)})
		want = append(want, fmt.Sprint(i)+big)
	}
	file := write(t, in, parquetFile)
	_, rows = spelled(t, file)
	if strings.Join(rows, "") != strings.Join(want, "") {
		t.Error("cells of 1 MB came back otherwise")
	}
	if f, err := reference.OpenFile(strings.NewReader(file), int64(len(file))); err != nil || len(f.RowGroups()) < 2 {
		t.Errorf("%v; 40 MB of cells are in one row group", err)
	}
}

func TestOpenParquetRefusesOtherBytes(t *testing.T) {
	file := write(t, row(text("a"), integer(1)), parquetFile)
	for _, bytes := range []string{"", "PAR1", file[:len(file)-1], strings.Repeat("x", 100), "x" + file} {
		r, err := artifact.OpenParquet(strings.NewReader(bytes), int64(len(bytes)))
		if err == nil {
			_, err = r.Next()
		}
		failuretest.Want(t, err, failure.FileInconsistent)
	}
}
