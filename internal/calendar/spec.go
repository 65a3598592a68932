package calendar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gap says what becomes of a local time that a change of the clocks leaves out.
type Gap string

const (
	GapRunOnce Gap = "run-once" // due at the first instant after the gap; the default
	GapSkip    Gap = "skip"     // not due; Next reports it as a Skip
)

// Spec is a recurrence as a definition writes it: exactly one of Cron, Every and Workday says when, the rest bounds it.
// The package comment says what each means.
type Spec struct {
	Cron     string   `json:"cron,omitempty"`     // five fields, at most MaxCron bytes
	Every    string   `json:"every,omitempty"`    // elapsed time from Start on, such as "6h" or "1h30m"; MinEvery to MaxEvery
	Workday  *int     `json:"workday,omitempty"`  // the n-th workday of each month: 1 to 23, or -1 (the last) to -23
	At       string   `json:"at,omitempty"`       // with Workday: local time, "HH:MM"
	Holidays []string `json:"holidays,omitempty"` // with Workday: dates "YYYY-MM-DD" that are no workdays, at most MaxHolidays
	Zone     string   `json:"zone"`               // exact name in the IANA time zone database
	Gap      Gap      `json:"gap,omitempty"`      // empty means GapRunOnce; Every has nothing to skip
	Start    string   `json:"start,omitempty"`    // nothing is due before it: RFC 3339, or a local time without offset
	End      string   `json:"end,omitempty"`      // nothing is due at or after it; written as Start is
	Count    *int     `json:"count,omitempty"`    // only so many occurrences, from Start on; 1 to MaxCount
	Jitter   string   `json:"jitter,omitempty"`   // admission is up to this much later, such as "90s"; see Delay
}

// MaxCron is the longest cron line, in bytes, that Parse reads.
const MaxCron = 200

// Equal reports whether both say the same: an open gap policy is the default one, the order of holidays does not matter,
// and all else is compared as it is written.
func (s Spec) Equal(o Spec) bool {
	return s.Cron == o.Cron && s.Every == o.Every && sameNumber(s.Workday, o.Workday) && s.At == o.At &&
		slices.Equal(slices.Sorted(slices.Values(s.Holidays)), slices.Sorted(slices.Values(o.Holidays))) &&
		s.Zone == o.Zone && s.Gap.filled() == o.Gap.filled() &&
		s.Start == o.Start && s.End == o.End && sameNumber(s.Count, o.Count) && s.Jitter == o.Jitter
}

// SameTimes reports whether both have the same nominal times: they are Equal, but for Jitter.
func (s Spec) SameTimes(o Spec) bool {
	o.Jitter = s.Jitter
	return s.Equal(o)
}

func sameNumber(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }

// String is the recurrence in one line, for people.
func (s Spec) String() string {
	var b strings.Builder
	part := func(shown bool, format string, args ...any) {
		if shown {
			fmt.Fprintf(&b, format, args...)
		}
	}
	part(s.Cron != "", "%s", s.Cron)
	part(s.Every != "", "every %s", s.Every)
	if s.Workday != nil {
		part(true, "%s of each month at %s", workdayName(*s.Workday), s.At)
	}
	part(len(s.Holidays) > 0, " (%d holidays)", len(s.Holidays))
	part(true, "  %s", s.Zone)
	part(s.Gap != "", "  gap %s", s.Gap)
	part(s.Start != "", "  start %s", s.Start)
	part(s.End != "", "  end %s", s.End)
	if s.Count != nil {
		part(true, "  count %d", *s.Count)
	}
	part(s.Jitter != "", "  jitter %s", s.Jitter)
	return b.String()
}

// Recurrence is a rule that was checked, in its zone. It is immutable and safe for use by several goroutines.
type Recurrence struct {
	spec   Spec
	zone   zone
	local  pattern       // the local times it names; nil for an interval
	every  time.Duration // an interval; else 0
	start  time.Time     // nothing is due before it; zero: no start
	end    time.Time     // nothing is due at or after it; zero: no end
	limit  time.Time     // what follows from end and count: end, or a second after the last of count; zero: none
	jitter time.Duration
}

// pattern is a set of local times, held as civil times.
type pattern interface {
	// next is the first strictly after c, to the second; zero if there is none within searchYears.
	next(c time.Time) time.Time
	// absent says which day of the pattern the month lacks, if it is one that should have it; else "".
	absent(m Month) string
	// horizon is how far a search after c needs to look.
	horizon(c time.Time) time.Time
	// instants reports that each showing of a local time is due, not only the first.
	instants() bool
	// passed says what moved the occurrence at c; "" if nothing did.
	passed(c time.Time) string
}

