package artifact

import (
	"time"

	"almanac/internal/failure"
)

const day = 24 * 60 * 60

// dayCache keeps the text of the last day that a column held: neighbouring rows often share it, and the calendar is
// the dear part of a time stamp.
type dayCache struct {
	day  int64 // days since 1970
	text [10]byte
	set  bool
}

// append writes a time in UTC, its year being between 0 and 9999.
func (c *dayCache) append(b []byte, t time.Time, clock bool) []byte {
	seconds := t.Unix()
	d := seconds / day
	rest := int(seconds - d*day)
	if rest < 0 {
		d--
		rest += day
	}
	if d != c.day || !c.set {
		c.day, c.set = d, true
		c.text = date(d)
	}
	if !clock {
		return append(b, c.text[:]...)
	}
	// one append of a fixed length costs a third of several
	var out [20]byte
	copy(out[:], c.text[:])
	h, m, s := rest/3600, rest/60%60, rest%60
	out[10], out[13], out[16], out[19] = 'T', ':', ':', 'Z'
	out[11], out[12] = tens[h], ones[h]
	out[14], out[15] = tens[m], ones[m]
	out[17], out[18] = tens[s], ones[s]
	ns := t.Nanosecond()
	if ns == 0 {
		return append(b, out[:]...)
	}
	return append(appendFraction(append(b, out[:19]...), ns), 'Z')
}

// The seconds that have a date of four digits: year 0 up to the end of year 9999.
const (
	firstSecond = -62167219200
	lastSecond  = 253402300799
)

// fourDigits reports whether a time has a date of four digits, in UTC.
func fourDigits(t time.Time) bool { return firstSecond <= t.Unix() && t.Unix() <= lastSecond }

// wrongYear refuses a time of the i-th column, which has no date of four digits.
func wrongYear(i int, t time.Time, kind string) error {
	return failure.New(failure.FileUnsupported, "column %d holds the year %d; %s takes years 0 to 9999: convert the column to text in the query", i+1, t.UTC().Year(), kind)
}

// date is the Gregorian date of a day since 1970, from year 0 to 9999. It counts in years that begin in March, so that
// the leap day is a year's last, and in whole cycles of 400, 100 and 4 years:
// https://howardhinnant.github.io/date_algorithms.html#civil_from_days explains the method.
func date(days int64) [10]byte {
	const cycle = 146097               // days of 400 years
	n := uint32(days + 719468 + cycle) // since 1 March of the year -400
	era, inEra := n/cycle, n%cycle     // cycles of 400 years
	year := (inEra - inEra/1460 + inEra/36524 - inEra/146096) / 365
	inYear := inEra - (365*year + year/4 - year/100)
	march := (5*inYear + 2) / 153 // months since March
	dayOf := inYear - (153*march+2)/5 + 1
	month := march + 3
	year += era * 400
	if month > 12 {
		month -= 12
		year++
	}
	year -= 400
	century, rest := year/100, year%100
	return [10]byte{'0' + byte(century/10), '0' + byte(century%10), '0' + byte(rest/10), '0' + byte(rest%10), '-',
		'0' + byte(month/10), '0' + byte(month%10), '-', '0' + byte(dayOf/10), '0' + byte(dayOf%10)}
}

// tens and ones are the digits of 0 to 59.
var tens, ones = func() (t, o [60]byte) {
	for i := range t {
		t[i], o[i] = byte('0'+i/10), byte('0'+i%10)
	}
	return t, o
}()

// appendFraction writes nanoseconds, of which there are some, in as few groups of three digits as hold them.
func appendFraction(b []byte, ns int) []byte {
	if milli := ns / 1_000_000; milli*1_000_000 == ns {
		return append(b, '.', byte('0'+milli/100), byte('0'+milli/10%10), byte('0'+milli%10))
	}
	digits := [10]byte{'.'}
	for i := 9; i > 0; i-- {
		digits[i] = byte('0' + ns%10)
		ns /= 10
	}
	if digits[7] == '0' && digits[8] == '0' && digits[9] == '0' {
		return append(b, digits[:7]...)
	}
	return append(b, digits[:]...)
}
