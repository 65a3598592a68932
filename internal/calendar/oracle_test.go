package calendar

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// The oracle: it looks at every minute of a stretch of time and asks what the local clock shows. It shares no code with
// the package: its own reading of cron lines, no ZoneBounds, no search.

// minute is one minute of real time and what the clock shows then.
type minute struct {
	t     time.Time
	local time.Time // the civil time, held in UTC
}

// minutesOf lists the minutes from, …, to.
func minutesOf(loc *time.Location, from, to time.Time) []minute {
	var list []minute
	for t := from.Truncate(time.Minute); !t.After(to); t = t.Add(time.Minute) {
		_, off := t.In(loc).Zone()
		list = append(list, minute{t, t.Add(time.Duration(off) * time.Second)})
	}
	return list
}

// oracleRule is a cron line as the oracle reads it: a predicate for each field.
type oracleRule struct {
	min, hour, dom, mon, dow func(c time.Time) bool
	domStar, dowStar         bool
	everyHour                bool
}

func readRule(cron string) oracleRule {
	f := strings.Fields(cron)
	f[4] = strings.ReplaceAll(f[4], "-SUN", "-7")
	r := oracleRule{domStar: f[2] == "*", dowStar: f[4] == "*", everyHour: f[1][0] == '*'}
	r.min = tabled(f[0], 0, 59, time.Time.Minute)
	r.hour = tabled(f[1], 0, 23, time.Time.Hour)
	r.mon = tabled(f[3], 1, 12, func(c time.Time) int { return int(c.Month()) })
	r.dom = func(c time.Time) bool {
		for _, it := range strings.Split(f[2], ",") {
			if it == "L" && c.AddDate(0, 0, 1).Day() == 1 || it != "L" && itemHas(it, 1, 31, c.Day()) {
				return true
			}
		}
		return false
	}
	r.dow = func(c time.Time) bool {
		w := int(c.Weekday())
		for _, it := range strings.Split(f[4], ",") {
			day, nth, hash := strings.Cut(it, "#")
			last, isLast := strings.CutSuffix(it, "L")
			switch {
			case hash && number(day)%7 == w && (c.Day()-1)/7+1 == number(nth):
				return true
			case isLast && number(last)%7 == w && c.AddDate(0, 0, 7).Month() != c.Month():
				return true
			case !hash && !isLast && (itemHas(it, 0, 6, w) || w == 0 && !strings.HasPrefix(it, "*") && itemHas(it, 0, 7, 7)):
				return true
			}
		}
		return false
	}
	return r
}

func tabled(f string, lo, hi int, part func(time.Time) int) func(time.Time) bool {
	var table [60]bool
	for v := lo; v <= hi; v++ {
		for _, it := range strings.Split(f, ",") {
			table[v] = table[v] || itemHas(it, lo, hi, v)
		}
	}
	return func(c time.Time) bool { return table[part(c)] }
}

// itemHas reads *, n, a-b and a step on the first and last.
func itemHas(item string, lo, hi, v int) bool {
	span, step, _ := strings.Cut(item, "/")
	from, to := lo, hi
	if span != "*" {
		a, b, ranged := strings.Cut(span, "-")
		from, to = number(a), number(a)
		if ranged {
			to = number(b)
		}
	}
	n := 1
	if step != "" {
		n = number(step)
	}
	return v >= from && v <= to && (v-from)%n == 0
}

func number(s string) int {
	if i := strings.Index("SUN MON TUE WED THU FRI SAT", s); len(s) == 3 && i >= 0 {
		return i / 4
	}
	if i := strings.Index("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", s); len(s) == 3 && i >= 0 {
		return i/4 + 1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("oracle: " + err.Error())
	}
	return n
}

func (r oracleRule) matches(c time.Time) bool {
	if !r.min(c) || !r.hour(c) || !r.mon(c) {
		return false
	}
	switch {
	case r.domStar:
		return r.dowStar || r.dow(c)
	case r.dowStar:
		return r.dom(c)
	}
	return r.dom(c) || r.dow(c)
}

// answer is what the oracle says of a stretch: the times due in it and how many local times were passed over.
type answer struct {
	due     []time.Time
	skipped []Skip // without Reason
}