// Parse checks a spec and returns its recurrence. Each error is a *FieldError; several fields wrong give several,
// joined by errors.Join. A rule that can never be due is refused.
func Parse(s Spec) (*Recurrence, error) {
	loc, zoneErr := LoadZone(s.Zone)
	gap, gapErr := parseGap(s)
	r := &Recurrence{zone: zone{loc}}
	err := errors.Join(r.parseKind(s), zoneErr, gapErr, r.parseJitter(s), r.parseWindow(s))
	if err != nil {
		return nil, onlyOne(err)
	}
	s.Cron, s.Gap, s.Holidays = strings.Join(strings.Fields(s.Cron), " "), gap, slices.Clone(s.Holidays)
	r.spec = s
	if r.alwaysInGap() {
		return nil, &FieldError{"cron", s.Cron, "is never due with gap " + string(GapSkip) + " in " + s.Zone +
			": each of its local times is left out by a change of the clocks", "a time that exists, or gap " + string(GapRunOnce)}
	}
	if err := r.applyCount(); err != nil {
		return nil, err
	}
	if err := r.dueWithin(); err != nil {
		return nil, err
	}
	return r, nil
}

// parseKind reads what says when: exactly one of cron, every and workday, and what belongs to it alone.
func (r *Recurrence) parseKind(s Spec) error {
	var errs []error
	beside := func(field, value, others string) {
		errs = append(errs, &FieldError{field, value, "stands beside " + others, "exactly one of cron, every and workday"})
	}
	switch {
	case s.Cron != "" && s.Every != "":
		beside("every", s.Every, "cron")
		if s.Workday != nil {
			beside("workday", fmt.Sprint(*s.Workday), "cron and every")
		}
	case s.Workday != nil && s.Cron != "":
		beside("workday", fmt.Sprint(*s.Workday), "cron")
	case s.Workday != nil && s.Every != "":
		beside("workday", fmt.Sprint(*s.Workday), "every")
	case s.Workday != nil:
		w, err := parseWorkdays(s)
		r.local = w
		return err
	case s.Every != "":
		errs = append(errs, r.parseEvery(s))
	default:
		v, err := parseCron(s.Cron)
		r.local = v
		errs = append(errs, err)
	}
	if s.Cron != "" || s.Every != "" { // else workday may be what is missing
		errs = append(errs, withoutWorkday(s))
	}
	return errors.Join(errs...)
}

func parseCron(line string) (*civil, error) {
	f, err := parseFields(line)
	if err != nil {
		return nil, err
	}
	v, err := newCivil(f)
	if err != nil {
		return nil, &FieldError{"cron", line, "cannot be read: " + err.Error(), wantCron}
	}
	return v, nil
}

// onlyOne unwraps a join of a single error, so that the common case is a plain *FieldError, and flattens joins of joins.
func onlyOne(err error) error {
	list := flat(err, nil)
	if len(list) == 1 {
		return list[0]
	}
	return errors.Join(list...)
}

func flat(err error, list []error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range j.Unwrap() {
			list = flat(e, list)
		}
		return list
	}
	return append(list, err)
}

func (g Gap) filled() Gap {
	if g == "" {
		return GapRunOnce
	}
	return g
}

func parseGap(s Spec) (Gap, error) {
	switch g := s.Gap.filled(); {
	case g != GapRunOnce && g != GapSkip:
		return "", &FieldError{"gap", string(g), "is no gap policy", string(GapRunOnce) + " or " + string(GapSkip)}
	case g != GapRunOnce && s.Every != "":
		return "", &FieldError{"gap", string(g), "stands beside every, which counts elapsed time and meets no gap", "no gap, or " + string(GapRunOnce)}
	default:
		return g, nil
	}
}

// settled is an instant after which the known changes of the clocks follow each zone's standing rule (a few explicit
// lists run on, none of them yearly on one date).
var settled = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

// alwaysInGap reports a rule such as "30 2 * 3 SUN#2" in New York with policy skip.
func (r *Recurrence) alwaysInGap() bool {
	if r.spec.Gap != GapSkip || r.local.instants() {
		return false
	}
	at, skipped := r.nextLocal(settled)
	return at.IsZero() && len(skipped) > 0
}

// Spec returns the spec as it is understood: the gap policy filled in, single spaces in the cron line.
func (r *Recurrence) Spec() Spec {
	s := r.spec
	s.Holidays = slices.Clone(s.Holidays)
	return s
}

// Location is the zone of the recurrence.
func (r *Recurrence) Location() *time.Location { return r.zone.loc }
