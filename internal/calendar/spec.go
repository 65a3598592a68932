package calendar

import (
	"errors"
	"strings"
	"time"
)

// Gap says what becomes of a local time that a change of the clocks leaves out.
type Gap string

const (
	GapRunOnce Gap = "run-once" // due at the first instant after the gap; the default
	GapSkip    Gap = "skip"     // not due; Next reports it as a Skip
)

// Spec is a recurrence as a definition writes it.
type Spec struct {
	Cron string `json:"cron"`          // five fields, at most MaxCron bytes
	Zone string `json:"zone"`          // exact name in the IANA time zone database
	Gap  Gap    `json:"gap,omitempty"` // empty means GapRunOnce
}

// MaxCron is the longest cron line, in bytes, that Parse reads.
const MaxCron = 200

// Recurrence is a rule that was checked, in its zone. It is immutable and safe for use by several goroutines.
type Recurrence struct {
	spec   Spec
	fields fields
	civil  civil
	zone   zone
}

// Parse checks a spec and returns its recurrence. Each error is a *FieldError; several fields wrong give several,
// joined by errors.Join. A rule that can never be due is refused.
func Parse(s Spec) (*Recurrence, error) {
	f, cronErr := parseFields(s.Cron)
	loc, zoneErr := LoadZone(s.Zone)
	gap, gapErr := parseGap(s.Gap)
	if err := errors.Join(cronErr, zoneErr, gapErr); err != nil {
		return nil, onlyOne(err)
	}
	c, err := newCivil(f)
	if err != nil {
		return nil, &FieldError{"cron", s.Cron, "cannot be read: " + err.Error(), wantCron}
	}
	s.Cron, s.Gap = strings.Join(strings.Fields(s.Cron), " "), gap
	r := &Recurrence{spec: s, fields: f, civil: c, zone: zone{loc}}
	if r.alwaysInGap() {
		return nil, &FieldError{"cron", s.Cron, "is never due with gap " + string(GapSkip) + " in " + s.Zone +
			": each of its local times is left out by a change of the clocks", "a time that exists, or gap " + string(GapRunOnce)}
	}
	return r, nil
}

// onlyOne unwraps a join of a single error, so that the common case is a plain *FieldError.
func onlyOne(err error) error {
	if j, ok := err.(interface{ Unwrap() []error }); ok && len(j.Unwrap()) == 1 {
		return j.Unwrap()[0]
	}
	return err
}

func parseGap(g Gap) (Gap, error) {
	switch g {
	case "":
		return GapRunOnce, nil
	case GapRunOnce, GapSkip:
		return g, nil
	}
	return "", &FieldError{"gap", string(g), "is no gap policy", string(GapRunOnce) + " or " + string(GapSkip)}
}

// settled is an instant after which the known changes of the clocks follow each zone's standing rule (a few explicit
// lists run on, none of them yearly on one date).
var settled = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

// alwaysInGap reports a rule such as "30 2 * 3 SUN#2" in New York with policy skip.
func (r *Recurrence) alwaysInGap() bool {
	if r.spec.Gap != GapSkip || r.fields.everyHour {
		return false
	}
	at, skipped := r.nextLocal(settled)
	return at.IsZero() && len(skipped) > 0
}

// Spec returns the spec as it is understood: the gap policy filled in, single spaces in the cron line.
func (r *Recurrence) Spec() Spec { return r.spec }

// Location is the zone of the recurrence.
func (r *Recurrence) Location() *time.Location { return r.zone.loc }
