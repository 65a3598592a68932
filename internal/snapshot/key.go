package snapshot

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// MaxKey bounds a text or decimal key, in bytes: chunk records hold two of them and must stay small.
const MaxKey = 256

// KeyKind is what a month's key is. All keys of a month are of one kind.
type KeyKind byte

const (
	NoKey      KeyKind = 0
	IntegerKey KeyKind = 'i' // in the order of numbers
	DecimalKey KeyKind = 'd' // in the order of numbers, exact
	TextKey    KeyKind = 't' // in the order of its bytes
)

// Key is one row's key. The zero Key is none.
type Key struct {
	Kind KeyKind
	Int  int64
	Text string // of text and decimal keys
}

// keyOf reads a key cell. What cannot be a key is key_invalid, naming what it is. The text is copied only when the row's
// key is kept, by clone.
func keyOf(v *source.Value, into *keyCell) error {
	switch v.Kind {
	case source.KindInt:
		into.kind, into.num = IntegerKey, v.Int
		return nil
	case source.KindDecimal, source.KindText:
		into.kind, into.text = TextKey, v.Text
		if v.Kind == source.KindDecimal {
			into.kind = DecimalKey
		}
		switch {
		case len(v.Text) > MaxKey:
			return failure.New(failure.KeyInvalid, "a key has %d bytes (%q); want at most %d", len(v.Text), failure.Cut(string(v.Text), 60), MaxKey)
		case !utf8.Valid(v.Text) || bytes.IndexByte(v.Text, 0) >= 0:
			return failure.New(failure.KeyInvalid, "the key %q is no text: want UTF-8 without NUL characters", failure.Cut(strings.ToValidUTF8(string(v.Text), "?"), 60))
		}
		return nil
	}
	return failure.New(failure.KeyInvalid, "a key is %s; want an integer, a text or a decimal in every row", kindName(v.Kind))
}

// keyCell is the key of the row under way; its text is the row's own.
type keyCell struct {
	kind KeyKind
	num  int64
	text []byte
}

func (c *keyCell) key() Key {
	if c.kind == IntegerKey {
		return Key{Kind: c.kind, Int: c.num}
	}
	return Key{Kind: c.kind, Text: string(c.text)}
}

// Compare orders keys of one kind; keys of two kinds are ordered by kind, which no sound month has.
func (k Key) Compare(o Key) int {
	if k.Kind != o.Kind {
		return cmp.Compare(k.Kind, o.Kind)
	}
	switch k.Kind {
	case IntegerKey:
		return cmp.Compare(k.Int, o.Int)
	case DecimalKey:
		return compareDecimals([]byte(k.Text), []byte(o.Text))
	}
	return strings.Compare(k.Text, o.Text)
}

// Param is the key as it is bound to a query.
func (k Key) Param() any {
	if k.Kind == IntegerKey {
		return k.Int
	}
	return k.Text
}

// String is the key as people read it.
func (k Key) String() string {
	if k.Kind == IntegerKey {
		return strconv.FormatInt(k.Int, 10)
	}
	return k.Text
}

// EncodeKey spells a key for a record: its kind, a colon and the key. No key is the empty text.
func EncodeKey(k Key) string {
	if k.Kind == NoKey {
		return ""
	}
	return string(rune(k.Kind)) + ":" + k.String()
}

// DecodeKey reads what EncodeKey spelled.
func DecodeKey(s string) (Key, error) {
	if s == "" {
		return Key{}, nil
	}
	kind, text, ok := strings.Cut(s, ":")
	if !ok || len(kind) != 1 {
		return Key{}, fmt.Errorf("the key %q has no kind; want i:, d: or t: before it", failure.Cut(s, 80))
	}
	return keyFrom(KeyKind(kind[0]), text)
}

// keyFrom reads a key's text, as a record or a file spells it.
func keyFrom(kind KeyKind, text string) (Key, error) {
	k := Key{Kind: kind}
	switch kind {
	case IntegerKey:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Key{}, fmt.Errorf("the key %q is no integer", failure.Cut(text, 80))
		}
		k.Int = n
		return k, nil
	case DecimalKey:
		if !isDecimal(text) {
			return Key{}, fmt.Errorf("the key %q is no decimal", failure.Cut(text, 80))
		}
	case TextKey:
	default:
		return Key{}, fmt.Errorf("the key %q is of the unknown kind %q; want i, d or t", failure.Cut(text, 80), string(rune(kind)))
	}
	k.Text = text
	return k, nil
}

// isDecimal accepts what sources call a decimal: a sign or none, digits, and digits after a point or none.
func isDecimal(s string) bool {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	whole, fraction, point := strings.Cut(s, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!point || digits(fraction))
}

// compareDecimals compares without rounding and without allocating.
func compareDecimals(a, b []byte) int {
	an, aw, af := decimalParts(a)
	bn, bw, bf := decimalParts(b)
	if an != bn {
		if an {
			return -1
		}
		return 1
	}
	c := cmp.Compare(len(aw), len(bw))
	if c == 0 {
		c = bytes.Compare(aw, bw)
	}
	if c == 0 {
		c = bytes.Compare(af, bf)
	}
	if an {
		return -c
	}
	return c
}

// decimalParts are sign, whole digits without leading zeros and fraction without trailing ones. Zero has no sign.
func decimalParts(s []byte) (negative bool, whole, fraction []byte) {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	whole = s
	if i := bytes.IndexByte(s, '.'); i >= 0 {
		whole, fraction = s[:i], bytes.TrimRight(s[i+1:], "0")
	}
	whole = bytes.TrimLeft(whole, "0")
	return negative && len(whole)+len(fraction) > 0, whole, fraction
}

func kindName(k source.Kind) string {
	switch k {
	case source.KindNull:
		return "NULL"
	case source.KindInt:
		return "integer"
	case source.KindFloat:
		return "real"
	case source.KindDecimal:
		return "decimal"
	case source.KindText:
		return "text"
	case source.KindBytes:
		return "bytes"
	case source.KindBool:
		return "boolean"
	case source.KindDate:
		return "date"
	case source.KindTimestamp:
		return "timestamp"
	}
	return fmt.Sprintf("of the unknown kind %d", k)
}
