package artifact

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
	"time"
)

const (
	maxExactInt = 1 << 53 // beyond it neighbours share a double
	sureDigits  = 15      // a decimal of so many digits comes back from its double whatever it is
	maxScale    = 30      // decimals that a number format of Excel may show
	// Excel holds nothing smaller, as "Excel specifications and limits" has it: 2.2251E-308.
	smallestDouble = 0x1p-1022
)

// plainDecimal reports whether a decimal is written as Excel would read it and comes back from a double for sure, and how
// many decimals it shows.
func plainDecimal(s []byte) (scale int, ok bool) {
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	whole, fraction, pointed := bytes.Cut(s, []byte("."))
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' || pointed && len(fraction) == 0 || len(fraction) > maxScale {
		return 0, false
	}
	digits := 0
	for _, part := range [2][]byte{whole, fraction} {
		for _, c := range part {
			if c < '0' || c > '9' {
				return 0, false
			}
			if digits > 0 || c != '0' {
				digits++
			}
		}
	}
	return len(fraction), digits <= sureDigits
}

// exactFloat is the double that gives a decimal's very digits back, if there is one.
func exactFloat(s []byte) (float64, bool) {
	if !plainNumber(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || !holdable(f) {
		return 0, false
	}
	var room [32]byte
	digits, exponent, ok := significant(s)
	back, same, _ := significant(strconv.AppendFloat(room[:0], f, 'e', -1, 64))
	return f, ok && exponent == same && bytes.Equal(digits, back)
}

// holdable reports whether Excel has such a number.
func holdable(f float64) bool {
	return f == 0 || math.Abs(f) >= smallestDouble && math.Abs(f) <= math.MaxFloat64
}

// significant are a number's digits without zeros at their ends, and the power of ten of the point before them.
func significant(s []byte) (digits []byte, exponent int, ok bool) {
	s = bytes.TrimLeft(s, "+-")
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(string(s[i+1:]))
		if err != nil {
			return nil, 0, false
		}
		s, exponent = s[:i], n
	}
	whole, fraction, _ := bytes.Cut(s, []byte("."))
	exponent += len(whole)
	digits = append(append(make([]byte, 0, len(s)), whole...), fraction...)
	full := len(digits)
	digits = bytes.TrimLeft(digits, "0")
	exponent -= full - len(digits)
	digits = bytes.TrimRight(digits, "0")
	if len(digits) == 0 {
		exponent = 0
	}
	return digits, exponent, true
}

// What Excel can show as a date, in seconds since 1970 of the local clock: from 1 March 1900, since it counts a 29 February
// 1900 that never was (https://learn.microsoft.com/office/troubleshoot/excel/wrongly-assumes-1900-is-leap-year), to the
// end of the year 9999.
const (
	firstSerial = -2203891200
	lastSerial  = lastSecond
	serialOf70  = 25569 // the serial number of 1 January 1970
)

// fractionDigits of a day are a fraction of a microsecond, about what a double holds beside today's days.
const (
	fractionDigits = 11
	fractionUnit   = 100_000_000_000
	dayNanos       = day * 1_000_000_000
)

// appendSerial appends a time of the local clock, given in seconds since 1970 and nanoseconds, as the serial number by
// which Excel counts days.
func appendSerial(b []byte, local int64, nanos int) []byte {
	d := local / day
	rest := local - d*day
	if rest < 0 {
		d--
		rest += day
	}
	b = strconv.AppendInt(b, d+serialOf70, 10)
	if rest == 0 && nanos == 0 {
		return b
	}
	high, low := bits.Mul64(uint64(rest)*1_000_000_000+uint64(nanos), fractionUnit)
	low, carry := bits.Add64(low, dayNanos/2, 0)
	part, _ := bits.Div64(high+carry, low, dayNanos)
	part = min(part, fractionUnit-1) // the last moment of a day stays in it
	digits := [1 + fractionDigits]byte{'.'}
	for i := fractionDigits; i > 0; i-- {
		digits[i] = byte('0' + part%10)
		part /= 10
	}
	return append(b, bytes.TrimRight(digits[:], ".0")...)
}

// offsets knows by how much a zone's clocks differ from UTC; neighbouring rows mostly ask for the same time of year.
type offsets struct {
	zone     *time.Location
	from, to int64 // seconds since 1970 for which seconds is right; none where they are equal
	seconds  int64
}

// local is a time by the zone's clocks, in seconds since 1970.
func (o *offsets) local(t time.Time) int64 {
	unix := t.Unix()
	if unix < o.from || unix >= o.to {
		there := t.In(o.zone)
		_, n := there.Zone()
		from, to := there.ZoneBounds()
		o.from, o.to, o.seconds = math.MinInt64, math.MaxInt64, int64(n)
		if !from.IsZero() {
			o.from = from.Unix()
		}
		if !to.IsZero() {
			o.to = to.Unix()
		}
	}
	return unix + o.seconds
}

// isoTime is the ISO 8601 text of a date, or of a time in UTC; years of other than four digits have a sign and at least
// five, by its expanded form.
func isoTime(t time.Time, clock bool) []byte {
	t = t.UTC()
	if unix := t.Unix(); unix >= firstSecond && unix <= lastSecond {
		return new(dayCache).append(nil, t, clock)
	}
	layout, sign, year := "-01-02", byte('+'), t.Year()
	if clock {
		layout = "-01-02T15:04:05.999999999Z07:00"
	}
	if year < 0 {
		sign, year = '-', -year
	}
	text := strconv.Itoa(year)
	for len(text) < 5 {
		text = "0" + text
	}
	return t.AppendFormat(append([]byte{sign}, text...), layout)
}
