package artifact_test

// The suite that every kind of file passes. A kind is one row of suiteKinds: its format, what it cannot hold, and a reader
// that turns the file's bytes back into cells with another program than the one that wrote them. What is particular to a
// kind, such as how CSV spells NULL, is tested beside the kind.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

// reader takes a whole file apart. It hands out each row, which is valid until take returns, its cells being of the kinds
// that the columns' types name, and returns the names of the columns as the file has them. It must not use this
// package's own code.
type reader func(file []byte, columns []source.Column, take func([]source.Value) error) (names []string, err error)

// suiteKind is one row of the suite.
type suiteKind struct {
	name   string
	format artifact.Format
	read   reader

	guards   bool          // a text that a spreadsheet may run as a formula has an apostrophe before it
	lines    bool          // the file is lines without an end of its own, so that one which breaks off looks whole
	oneEmpty bool          // NULL and an empty text are the same in a file of one column
	noNames  bool          // the names of the columns stand in the rows, so an empty file has none
	finest   time.Duration // what the kind rounds time stamps to; zero: nothing
	tick     time.Duration // a time stamp that is finer is refused; zero: none is
	from     int           // the first year that the kind can hold; zero: 0
	years    bool          // a year beyond four digits is text
	cell     int           // the most characters of a cell; zero: no limit. A longer one is refused with this figure
}

var suiteKinds = []suiteKind{
	{name: "csv", format: artifact.Format{Kind: "csv"}, read: readCSV, guards: true, lines: true, oneEmpty: true},
	{name: "csv.gz", format: artifact.Format{Kind: "csv", Compression: "gzip"}, read: gunzipped(readCSV), guards: true, oneEmpty: true},
	{name: "csv.zst", format: artifact.Format{Kind: "csv", Compression: "zstd"}, read: unzstd(readCSV), guards: true, oneEmpty: true},
	{name: "jsonl", format: artifact.Format{Kind: "jsonl"}, read: readJSONLines, lines: true, noNames: true},
	{name: "jsonl.gz", format: artifact.Format{Kind: "jsonl", Compression: "gzip"}, read: gunzipped(readJSONLines), noNames: true},
	{name: "jsonl.zst", format: artifact.Format{Kind: "jsonl", Compression: "zstd"}, read: unzstd(readJSONLines), noNames: true},
	{name: "xlsx", format: artifact.Format{Kind: "xlsx"}, read: readXLSX, finest: time.Millisecond, years: true, cell: 32_767},
	{name: "parquet", format: artifact.Format{Kind: "parquet"}, read: readParquet, tick: time.Microsecond},
}

