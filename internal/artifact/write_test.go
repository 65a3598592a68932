package artifact_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/artifact/bucket"
	"almanac/internal/artifact/bucket/buckettest"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

func TestMain(m *testing.M) { failuretest.Main(m, "artifact") }

// table is a result in memory; err, if it is set, comes instead of the end.
type table struct {
	columns []source.Column
	rows    [][]source.Value
	err     error
	next    int
}

func (r *table) Columns() []source.Column { return r.columns }
func (r *table) Close() error             { return nil }
func (r *table) Next(ctx context.Context) ([]source.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.next < len(r.rows) {
		r.next++
		return r.rows[r.next-1], nil
	}
	if r.err != nil {
		return nil, r.err
	}
	return nil, io.EOF
}

func text(s string) source.Value { return source.Value{Kind: source.KindText, Text: []byte(s)} }

var null = source.Value{}

// row makes a table of one row, its columns named c1, c2 and so on.
func row(cells ...source.Value) *table {
	r := &table{rows: [][]source.Value{cells}}
	for i := range cells {
		r.columns = append(r.columns, source.Column{Name: fmt.Sprintf("c%d", i+1)})
	}
	return r
}

var plain = artifact.Format{Kind: "csv"}

// write returns the file, and checks that the result speaks of exactly these bytes.
func write(t *testing.T, r *table, f artifact.Format) string {
	t.Helper()
	return string(suiteKind{format: f}.file(t, r))
}

// line is the first row of the file, without its line end.
func line(t *testing.T, r *table, f artifact.Format) string {
	t.Helper()
	_, rest, _ := strings.Cut(write(t, r, f), "\r\n")
	return strings.TrimSuffix(rest, "\r\n")
}

func TestV9TextNumbersAndNull(t *testing.T) {
	for name, c := range map[string]struct {
		cell source.Value
		want string
	}{
		"formula": {text("=1+1"), `"'=1+1"`}, "plus": {text("+1"), `"'+1"`}, "minus": {text("-1"), `"'-1"`}, "at": {text("@x"), `"'@x"`},
		"tab": {text("\tx"), "\"'\tx\""}, "CR": {text("\rx"), "\"'\rx\""}, "LF": {text("\nx"), "\"'\nx\""}, "NUL": {text("\x00=1"), "\"'\x00=1\""},
		"full-width =": {text("＝1"), `"'＝1"`}, "full-width +": {text("＋1"), `"'＋1"`}, "full-width -": {text("－1"), `"'－1"`}, "full-width @": {text("＠x"), `"'＠x"`},
		"byte order mark": {text("\uFEFF=1"), "\"'\uFEFF=1\""}, "formula with quotes": {text(`=A("x")`), `"'=A(""x"")"`},
		"sign only":         {text("-"), `"'-"`},
		"minus inside":      {text("a-1"), "a-1"},
		"other full-width":  {text("ｘ=1"), "ｘ=1"},
		"decimal -5.00":     {source.Value{Kind: source.KindDecimal, Text: []byte("-5.00")}, "-5.00"},
		"integer -5":        {source.Value{Kind: source.KindInt, Int: -5}, "-5"},
		"float -5":          {source.Value{Kind: source.KindFloat, Float: -5}, "-5"},
		"not a decimal":     {source.Value{Kind: source.KindDecimal, Text: []byte("-1+cmd")}, `"'-1+cmd"`},
		"decimal exponent":  {source.Value{Kind: source.KindDecimal, Text: []byte("-1.5E-10")}, "-1.5E-10"},
		"NA":                {text("NA"), "NA"},
		"NULL":              {null, ""},
		"empty":             {text(""), `""`},
		"the word NULL":     {text("NULL"), "NULL"},
		"spaces":            {text(" x "), `" x "`},
		"delimiter":         {text("a,b"), `"a,b"`},
		"quote":             {text(`a"b`), `"a""b"`},
		"line break":        {text("a\r\nb"), "\"a\r\nb\""},
		"not UTF-8":         {text("a\xffb\xf0\x28"), "a\uFFFDb\uFFFD("},
		"only broken bytes": {text("\xff"), "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := line(t, row(c.cell, text("end")), plain); got != c.want+",end" {
				t.Fatalf("got %q, want %q", got, c.want+",end")
			}
		})
	}
}

func TestV9NullIsDistinct(t *testing.T) {
	for spelled, want := range map[string]string{
		"":     `,"",NULL,\N,"'-",NA`,
		"NULL": `NULL,"","NULL",\N,"'-",NA`,
		`\N`:   `\N,"",NULL,"\N","'-",NA`,
		"-":    `-,"",NULL,\N,"'-",NA`,
		"NA":   `NA,"",NULL,\N,"'-","NA"`,
	} {
		got := line(t, row(null, text(""), text("NULL"), text(`\N`), text("-"), text("NA")), artifact.Format{Kind: "csv", Null: spelled})
		if got != want {
			t.Errorf("NULL as %q: got %s, want %s", spelled, got, want)
		}
	}
	t.Run("one column never makes an empty line", func(t *testing.T) {
		if got := write(t, &table{columns: []source.Column{{Name: "a"}}, rows: [][]source.Value{{null}, {text("")}, {text("x")}}}, plain); got != "a\r\n\"\"\r\n\"\"\r\nx\r\n" {
			t.Fatalf("%q", got)
		}
	})
}

