package artifact

import (
	"bytes"
	"math"
	"strconv"
)

// A double gives back each decimal of up to 15 significant digits, and none of more than 17 is the shortest text of one
// (IEEE 754-2019, 5.12.2).
const (
	alwaysExact = 15
	everExact   = 17
)

// exactJSON reports whether the text of a decimal is a number of JSON (RFC 8259, section 6) that a double gives back: its
// magnitude is at most 2^53, and its digits, zeros at either end apart, are those of the shortest text that reads as the
// same double. Readers of JSON commonly make a double of a number, and would change any other one in silence.
func exactJSON(s []byte) bool {
	digits, exponent, ok := jsonNumber(s)
	if !ok {
		return false
	}
	if digits <= alwaysExact && !exponent {
		return true // below 10^15, so below 2^53 as well
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || math.Abs(f) > maxExact {
		return false
	}
	var room, shortest [2 * everExact]byte
	given, at, ok := significant(room[:0], s)
	if !ok {
		return false
	}
	var back [2 * everExact]byte
	held, heldAt, _ := significant(back[:0], strconv.AppendFloat(shortest[:0], f, 'e', -1, 64))
	return bytes.Equal(given, held) && (at == heldAt || len(held) == 0)
}

// jsonNumber counts the digits of a number before its exponent, and says whether it has one; not ok: JSON has no such number.
func jsonNumber(s []byte) (digits int, exponent, ok bool) {
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	whole := leadingDigits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return 0, false, false
	}
	digits, s = whole, s[whole:]
	if len(s) > 0 && s[0] == '.' {
		part := leadingDigits(s[1:])
		if part == 0 {
			return 0, false, false
		}
		digits, s = digits+part, s[1+part:]
	}
	if len(s) == 0 {
		return digits, false, true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false, false
	}
	if s = s[1:]; len(s) > 0 && numeric[s[0]] == sign {
		s = s[1:]
	}
	return digits, true, len(s) > 0 && leadingDigits(s) == len(s)
}

func leadingDigits(s []byte) int {
	for i, c := range s {
		if numeric[c] != digit {
			return i
		}
	}
	return len(s)
}

// significant appends the digits of a number of JSON without the zeros at either end to b, and returns the power of ten of
// the first one. Not ok: they are more than a double can give back.
func significant(b, s []byte) (digits []byte, at int, ok bool) {
	mantissa := s
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		exponent, err := strconv.Atoi(string(s[i+1:]))
		if err != nil {
			return nil, 0, false
		}
		at = exponent
	}
	mantissa = bytes.TrimPrefix(mantissa, []byte("-"))
	point := bytes.IndexByte(mantissa, '.')
	if point < 0 {
		point = len(mantissa)
	}
	zeros := 0 // behind the digits so far
	for i, c := range mantissa {
		switch {
		case c == '.':
		case c == '0' && len(b) == 0:
		case c == '0':
			zeros++
		default:
			if len(b) == 0 {
				at += point - i // one more than the power before the point, as many behind it
				if i < point {
					at--
				}
			}
			if len(b)+zeros+1 > everExact {
				return nil, 0, false
			}
			for ; zeros > 0; zeros-- {
				b = append(b, '0')
			}
			b = append(b, c)
		}
	}
	return b, at, true
}