// suite runs a test for each kind of file.
func suite(t *testing.T, test func(t *testing.T, k suiteKind)) {
	for _, k := range suiteKinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// file writes rows, and checks that the result speaks of exactly the bytes that were written.
func (k suiteKind) file(t *testing.T, r *table) []byte {
	t.Helper()
	var out bytes.Buffer
	got, err := artifact.Write(t.Context(), r, k.format, &out, 0)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(out.Bytes())
	if want := (artifact.Result{Rows: int64(len(r.rows)), Bytes: int64(out.Len()), SHA256: hex.EncodeToString(sum[:])}); got != want {
		t.Fatalf("result %+v, want %+v", got, want)
	}
	return out.Bytes()
}

// cells reads a file whole.
func (k suiteKind) cells(t *testing.T, file []byte, columns []source.Column) (names []string, rows [][]source.Value) {
	t.Helper()
	names, err := k.read(file, columns, func(row []source.Value) error {
		row = slices.Clone(row)
		for i := range row {
			row[i].Text = slices.Clone(row[i].Text)
		}
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, rows
}

// same demands that the file holds the rows.
func (k suiteKind) same(t *testing.T, r *table) {
	t.Helper()
	names, got := k.cells(t, k.file(t, r), r.columns)
	if !k.noNames || len(got) > 0 {
		if len(names) != len(r.columns) {
			t.Fatalf("%d names of columns, want %d", len(names), len(r.columns))
		}
		for i, c := range r.columns {
			if names[i] != c.Name {
				t.Errorf("column %d is named %q, want %q", i+1, names[i], c.Name)
			}
		}
	}
	if len(got) != len(r.rows) {
		t.Fatalf("%d rows, want %d", len(got), len(r.rows))
	}
	for n, row := range r.rows {
		if len(got[n]) != len(row) {
			t.Fatalf("row %d has %d cells, want %d", n, len(got[n]), len(row))
		}
		for i, want := range row {
			if !k.equal(got[n][i], want) {
				t.Errorf("row %d, column %d: %s, want %s", n, i+1, shown(got[n][i]), shown(want))
			}
		}
	}
}

// equal reports whether a cell came back exactly; a decimal may have changed the number of its trailing zeros.
func (k suiteKind) equal(got, want source.Value) bool {
	if got.Kind != want.Kind {
		return false
	}
	switch want.Kind {
	case source.KindInt, source.KindBool:
		return got.Int == want.Int
	case source.KindFloat:
		return math.Float64bits(got.Float) == math.Float64bits(want.Float) || got.Float != got.Float && want.Float != want.Float
	case source.KindDecimal:
		a, okA := new(big.Rat).SetString(string(got.Text))
		b, okB := new(big.Rat).SetString(string(want.Text))
		return okA && okB && a.Cmp(b) == 0
	case source.KindText:
		text := strings.ToValidUTF8(string(want.Text), "\uFFFD")
		if k.guards && formula(text) {
			text = "'" + text
		}
		return string(got.Text) == text
	case source.KindBytes:
		return bytes.Equal(got.Text, want.Text)
	case source.KindDate:
		return got.Time.Equal(want.Time)
	case source.KindTimestamp:
		return got.Time.Equal(want.Time.Round(max(k.finest, 1)))
	}
	return true // NULL
}

func shown(v source.Value) string {
	text := string(v.Text)
	if len(text) > 60 {
		text = fmt.Sprintf("%s… of %d bytes", text[:60], len(text))
	}
	return fmt.Sprintf("kind %d: %d, %g, %q, %s", v.Kind, v.Int, v.Float, text, v.Time.Format(time.RFC3339Nano))
}

// column makes a table of one column and an even one beside it, so that an empty cell does not make an empty row.
func column(of source.Type, cells ...source.Value) *table {
	r := &table{columns: []source.Column{{Name: "n", Type: source.Integer}, {Name: "cell", Type: of}}}
	for i, c := range cells {
		r.rows = append(r.rows, []source.Value{integer(int64(i)), c})
	}
	return r
}

func integer(n int64) source.Value  { return source.Value{Kind: source.KindInt, Int: n} }
func float(f float64) source.Value  { return source.Value{Kind: source.KindFloat, Float: f} }
func decimal(s string) source.Value { return source.Value{Kind: source.KindDecimal, Text: []byte(s)} }
func raws(s string) source.Value    { return source.Value{Kind: source.KindBytes, Text: []byte(s)} }

func at(t *testing.T, s string, kind source.Kind) source.Value {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return source.Value{Kind: kind, Time: when}
}

func TestSuiteV9TextNumbersAndNull(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		var texts []source.Value
		for _, s := range []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "＝1", "NA", "NULL", `\N`, "null", "", " x ", "a,b;c|d", `a"b\c`, "a\r\nb", "é☃🚚", "\u2028\u2029",
			"a\xffb\xf0\x28", "\xff", "true", "1", "1e5", "{}", "[]", "'"} {
			texts = append(texts, text(s))
		}
		k.same(t, column(source.Text, slices.Insert(texts, 3, null)...))
		k.same(t, column(source.Decimal, decimal("-5.00"), null, decimal("5.25"), decimal("0.00")))
		k.same(t, column(source.Integer, integer(-5), null, integer(0)))
	})
}

