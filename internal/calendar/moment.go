package calendar

import (
	"fmt"
	"regexp"
	"time"
)

// What definitions write as text: durations, and moments.

const wantMoment = `a date and time, local such as "2026-03-01T09:00" or with an offset such as "2026-03-01T09:00:00-05:00", in the years 1970 to 9999`

// durationForm takes whole hours, minutes and seconds, in this order. Fractions, signs and days, whose length depends on
// the clocks, are refused rather than guessed.
var durationForm = regexp.MustCompile(`^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$`)

// parseDuration reads a duration from lo to hi, whole seconds.
func parseDuration(field, text string, lo, hi time.Duration) (time.Duration, error) {
	want := fmt.Sprintf(`%s to %s, in whole hours, minutes and seconds such as "6h", "90m" or "1h30m"; a day is "24h"`, short(lo), short(hi))
	d, err := time.ParseDuration(text)
	switch {
	case err != nil, !durationForm.MatchString(text):
		return 0, &FieldError{field, text, "is no duration", want}
	case d < lo:
		return 0, &FieldError{field, text, "is too short", want}
	case d > hi:
		return 0, &FieldError{field, text, "is too long", want}
	}
	return d, nil
}

// short writes whole hours, minutes and seconds without the parts that are zero.
func short(d time.Duration) string {
	text := ""
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.size; n > 0 {
			text += fmt.Sprint(int64(n)) + u.name
			d -= n * u.size
		}
	}
	return text
}

const (
	localSeconds = "2006-01-02T15:04:05"
	localMinutes = "2006-01-02T15:04"
)

// parseMoment reads RFC 3339 to the second, or a local time. A local time that comes twice is the first, one that a
// change of the clocks leaves out is the first instant after the gap, whatever the gap policy: it is a bound, nothing
// that could be skipped.
func (z zone) parseMoment(field, text string) (time.Time, error) {
	var t time.Time
	if v, err := time.Parse(time.RFC3339, text); err == nil && exact(v, text) {
		t = v.UTC()
	} else if c, ok := parseLocal(text); ok {
		if z.loc == nil {
			return time.Time{}, nil // the zone is reported
		}
		t = z.first(c)
	} else {
		return t, &FieldError{field, text, "is no date and time", wantMoment}
	}
	if t.Year() < 1970 || t.Year() > maxYear {
		return t, &FieldError{field, text, "is out of range", wantMoment}
	}
	return t, nil
}

// exact refuses what time.Parse takes beyond RFC 3339 to the second: fractions, offsets that no zone has.
func exact(t time.Time, text string) bool {
	_, off := t.Zone()
	return (t.Format(time.RFC3339) == text || t.Format("2006-01-02T15:04:05-07:00") == text) && (time.Duration(off)*time.Second).Abs() <= widest
}

// parseLocal returns a local time as civil time.
func parseLocal(text string) (time.Time, bool) {
	for _, form := range []string{localSeconds, localMinutes} {
		if c, err := time.Parse(form, text); err == nil && c.Format(form) == text {
			return c, true
		}
	}
	return time.Time{}, false
}

// first is the first instant that shows c, or the first after the gap that leaves it out.
func (z zone) first(c time.Time) time.Time {
	p := z.locate(c)
	if len(p.shown) == 0 {
		return p.gap.at
	}
	return p.shown[0]
}
