package calendar

import "time"

// zone maps civil times to instants.
type zone struct{ loc *time.Location }

// span is a stretch of time with one offset, seen from its start on. A zero end is open.
type span struct {
	start, end time.Time // [start, end)
	offset     time.Duration
}

// change is a change of the clocks forward, which leaves out the civil times [at+before, at+after).
type change struct {
	at            time.Time
	before, after time.Duration // offsets from UTC
}

// first and end bound the civil times left out, half-open.
func (g change) first() time.Time { return g.at.Add(g.before) }
func (g change) end() time.Time   { return g.at.Add(g.after) }

// place is where a civil time lies: the instants that show it in order, or, if there are none, the change that leaves it out.
type place struct {
	shown []time.Time
	gap   change
}

const (
	// widest bounds any zone's offset (Manila and Metlakatla had 16 hours, less some minutes, before 1900).
	widest = 16 * time.Hour
	// deepest bounds how far a change turns clocks back (a whole day at the date line).
	deepest = 25 * time.Hour
)

// spanFrom returns the stretch that begins at t and lasts while t's offset does, at the least until something else may
// begin: two spans in a row can have one offset.
func (z zone) spanFrom(t time.Time) span {
	l := t.In(z.loc)
	_, off := l.Zone()
	_, end := l.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// Go 1.26 counts each year of a zone's standing rule as 365 days: on the last day of a leap year it calls that
		// day's beginning the end, which lies behind. The offset is right, and the rule's next year begins here.
		end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return span{t.UTC(), end.UTC(), time.Duration(off) * time.Second}
}

// civilAt is what the local clock shows at t.
func (s span) civilAt(t time.Time) time.Time { return t.UTC().Add(s.offset) }

// last reports a stretch without an end.
func (s span) last() bool { return s.end.IsZero() }

// holds reports whether t lies in the stretch.
func (s span) holds(t time.Time) bool { return !t.Before(s.start) && (s.last() || t.Before(s.end)) }

// locate finds the instants that show c by looking at every stretch that could.
func (z zone) locate(c time.Time) place {
	var p place
	for s := z.spanFrom(c.Add(-widest)); ; {
		if t := c.Add(-s.offset); s.holds(t) {
			p.shown = append(p.shown, t)
		}
		if s.last() || s.end.After(c.Add(widest)) {
			return p
		}
		next := z.spanFrom(s.end)
		if g := (change{s.end, s.offset, next.offset}); !c.Before(g.first()) && c.Before(g.end()) {
			p.gap = g
		}
		s = next
	}
}