func TestV10ExactNumbers(t *testing.T) {
	got := line(t, row(source.Value{Kind: source.KindInt, Int: 9007199254740993}, source.Value{Kind: source.KindDecimal, Text: []byte("0.1000000000000000055")},
		source.Value{Kind: source.KindInt, Int: math.MinInt64}, source.Value{Kind: source.KindInt, Int: math.MaxInt64}), plain)
	if want := "9007199254740993,0.1000000000000000055,-9223372036854775808,9223372036854775807"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	for f, want := range map[float64]string{0.1: "0.1", 1e6: "1000000", 123456789.25: "123456789.25", 1e20: "100000000000000000000", 1e21: "1e+21", 1e-6: "0.000001", 9.9e-7: "9.9e-07",
		0: "0", -2.5: "-2.5", math.MaxFloat64: "1.7976931348623157e+308", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity", 0.30000000000000004: "0.30000000000000004"} {
		if got := line(t, row(source.Value{Kind: source.KindFloat, Float: f}), plain); got != want {
			t.Errorf("float %v: %s, want %s", f, got, want)
		}
	}
	if got := line(t, row(source.Value{Kind: source.KindFloat, Float: math.NaN()}), plain); got != "NaN" {
		t.Errorf("NaN: %s", got)
	}
}

