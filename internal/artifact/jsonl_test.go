package artifact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"almanac/internal/artifact"
	"almanac/internal/source"
)

// object reads one line: an object, its keys in their order. Numbers stay as they are written.
func object(line []byte) (names []string, cells []any, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	names, cells, err = nextObject(d, nil, nil)
	if err == nil && d.InputOffset() != int64(len(line)) {
		err = fmt.Errorf("%q behind the object", line[d.InputOffset():])
	}
	return names, cells, err
}

// nextObject appends the keys and the cells of the next object.
func nextObject(d *json.Decoder, names []string, cells []any) ([]string, []any, error) {
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, nil, fmt.Errorf("%v (%v) where an object should begin", first, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		cell, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		if _, nested := cell.(json.Delim); nested {
			return nil, nil, fmt.Errorf("%q holds no plain value", name)
		}
		names, cells = append(names, name.(string)), append(cells, cell)
	}
	_, err := d.Token()
	return names, cells, err
}

// readJSONLines is the suite's reader of JSON Lines.
func readJSONLines(file []byte, columns []source.Column, take func([]source.Value) error) (names []string, err error) {
	d := json.NewDecoder(bytes.NewReader(file))
	d.UseNumber()
	var keys []string
	var cells []any
	row := make([]source.Value, len(columns))
	for at := int64(0); at < int64(len(file)); at++ {
		if keys, cells, err = nextObject(d, keys[:0], cells[:0]); err != nil {
			return nil, err
		}
		line := file[at:d.InputOffset()]
		if at += int64(len(line)); line[0] != '{' || bytes.IndexByte(line, '\n') >= 0 || at == int64(len(file)) || file[at] != '\n' {
			return nil, fmt.Errorf("%.100q is not one line", line)
		}
		if names == nil {
			names = slices.Clone(keys)
		}
		if !slices.Equal(names, keys) || len(keys) != len(columns) {
			return nil, fmt.Errorf("an object of the keys %.200q, the first one has %.200q", keys, names)
		}
		for i, cell := range cells {
			if row[i], err = jsonValue(cell, columns[i].Type); err != nil {
				return nil, fmt.Errorf("column %d: %w", i+1, err)
			}
		}
		if err := take(row); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func jsonValue(cell any, of source.Type) (source.Value, error) {
	switch v := cell.(type) {
	case nil:
		return source.Value{}, nil
	case bool:
		if of != source.Boolean {
			return source.Value{}, fmt.Errorf("a boolean")
		}
		return valueOf(strconv.FormatBool(v), of)
	case json.Number:
		if of != source.Integer && of != source.Real && of != source.Decimal {
			return source.Value{}, fmt.Errorf("the number %s", v)
		}
		return valueOf(v.String(), of)
	case string:
		switch of {
		case source.Boolean:
			return source.Value{}, fmt.Errorf("the text %q", v)
		case source.Bytes:
			b, err := base64.StdEncoding.Strict().DecodeString(v)
			return source.Value{Kind: source.KindBytes, Text: b}, err
		}
		return valueOf(v, of)
	}
	return source.Value{}, fmt.Errorf("%v of type %T", cell, cell)
}

var jsonLines = artifact.Format{Kind: "jsonl"}

// jsonCell is what a cell becomes.
func jsonCell(t *testing.T, v source.Value) string {
	t.Helper()
	line := write(t, row(v), jsonLines)
	cell, ok := strings.CutPrefix(line, `{"c1":`)
	if cell, ok2 := strings.CutSuffix(cell, "}\n"); ok && ok2 {
		return cell
	}
	t.Fatalf("the line is %q", line)
	return ""
}

func TestJSONLinesIsOneObjectForEachRow(t *testing.T) {
	r := &table{columns: []source.Column{{Name: "z"}, {Name: `a"b`}, {Name: "é\n"}}, rows: [][]source.Value{{integer(1), null, text("x")}, {decimal("-5.00"), text(""), {Kind: source.KindBool, Int: 1}}}}
	want := `{"z":1,"a\"b":null,"é\n":"x"}` + "\n" + `{"z":-5.00,"a\"b":"","é\n":true}` + "\n"
	if got := write(t, r, jsonLines); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got := write(t, &table{columns: r.columns}, jsonLines); got != "" {
		t.Errorf("without a row the file is %q", got)
	}
	if got := write(t, &table{rows: [][]source.Value{{}}}, jsonLines); got != "{}\n" {
		t.Errorf("a row without a column is %q", got)
	}
}

func TestV9JSONLinesKeepsTextsAsTheyAre(t *testing.T) {
	for in, want := range map[string]string{
		"=1+1": `"=1+1"`, "+1": `"+1"`, "-1": `"-1"`, "@x": `"@x"`, "\tx": `"\tx"`, "\rx": `"\rx"`, "\nx": `"\nx"`, "NA": `"NA"`, "null": `"null"`, "": `""`,
		`a"b\c/`: `"a\"b\\c/"`, "\x00\x1f\x7f": "\"\\u0000\\u001f\x7f\"", "<&>": `"<&>"`, "\u2028\u2029": "\"\u2028\u2029\"", "é☃🚚": `"é☃🚚"`,
		"a\xffb\xf0\x28": "\"a\uFFFDb\uFFFD(\"", "\xff\"": "\"\uFFFD\\\"\"", "\xed\xa0\x80": "\"\uFFFD\"", "\uFEFF": "\"\uFEFF\"",
	} {
		if got := jsonCell(t, text(in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if got := jsonCell(t, null); got != "null" {
		t.Errorf("NULL: %s", got)
	}
}

func TestV10JSONLinesWritesANumberOnlyWhereADoubleGivesItBack(t *testing.T) {
	for n, want := range map[int64]string{0: "0", -5: "-5", 9007199254740991: "9007199254740991", 9007199254740992: "9007199254740992", -9007199254740992: "-9007199254740992",
		9007199254740993: `"9007199254740993"`, -9007199254740993: `"-9007199254740993"`, 9007199254740994: `"9007199254740994"`, math.MaxInt64: `"9223372036854775807"`, math.MinInt64: `"-9223372036854775808"`} {
		if got := jsonCell(t, integer(n)); got != want {
			t.Errorf("integer %d: %s, want %s", n, got, want)
		}
	}
	numbers := []string{"0", "-0", "-5.00", "0.1", "0.10000000000000000000000000", "123456789012345", "0.00000000000000000000123456789012345", "9007199254740991", "9007199254740992", "9007199254740992.000", "1e5",
		"1.50E-7", "1e-300", "0e99999", "0.30000000000000004", "5e-324", "1e15", "2251799813685249.5", "100000000000000.0000"}
	for _, s := range numbers {
		if got := jsonCell(t, decimal(s)); got != s {
			t.Errorf("decimal %s: %s, want a number as it is written", s, got)
		}
	}
	texts := []string{"0.1000000000000000055", "9007199254740993", "9007199254740994", "0.12345678901234567891", "1e16", "1e22", "1e999", "-1e999", "1e-400", "4.9e-324", "0.3000000000000000444", "99999999999999999999999999999999999999",
		"1e99999999999999999999", "1e-99999999999999999999", "123456789012345.6789", "9007199254740992.5",
		"+1", "007", "-01", ".5", "5.", "1.e5", "1e", "1e+", "1e5.5", "--1", "-", "", "NaN", "Infinity", "-Infinity", "0x1p-2", "1_000", "=1", " 1", "1 ", "1,5", "1.2.3"}
	for _, s := range texts {
		if got := jsonCell(t, decimal(s)); got != `"`+s+`"` {
			t.Errorf("decimal %s: %s, want a string", s, got)
		}
	}
	for f, want := range map[float64]string{0.1: "0.1", 1e20: "100000000000000000000", 1e21: "1e+21", 9.9e-7: "9.9e-07", -2.5: "-2.5", math.MaxFloat64: "1.7976931348623157e+308", math.Copysign(0, -1): "-0",
		math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`} {
		if got := jsonCell(t, float(f)); got != want {
			t.Errorf("float %v: %s, want %s", f, got, want)
		}
	}
	if got := jsonCell(t, float(math.NaN())); got != `"NaN"` {
		t.Errorf("NaN: %s", got)
	}
}

func TestJSONLinesWritesTimesAndBytesAsStrings(t *testing.T) {
	for want, v := range map[string]source.Value{
		`"2024-02-29"`:                     at(t, "2024-02-29T00:00:00Z", source.KindDate),
		`"2026-03-08T07:30:00Z"`:           at(t, "2026-03-08T02:30:00-05:00", source.KindTimestamp),
		`"1969-12-31T23:59:59.500Z"`:       at(t, "1969-12-31T23:59:59.5Z", source.KindTimestamp),
		`"9999-12-31T23:59:59.999999999Z"`: at(t, "9999-12-31T23:59:59.999999999Z", source.KindTimestamp),
		`"AP89"`:                           raws("\x00\xff="), `""`: raws(""), `"+/+/AA=="`: raws("\xfb\xff\xbf\x00"), `false`: {Kind: source.KindBool},
	} {
		if got := jsonCell(t, v); got != want {
			t.Errorf("%s: %s, want %s", shown(v), got, want)
		}
	}
}

func TestNamesOfColumnsBecomeUnique(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"a", "a", "a"}, []string{"a", "a_2", "a_3"}},
		{[]string{"a", "a", "a_2"}, []string{"a", "a_3", "a_2"}},
		{[]string{"a_2", "a", "a", "a_2"}, []string{"a_2", "a", "a_3", "a_2_2"}},
		{[]string{"", "x", ""}, []string{"column_1", "x", "column_3"}},
		{[]string{"column_2", ""}, []string{"column_2", "column_2_2"}},
		{[]string{"A", "a", " "}, []string{"A", "a", " "}},
		{[]string{"\xff", "\uFFFD", "\xfe\xff"}, []string{"\uFFFD", "\uFFFD_2", "\uFFFD_3"}},
	} {
		r := &table{rows: make([][]source.Value, 1)}
		for _, name := range c.names {
			r.columns = append(r.columns, source.Column{Name: name})
			r.rows[0] = append(r.rows[0], null)
		}
		got, _, err := object([]byte(strings.TrimSuffix(write(t, r, jsonLines), "\n")))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q become %q (%v), want %q", c.names, got, err, c.want)
		}
	}
	t.Run("as many as there may be", func(t *testing.T) {
		r := &table{rows: [][]source.Value{make([]source.Value, 16_384)}, columns: make([]source.Column, 16_384)}
		for i := range r.columns {
			r.columns[i].Name = "same"
		}
		names, _, err := object([]byte(strings.TrimSuffix(write(t, r, jsonLines), "\n")))
		if slices.Sort(names); err != nil || len(slices.Compact(names)) != 16_384 {
			t.Fatal(len(names), err)
		}
	})
}
