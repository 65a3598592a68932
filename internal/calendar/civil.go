package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// Civil times are local clock readings without a zone; they are held as time.Time in UTC, where no clock ever jumps.

// searchYears is how far civil.next looks. The longest wait between two days that five fields can name is 40 years: a
// February 29 on a given weekday across a year such as 2100.
const searchYears = 41

// civil finds the civil times that a cron line matches.
//
// The library knows the years 1970 to 2099 only, so each year is searched through its twin: the year from 2000 to 2027
// that has the same length and begins on the same weekday, hence the same calendar.
type civil struct {
	fields
	expr cronexpr.Expression
}

// newCivil hands the fields to the library as explicit lists: its own reading of ranges drops Sunday from "FRI-SUN" and
// takes dialects that Parse refuses.
func newCivil(f fields) (*civil, error) {
	line := strings.Join([]string{
		numbers(f.minute), numbers(f.hour), f.dayList(), numbers(f.month), f.weekdayList(), "2000-2027",
	}, " ")
	e, err := cronexpr.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", line, err)
	}
	return &civil{f, *e}, nil
}

// next returns the first match strictly after c, to the second; zero if there is none within searchYears.
func (v *civil) next(c time.Time) time.Time {
	e := v.expr // a copy: the library writes to the expression while it searches
	for y := c.Year(); y <= c.Year()+searchYears; y++ {
		from := time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second)
		if c.After(from) {
			from = c
		}
		shift := twin(y) - y
		n := e.Next(moveYears(from, shift))
		if !n.IsZero() && n.Year() == y+shift {
			return moveYears(n, -shift)
		}
	}
	return time.Time{}
}

func (v *civil) horizon(c time.Time) time.Time { return c.AddDate(searchYears, 0, 0) }

func (v *civil) instants() bool { return v.everyHour }

func (v *civil) passed(time.Time) string { return "" }

// moveYears keeps month, day and time. Both years have the same calendar, or the day is December 31.
func moveYears(t time.Time, years int) time.Time {
	return time.Date(t.Year()+years, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// twin is the year from 2000 to 2027 with the calendar of y.
func twin(y int) int {
	for t := 2000; t < 2028; t++ {
		if leap(t) == leap(y) && firstWeekday(t) == firstWeekday(y) {
			return t
		}
	}
	panic("calendar: 28 years in a row hold each of the 14 calendars")
}

func leap(y int) bool { return Month{y, time.February}.days() == 29 }

func firstWeekday(y int) time.Weekday { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).Weekday() }

// numbers writes the bits of a set as a list.
func numbers(set uint64) string { return strings.Join(appendNumbers(nil, set, ""), ",") }

func appendNumbers(list []string, set uint64, suffix string) []string {
	for i := range 64 {
		if set>>i&1 == 1 {
			list = append(list, strconv.Itoa(i)+suffix)
		}
	}
	return list
}

func (f *fields) dayList() string {
	if !f.daySet {
		return "*"
	}
	list := appendNumbers(nil, f.day, "")
	if f.lastDay {
		list = append(list, "L")
	}
	return strings.Join(list, ",")
}

func (f *fields) weekdayList() string {
	if !f.weekdaySet {
		return "*"
	}
	list := appendNumbers(nil, f.weekday, "")
	list = appendNumbers(list, f.lastWeekday, "L")
	for d, weeks := range f.nth {
		for _, k := range appendNumbers(nil, weeks, "") {
			list = append(list, fmt.Sprintf("%d#%s", d, k))
		}
	}
	return strings.Join(list, ",")
}
