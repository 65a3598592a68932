package calendar

import "time"

// Next is the answer to "when is it due after …?".
type Next struct {
	At      time.Time // UTC; zero if never
	Skipped []Skip    // what the gap policy skip passed over on the way, in order; one per change of the clocks
}

// Skip is a contiguous range of occurrences that are not due because their local times do not exist.
//
// A local time that does not exist has no instant, so First and Last are what its text means with the offset in force
// before the gap: 02:30 left out in New York is 02:30-05:00, 07:30Z. They never depend on when they are asked for, lie
// after the time asked about, and less than the gap's length after its end: possibly later than, or equal to, Next.At.
type Skip struct {
	First, Last time.Time // UTC
	Count       int
	Reason      string // for people: what does not exist, where, why
}

// Next returns the first time due strictly after the given one. Chained calls (each with the At before) give every
// occurrence and every skip exactly once.
func (r *Recurrence) Next(after time.Time) Next {
	at, skipped := r.next(after)
	n := Next{At: at}
	for _, g := range skipped {
		n.Skipped = append(n.Skipped, g.skip(r.zone))
	}
	return n
}

// maxYear is the last year that RFC 3339 can write.
const maxYear = 9999

// next answers within start and limit.
func (r *Recurrence) next(after time.Time) (at time.Time, skipped []left) {
	after = r.from(after)
	if !r.limit.IsZero() && !after.Before(r.limit) {
		return time.Time{}, nil
	}
	at, skipped = r.unbounded(after)
	if r.limit.IsZero() {
		return at, skipped
	}
	if !at.Before(r.limit) {
		at = time.Time{}
	}
	for i, g := range skipped {
		if !g.by.at.Before(r.limit) {
			skipped = skipped[:i]
			break
		}
	}
	return at, skipped
}

// from is where to look from: after, but not before the moment before start.
func (r *Recurrence) from(after time.Time) time.Time {
	after = after.Round(0).UTC()
	if before := r.start.Add(-1); !r.start.IsZero() && after.Before(before) {
		return before
	}
	return after
}

// unbounded answers without start, limit and count, but for an interval, which begins with start.
func (r *Recurrence) unbounded(after time.Time) (at time.Time, skipped []left) {
	switch {
	case r.every > 0:
		at = r.nextInterval(after)
	case r.local.instants():
		at = r.nextInstant(after)
	default:
		at, skipped = r.nextLocal(after)
	}
	if at.Year() > maxYear {
		at = time.Time{}
	}
	return at, skipped
}

// nextLocal serves rules that mean local times: the first instant of each, gaps by policy.
func (r *Recurrence) nextLocal(after time.Time) (at time.Time, skipped []left) {
	horizon := r.local.horizon(after)
	for c := r.zone.spanFrom(after).civilAt(after); ; {
		if c = r.local.next(c); c.IsZero() || c.After(horizon) {
			return time.Time{}, skipped
		}
		p := r.zone.locate(c)
		switch {
		case len(p.shown) > 0:
			at = p.shown[0]
		case r.spec.Gap == GapSkip:
			skipped = extend(skipped, c, p.gap)
			continue
		default:
			at = p.gap.at
		}
		if at.After(after) { // not so for what a repeated hour shows again
			return at, skipped
		}
	}
}

// nextInstant serves rules that mean instants: within each stretch of one offset, civil time is as good as time.
func (r *Recurrence) nextInstant(after time.Time) time.Time {
	horizon := r.local.horizon(after)
	s := r.zone.spanFrom(after)
	for from := s.civilAt(after); ; {
		c := r.local.next(from)
		if c.IsZero() || c.After(horizon) {
			return time.Time{}
		}
		if t := c.Add(-s.offset); s.last() || t.Before(s.end) {
			return t
		}
		next := s.end
		// Nothing matches before c, so stretches that end long before it need no search of their own; clocks that go
		// back at the end of this one may show again what lies before from, unless from is a day past.
		if near := c.Add(-2 * deepest); near.After(next) && next.Sub(from) > 2*deepest {
			next = near
		}
		s = r.zone.spanFrom(next)
		from = s.civilAt(next).Add(-1)
	}
}

// left is a range of civil times that one change leaves out.
type left struct {
	first, last time.Time
	count       int
	by          change
}

// extend adds c, left out by g, to the last range if that is of the same change.
func extend(list []left, c time.Time, g change) []left {
	if n := len(list); n > 0 && list[n-1].by.at.Equal(g.at) {
		list[n-1].last = c
		list[n-1].count++
		return list
	}
	return append(list, left{c, c, 1, g})
}

func (l left) skip(z zone) Skip {
	return Skip{First: l.first.Add(-l.by.before), Last: l.last.Add(-l.by.before), Count: l.count, Reason: l.text(z)}
}
