package artifact_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"almanac/internal/artifact"
	"almanac/internal/source"
)

// FuzzJSONLines: whatever the cells and the names, the file is a line of valid UTF-8 for each row, encoding/json reads from
// it the columns in their order, none twice, and the cells that were given, by the rules that doc.go writes down.
func FuzzJSONLines(f *testing.F) {
	for _, s := range []string{
		"plain\x1fquote \" and \\\x1fline\r\nbreak\x1f\x1f0:", "i:9007199254740992\x1fi:9007199254740993\x1fi:-9223372036854775808\x1ff:1e-7\x1ff:-0\x1ff:1e21\x1ff:NaN\x1ff:-Inf",
		"d:-5.00\x1fd:0.1000000000000000055\x1fd:1e5\x1fd:-\x1fd:007\x1fd:1e999\x1fd:5e-324\x1fd:9007199254740993", "b:\x00\xff\x1fb:\x1fo:1\x1fo:0\x1fa:0", "s:1700000000\x1fs:-62135596800\x1fa:-99999999999",
		"\u2028\x1f\u2029\x1f\xff\xfe\x1f\xed\xa0\x80", "\x00\x1f\n\x1f\x7f", "d:0.30000000000000004\x1fd:1e-400\x1fd:123456789012345678\x1fd:0e9", "</script>\x1f&",
	} {
		f.Add([]byte(s), uint8(2), "a\x1fa\x1f")
		f.Add([]byte(s), uint8(0), "")
		f.Add([]byte(s), uint8(7), "a\x1fa_2\x1fa\x1f\"\x1f\xff\x1f\xfe\x1f\ncolumn_8")
	}
	f.Fuzz(func(t *testing.T, script []byte, n uint8, names string) {
		columns := int(n)%8 + 1
		g := &given{columns: make([]source.Column, columns), rows: cells(script, columns)}
		for i, name := range strings.Split(names, "\x1f") {
			if i < columns {
				g.columns[i].Name = name
			}
		}
		rows := g.rows
		var out bytes.Buffer
		result, err := artifact.Write(context.Background(), g, jsonLines, &out, 0)
		if err != nil {
			if !refusedYear(rows, err) {
				t.Fatalf("%q: %v", script, err)
			}
			return
		}
		file := out.Bytes()
		if result.Rows != int64(len(rows)) || result.Bytes != int64(len(file)) || !utf8.Valid(file) {
			t.Fatalf("%+v of %d rows in %d bytes: %q", result, len(rows), len(file), file)
		}
		lines := bytes.SplitAfter(file, []byte("\n"))
		if last := lines[len(lines)-1]; len(last) > 0 || len(lines) != len(rows)+1 {
			t.Fatalf("%q: %d lines for %d rows", file, len(lines)-1, len(rows))
		}
		for r, row := range rows {
			keys, got, err := object(lines[r][:len(lines[r])-1])
			if err != nil || len(got) != columns {
				t.Fatalf("%q: %d cells, %v", lines[r], len(got), err)
			}
			wantNames(t, g.columns, keys)
			for i, v := range row {
				if why := unlikeJSON(v, got[i]); why != "" {
					t.Fatalf("%q: column %d is %#v: %s", lines[r], i, got[i], why)
				}
			}
		}
	})
}

// refusedYear reports whether the error names the year of a time that no kind of text file takes.
func refusedYear(rows [][]source.Value, err error) bool {
	for _, row := range rows {
		for _, v := range row {
			if (v.Kind == source.KindDate || v.Kind == source.KindTimestamp) && (v.Time.Year() < 0 || v.Time.Year() > 9999) && strings.Contains(err.Error(), strconv.Itoa(v.Time.Year())) {
				return true
			}
		}
	}
	return false
}

// wantNames demands that no name comes twice, and that each begins with the one that was given, the first of its name being it.
func wantNames(t *testing.T, columns []source.Column, got []string) {
	t.Helper()
	seen, first := map[string]bool{}, map[string]bool{}
	for i, name := range got {
		want := strings.ToValidUTF8(columns[i].Name, "\uFFFD")
		if want == "" {
			want = fmt.Sprintf("column_%d", i+1)
		}
		suffix, ok := strings.CutPrefix(name, want)
		if !ok || seen[name] || suffix != "" && (!first[want] || !numbered.MatchString(suffix)) {
			t.Fatalf("column %d is named %+q, given were %+v", i, got, columns)
		}
		seen[name], first[want] = true, true
	}
}

