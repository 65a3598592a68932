package artifact_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"mime"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"almanac/internal/artifact"
	"almanac/internal/source"
)

// formula is the rule of doc.go, written anew: what a spreadsheet may run.
func formula(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && (strings.ContainsRune("=+-@＝＋－＠\uFEFF\x7f", r) && r != utf8.RuneError || r < ' ')
}

// cells are the rows that a fuzzed text stands for: cells of any kind, a letter saying which.
func cells(script []byte, columns int) (rows [][]source.Value) {
	var row []source.Value
	for _, part := range bytes.Split(script, []byte{0x1f}) {
		kind, text := byte('t'), part
		if len(part) > 1 && part[1] == ':' {
			kind, text = part[0], part[2:]
		}
		n, _ := strconv.ParseInt(string(text), 10, 64)
		v := source.Value{Kind: source.KindText, Text: text}
		switch kind {
		case '0':
			v = source.Value{Kind: source.KindNull}
		case 'i':
			v = source.Value{Kind: source.KindInt, Int: n}
		case 'f':
			x, _ := strconv.ParseFloat(string(text), 64)
			v = source.Value{Kind: source.KindFloat, Float: x}
		case 'd':
			v.Kind = source.KindDecimal
		case 'b':
			v.Kind = source.KindBytes
		case 'o':
			v = source.Value{Kind: source.KindBool, Int: n & 1}
		case 'a', 's':
			v = source.Value{Kind: source.KindDate, Time: time.Unix(n%(1<<36), n&0xffff).UTC()}
			if kind == 's' {
				v.Kind = source.KindTimestamp
			}
		}
		if row = append(row, v); len(row) == columns {
			rows, row = append(rows, row), nil
		}
	}
	return rows
}

// given hands rows out.
type given struct {
	columns []source.Column
	rows    [][]source.Value
}

func (g *given) Columns() []source.Column { return g.columns }
func (g *given) Close() error             { return nil }
func (g *given) Next(context.Context) ([]source.Value, error) {
	if len(g.rows) == 0 {
		return nil, io.EOF
	}
	row := g.rows[0]
	g.rows = g.rows[1:]
	return row, nil
}

// FuzzCSV: whatever the cells, the file is RFC 4180, encoding/csv reads from it what was given after the neutralisation that
// doc.go writes down, NULL stays apart from an empty text, and numbers and times are those that were given.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{
		"plain\x1fcomma, and \"quotes\"\x1fline\r\nbreak\x1f\x1f0:", "=1+1\x1f+1\x1f-1\x1f@x\x1f\tx", "i:-5\x1fi:9223372036854775807\x1ff:1e-7\x1ff:-0\x1ff:1e21",
		"d:-5.00\x1fd:=1\x1fd:1e5\x1fd:-\x1fd:5-5", "b:\x00\xff\x1fb:\x1fo:1\x1fo:0\x1fa:0", "s:1700000000\x1fs:-62135596800\x1fa:-99999999999\x1ff:NaN\x1ff:Inf",
		"＝x\x1f－x\x1f\uFEFFx\x1f\x7f\x1f\xff\xfe", " x\x1fx \x1f \x1f\"\x1f\"\"", "NULL\x1f0:\x1f\x1f'\x1f\\N", ";\x1f|\x1f\t\x1f,\x1f\r", "\x00\x1f\n\x1f\xef\xbc\x9d1\x1f\xef\x1f\xc3\x28",
	} {
		for _, format := range []artifact.Format{{}, {Delimiter: ";", BOM: true}, {Delimiter: "\t", Null: "NULL"}, {Delimiter: "|", Null: "-"}, {Exact: true}} {
			f.Add([]byte(s), uint8(5), format.Delimiter, format.Null, format.BOM, format.Exact)
		}
		f.Add([]byte(s), uint8(1), ",", "", false, false)
		f.Add([]byte(s), uint8(2), "", "\u2028", false, false)
	}
	f.Fuzz(func(t *testing.T, script []byte, n uint8, delimiter, null string, bom, exact bool) {
		columns := int(n)%8 + 1
		format := artifact.Format{Kind: "csv", Delimiter: delimiter, Null: null, BOM: bom, Exact: exact}
		g := &given{rows: cells(script, columns)}
		for i := range columns {
			g.columns = append(g.columns, source.Column{Name: fmt.Sprint("c", i)})
		}
		if len(script) > 0 && utf8.Valid(script[:1]) {
			g.columns[0].Name = string(script[:1]) // a header is text like any other
		}
		rows := g.rows
		var out bytes.Buffer
		result, err := artifact.Write(context.Background(), g, format, &out, 0)
		if errs := format.Validate(); len(errs) > 0 {
			if err == nil || !strings.Contains(err.Error(), errs[0].Field) || out.Len() > 0 {
				t.Fatalf("%+v: %v", format, err)
			}
			return
		}
		if err != nil {
			if !refusedYear(rows, err) {
				t.Fatalf("%q: %v", script, err)
			}
			return
		}
		file := out.Bytes()
		if result.Rows != int64(len(rows)) || result.Bytes != int64(len(file)) {
			t.Fatalf("%+v of %d rows in %d bytes", result, len(rows), len(file))
		}
		if bom {
			if !bytes.HasPrefix(file, []byte("\uFEFF")) {
				t.Fatal("there is no byte order mark")
			}
			file = file[3:]
		}
		if !utf8.Valid(file) {
			t.Fatalf("%q is not UTF-8", file)
		}
		comma := byte(',')
		if delimiter != "" {
			comma = delimiter[0]
		}
		got, err := parts(file, comma)
		if err != nil || len(got) != len(rows)+1 {
			t.Fatalf("%q: %d records for %d rows and a header: %v", file, len(got), len(rows), err)
		}
		names := make([]source.Value, columns)
		for i, c := range g.columns {
			names[i] = source.Value{Kind: source.KindText, Text: []byte(c.Name)}
		}
		for r, row := range append([][]source.Value{names}, rows...) {
			if len(got[r]) != columns {
				t.Fatalf("%q: record %d has %d fields", file, r, len(got[r]))
			}
			for i, v := range row {
				if why := unlike(v, got[r][i], format, columns == 1); why != "" {
					t.Fatalf("%q: record %d, column %d: %q (quoted: %v) %s", file, r, i, got[r][i].text, got[r][i].quoted, why)
				}
			}
		}
		wantSame(t, file, comma, got)
	})
}

