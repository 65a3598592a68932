package artifact

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"almanac/internal/source"
)

// What a byte of a text asks for.
const (
	wantsQuote = 1 << iota
	notASCII
)

// Where a byte may stand in a number.
const (
	digit = 1 << iota
	sign
	point
	exponent
)

var numeric = func() (t [256]byte) {
	for c := '0'; c <= '9'; c++ {
		t[c] = digit
	}
	t['+'], t['-'], t['.'], t['e'], t['E'] = sign, sign, point, exponent, exponent
	return t
}()

// opensFormula marks first bytes that are dangerous whatever follows.
var opensFormula = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	for _, c := range []byte("=+-@\x7f") {
		t[c] = true
	}
	return t
}()

// openers are longer beginnings: ＝ ＋ － ＠ and the byte order mark. OWASP names the full-width forms
// (https://owasp.org/www-community/attacks/CSV_Injection).
var openers = [][]byte{[]byte("＝"), []byte("＋"), []byte("－"), []byte("＠"), []byte("\uFEFF")}

// dangerous reports whether a spreadsheet may run the text as a formula.
func dangerous(s []byte) bool {
	if len(s) == 0 {
		return false
	}
	if opensFormula[s[0]] {
		return true
	}
	if s[0] != 0xEF { // the first byte of every one of openers
		return false
	}
	for _, o := range openers {
		if bytes.HasPrefix(s, o) {
			return true
		}
	}
	return false
}

// csv appends records.
type csv struct {
	*out
	bom       bool
	delimiter byte
	null      []byte
	single    bool // one column only
	exact     bool // no text is neutralised
	class     [256]byte
	days      []dayCache // by column
}

func newCSV(f Format, o *out) encoder {
	e := &csv{out: o, bom: f.BOM, delimiter: f.delimiter()[0], null: []byte(f.Null), exact: f.Exact}
	for c := 0x80; c < 0x100; c++ {
		e.class[c] = notASCII
	}
	for _, c := range []byte{e.delimiter, '"', '\r', '\n'} {
		e.class[c] |= wantsQuote
	}
	return e
}

// begin appends the columns' names, which are text like any other.
func (e *csv) begin(columns []source.Column) error {
	e.single, e.days = len(columns) == 1, make([]dayCache, len(columns))
	if e.bom {
		e.b = append(e.b, "\uFEFF"...)
	}
	for i, c := range columns {
		if i > 0 {
			e.b = append(e.b, e.delimiter)
		}
		e.b = e.text(e.b, []byte(c.Name))
	}
	e.b = append(e.b, '\r', '\n')
	return nil
}

func (e *csv) row(cells []source.Value) (err error) {
	b := e.b
	for i := range cells {
		if i > 0 {
			b = append(b, e.delimiter)
		}
		if b, err = e.cell(b, i, &cells[i]); err != nil {
			return err
		}
		if b, err = e.fit(b); err != nil {
			return err
		}
	}
	e.b = append(b, '\r', '\n')
	return nil
}

func (e *csv) end() error { return nil }

// cell appends the i-th cell without its delimiter.
func (e *csv) cell(b []byte, i int, v *source.Value) ([]byte, error) {
	switch v.Kind {
	case source.KindNull:
		if e.single && len(e.null) == 0 {
			return append(b, '"', '"'), nil
		}
		return append(b, e.null...), nil
	case source.KindInt:
		return strconv.AppendInt(b, v.Int, 10), nil
	case source.KindText:
		return e.text(b, v.Text), nil
	case source.KindFloat:
		return appendFloat(b, v.Float), nil
	case source.KindDecimal:
		if !plainNumber(v.Text) {
			return e.text(b, v.Text), nil
		}
		return append(b, v.Text...), nil
	case source.KindBool:
		return strconv.AppendBool(b, v.Int != 0), nil
	case source.KindBytes:
		return appendHex(b, v.Text), nil
	case source.KindDate, source.KindTimestamp:
		if !fourDigits(v.Time) {
			return b, wrongYear(i, v.Time, "CSV")
		}
		return e.days[i].append(b, v.Time, v.Kind == source.KindTimestamp), nil
	}
	return b, unknownKind(i, v)
}

// text appends a text, quoted and neutralised as it needs.
func (e *csv) text(b, s []byte) []byte {
	var marks byte
	for _, c := range s {
		marks |= e.class[c]
	}
	if marks&notASCII != 0 && !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
	}
	guard := !e.exact && dangerous(s)
	if !guard && marks&wantsQuote == 0 && len(s) > 0 && s[0] != ' ' && s[len(s)-1] != ' ' && (len(s) != len(e.null) || !bytes.Equal(s, e.null)) {
		return append(b, s...)
	}
	b = append(b, '"')
	if guard {
		b = append(b, '\'')
	}
	for {
		i := bytes.IndexByte(s, '"')
		if i < 0 {
			break
		}
		b = append(append(b, s[:i]...), '"', '"')
		s = s[i+1:]
	}
	return append(append(b, s...), '"')
}

// plainNumber keeps what is not a number from passing as one: an optional sign, then digits, points and exponents.
func plainNumber(s []byte) bool {
	if len(s) > 0 && numeric[s[0]] == sign {
		s = s[1:]
	}
	if len(s) == 0 || numeric[s[0]] != digit {
		return false
	}
	for i, c := range s {
		switch numeric[c] {
		case digit, point, exponent:
		case sign:
			if numeric[s[i-1]] != exponent {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func appendFloat(b []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	case abs != 0 && (abs < 1e-6 || abs >= 1e21):
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

const hexDigits = "0123456789abcdef"

func appendHex(b, s []byte) []byte {
	b = append(b, '\\', 'x')
	for _, c := range s {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}