var numbered = regexp.MustCompile(`^_[1-9][0-9]*$`)

// unlikeJSON says why a value of JSON is not what doc.go makes of a cell; empty: it is.
func unlikeJSON(v source.Value, got any) string {
	is := func(want any) string {
		if got != want {
			return fmt.Sprintf("is not %#v", want)
		}
		return ""
	}
	switch v.Kind {
	case source.KindNull:
		return is(nil)
	case source.KindText:
		return is(strings.ToValidUTF8(string(v.Text), "\uFFFD"))
	case source.KindInt:
		if text := strconv.FormatInt(v.Int, 10); v.Int > 1<<53 || v.Int < -1<<53 {
			return is(text)
		} else {
			return is(json.Number(text))
		}
	case source.KindFloat:
		if word, ok := map[string]string{"+NaN": "NaN", "+Inf": "Infinity", "-Inf": "-Infinity"}[fmt.Sprintf("%+g", v.Float)]; ok {
			return is(word)
		}
		x, _ := got.(json.Number)
		if back, err := x.Float64(); err != nil || math.Float64bits(back) != math.Float64bits(v.Float) {
			return fmt.Sprintf("is not %v", v.Float)
		}
		return ""
	case source.KindDecimal:
		if givenBack(string(v.Text)) {
			return is(json.Number(v.Text))
		}
		return is(strings.ToValidUTF8(string(v.Text), "\uFFFD"))
	case source.KindBool:
		return is(v.Int != 0)
	case source.KindBytes:
		return is(base64.StdEncoding.EncodeToString(v.Text))
	case source.KindDate:
		return is(v.Time.Format(time.DateOnly))
	}
	text, _ := got.(string)
	if at, err := time.Parse(time.RFC3339Nano, text); err != nil || !at.Equal(v.Time) {
		return fmt.Sprintf("is not %v", v.Time)
	}
	return ""
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]([+-]?[0-9]+))?$`)

// givenBack is the rule of doc.go, worked out with exact fractions: the double that is nearest to a number is at most 2^53,
// and its shortest text is that number.
func givenBack(s string) bool {
	m := jsonNumber.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	exponent, err := 0, error(nil)
	if m[4] != "" {
		exponent, err = strconv.Atoi(m[4])
	}
	switch zero := strings.Trim(m[1]+m[2], "0.") == ""; {
	case err != nil:
		return false
	case zero:
		return true
	case exponent > 1000+len(s) || exponent < -1000-len(s): // no double is near, and a fraction of so many digits takes for ever
		return false
	}
	exact, ok := new(big.Rat).SetString(s)
	if !ok {
		return false
	}
	f, _ := exact.Float64()
	back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok && math.Abs(f) <= 1<<53 && back.Cmp(exact) == 0
}

// Decimals of every length around the edges, whose digits fuzzing hardly finds.
func TestV10RandomDecimalsAreNumbersWhereADoubleGivesThemBack(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	numbers := 0
	for range 20_000 {
		digits := strconv.FormatUint(r.Uint64(), 10)
		digits = digits[:1+r.IntN(len(digits))]
		if r.IntN(3) == 0 { // the very digits of a double
			digits = strconv.FormatFloat(r.Float64(), 'f', -1, 64)[2:]
			digits = strings.TrimLeft(digits, "0") + "0"
		}
		at := r.IntN(len(digits))
		s := digits[:at] + "." + digits[at:]
		if at == 0 {
			s = "0" + s
		}
		if r.IntN(4) == 0 {
			s = "-" + s + fmt.Sprintf("e%d", r.IntN(660)-330)
		}
		want := strconv.Quote(s)
		if givenBack(s) {
			numbers++
			want = s
		}
		if got := jsonCell(t, decimal(s)); got != want {
			t.Fatalf("decimal %s: %s, want %s", s, got, want)
		}
	}
	if numbers < 2_000 || numbers > 18_000 {
		t.Errorf("%d of 20,000 were numbers: both sides are to be tried", numbers)
	}
}
