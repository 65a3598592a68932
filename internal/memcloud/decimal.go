package memcloud

import (
	"math/big"
	"strconv"
	"strings"
)

// Limits of a DynamoDB number: 38 significant digits, magnitude from 1E-130
// to 9.99...E+125. Source: "Naming rules and data types",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
const (
	maxDigits   = 38
	maxExponent = 126  // of 0.d1d2d3... x 10^exponent
	minExponent = -129 // likewise
)

// decimal is an exact number: 0.digits x 10^exponent. It is always normal:
// digits begins and ends with a non-zero digit, and zero has no digits, no
// sign and exponent 0. Equal numbers are therefore equal structs.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal reads what DynamoDB takes as a number. NaN, infinities, hex
// and digit separators are not numbers.
func parseDecimal(text string) (decimal, error) {
	bad := func() (decimal, error) {
		return decimal{}, invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	rest, negative := text, false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		negative, rest = rest[0] == '-', rest[1:]
	}
	shift := 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		n, err := strconv.Atoi(rest[i+1:])
		if err != nil || n > 1_000_000 || n < -1_000_000 {
			return bad()
		}
		shift, rest = n, rest[:i]
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return bad()
	}
	return normal(negative, digits, len(whole)+shift)
}

// normal trims zeroes and checks the range.
func normal(negative bool, digits string, exponent int) (decimal, error) {
	trimmed := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	switch {
	case trimmed == "":
		return decimal{}, nil
	case len(trimmed) > maxDigits:
		return decimal{}, invalid("Attempting to store more than 38 significant digits in a Number")
	case exponent > maxExponent:
		return decimal{}, invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case exponent < minExponent:
		return decimal{}, invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}
	return decimal{negative: negative, digits: trimmed, exponent: exponent}, nil
}

// String is the plain form in which DynamoDB gives numbers back: no exponent,
// no superfluous zero.
func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	switch {
	case d.exponent <= 0:
		b.WriteString("0." + strings.Repeat("0", -d.exponent) + d.digits)
	case d.exponent >= len(d.digits):
		b.WriteString(d.digits + strings.Repeat("0", d.exponent-len(d.digits)))
	default:
		b.WriteString(d.digits[:d.exponent] + "." + d.digits[d.exponent:])
	}
	return b.String()
}

// compare is -1, 0 or 1.
func (d decimal) compare(e decimal) int {
	if s, t := d.sign(), e.sign(); s != t {
		return compareInt(s, t)
	}
	c := compareInt(d.exponent, e.exponent)
	if c == 0 {
		c = strings.Compare(d.digits, e.digits)
	}
	if d.negative {
		return -c
	}
	return c
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// add is exact; a sum that does not fit into 38 digits is refused, as AWS
// refuses it (with the words for an overflow).
func (d decimal) add(e decimal) (decimal, error) {
	scale := min(d.exponent-len(d.digits), e.exponent-len(e.digits))
	sum := new(big.Int).Add(d.scaled(scale), e.scaled(scale))
	negative := sum.Sign() < 0
	digits := sum.Abs(sum).String()
	result, err := normal(negative, digits, len(digits)+scale)
	if err != nil {
		return decimal{}, invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	}
	return result, nil
}

func (d decimal) minus() decimal {
	if d.digits != "" {
		d.negative = !d.negative
	}
	return d
}

// scaled is the number as an integer count of 10^scale; scale must not be
// above the place of the last digit.
func (d decimal) scaled(scale int) *big.Int {
	if d.digits == "" {
		return new(big.Int)
	}
	n, _ := new(big.Int).SetString(d.digits, 10)
	power := big.NewInt(int64(d.exponent - len(d.digits) - scale))
	n.Mul(n, new(big.Int).Exp(big.NewInt(10), power, nil))
	if d.negative {
		n.Neg(n)
	}
	return n
}

// size is the stored size in bytes: one byte for two digits and one more; a
// negative number takes one byte more still. Source: "DynamoDB item sizes and
// formats", https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
// ("approximately"; digit pairs are counted from the decimal point).
func (d decimal) size() int {
	if d.digits == "" {
		return 1
	}
	digits := len(d.digits)
	if d.exponent%2 != 0 {
		digits++ // the first pair is half empty
	}
	size := (digits+1)/2 + 1
	if d.negative {
		size++
	}
	return size
}

func compareInt(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
