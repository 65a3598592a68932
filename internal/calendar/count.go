package calendar

import (
	"math/bits"
	"time"
)

// nth is the n-th occurrence from start on; zero if there are fewer before until. What a gap leaves out by policy skip is
// no occurrence and does not count. steps is how many single occurrences were looked up on the way: a cron line may be
// due each minute, so stretches without a change of the clocks are counted by whole days and months.
func (r *Recurrence) nth(n int, until time.Time) (at time.Time, steps int) {
	if r.every > 0 {
		if at = r.interval(int64(n - 1)); !at.Before(until) {
			at = time.Time{}
		}
		return at, 0
	}
	for after := r.start.Add(-1); ; {
		at, _ = r.unbounded(after)
		steps++
		if at.IsZero() || !at.Before(until) {
			return time.Time{}, steps
		}
		if n--; n == 0 {
			return at, steps
		}
		after = at
		v, ok := r.local.(*civil)
		s := r.zone.spanFrom(at.Add(-deepest))
		if !ok || !s.last() && !s.end.After(at) {
			// A change of the clocks lies shortly before: some of what the clock shows now it may have shown already.
			continue
		}
		end := until
		if !s.last() && s.end.Before(until) {
			end = s.end
		}
		found, c := v.fields.count(s.civilAt(at), s.civilAt(end), n)
		if found == n {
			return c.Add(-s.offset), steps
		}
		n, after = n-found, end.Add(-1)
	}
}

// count counts the civil times that match strictly between a and b, up to n, and returns the n-th.
func (f *fields) count(a, b time.Time, n int) (found int, nth time.Time) {
	perDay := bits.OnesCount64(f.minute) * bits.OnesCount64(f.hour)
	for m := monthAt(a); m.first().Before(b); m = m.Add(1) {
		days := f.days(m)
		whole := m.first().After(a) && !m.Add(1).first().After(b)
		if k := bits.OnesCount64(days) * perDay; whole && found+k < n {
			found += k
			continue
		}
		for ; days != 0; days &= days - 1 {
			day := m.first().AddDate(0, 0, bits.TrailingZeros64(days)-1)
			whole := day.After(a) && !day.AddDate(0, 0, 1).After(b)
			if whole && found+perDay < n {
				found += perDay
				continue
			}
			if found, nth = f.countDay(day, a, b, found, n); found == n {
				return found, nth
			}
		}
	}
	return found, time.Time{}
}

// countDay counts on from found through the times of one day.
func (f *fields) countDay(day, a, b time.Time, found, n int) (int, time.Time) {
	for h := f.hour; h != 0; h &= h - 1 {
		hour := day.Add(time.Duration(bits.TrailingZeros64(h)) * time.Hour)
		for m := f.minute; m != 0; m &= m - 1 {
			c := hour.Add(time.Duration(bits.TrailingZeros64(m)) * time.Minute)
			if !c.After(a) || !c.Before(b) {
				continue
			}
			if found++; found == n {
				return found, c
			}
		}
	}
	return found, time.Time{}
}

// days are the days of the month that match, bit d for day d.
func (f *fields) days(m Month) uint64 {
	last := m.days()
	all := uint64(1)<<(last+1) - 2
	switch {
	case f.month>>m.Month&1 == 0:
		return 0
	case !f.daySet && !f.weekdaySet:
		return all
	}
	var set uint64
	if f.daySet {
		set = f.day & all
		if f.lastDay {
			set |= 1 << last
		}
	}
	if !f.weekdaySet {
		return set
	}
	first := int(m.first().Weekday())
	for d := 1; d <= last; d++ {
		w := (first + d - 1) % 7
		if f.weekday>>w&1 == 1 || f.nth[w]>>((d-1)/7+1)&1 == 1 || d+7 > last && f.lastWeekday>>w&1 == 1 {
			set |= 1 << d
		}
	}
	return set
}
