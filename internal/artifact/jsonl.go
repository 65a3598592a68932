package artifact

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"almanac/internal/source"
)

// jsonl appends objects, one a line.
type jsonl struct {
	*out
	keys [][]byte   // by column: what stands before its cell, such as ,"name":
	days []dayCache // by column
}

func newJSONLines(_ Format, o *out) encoder { return &jsonl{out: o} }

func (e *jsonl) begin(columns []source.Column) error {
	e.days = make([]dayCache, len(columns))
	for i, name := range uniqueNames(columns) {
		var key []byte
		if i > 0 {
			key = append(key, ',')
		}
		e.keys = append(e.keys, append(appendJSONText(key, []byte(name)), ':'))
	}
	return nil
}

func (e *jsonl) row(cells []source.Value) (err error) {
	b := append(e.b, '{')
	for i := range cells {
		b = append(b, e.keys[i]...)
		if b, err = e.cell(b, i, &cells[i]); err != nil {
			return err
		}
		if b, err = e.fit(b); err != nil {
			return err
		}
	}
	e.b = append(b, '}', '\n')
	return nil
}

func (e *jsonl) end() error { return nil }

// maxExact is the largest magnitude up to which a double holds each whole number.
const maxExact = 1 << 53

// cell appends the i-th cell without its key.
func (e *jsonl) cell(b []byte, i int, v *source.Value) ([]byte, error) {
	switch v.Kind {
	case source.KindNull:
		return append(b, "null"...), nil
	case source.KindInt:
		if v.Int < -maxExact || v.Int > maxExact {
			return append(strconv.AppendInt(append(b, '"'), v.Int, 10), '"'), nil
		}
		return strconv.AppendInt(b, v.Int, 10), nil
	case source.KindText:
		return appendJSONText(b, v.Text), nil
	case source.KindFloat:
		if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
			return append(appendFloat(append(b, '"'), v.Float), '"'), nil
		}
		return appendFloat(b, v.Float), nil
	case source.KindDecimal:
		if !exactJSON(v.Text) {
			return appendJSONText(b, v.Text), nil
		}
		return append(b, v.Text...), nil
	case source.KindBool:
		return strconv.AppendBool(b, v.Int != 0), nil
	case source.KindBytes:
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), v.Text), '"'), nil
	case source.KindDate, source.KindTimestamp:
		if !fourDigits(v.Time) {
			return b, wrongYear(i, v.Time, "JSON Lines")
		}
		return append(e.days[i].append(append(b, '"'), v.Time, v.Kind == source.KindTimestamp), '"'), nil
	}
	return b, unknownKind(i, v)
}

const wantsEscape = wantsQuote // in a class, beside notASCII

var jsonClass = func() (t [256]byte) {
	for c := range 0x20 {
		t[c] = wantsEscape
	}
	t['"'], t['\\'] = wantsEscape, wantsEscape
	for c := 0x80; c < 0x100; c++ {
		t[c] = notASCII
	}
	return t
}()

// appendJSONText appends a string of JSON (RFC 8259, section 7), in UTF-8 whatever s holds.
func appendJSONText(b, s []byte) []byte {
	var marks byte
	for _, c := range s {
		marks |= jsonClass[c]
	}
	if marks&notASCII != 0 && !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
	}
	b = append(b, '"')
	if marks&wantsEscape != 0 {
		return append(appendEscaped(b, s), '"')
	}
	return append(append(b, s...), '"')
}

func appendEscaped(b, s []byte) []byte {
	done := 0
	for i, c := range s {
		if jsonClass[c]&wantsEscape == 0 {
			continue
		}
		b = append(b, s[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(b, s[done:]...)
}
