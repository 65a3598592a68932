package artifact

import "time"

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
		copy(c.text[:], t.UTC().AppendFormat(c.text[:0], time.DateOnly))
	}
	b = append(b, c.text[:]...)
	if !clock {
		return b
	}
	h, m, s := rest/3600, rest/60%60, rest%60
	b = append(b, 'T', byte('0'+h/10), byte('0'+h%10), ':', byte('0'+m/10), byte('0'+m%10), ':', byte('0'+s/10), byte('0'+s%10))
	return append(appendFraction(b, t.Nanosecond()), 'Z')
}

// appendFraction writes nanoseconds in as few groups of three digits as hold them.
func appendFraction(b []byte, ns int) []byte {
	if ns == 0 {
		return b
	}
	b = append(b, '.')
	for scale := 100_000_000; ns != 0; {
		for range 3 {
			b = append(b, byte('0'+ns/scale))
			ns %= scale
			scale /= 10
			if scale == 0 {
				return b
			}
		}
	}
	return b
}
