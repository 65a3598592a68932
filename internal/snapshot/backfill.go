package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"almanac/internal/calendar"
	"almanac/internal/input"
)

// MaxBackfill is how many periods one backfill may name.
const MaxBackfill = 2400

// Range is what a backfill is about: every month from From to To, both included, of each series.
type Range struct {
	Series   []Series
	From, To calendar.Month
}

// Proposal is what a backfill would do, or did, with one period.
type Proposal struct {
	Period
	Run string // the version that would be planned, or was; empty: refused
	Why string // of a refusal
}

// Backfill plans a version of every period of a range of which nothing is published, the oldest months first. It lists
// each period with its run, or why it is refused; dryRun lists and plans nothing. Asked again it plans what is left. An
// error that is no refusal stops it; the list then says how far it came.
func (e *Editor) Backfill(ctx context.Context, g Range, why, by string, dryRun bool) ([]Proposal, error) {
	var c checker
	c.Line("reason", why, MaxReason, true)
	c.rangeOf(g)
	if len(c.Problems) > 0 {
		return nil, c.Problems
	}
	w, err := e.weigher(ctx)
	if err != nil {
		return nil, err
	}
	var list []Proposal
	for m := g.From; !g.To.Before(m); m = m.Add(1) {
		for _, s := range g.Series {
			one := Proposal{Period: Period{s, m}}
			if !e.Timing.timeLeft(ctx, e.Clocks.Wall()) {
				one.Why = "time was nearly up; ask again for what is left"
				list = append(list, one)
				continue
			}
			r, err := e.propose(ctx, w, one.Period, why, by, dryRun)
			switch reason, refusal := refusalOf(err); {
			case refusal:
				one.Why = reason
			case err != nil:
				return list, fmt.Errorf("%s %s %s: %w", s.Workspace, s.Type, m, err)
			default:
				one.Run = r.ID()
			}
			list = append(list, one)
		}
	}
	return list, nil
}

func (e *Editor) propose(ctx context.Context, w *weigher, p Period, why, by string, dryRun bool) (Run, error) {
	if dryRun {
		planning, err := w.weigh(ctx, p, false)
		return planning.Run, err
	}
	return e.planOne(ctx, w, p, false, why, by, nil)
}

// refusalOf tells a refusal from an error that leaves unknown what would have been.
func refusalOf(err error) (why string, refused bool) {
	var c *Conflict
	var ps input.Problems
	switch {
	case errors.As(err, &c):
		return c.Why, true
	case errors.As(err, &ps):
		return ps.Error(), true
	}
	return "", false
}

// rangeOf checks a range.
func (c *checker) rangeOf(g Range) {
	before := len(c.Problems)
	if len(g.Series) == 0 {
		c.Bad("series", "", "at least one workspace and type")
	}
	for i, s := range g.Series {
		if slices.Index(g.Series, s) < i {
			c.Bad(fmt.Sprintf("series[%d]", i), input.Quote(s.Workspace+"/"+s.Type)+" again", "each series once")
		}
	}
	if g.From == (calendar.Month{}) {
		c.Bad("from", "", wantMonth)
	}
	switch {
	case g.To == (calendar.Month{}):
		c.Bad("to", "", wantMonth)
	case g.To.Before(g.From):
		c.Bad("to", g.To.String(), "not before from, "+g.From.String())
	case len(c.Problems) == before:
		months := (g.To.Year-g.From.Year)*12 + int(g.To.Month) - int(g.From.Month) + 1
		if n := months * len(g.Series); n > MaxBackfill {
			c.Bad("to", fmt.Sprintf("%s: %d periods in all", g.To, n), fmt.Sprintf("at most %d periods at once", MaxBackfill))
		}
	}
}