// wantSame demands that encoding/csv reads the same fields.
func wantSame(t *testing.T, file []byte, comma byte, want [][]field) {
	t.Helper()
	reader := csv.NewReader(bytes.NewReader(file))
	reader.Comma = rune(comma)
	records, err := reader.ReadAll()
	if err != nil || len(records) != len(want) {
		t.Fatalf("%q: encoding/csv reads %d records of %d: %v", file, len(records), len(want), err)
	}
	for r := range records {
		if len(records[r]) != len(want[r]) {
			t.Fatalf("%q: encoding/csv reads %q", file, records[r])
		}
		for i, text := range records[r] {
			if text != strings.ReplaceAll(want[r][i].text, "\r\n", "\n") { // as encoding/csv documents
				t.Fatalf("%q: encoding/csv reads %q, want %q", file, text, want[r][i].text)
			}
		}
	}
}

// unlike says why a field is not what doc.go makes of a value; empty: it is.
func unlike(v source.Value, f field, format artifact.Format, single bool) string {
	text := func(s string) string {
		want := strings.ToValidUTF8(s, "\uFFFD")
		guarded := !format.Exact && formula(want)
		switch {
		case guarded && (f.text != "'"+want || !f.quoted):
			return fmt.Sprintf("is not %q neutralised", want)
		case !guarded && f.text != want:
			return fmt.Sprintf("is not %q", want)
		case !f.quoted && want == format.Null:
			return "passes for NULL"
		}
		return ""
	}
	bare := func(ok bool, want any) string {
		if !ok || f.quoted {
			return fmt.Sprintf("is not %v", want)
		}
		return ""
	}
	switch v.Kind {
	case source.KindNull:
		if f.text != format.Null || f.quoted != (single && format.Null == "") {
			return "is not NULL"
		}
		return ""
	case source.KindText:
		return text(string(v.Text))
	case source.KindInt:
		n, err := strconv.ParseInt(f.text, 10, 64)
		return bare(err == nil && n == v.Int, v.Int)
	case source.KindFloat:
		x, err := strconv.ParseFloat(f.text, 64)
		return bare(err == nil && (math.Float64bits(x) == math.Float64bits(v.Float) || x != x && v.Float != v.Float), v.Float)
	case source.KindDecimal:
		if !number.Match(v.Text) {
			return text(string(v.Text)) // a source that calls this a decimal must not get a formula past the rule
		}
		return bare(f.text == string(v.Text), string(v.Text))
	case source.KindBool:
		return bare(f.text == strconv.FormatBool(v.Int != 0), v.Int != 0)
	case source.KindBytes:
		return bare(f.text == `\x`+hex.EncodeToString(v.Text), v.Text)
	case source.KindDate:
		return bare(f.text == v.Time.Format(time.DateOnly), v.Time)
	}
	at, err := time.Parse(time.RFC3339Nano, f.text)
	return bare(err == nil && at.Equal(v.Time), v.Time)
}

// number is what no spreadsheet runs, although it may begin with a sign.
var number = regexp.MustCompile(`^[+-]?[0-9]([0-9.]|[eE][+-]?)*$`)

// FuzzFileName: any schedule's name makes one file name that every system takes, and its header says that name and nothing
// more.
func FuzzFileName(f *testing.F) {
	for _, s := range []string{"Delays", "", "../../etc/passwd", "a\r\nX-Evil: 1", `"; filename=evil.exe`, "CON", "com1.txt", "\u202egnp.exe", "日本 report", strings.Repeat("é", 200), "%2e%2e", "\xff\xfe", ". .", "=cmd"} {
		f.Add(s)
	}
	at := time.Date(2040, 3, 5, 12, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, schedule string) {
		name := artifact.FileName(schedule, at, nil, artifact.Format{Kind: "csv"})
		if len(name) > 255 || strings.ContainsAny(name, "/\\:*?\"<>|%\x00\r\n") || !utf8.ValidString(name) || !strings.HasSuffix(name, " 2040-03-05 1230.csv") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, " ") {
			t.Fatalf("%q makes the file name %q", schedule, name)
		}
		for _, given := range []string{name, schedule} { // the header must hold for any name
			header := artifact.ContentDisposition(given)
			if strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%q makes the header %q", given, header)
			}
			kind, params, err := mime.ParseMediaType(header)
			want := strings.ToValidUTF8(given, "")
			if err != nil || kind != "attachment" || params["filename"] != want || len(params) != 1 {
				t.Fatalf("%q makes the header %q, which reads as %q %q: %v", given, header, kind, params, err)
			}
		}
	})
}