func TestOtherKinds(t *testing.T) {
	at := func(s string) source.Value {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return source.Value{Kind: source.KindTimestamp, Time: v}
	}
	day := at("2024-02-29T00:00:00Z")
	day.Kind = source.KindDate
	got := line(t, row(source.Value{Kind: source.KindBool, Int: 1}, source.Value{Kind: source.KindBool}, source.Value{Kind: source.KindBytes, Text: []byte{0, 0xff, '='}},
		source.Value{Kind: source.KindBytes}, day), plain)
	if want := `true,false,\x00ff3d,\x,2024-02-29`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	for in, want := range map[string]string{
		"2026-03-08T02:30:00-05:00": "2026-03-08T07:30:00Z", "1969-12-31T23:59:59.5Z": "1969-12-31T23:59:59.500Z", "0000-01-01T00:00:00Z": "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z": "9999-12-31T23:59:59.999999999Z", "2000-01-01T00:00:00.00001Z": "2000-01-01T00:00:00.000010Z", "1900-03-01T01:02:03.004Z": "1900-03-01T01:02:03.004Z",
	} {
		if got := line(t, row(at(in)), plain); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	t.Run("days change within a column", func(t *testing.T) {
		r := &table{columns: []source.Column{{Name: "at"}}, rows: [][]source.Value{{at("2026-01-01T00:00:00Z")}, {at("2026-01-01T23:00:00Z")}, {at("2025-12-31T00:00:00Z")}}}
		if got := write(t, r, plain); got != "at\r\n2026-01-01T00:00:00Z\r\n2026-01-01T23:00:00Z\r\n2025-12-31T00:00:00Z\r\n" {
			t.Fatal(got)
		}
	})
	for name, v := range map[string]source.Value{"year 10000": {Kind: source.KindDate, Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "year -1": {Kind: source.KindTimestamp, Time: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, "kind": {Kind: 200}} {
		_, err := artifact.Write(t.Context(), row(text("a"), v), plain, io.Discard, 0)
		if f := failuretest.Want(t, err, failure.FileUnsupported); !strings.Contains(f.Message, "column 2") {
			t.Errorf("%s: %q does not name the column", name, f.Message)
		}
	}
}

func TestX1FileParsesBack(t *testing.T) {
	cells := []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "plain", `q"q`, "a,b;c\td|e", "é☃🚚", "", " ", "a\nb", `'`, `=HYPERLINK("http://x","y")`}
	for _, delimiter := range []string{"", ",", ";", "\t", "|"} {
		for _, bom := range []bool{false, true} {
			r := &table{}
			var first []source.Value
			for i, c := range cells {
				r.columns = append(r.columns, source.Column{Name: c})
				first = append(first, text(cells[len(cells)-1-i]))
			}
			r.rows = [][]source.Value{first, first}
			got := write(t, r, artifact.Format{Kind: "csv", Delimiter: delimiter, BOM: bom})
			got, had := strings.CutPrefix(got, "\uFEFF")
			if had != bom {
				t.Fatalf("byte order mark: %v, want %v", had, bom)
			}
			reader := csv.NewReader(strings.NewReader(got))
			if delimiter != "" {
				reader.Comma = rune(delimiter[0])
			}
			records, err := reader.ReadAll()
			if err != nil || len(records) != 3 {
				t.Fatalf("delimiter %q: %d records, %v", delimiter, len(records), err)
			}
			for i, c := range cells {
				want := c
				if c != "" && strings.ContainsRune("=+-@\t\r\n", rune(c[0])) {
					want = "'" + c
				}
				// encoding/csv reads CR LF as LF and a CR alone as it is; no cell here has CR LF
				if records[0][i] != want || records[1][len(cells)-1-i] != want {
					t.Errorf("delimiter %q: %q came back as %q and %q, want %q", delimiter, c, records[0][i], records[1][len(cells)-1-i], want)
				}
			}
		}
	}
}

func TestX1NumbersStayNumbersBesideText(t *testing.T) {
	got := line(t, row(source.Value{Kind: source.KindInt, Int: -5}, text("-5"), source.Value{Kind: source.KindDecimal, Text: []byte("-5.00")}), artifact.Format{Kind: "csv", Delimiter: ";"})
	if got != `-5;"'-5";-5.00` {
		t.Fatal(got)
	}
}

func TestEmptyResultHasItsHeader(t *testing.T) {
	if got := write(t, &table{columns: []source.Column{{Name: "a"}, {Name: "=b"}, {Name: ""}}}, plain); got != "a,\"'=b\",\"\"\r\n" {
		t.Fatalf("%q", got)
	}
}

func TestFormatFields(t *testing.T) {
	for name, c := range map[string]struct {
		f     artifact.Format
		field string
	}{
		"kind absent": {artifact.Format{}, "kind"}, "kind unknown": {artifact.Format{Kind: "CSV"}, "kind"}, "kind hostile": {artifact.Format{Kind: "csv\r\nx: y"}, "kind"},
		"delimiter unknown": {artifact.Format{Kind: "csv", Delimiter: ":"}, "delimiter"}, "delimiter long": {artifact.Format{Kind: "csv", Delimiter: ",,"}, "delimiter"},
		"delimiter quote": {artifact.Format{Kind: "csv", Delimiter: `"`}, "delimiter"}, "delimiter beyond ASCII": {artifact.Format{Kind: "csv", Delimiter: "；"}, "delimiter"},
		"null with quote": {artifact.Format{Kind: "csv", Null: `""`}, "null"}, "null with line break": {artifact.Format{Kind: "csv", Null: "a\nb"}, "null"},
		"null with its delimiter": {artifact.Format{Kind: "csv", Delimiter: "|", Null: "a|b"}, "null"}, "null long": {artifact.Format{Kind: "csv", Null: strings.Repeat("x", 21)}, "null"},
		"null formula": {artifact.Format{Kind: "csv", Null: "=1"}, "null"}, "null not UTF-8": {artifact.Format{Kind: "csv", Null: "\xff"}, "null"}, "null spaces": {artifact.Format{Kind: "csv", Null: " x"}, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := c.f.Validate()
			if len(errs) != 1 || errs[0].Field != c.field || errs[0].Want == "" {
				t.Fatalf("%+v, want one error of %s", errs, c.field)
			}
			_, err := artifact.Write(t.Context(), row(text("x")), c.f, io.Discard, 0)
			failuretest.Want(t, err, failure.FileUnsupported)
		})
	}
	if errs := (artifact.Format{Kind: "xls", Delimiter: "x", Null: "+"}).Validate(); len(errs) != 3 {
		t.Errorf("%+v, want all three errors at once", errs)
	}
	for _, f := range []artifact.Format{{Kind: "csv"}, {Kind: "csv", Delimiter: "\t", BOM: true, Null: "NULL"}, {Kind: "csv", Null: "-"}, {Kind: "csv", Null: `\N`}, {Kind: "csv", Null: "k. A."}} {
		if errs := f.Validate(); errs != nil {
			t.Errorf("%+v: %+v", f, errs)
		}
	}
}

// many makes rows of about 100 bytes.
func many(n int) *table {
	r := &table{columns: []source.Column{{Name: "a"}}}
	for range n {
		r.rows = append(r.rows, []source.Value{text(strings.Repeat("x", 98))})
	}
	return r
}

func TestStoredFileIsChecked(t *testing.T) {
	fake := buckettest.New()
	store := &bucket.Store{API: fake, Bucket: "b"}
	var res artifact.Result
	err := store.Upload(t.Context(), "k", artifact.MediaType(plain), artifact.ContentDisposition("a.csv"), func(w io.Writer) (err error) {
		res, err = artifact.Write(t.Context(), many(10), plain, w, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := store.ReadAll(t.Context(), "k", res.Bytes, res.SHA256); err != nil || int64(len(b)) != res.Bytes {
		t.Fatal(err)
	}
	fake.Put("b", "k", []byte("another"))
	_, err = store.ReadAll(t.Context(), "k", res.Bytes, res.SHA256)
	failuretest.Want(t, err, failure.FileInconsistent)
}

func TestGiantCell(t *testing.T) {
	big := strings.Repeat(`a"`, 3<<20)
	got := write(t, row(text("x"), text(big), text("y")), plain)
	if want := "c1,c2,c3\r\nx,\"" + strings.ReplaceAll(big, `"`, `""`) + "\",y\r\n"; got != want {
		t.Fatalf("%d bytes, want %d", len(got), len(want))
	}
	if got := artifact.MediaType(plain); got != "text/csv; charset=utf-8; header=present" {
		t.Error(got)
	}
}