func TestSuiteV10ExactNumbers(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		k.same(t, column(source.Integer, integer(9007199254740991), integer(9007199254740992), integer(9007199254740993), integer(-9007199254740993), integer(math.MinInt64), integer(math.MaxInt64), null))
		k.same(t, column(source.Decimal, decimal("0.1000000000000000055"), decimal("-0.1000000000000000055"), null))
		k.same(t, column(source.Decimal, decimal("9007199254740993"), decimal("99999999999999999999999999999999999999"), decimal("-1")))
		k.same(t, column(source.Real, float(0.1), float(0.30000000000000004), float(-2.5), float(1e20), float(9.9e-7), float(math.MaxFloat64), float(math.SmallestNonzeroFloat64), float(0), null))
	})
}

func TestSuiteNaNAndInfinityAreNotNull(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		k.same(t, column(source.Real, float(math.NaN()), float(math.Inf(1)), float(math.Inf(-1)), null))
	})
}

func TestSuiteTimes(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		var days, times []source.Value
		for _, s := range []string{"2026-03-08T02:30:00-05:00", "1969-12-31T23:59:59.5Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1900-03-01T01:02:03.004Z", "2000-02-29T00:00:00.00001Z",
			"2024-02-29T12:00:00Z", "9999-12-31T23:59:59Z", "2038-01-19T03:14:08.123456789Z"} {
			v := at(t, s, source.KindTimestamp)
			if v.Time.UTC().Year() < k.from || v.Time.Nanosecond()%int(max(k.tick, 1)) != 0 {
				continue
			}
			times = append(times, v)
			days = append(days, source.Value{Kind: source.KindDate, Time: v.Time.UTC().Truncate(24 * time.Hour)})
		}
		k.same(t, column(source.Timestamp, append(times, null)...))
		k.same(t, column(source.Date, append(days, null)...))
	})
}

func TestSuiteBooleansAndBytes(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		k.same(t, column(source.Boolean, source.Value{Kind: source.KindBool, Int: 1}, source.Value{Kind: source.KindBool}, null))
		k.same(t, column(source.Bytes, raws("\x00\xff="), raws(""), raws("plain"), raws("\xfb\xff\xbf"), null))
	})
}

func TestSuiteAValueThatTheKindCannotHoldIsRefusedByItsColumn(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		for _, c := range []struct {
			of source.Type
			v  source.Value
		}{
			{source.Date, source.Value{Kind: source.KindDate, Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
			{source.Timestamp, source.Value{Kind: source.KindTimestamp, Time: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}},
			{source.Unknown, source.Value{Kind: 200}},
		} {
			if k.years && c.of != source.Unknown {
				continue
			}
			_, err := artifact.Write(t.Context(), column(c.of, c.v), k.format, io.Discard, 0)
			if f := failuretest.Want(t, err, failure.FileUnsupported); !strings.Contains(f.Message, "column 2") {
				t.Errorf("%q does not name the column", f.Message)
			}
		}
	})
}

func TestSuiteAnEmptyResultIsAFile(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		k.same(t, column(source.Text))
	})
}

func TestSuiteOneColumnKeepsEachRow(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		r := &table{columns: []source.Column{{Name: "a", Type: source.Text}}, rows: [][]source.Value{{text("")}, {text("x")}, {text("")}}}
		k.same(t, r)
		if !k.oneEmpty {
			r.rows = append(r.rows, []source.Value{null})
			k.same(t, &table{columns: r.columns, rows: r.rows})
		}
	})
}

func TestSuiteEqualRowsMakeEqualBytes(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		first := k.file(t, noise(20_000))
		k.file(t, column(source.Text, text("another"))) // what is kept between files must not show
		if again := k.file(t, noise(20_000)); !bytes.Equal(first, again) {
			t.Fatalf("the same rows made %d and %d bytes that differ", len(first), len(again))
		}
	})
}
