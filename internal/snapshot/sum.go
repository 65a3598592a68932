package snapshot

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Sum adds up the numbers of a column. Integers and decimals are added exactly, whatever their size. Floats are added in
// the order of the rows with a running compensation (Neumaier's variant of Kahan's summation), so that the error does
// not grow with the number of rows; the sum of their magnitudes is kept beside them, since it is what the difference of
// two float sums is to be measured by.
type Sum struct {
	ints  int64
	exact *big.Rat // what did not fit ints, and decimals; nil: nothing

	units int64 // decimals of one scale, in units of that scale
	scale int
	some  bool // units and scale are in use

	floats    bool
	sum, rest float64 // of floats: the sum and what it lost
	magnitude float64
	misfits   int64 // cells that are no numbers
}

// Tolerance is how far two sums that hold floats may differ, as a part of the sum of their magnitudes.
const Tolerance = 1e-9

// Add adds a cell. NULL adds nothing, and what is no number is counted as a misfit.
func (s *Sum) Add(v *source.Value) {
	switch v.Kind {
	case source.KindNull:
	case source.KindInt, source.KindBool:
		s.addInt(v.Int)
	case source.KindFloat:
		s.addFloat(v.Float)
	case source.KindDecimal:
		s.addDecimal(v.Text)
	default:
		s.misfits++
	}
}

func (s *Sum) addInt(n int64) {
	total := s.ints + n
	if (total > s.ints) == (n > 0) {
		s.ints = total
		return
	}
	s.spill(new(big.Rat).SetInt64(s.ints))
	s.ints = n
}

func (s *Sum) spill(r *big.Rat) {
	if s.exact == nil {
		s.exact = new(big.Rat)
	}
	s.exact.Add(s.exact, r)
}

func (s *Sum) addFloat(x float64) {
	s.floats = true
	s.magnitude += math.Abs(x)
	total := s.sum + x
	if math.Abs(s.sum) >= math.Abs(x) {
		s.rest += (s.sum - total) + x
	} else {
		s.rest += (x - total) + s.sum
	}
	s.sum = total
}

// addDecimal is quick for decimals of up to 18 digits that all have the same number of digits after the point.
func (s *Sum) addDecimal(text []byte) {
	units, scale, ok := smallDecimal(text)
	if ok && (!s.some || scale == s.scale) {
		if total := s.units + units; (total > s.units) == (units > 0) {
			s.units, s.scale, s.some = total, scale, true
			return
		}
	}
	r, valid := new(big.Rat).SetString(string(text))
	if !valid {
		s.misfits++
		return
	}
	s.spill(r)
}

func smallDecimal(text []byte) (units int64, scale int, ok bool) {
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 19 {
		return 0, 0, false
	}
	point, digits := -1, 0
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			units = units*10 + int64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = i
		default:
			return 0, 0, false
		}
	}
	if point >= 0 {
		scale = len(text) - point - 1
	}
	if negative {
		units = -units
	}
	return units, scale, digits > 0 && digits <= 18
}

// Merge adds another sum, so that chunks are summed up as their rows would have been.
func (s *Sum) Merge(o Sum) {
	if r := o.rational(); r.Sign() != 0 {
		s.spill(r)
	}
	if o.floats {
		magnitude := s.magnitude + o.magnitude
		s.addFloat(o.sum)
		s.addFloat(o.rest)
		s.magnitude = magnitude
	}
	s.misfits += o.misfits
}

// rational is the exact part.
func (s *Sum) rational() *big.Rat {
	r := new(big.Rat).SetInt64(s.ints)
	if s.some {
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s.scale)), nil)
		r.Add(r, new(big.Rat).SetFrac(big.NewInt(s.units), unit))
	}
	if s.exact != nil {
		r.Add(r, s.exact)
	}
	return r
}

func (s *Sum) special() bool { return math.IsNaN(s.sum) || math.IsInf(s.sum, 0) }

// float is the whole sum where it holds floats.
func (s *Sum) float() float64 {
	if s.special() {
		return s.sum
	}
	whole, _ := s.rational().Float64()
	return whole + (s.sum + s.rest)
}

// String is the sum as people read it: all its digits where it is exact, otherwise the nearest float's.
func (s Sum) String() string {
	if s.floats {
		return strconv.FormatFloat(s.float(), 'g', -1, 64)
	}
	return decimalText(s.rational())
}

// decimalText writes a rational whose denominator divides a power of ten, without an exponent.
func decimalText(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

// EncodeSum spells a sum for a record: exact ones as their digits, ones that hold floats with a ~ and the sum of their
// magnitudes behind.
func EncodeSum(s Sum) string {
	text := s.String()
	if s.floats {
		exact, _ := new(big.Rat).Abs(s.rational()).Float64()
		text += "~" + strconv.FormatFloat(s.magnitude+exact, 'g', -1, 64)
	}
	return text
}

// DecodeSum reads what EncodeSum spelled.
func DecodeSum(text string) (Sum, error) {
	var s Sum
	bad := func() (Sum, error) { return s, fmt.Errorf("the sum %q is no number", failure.Cut(text, 80)) }
	number, magnitude, floats := strings.Cut(text, "~")
	if !floats {
		if !isDecimal(number) {
			return bad()
		}
		s.addDecimal([]byte(number))
		return s, nil
	}
	sum, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return bad()
	}
	m, err := strconv.ParseFloat(magnitude, 64)
	if err != nil {
		return bad()
	}
	s.floats, s.sum, s.magnitude = true, sum, m
	return s, nil
}

// Equal reports whether the sums are the same number: exactly where both are exact, otherwise within Tolerance of the
// sum of magnitudes. What a control query says has no magnitudes beside it, so that those of the rows count.
func (s Sum) Equal(o Sum) bool {
	if !s.floats && !o.floats {
		return s.rational().Cmp(o.rational()) == 0
	}
	a, b := s.float(), o.float()
	if !s.floats {
		a, _ = s.rational().Float64()
	}
	if !o.floats {
		b, _ = o.rational().Float64()
	}
	if s.special() || o.special() {
		return a == b || math.IsNaN(a) && math.IsNaN(b)
	}
	return math.Abs(a-b) <= Tolerance*max(s.magnitude, o.magnitude, math.Abs(a), math.Abs(b))
}

// value is the sum as a float, for shares.
func (s Sum) value() float64 {
	if s.floats {
		return s.float()
	}
	f, _ := s.rational().Float64()
	return f
}
