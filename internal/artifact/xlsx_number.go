package artifact

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// maxScale is how many decimals a number format of Excel may show.
const maxScale = 30

// smallestDouble is the smallest that Excel holds, as "Excel specifications and limits" has it: 2.2251E-308.
const smallestDouble = 0x1p-1022

// scale is how many decimals a number without an exponent shows; not ok: it has one, or more than Excel shows.
func scale(s []byte) (decimals int, ok bool) {
	if bytes.ContainsAny(s, "eE") {
		return 0, false
	}
	_, fraction, _ := bytes.Cut(s, []byte("."))
	return len(fraction), len(fraction) <= maxScale
}

// holdable reports whether Excel has such a number.
func holdable(f float64) bool {
	return f == 0 || math.Abs(f) >= smallestDouble && math.Abs(f) <= math.MaxFloat64
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
