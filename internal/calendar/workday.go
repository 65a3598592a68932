package calendar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxHolidays is how many dates a recurrence may list.
	MaxHolidays = 400
	// maxNamed is how many bad holidays are named: enough to see the mistake.
	maxNamed = 10
	// maxWorkdays is how many weekdays a month has at most.
	maxWorkdays = 23
)

// workdays is a pattern: the n-th workday of each month at one time. A workday is a day from Monday to Friday that is
// not listed as a holiday.
type workdays struct {
	n        int // counted from the month's end if negative
	at       time.Duration
	holidays map[time.Time]bool // midnights, civil
	latest   time.Time          // the latest holiday
}

func parseWorkdays(s Spec) (*workdays, error) {
	w := &workdays{n: *s.Workday, holidays: map[time.Time]bool{}}
	var errs []error
	if w.n == 0 || w.n < -maxWorkdays || w.n > maxWorkdays {
		errs = append(errs, &FieldError{"workday", strconv.Itoa(w.n), "is no workday of a month",
			"1 to 23 from the month's start, or -1 to -23 from its end; -1 is the last"})
	}
	at, err := time.Parse("15:04", s.At)
	switch {
	case s.At == "":
		errs = append(errs, &FieldError{"at", "", "is empty", `the local time for workday, such as "09:00"`})
	case err != nil || at.Format("15:04") != s.At:
		errs = append(errs, &FieldError{"at", s.At, "is no time of a day", `"HH:MM" from "00:00" to "23:59"`})
	}
	w.at = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	return w, errors.Join(append(errs, w.parseHolidays(s.Holidays))...)
}

func (w *workdays) parseHolidays(list []string) error {
	if len(list) > MaxHolidays {
		return &FieldError{"holidays", fmt.Sprintf("%d dates", len(list)), "are too many", fmt.Sprintf("at most %d", MaxHolidays)}
	}
	var errs []error
	for i, text := range list {
		if len(errs) == maxNamed {
			break
		}
		d, err := time.Parse(time.DateOnly, text)
		field := fmt.Sprintf("holidays[%d]", i)
		switch {
		case err != nil || d.Year() < 1970 || d.Format(time.DateOnly) != text:
			errs = append(errs, &FieldError{field, text, "is no date", `"YYYY-MM-DD" in the years 1970 to 9999, such as "2026-12-25"`})
		case w.holidays[d]:
			errs = append(errs, &FieldError{field, text, "is listed twice", "each date once"})
		}
		w.holidays[d] = true
		if d.After(w.latest) {
			w.latest = d
		}
	}
	return errors.Join(errs...)
}

// withoutWorkday refuses what only workday gives a meaning.
func withoutWorkday(s Spec) error {
	if s.Workday != nil {
		return nil
	}
	var errs []error
	if s.At != "" {
		errs = append(errs, &FieldError{"at", s.At, "stands without workday", "at with workday only; cron has the time in its first two fields"})
	}
	if len(s.Holidays) > 0 {
		errs = append(errs, &FieldError{"holidays", strings.Join(s.Holidays, ", "), "stands without workday", "holidays with workday only"})
	}
	return errors.Join(errs...)
}

// day is the day of the month that is meant; 0 if the month has fewer workdays.
func (w *workdays) day(m Month) int {
	left, d, step := w.n, 1, 1
	if left < 0 {
		left, d, step = -left, m.days(), -1
	}
	for first := m.first(); d >= 1 && d <= 31; d += step {
		c := first.AddDate(0, 0, d-1)
		if c.Month() != m.Month {
			break
		}
		if !weekend(c) && !w.holidays[c] {
			if left--; left == 0 {
				return d
			}
		}
	}
	return 0
}

func weekend(c time.Time) bool { return c.Weekday() == time.Saturday || c.Weekday() == time.Sunday }

func (w *workdays) next(c time.Time) time.Time {
	limit := w.horizon(c)
	for m := monthAt(c); !m.first().After(limit); m = m.Add(1) {
		if d := w.day(m); d > 0 {
			if t := m.first().AddDate(0, 0, d-1).Add(w.at); t.After(c) {
				return t
			}
		}
	}
	return time.Time{}
}

// horizon lies beyond the holidays: enough of them can keep a 23rd workday away for a century.
func (w *workdays) horizon(c time.Time) time.Time {
	if w.latest.After(c) {
		c = w.latest
	}
	return c.AddDate(searchYears, 0, 0)
}

func (w *workdays) absent(m Month) string {
	if w.day(m) > 0 {
		return ""
	}
	return workdayName(w.n)
}

func (w *workdays) instants() bool { return false }

// passed names the holidays that moved the occurrence: those between the month's edge and its day.
func (w *workdays) passed(c time.Time) string {
	m := monthAt(c)
	from, to := 1, c.Day()
	if w.n < 0 {
		from, to = c.Day(), m.days()
	}
	var list []string
	for d := from; d <= to; d++ {
		if day := m.first().AddDate(0, 0, d-1); !weekend(day) && w.holidays[day] {
			list = append(list, day.Format(time.DateOnly))
		}
	}
	if list == nil {
		return ""
	}
	return "not counted as workdays, since listed as holidays: " + strings.Join(list, ", ")
}

// workdayName is "workday 3", "last workday" or "workday 2 from the end".
func workdayName(n int) string {
	switch {
	case n == -1:
		return "last workday"
	case n < 0:
		return fmt.Sprintf("workday %d from the end", -n)
	}
	return fmt.Sprintf("workday %d", n)
}
