package calendar

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

const wantCron = "exactly five fields: minute hour day-of-month month day-of-week"

// fields is a cron line that was checked: a bit for each value that matches.
type fields struct {
	minute, hour, day, month, weekday uint64
	everyHour                         bool // the hour field is * or */n: the rule means instants
	daySet, weekdaySet                bool // the field restricts; with both set, either matches
	lastDay                           bool // L: the last day of the month
	lastWeekday                       uint64
	nth                               [7]uint64 // by weekday: bit k is set for #k
}

// field describes the values of one position of a cron line.
type field struct {
	name   string
	lo, hi int
	names  string // three letters each, from lo on
}

var (
	minuteField  = field{"minute", 0, 59, ""}
	hourField    = field{"hour", 0, 23, ""}
	dayField     = field{"day-of-month", 1, 31, ""}
	monthField   = field{"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}
	weekdayField = field{"day-of-week", 0, 7, "SUNMONTUEWEDTHUFRISAT"}
)

// parseFields checks a cron line strictly: what is ambiguous between cron dialects is refused, never guessed.
func parseFields(cron string) (fields, error) {
	var f fields
	if problem, want := shape(cron); problem != "" {
		return f, &FieldError{"cron", cron, problem, want}
	}
	part := strings.Fields(strings.ToUpper(cron))
	for _, step := range []func() error{
		func() error { return minuteField.list(part[0], minuteField.plain(&f.minute)) },
		func() error { return hourField.list(part[1], hourField.plain(&f.hour)) },
		func() error { return dayField.list(part[2], f.dayItem) },
		func() error { return monthField.list(part[3], monthField.plain(&f.month)) },
		func() error { return weekdayField.list(part[4], f.weekdayItem) },
	} {
		if err := step(); err != nil {
			e := err.(*itemError)
			return f, &FieldError{"cron", cron, e.problem, e.want}
		}
	}
	f.everyHour = strings.HasPrefix(part[1], "*")
	f.daySet, f.weekdaySet = !everyDay(part[2]), !everyDay(part[4])
	if f.never() {
		return f, &FieldError{"cron", cron, "is never due: no month it names has such a day", "a day that occurs in one of its months"}
	}
	return f, nil
}

// everyDay holds for * and */1. Taken as set, */1 beside a weekday would turn "Mondays" into "every day".
func everyDay(part string) bool { return part == "*" || part == "*/1" }

// shape checks what can be checked before the line is split; no problem is "".
func shape(cron string) (problem, want string) {
	n := len(strings.Fields(cron))
	switch {
	case len(cron) > MaxCron:
		return fmt.Sprintf("has %d bytes", len(cron)), fmt.Sprintf("at most %d", MaxCron)
	case n == 0:
		return "is empty", wantCron + "; or every, or workday, instead of cron"
	case strings.HasPrefix(strings.TrimSpace(cron), "@"):
		return "is a macro", wantCron + `, such as "0 0 * * *" for every day`
	case n == 1:
		return "has 1 field", wantCron
	case n != 5:
		return fmt.Sprintf("has %d fields", n), wantCron
	case strings.Contains(cron, "?"):
		return `contains "?"`, `"*" for a day field that does not restrict`
	}
	for _, c := range cron {
		if !strings.ContainsRune(" \t*/,-#", c) && !(c >= '0' && c <= '9') && !(c|0x20 >= 'a' && c|0x20 <= 'z') {
			return fmt.Sprintf("contains %q", c), `digits, names, spaces and "* / , - # L" only`
		}
	}
	return "", ""
}

// itemError is a problem inside one field; parseFields adds the line.
type itemError struct{ problem, want string }

func (e *itemError) Error() string { return e.problem + "; want " + e.want }

func (d field) bad(item, problem, want string) error {
	return &itemError{fmt.Sprintf("has a bad %s: %s %s", d.name, show(item), problem), want}
}

// list hands each item of a comma-separated field to take.
func (d field) list(part string, take func(item string) error) error {
	items := strings.Split(part, ",")
	for _, it := range items {
		if it == "" {
			return d.bad(part, "has an empty place in its list", "values with one comma between them")
		}
		if it[0] == '*' && len(items) > 1 {
			return d.bad(part, `has "*" inside a list`, `"*" or "*/n" alone, or ranges such as `+fmt.Sprintf("%d-%d/5", d.lo, d.hi))
		}
		if err := take(it); err != nil {
			return err
		}
	}
	return nil
}

// plain takes values, ranges and steps into set.
func (d field) plain(set *uint64) func(string) error {
	return func(item string) error {
		span, step, stepped := strings.Cut(item, "/")
		lo, hi, err := d.span(span, item, stepped)
		if err != nil {
			return err
		}
		n := 1
		if stepped {
			widest := max(hi-lo, 1)
			if n, err = digits(step); err != nil || n < 1 || n > widest {
				return d.bad(item, "has a bad step", fmt.Sprintf("a step from 1 to %d", widest))
			}
		}
		for v := lo; v <= hi; v += n {
			*set |= 1 << v
		}
		return nil
	}
}

// span reads *, a value, or a range; a step needs one of * and a range, since dialects differ on what "5/15" means.
func (d field) span(span, item string, stepped bool) (lo, hi int, err error) {
	if span == "*" {
		if d.hi == 7 {
			return d.lo, 6, nil // Sunday once
		}
		return d.lo, d.hi, nil
	}
	from, to, ranged := strings.Cut(span, "-")
	if stepped && !ranged {
		return 0, 0, d.bad(item, "has a step on a single value", fmt.Sprintf(`a range before the "/", such as "%s-%d/2"`, from, d.hi))
	}
	if lo, err = d.value(from, item); err != nil || !ranged {
		return lo, lo, err
	}
	if hi, err = d.value(to, item); err != nil {
		return 0, 0, err
	}
	if d.hi == 7 && to == "SUN" && lo > 0 {
		hi = 7 // FRI-SUN ends with the week's last day
	}
	if hi < lo {
		return 0, 0, d.bad(item, "runs backwards", "the smaller value first, or two ranges with a comma")
	}
	return lo, hi, nil
}

// value reads one number or name.
func (d field) value(s, item string) (int, error) {
	if len(s) == 3 && len(d.names) > 0 {
		if i := strings.Index(d.names, s); i >= 0 && i%3 == 0 {
			return d.lo + i/3, nil
		}
	}
	n, err := digits(s)
	if err == nil && n >= d.lo && n <= d.hi {
		return n, nil
	}
	want := fmt.Sprintf("%d to %d", d.lo, d.hi)
	if d.names != "" {
		want += fmt.Sprintf(" or %s to %s", d.names[:3], d.names[len(d.names)-3:])
	}
	if err == nil {
		return 0, d.bad(item, "is out of range", want)
	}
	return 0, d.bad(item, "is not understood", want)
}

// digits reads one or two decimal digits, and nothing else: no sign, no spaces.
func digits(s string) (int, error) {
	if len(s) < 1 || len(s) > 2 || s[0] < '0' || s[0] > '9' {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

// dayItem takes an item of the day of month: L, or plain values.
func (f *fields) dayItem(item string) error {
	if item == "L" {
		f.lastDay = true
		return nil
	}
	if strings.HasPrefix(item, "L") || strings.HasSuffix(item, "W") {
		return dayField.bad(item, "is not understood", `1 to 31, or "L" for the last day`)
	}
	return dayField.plain(&f.day)(item)
}

// weekdayItem takes an item of the day of week: 5L, 5#3, or plain values.
func (f *fields) weekdayItem(item string) error {
	if day, week, found := strings.Cut(item, "#"); found {
		v, err := weekdayField.value(day, item)
		if err != nil {
			return err
		}
		n, err := digits(week)
		if err != nil || n < 1 || n > 5 || len(week) > 1 {
			return weekdayField.bad(item, "names no week of a month", `#1 to #5, such as "5#3" for the third Friday`)
		}
		f.nth[v%7] |= 1 << n
		return nil
	}
	if item == "L" {
		return weekdayField.bad(item, "names no day", `a day before it, such as "5L" for the last Friday`)
	}
	if day, found := strings.CutSuffix(item, "L"); found {
		v, err := weekdayField.value(day, item)
		if err != nil {
			return err
		}
		f.lastWeekday |= 1 << (v % 7)
		return nil
	}
	var set uint64
	if err := weekdayField.plain(&set)(item); err != nil {
		return err
	}
	f.weekday |= set&0x7f | set>>7&1 // 7 is Sunday too
	return nil
}

// never holds when no month named has a day named. Only days of the month can be so: each weekday, the fifth of February
// too, comes within 40 years.
func (f *fields) never() bool {
	if !f.daySet || f.weekdaySet || f.lastDay {
		return false
	}
	for m := time.January; m <= time.December; m++ {
		if f.month>>m&1 == 1 && bits.TrailingZeros64(f.day) <= longest(m) {
			return false
		}
	}
	return true
}

// longest is how many days the month has in a leap year.
func longest(m time.Month) int { return Month{2000, m}.days() }
