package calendar

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// MaxPreview is the most due times that Preview returns.
const MaxPreview = 100

// Entry is one line of a preview.
type Entry struct {
	At      time.Time // UTC; of a skipped entry, the First of its Skip; of a rule that is over, the moment since when
	Local   string    // the same in the zone, RFC 3339 with offset; of a skipped entry, the time that does not exist
	Note    string    // what a person may wonder about: a gap, a repeated hour, months passed over, the last one; empty if nothing
	Skipped bool      // not due: left out by the gap policy skip, or the one entry of a rule that is over
}

// Preview returns the next n due times strictly after the given one (at most MaxPreview, fewer if the rule ends), each
// with a note where the calendar or the clocks do something unexpected. Occurrences that the policy skip leaves out
// stand between them as entries with Skipped set, one per gap, and do not count towards n. The note of the last time
// before end, or of count, says "no more after …"; if none is left, one entry with Skipped set says so.
func (r *Recurrence) Preview(after time.Time, n int) []Entry {
	var list []Entry
	due := 0
	for prev := r.from(after); due < min(n, MaxPreview); due++ {
		at, skipped := r.next(prev)
		for _, g := range skipped {
			s := g.skip(r.zone)
			list = append(list, Entry{s.First, offsetText(g.first, g.by.before), s.Reason + "; skipped", true})
		}
		if at.IsZero() {
			break
		}
		list = append(list, Entry{At: at, Local: r.text(at), Note: r.note(prev, at)})
		prev = at
	}
	if due == 0 && n > 0 && !r.limit.IsZero() {
		at := r.limit
		if r.counted() {
			at = r.lastOfCount()
		}
		list = append(list, Entry{at, r.text(at), r.over(), true})
	}
	return list
}

// offsetText writes civil time c as seen with an offset.
func offsetText(c time.Time, offset time.Duration) string {
	return c.Add(-offset).In(time.FixedZone("", int(offset/time.Second))).Format(time.RFC3339)
}

// note explains the occurrence at, which follows prev.
func (r *Recurrence) note(prev, at time.Time) string {
	var all []string
	if r.every > 0 {
		all = []string{r.moved(prev, at)}
	} else {
		all = []string{r.passedMonths(prev, at), r.missing(prev, at), r.repeated(at), r.local.passed(r.zone.spanFrom(at).civilAt(at))}
	}
	if !r.limit.IsZero() {
		if next, _ := r.next(at); next.IsZero() {
			all = append(all, r.over())
		}
	}
	return strings.Join(slices.DeleteFunc(all, func(p string) bool { return p == "" }), "; ")
}

// moved explains why the local time of an interval is another than the one before would make expect.
func (r *Recurrence) moved(prev, at time.Time) string {
	if prev.Before(r.start) {
		return ""
	}
	by := r.zone.spanFrom(at).offset - r.zone.spanFrom(prev).offset
	if by == 0 {
		return ""
	}
	way := "forward"
	if by < 0 {
		way = "back"
	}
	return fmt.Sprintf("clocks in %s go %s by %s on the way; every counts elapsed time", r.zone.loc, way, short(by.Abs()))
}

// missing explains gaps. A rule of local times with policy run-once is due at the gap's end; a rule of instants has
// nothing for a gap on the way. (Policy skip has entries of its own.)
func (r *Recurrence) missing(prev, at time.Time) string {
	var parts []string
	for s := r.zone.spanFrom(prev); !s.last() && !s.end.After(at); {
		next := r.zone.spanFrom(s.end)
		g := change{s.end, s.offset, next.offset}
		s = next
		l := r.within(g)
		switch {
		case l.count == 0:
		case r.local.instants():
			parts = append(parts, l.text(r.zone)+"; nothing is due for it, since the hour field asks for instants")
		case r.spec.Gap == GapRunOnce && g.at.Equal(at):
			parts = append(parts, l.text(r.zone)+"; due once at "+clock(g.end(), l.first))
		}
	}
	return strings.Join(parts, "; ")
}

