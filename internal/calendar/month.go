package calendar

import (
	"fmt"
	"time"
)

// Month is a calendar month, the period of reports. The zero value is no month.
type Month struct {
	Year  int
	Month time.Month
}

// ParseMonth reads "2026-02". Its error is a *FieldError for field "month".
func ParseMonth(s string) (Month, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil || t.Year() < 1 || t.Format("2006-01") != s {
		return Month{}, &FieldError{"month", s, "is no month", `four digits, "-", two digits from 01 to 12, such as "2026-02"`}
	}
	return Month{t.Year(), t.Month()}, nil
}

func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m.Year, int(m.Month)) }

// MarshalText writes the form that ParseMonth reads.
func (m Month) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads as ParseMonth does.
func (m *Month) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMonth(string(b))
	return err
}

// Add returns the month n months later; earlier if n is negative. Days do not come into it, so a month after that of 31
// January is February.
func (m Month) Add(n int) Month {
	t := time.Date(m.Year, m.Month+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	return Month{t.Year(), t.Month()}
}

// Bounds returns the month's time in a zone as [start, end), in UTC. A month starts at the first instant that shows its
// first midnight, or after the gap if clocks leave that out; one month's end is the next one's start.
func (m Month) Bounds(loc *time.Location) (start, end time.Time) {
	z := zone{loc}
	return z.startOf(m), z.startOf(m.Add(1))
}

func (z zone) startOf(m Month) time.Time {
	return z.first(m.first())
}

// first is the month's first midnight, civil.
func (m Month) first() time.Time { return time.Date(m.Year, m.Month, 1, 0, 0, 0, 0, time.UTC) }

// monthAt is the month of a civil time.
func monthAt(c time.Time) Month { return Month{c.Year(), c.Month()} }

// MonthOf returns the month whose Bounds in the zone hold t. Where clocks go back across midnight of the first, that may
// be a month later than what the clock shows.
func MonthOf(t time.Time, loc *time.Location) Month {
	m := zone{loc}.month(t)
	if _, end := m.Bounds(loc); !t.Before(end) {
		return m.Add(1)
	}
	return m
}

// Before reports whether the month comes before another one.
func (m Month) Before(o Month) bool { return m.Year < o.Year || m.Year == o.Year && m.Month < o.Month }

// days is how many days the month has.
func (m Month) days() int { return time.Date(m.Year, m.Month+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// hasFifth reports whether the weekday comes five times.
func (m Month) hasFifth(d time.Weekday) bool {
	first := m.first().Weekday()
	return 29+(int(d)-int(first)+7)%7 <= m.days()
}
