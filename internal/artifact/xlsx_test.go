package artifact_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"almanac/internal/artifact"
	"almanac/internal/source"
)

// book is a file as excelize opens it; its rows' sheet is the first.
type book struct {
	*excelize.File
	t     *testing.T
	sheet string
	file  string
}

// sheetOf writes the rows as XLSX and opens the file.
func sheetOf(t *testing.T, r *table, f artifact.Format) book {
	t.Helper()
	f.Kind = "xlsx"
	file := write(t, r, f)
	x, err := excelize.OpenReader(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return book{x, t, x.GetSheetList()[0], file}
}

// raw is what a cell holds, and kind what it is.
func (b book) raw(cell string) (value string, kind excelize.CellType) {
	b.t.Helper()
	value, err := b.GetCellValue(b.sheet, cell, excelize.Options{RawCellValue: true})
	if err != nil {
		b.t.Fatal(err)
	}
	if kind, err = b.GetCellType(b.sheet, cell); err != nil {
		b.t.Fatal(err)
	}
	return value, kind
}

// shown is a cell as its format shows it.
func (b book) shown(cell string) string {
	b.t.Helper()
	value, err := b.GetCellValue(b.sheet, cell)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

func (b book) style(cell string) *excelize.Style {
	b.t.Helper()
	id, err := b.GetCellStyle(b.sheet, cell)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := b.GetStyle(id)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// part is a part of the file as it is.
func (b book) part(name string) string {
	b.t.Helper()
	z, err := zip.NewReader(strings.NewReader(b.file), int64(len(b.file)))
	if err != nil {
		b.t.Fatal(err)
	}
	f, err := z.Open(name)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

func moment(t *testing.T, s string) source.Value {
	t.Helper()
	return at(t, s, source.KindTimestamp)
}

func dated(t *testing.T, s string) source.Value {
	t.Helper()
	return at(t, s+"T00:00:00Z", source.KindDate)
}

// A string's cell is never a formula, so no apostrophe is put before it: what a person sees is what the source has.
func TestV9XLSXTextIsNeverAFormula(t *testing.T) {
	for _, s := range []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "＝1", "NA", "", "NULL", "'", " x ", "a\nb", "a\r\nb", `<b>&"q"`, "_x0041_", "\x00=1",
		`=HYPERLINK("http://x","y")`, "\uFEFF=1", "é☃🚚", "007", "1e5", "TRUE", "2024-01-01"} {
		b := sheetOf(t, row(text(s), text("end")), artifact.Format{})
		value, kind := b.raw("A2")
		if value != s {
			t.Errorf("%q came back as %q", s, value)
		}
		if kind != excelize.CellTypeInlineString {
			t.Errorf("%q is a cell of type %d, want a string", s, kind)
		}
		if formula, err := b.GetCellFormula(b.sheet, "A2"); err != nil || formula != "" {
			t.Errorf("%q became the formula %q, %v", s, formula, err)
		}
	}
	b := sheetOf(t, row(decimal("-5.00"), text("NA"), null, text(""), text("-5"), decimal("-1+cmd"), decimal("NaN")), artifact.Format{})
	if value, kind := b.raw("A2"); value != "-5.00" || kind != excelize.CellTypeNumber && kind != excelize.CellTypeUnset || b.shown("A2") != "-5.00" {
		t.Errorf("the number -5.00 is %q of type %d, shown as %q", value, kind, b.shown("A2"))
	}
	if xml := b.part("xl/worksheets/sheet1.xml"); strings.Contains(xml, `r="C2"`) || !strings.Contains(xml, `<c r="D2" t="inlineStr"><is><t></t></is></c>`) {
		t.Errorf("NULL must have no cell, and an empty text one: %s", xml)
	}
	for _, cell := range []string{"E2", "F2", "G2"} {
		if _, kind := b.raw(cell); kind != excelize.CellTypeInlineString {
			t.Errorf("%s is no text", cell)
		}
	}
	t.Run("what may be run is kept from it when a person edits the cell", func(t *testing.T) {
		b := sheetOf(t, row(text("=1+1"), text("plain"), integer(math.MaxInt64)), artifact.Format{})
		for cell, want := range map[string]int{"A2": 49, "B2": 0, "C2": 49} { // 49 is the format "text"
			if s := b.style(cell); s.NumFmt != want {
				t.Errorf("%s has the number format %d, want %d", cell, s.NumFmt, want)
			}
		}
		if n := strings.Count(b.part("xl/styles.xml"), `quotePrefix="1"`); n != 1 {
			t.Errorf("%d styles hold text as text, want 1", n)
		}
	})
}

func TestV10XLSXNumbersOnlyWhereADoubleGivesThemBack(t *testing.T) {
	for _, c := range []struct {
		v     source.Value
		text  bool   // or a number
		value string // as it stands in the file
	}{
		{integer(9007199254740993), true, "9007199254740993"}, {decimal("0.1000000000000000055"), true, "0.1000000000000000055"},
		{integer(9007199254740992), false, "9007199254740992"}, {integer(-9007199254740992), false, "-9007199254740992"}, {integer(-9007199254740993), true, "-9007199254740993"},
		{integer(math.MaxInt64), true, "9223372036854775807"}, {integer(math.MinInt64), true, "-9223372036854775808"}, {integer(0), false, "0"},
		{decimal("0.1"), false, "0.1"}, {decimal("12.30"), false, "12.30"}, {decimal("-0.00"), false, "-0.00"}, {decimal("123456789012.345"), false, "123456789012.345"},
		{decimal("0.12345678901234567"), true, "0.12345678901234567"}, // the nearest double gives …4566 back
		{decimal("1234567890.123456"), false, "1234567890.123456"}, {decimal("9007199254740993"), true, "9007199254740993"}, {decimal("9007199254740994"), true, "9007199254740994"},
		{decimal("100000000000000000000"), true, "100000000000000000000"}, {decimal("1.50000000000000000000"), false, "1.50000000000000000000"}, {decimal("007"), true, "007"}, {decimal("+1.5"), true, "+1.5"},
		{decimal("1.5E-10"), false, "1.5e-10"}, {decimal("1E+400"), true, "1E+400"}, {decimal("1E-400"), true, "1E-400"}, {decimal("1E-310"), true, "1E-310"}, {decimal("1e99999999999999999999"), true, "1e99999999999999999999"},
		{decimal("1.2.3"), true, "1.2.3"}, {decimal("5."), true, "5."}, {decimal(""), true, ""}, {decimal("0e5"), false, "0"}, {decimal("1.2345678901234567890123456789012"), true, "1.2345678901234567890123456789012"},
		{decimal("0.5000000000000000000000000000000"), false, "0.5"},
		{float(0.1), false, "0.1"}, {float(0.30000000000000004), false, "0.30000000000000004"}, {float(1e21), false, "1e+21"}, {float(math.Copysign(0, -1)), false, "0"},
		{float(math.MaxFloat64), false, "1.7976931348623157e+308"}, {float(5e-324), true, "5e-324"}, {float(math.NaN()), true, "NaN"}, {float(math.Inf(1)), true, "Infinity"}, {float(math.Inf(-1)), true, "-Infinity"},
	} {
		b := sheetOf(t, row(c.v), artifact.Format{})
		want := `<v>` + c.value + `</v>`
		if c.text {
			want = `<t>` + c.value + `</t>`
		}
		if xml := b.part("xl/worksheets/sheet1.xml"); !strings.Contains(xml, want) {
			_, rest, _ := strings.Cut(xml, `<row r="2">`)
			t.Errorf("%s %v: %s, want %s", c.v.Text, c.v, rest, want)
		}
	}
	b := sheetOf(t, row(integer(4474116515), decimal("5.00"), decimal("0.000004"), float(2.5), decimal("7")), artifact.Format{})
	for cell, want := range map[string]string{"A2": "4474116515", "B2": "5.00", "C2": "0.000004", "D2": "2.5", "E2": "7"} {
		if got := b.shown(cell); got != want {
			t.Errorf("%s is shown as %s, want %s", cell, got, want)
		}
	}
}

func TestXLSXOtherKinds(t *testing.T) {
	b := sheetOf(t, row(source.Value{Kind: source.KindBool, Int: 1}, source.Value{Kind: source.KindBool}, source.Value{Kind: source.KindBytes, Text: []byte{0, 0xff, '='}}), artifact.Format{})
	for cell, want := range map[string]string{"A2": "TRUE", "B2": "FALSE"} {
		if value, kind := b.raw(cell); b.shown(cell) != want || kind != excelize.CellTypeBool {
			t.Errorf("%s is %q of type %d, want the boolean %s", cell, value, kind, want)
		}
	}
	if value, kind := b.raw("C2"); value != `\x00ff3d` || kind != excelize.CellTypeInlineString {
		t.Errorf("bytes are %q of type %d", value, kind)
	}
}

func TestXLSXTimesAreThoseOfTheZone(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"2026-03-08T06:59:59Z": "2026-03-08 01:59:59", "2026-03-08T07:00:00Z": "2026-03-08 03:00:00", // clocks go forward
		"2026-11-01T05:30:00Z": "2026-11-01 01:30:00", "2026-11-01T06:30:00Z": "2026-11-01 01:30:00", // and back
		"2026-01-01T03:00:00Z": "2025-12-31 22:00:00", "2026-07-01T04:00:00Z": "2026-07-01 00:00:00",
		"1969-12-31T23:59:59Z": "1969-12-31 18:59:59", "2262-04-12T00:00:00Z": "2262-04-11 20:00:00",
		"9999-12-31T23:00:00Z": "9999-12-31 18:00:00", "1900-03-01T12:00:00Z": "1900-03-01 07:00:00", "1900-03-01T04:59:59Z": "1900-03-01T04:59:59Z",
		"9999-12-31T23:59:59Z": "9999-12-31 18:59:59", "1850-01-01T00:00:00Z": "1850-01-01T00:00:00Z", "0000-01-01T00:00:00Z": "0000-01-01T00:00:00Z",
	} {
		b := sheetOf(t, row(moment(t, in)), artifact.Format{Origin: artifact.Origin{Zone: newYork}})
		got := b.shown("A2")
		if in == "2026-07-02T03:59:59.999999999Z" { // rounding must not turn the day
			if raw, _ := b.raw("A2"); !strings.HasPrefix(raw, "46204.99999999") {
				t.Errorf("%s is stored as %s, want a moment before 46205", in, raw)
			}
			continue
		}
		if got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"2024-02-29": "2024-02-29", "1900-03-01": "1900-03-01", "1900-02-28": "1900-02-28", "9999-12-31": "9999-12-31", "0001-01-01": "0001-01-01"} {
		b := sheetOf(t, row(dated(t, in)), artifact.Format{Origin: artifact.Origin{Zone: newYork}})
		_, kind := b.raw("A2")
		if got := b.shown("A2"); got != want || (kind == excelize.CellTypeInlineString) != (in < "1900-03-01") {
			t.Errorf("%s is shown as %s, its type is %d", in, got, kind)
		}
	}
	for want, at := range map[string]time.Time{"+10000-01-01T00:00:00Z": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "-00001-01-01T00:00:00.5Z": time.Date(-1, 1, 1, 0, 0, 0, 500_000_000, time.UTC)} {
		if got := sheetOf(t, row(source.Value{Kind: source.KindTimestamp, Time: at}), artifact.Format{}).shown("A2"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := sheetOf(t, row(source.Value{Kind: source.KindDate, Time: time.Date(12345, 6, 7, 0, 0, 0, 0, time.UTC)}), artifact.Format{}).shown("A2"); got != "+12345-06-07" {
		t.Error(got)
	}
	t.Run("UTC where no zone is known", func(t *testing.T) {
		if got := sheetOf(t, row(moment(t, "2026-07-01T12:00:00Z")), artifact.Format{}).shown("A2"); got != "2026-07-01 12:00:00" {
			t.Error(got)
		}
	})
}

func TestXLSXSheetIsReadyToRead(t *testing.T) {
	r := &table{columns: []source.Column{{Name: "id"}, {Name: "when it left"}, {Name: "=note"}, {Name: ""}}, rows: [][]source.Value{
		{integer(1), moment(t, "2026-01-01T00:00:00Z"), text(strings.Repeat("long ", 50)), null}, {integer(2), null, text("two\nlines of text"), null}}}
	b := sheetOf(t, r, artifact.Format{Origin: artifact.Origin{Name: "Who's [late] today?"}})
	if b.sheet != "Who's late today" {
		t.Errorf("the sheet is called %q", b.sheet)
	}
	panes, err := b.GetPanes(b.sheet)
	if err != nil || !panes.Freeze || panes.YSplit != 1 || panes.XSplit != 0 || panes.TopLeftCell != "A2" {
		t.Errorf("panes %+v, %v; want the first row frozen", panes, err)
	}
	head := b.style("C1")
	if head.Font == nil || !head.Font.Bold || head.Fill.Pattern != 1 || len(head.Fill.Color) != 1 || b.style("A2").Font.Bold {
		t.Errorf("header %+v; want it bold on a colour, and it alone", head)
	}
	if value, kind := b.raw("C1"); value != "=note" || kind != excelize.CellTypeInlineString {
		t.Errorf("the header is %q of type %d", value, kind)
	}
	for column, want := range map[string]float64{"A": 7, "B": 21, "C": 60, "D": 6} {
		if got, err := b.GetColWidth(b.sheet, column); err != nil || got != want {
			t.Errorf("column %s is %v wide, %v; want %v", column, got, err, want)
		}
	}
	if s := b.style("C3"); s.Alignment == nil || !s.Alignment.WrapText || b.style("C2").Alignment != nil && b.style("C2").Alignment.WrapText {
		t.Errorf("text of two lines has %+v; want it, and it alone, shown on lines", s.Alignment)
	}
	names := b.GetDefinedName()
	if len(names) != 1 || names[0].Name != "_xlnm._FilterDatabase" || names[0].RefersTo != "'Who''s late today'!$A$1:$D$3" || !strings.Contains(b.part("xl/worksheets/sheet1.xml"), `<autoFilter ref="A1:D3"/>`) {
		t.Errorf("filter %+v; want one over what is used", names)
	}
	rows, err := b.GetRows(b.sheet)
	if err != nil || len(rows) != 3 || len(rows[0]) != 3 || rows[2][2] != "two\nlines of text" {
		t.Errorf("%d rows %q, %v", len(rows), rows, err)
	}
	props, err := b.GetDocProps()
	if err != nil || props.Title != "Who's [late] today?" || props.Creator != "Almanac" || props.Created != "" || props.Modified != "" {
		t.Errorf("properties %+v, %v; want title and creator alone", props, err)
	}
	if list := b.GetSheetList(); len(list) != 1 {
		t.Errorf("sheets %q; want no details where nobody asked", list)
	}
	if got := artifact.MediaType(artifact.Format{Kind: "xlsx"}) + artifact.Extension(artifact.Format{Kind: "xlsx"}); got != "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.xlsx" {
		t.Error(got)
	}
	t.Run("without rows", func(t *testing.T) {
		b := sheetOf(t, &table{columns: []source.Column{{Name: "a"}}}, artifact.Format{})
		if rows, err := b.GetRows(b.sheet); err != nil || len(rows) != 1 || rows[0][0] != "a" || !strings.Contains(b.part("xl/worksheets/sheet1.xml"), `<autoFilter ref="A1:A1"/>`) {
			t.Errorf("%q %v", rows, err)
		}
	})
	t.Run("without columns", func(t *testing.T) {
		b := sheetOf(t, &table{}, artifact.Format{})
		if rows, err := b.GetRows(b.sheet); err != nil || len(rows) != 0 || len(b.GetDefinedName()) != 0 {
			t.Errorf("%q %v", rows, err)
		}
	})
}

func TestXLSXDetails(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	origin := artifact.Origin{Zone: newYork, Name: "Run Details", Schedule: "late", Workspace: "EWR", Source: "flights", Run: "late@2013-05-06T10:30:00Z",
		Nominal: time.Date(2013, 5, 6, 10, 30, 0, 0, time.UTC), DataAsOf: time.Date(2013, 5, 6, 10, 31, 5, 123, time.UTC)}
	b := sheetOf(t, &table{columns: []source.Column{{Name: "a"}}, rows: [][]source.Value{{integer(1)}, {integer(2)}}}, artifact.Format{Details: true, Origin: origin})
	if list := b.GetSheetList(); len(list) != 2 || list[0] != "Rows" || list[1] != "Run details" {
		t.Fatalf("sheets %q", list)
	}
	rows, err := b.GetRows("Run details")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, strings.Join(r, "="))
	}
	if want := "Schedule=Run Details|Schedule id=late|Workspace=EWR|Source=flights|Run=late@2013-05-06T10:30:00Z|Time zone=America/New_York|Due=2013-05-06 06:30:00|Data as of=2013-05-06 06:31:05|Rows=2"; strings.Join(got, "|") != want {
		t.Fatalf("%q, want %q", got, want)
	}
	t.Run("what is not known is left out", func(t *testing.T) {
		b := sheetOf(t, row(integer(1)), artifact.Format{Details: true})
		if rows, err := b.GetRows("Run details"); err != nil || len(rows) != 2 || rows[0][1] != "UTC" || rows[1][1] != "1" {
			t.Fatalf("%q %v", rows, err)
		}
	})
}

// texts are the strings of the first sheet's cells, as a plain reader of XML finds them, and with the escapes of Excel undone.
func texts(t *testing.T, file []byte) (out []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sheet struct {
		Cells []struct {
			Text string `xml:"is>t"`
		} `xml:"sheetData>row>c"`
	}
	if err := xml.NewDecoder(f).Decode(&sheet); err != nil {
		t.Fatal(err)
	}
	for _, c := range sheet.Cells {
		out = append(out, unescape(c.Text))
	}
	return out
}