// within collects the matching civil times that a change leaves out.
func (r *Recurrence) within(g change) left {
	var l []left
	if g.after > g.before {
		for c := r.local.next(g.first().Add(-1)); !c.IsZero() && c.Before(g.end()); c = r.local.next(c) {
			l = extend(l, c, g)
		}
	}
	if len(l) == 0 {
		return left{}
	}
	return l[0]
}

// repeated explains a local time that the clocks show twice.
func (r *Recurrence) repeated(at time.Time) string {
	c := r.zone.spanFrom(at).civilAt(at)
	shown := r.zone.locate(c).shown
	if len(shown) < 2 {
		return ""
	}
	text := fmt.Sprintf("%s happens twice on %s in %s", c.Format("15:04"), c.Format(time.DateOnly), r.zone.loc)
	switch {
	case !r.local.instants():
		return text + "; runs at the first"
	case at.Equal(shown[0]):
		return text + "; due both times, this is the first"
	}
	return text + "; due both times, this is the second"
}

// text says what does not exist and why.
func (l left) text(z zone) string {
	what := clock(l.first, l.first) + " does not exist"
	if l.count > 1 {
		what = fmt.Sprintf("%s to %s (%d times) do not exist", clock(l.first, l.first), clock(l.last, l.first), l.count)
	}
	return fmt.Sprintf("%s on %s in %s: clocks go from %s to %s", what, l.first.Format(time.DateOnly), z.loc,
		clock(l.by.first(), l.first), clock(l.by.end(), l.first))
}

// clock writes the time of civil c, with its date if that is another day than day's.
func clock(c, day time.Time) string {
	if c.YearDay() == day.YearDay() && c.Year() == day.Year() {
		return c.Format("15:04")
	}
	return c.Format("2006-01-02 15:04")
}

// maxMonths is how many months a note lists by name.
const maxMonths = 6

// passedMonths explains the months the rule names, from prev's to the one before at's, that have no day it names.
func (r *Recurrence) passedMonths(prev, at time.Time) string {
	end := r.zone.month(at)
	var why []string
	months := map[string][]string{}
	for m := r.zone.month(prev); m.Before(end); m = m.Add(1) {
		if w := r.local.absent(m); w != "" {
			if months[w] == nil {
				why = append(why, w)
			}
			months[w] = append(months[w], m.String())
		}
	}
	for i, w := range why {
		list, more := months[w], ""
		if n := len(list) - maxMonths; n > 0 {
			list, more = list[:maxMonths], fmt.Sprintf(" and %d more", n)
		}
		why[i] = "no " + w + " in " + strings.Join(list, ", ") + more
	}
	return strings.Join(why, "; ")
}

// month is the month that the local clock shows at t.
func (z zone) month(t time.Time) Month {
	return monthAt(z.spanFrom(t).civilAt(t))
}

// absent says what m, if the rule names it, lacks: "day 30 or 31", "fifth FRI"; "" if it has a day of the rule.
func (f *fields) absent(m Month) string {
	if f.month>>m.Month&1 == 0 || !f.daySet && !f.weekdaySet {
		return ""
	}
	var parts []string
	if f.daySet {
		if f.lastDay || bits.TrailingZeros64(f.day) <= m.days() {
			return ""
		}
		parts = append(parts, "day "+strings.Join(appendNumbers(nil, f.day, ""), " or "))
	}
	if f.weekdaySet {
		if f.weekday != 0 || f.lastWeekday != 0 {
			return ""
		}
		for d, weeks := range f.nth {
			if weeks&^(1<<5) != 0 || weeks != 0 && m.hasFifth(time.Weekday(d)) {
				return ""
			}
			if weeks != 0 {
				parts = append(parts, "fifth "+weekdayField.names[3*d:3*d+3])
			}
		}
	}
	return strings.Join(parts, " or ")
}