// ask walks the minutes. Those before from only tell which local times have been shown already.
func (r oracleRule) ask(list []minute, from time.Time, gap Gap) answer {
	var a answer
	shown := map[time.Time]bool{}
	var top time.Time // the latest local time shown or left out so far
	for _, m := range list {
		jump := !top.IsZero() && m.local.Sub(top) > time.Minute
		owed := false
		if jump && !r.everyHour {
			var s Skip
			for c := top.Add(time.Minute); c.Before(m.local); c = c.Add(time.Minute) {
				if r.matches(c) {
					owed = true
					nominal := m.t.Add(c.Sub(top.Add(time.Minute)))
					if s.Count == 0 {
						s.First = nominal
					}
					s.Last = nominal
					s.Count++
				}
			}
			if gap == GapSkip {
				owed = false
				if s.Count > 0 && m.t.After(from) {
					a.skipped = append(a.skipped, s)
				}
			}
		}
		if m.local.After(top) {
			top = m.local
		}
		hit := r.matches(m.local)
		if hit && !r.everyHour {
			hit = !shown[m.local]
			shown[m.local] = true
		}
		if (hit || owed) && m.t.After(from) {
			a.due = append(a.due, m.t)
		}
	}
	return a
}

// zonesCompared are those the property test walks: halves and quarters of hours, midnight changes, negative winter
// time, four changes a year around Ramadan, none at all, and both hemispheres.
var zonesCompared = strings.Fields(`America/New_York Australia/Lord_Howe Africa/Casablanca America/Santiago Asia/Beirut
	Pacific/Chatham Pacific/Auckland Europe/London Europe/Dublin Asia/Kolkata America/St_Johns UTC Atlantic/Azores
	America/Havana Africa/Cairo Antarctica/Troll America/Nuuk Pacific/Kiritimati`)

// changesIn finds each minute at which the offset is another than the minute before.
func changesIn(loc *time.Location, from, to time.Time) []time.Time {
	offset := func(t time.Time) int { _, o := t.In(loc).Zone(); return o }
	var list []time.Time
	for t := from; t.Before(to); t = t.Add(15 * time.Minute) {
		if offset(t) == offset(t.Add(15*time.Minute)) {
			continue
		}
		for m := t; m.Before(t.Add(15 * time.Minute)); m = m.Add(time.Minute) {
			if offset(m) != offset(m.Add(time.Minute)) {
				list = append(list, m.Add(time.Minute))
			}
		}
	}
	return list
}

// tally counts what was compared.
type tally struct{ cases, times, skips int }

// compare asks Next for all of (from, to] and wants the oracle's answer.
func (n *tally) compare(t testing.TB, cron, zoneName string, gap Gap, list []minute, from, to time.Time) {
	t.Helper()
	r, err := Parse(Spec{Cron: cron, Zone: zoneName, Gap: gap})
	if err != nil {
		t.Fatal(err)
	}
	want := readRule(cron).ask(list, from, gap)
	got, skips := due(r, from, to)
	// What was passed over between the last due time and to comes with the call that leads out of the stretch.
	for _, s := range r.Next(lastOf(got, from)).Skipped {
		if !s.First.After(to) {
			skips = append(skips, s)
		}
	}
	fail := func(what string, g, w any) {
		t.Fatalf("cron %q zone %s gap %s from %s to %s: %s\ngot  %v\nwant %v", cron, zoneName, gap,
			from.Format(time.RFC3339), to.Format(time.RFC3339), what, g, w)
	}
	if len(got) != len(want.due) {
		fail("times due", got, want.due)
	}
	for i := range got {
		if !got[i].Equal(want.due[i]) {
			fail("times due", got[i:], want.due[i:])
		}
	}
	if len(skips) != len(want.skipped) {
		fail("skips", skips, want.skipped)
	}
	for i, s := range skips {
		w := want.skipped[i]
		if !s.First.Equal(w.First) || !s.Last.Equal(w.Last) || s.Count != w.Count || s.Reason == "" {
			fail("skips", s, w)
		}
	}
	n.cases++
	n.times += len(got)
	n.skips += len(skips)
}

func lastOf(list []time.Time, or time.Time) time.Time {
	if len(list) == 0 {
		return or
	}
	return list[len(list)-1]
}
