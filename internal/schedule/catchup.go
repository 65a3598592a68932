package schedule

import (
	"time"

	"almanac/internal/calendar"
)

// CatchUp says what becomes of occurrences that were missed: seen longer after their nominal time than Timing.Missed.
type CatchUp string

const (
	CatchUpLatest CatchUp = "latest" // the latest of them runs (default)
	CatchUpAll    CatchUp = "all"    // each of them runs, as far back as the window reaches
	CatchUpNone   CatchUp = "none"   // none of them runs
)

// Overlap says what happens when an occurrence falls due while the one before it has not settled.
type Overlap string

const (
	OverlapAllow Overlap = "allow" // both run, each with a file and keys of its own (default)
	OverlapSkip  Overlap = "skip"  // the later one is passed over. A manual run is never held back
)

// DefaultWindow is how far back catch-up "all" reaches where a definition does not say.
const DefaultWindow = 24 * time.Hour

// MaxWindow bounds it: a tick must be able to admit what it finds.
const MaxWindow = 31 * 24 * time.Hour

// Passage is a step of a schedule past occurrences that do not run.
type Passage struct {
	Range   Skip   // why, and which: one record per contiguous range
	Extends bool   // the range goes on: its record is extended by these occurrences
	Gaps    []Skip // what a change of the clocks left out on the way
	Next    time.Time
	added   int
}

// passOver decides which occurrences do not run, from the one that the schedule stands on. pass is false where that one
// is to be admitted.
func passOver(p plan, s Schedule, now time.Time, after time.Duration) (o Passage, pass bool) {
	missed := func(at time.Time) bool { return now.Sub(p.admits(s.ID, at)) > after }
	if missed(s.NextDue) {
		if o, pass := catchUp(p, s, now, missed); pass {
			return o, true
		}
	}
	if p.version.Overlap == OverlapSkip && s.OpenRun != "" {
		return passOne(p, s, SkipOverlap, "the run before it had not settled (overlap skip)"), true
	}
	return Passage{}, false
}

// admits is when an occurrence is admitted: its nominal time, and what jitter adds to it. The nominal time itself, by
// which everything is named, never moves.
func (p plan) admits(id string, nominal time.Time) time.Time {
	return nominal.Add(p.rule.Delay(id, nominal))
}

// catchUp passes over the missed occurrences that the policy drops. The occurrence that it stops at runs, or is one that
// was not missed.
func catchUp(p plan, s Schedule, now time.Time, missed func(time.Time) bool) (Passage, bool) {
	var drop func(at, next time.Time) bool
	reason := "missed, and a later occurrence was missed as well (catch-up latest)"
	switch p.version.CatchUp {
	case CatchUpNone:
		drop = func(at, _ time.Time) bool { return missed(at) }
		reason = "missed (catch-up none)"
	case CatchUpAll:
		window := p.version.CatchUpWindow.Std()
		if window == 0 {
			window = DefaultWindow
		}
		drop = func(at, _ time.Time) bool { return now.Sub(at) > window }
		reason = "missed longer ago than the catch-up window of " + window.String()
	default:
		drop = func(_, next time.Time) bool { return !next.IsZero() && missed(next) }
	}
	o := Passage{Next: s.NextDue}
	last := time.Time{}
	for !o.Next.IsZero() {
		next := p.rule.Next(o.Next)
		if !drop(o.Next, next.At) {
			break
		}
		o.added++
		last, o.Next = o.Next, next.At
		if len(o.Gaps) < maxGaps {
			o.Gaps = append(o.Gaps, skips(s.ID, next.Skipped)...)
		}
	}
	if o.added == 0 {
		return o, false
	}
	o.ranged(s, SkipMissed, last, reason)
	return o, true
}

// passOne passes over the one occurrence that the schedule stands on.
func passOne(p plan, s Schedule, kind SkipKind, reason string) Passage {
	next := p.rule.Next(s.NextDue)
	o := Passage{Gaps: skips(s.ID, next.Skipped), Next: next.At, added: 1}
	o.ranged(s, kind, s.NextDue, reason)
	return o
}

// ranged begins a range, or goes on with the one that the schedule's last step was part of.
func (o *Passage) ranged(s Schedule, kind SkipKind, last time.Time, reason string) {
	o.Range = Skip{Schedule: s.ID, Kind: kind, First: s.NextDue, Last: last, Count: o.added, Reason: reason}
	if s.SkipKind == kind && !s.SkipFirst.IsZero() {
		o.Range.First, o.Extends = s.SkipFirst, true
	}
}

// maxGaps bounds the gap records of one outage, so that they fit into one transaction: there are two changes of the
// clocks a year, and nobody reads further back.
const maxGaps = 8

func skips(id string, gaps []calendar.Skip) []Skip {
	var out []Skip
	for _, g := range gaps {
		out = append(out, Skip{Schedule: id, Kind: SkipGap, First: g.First, Last: g.Last, Count: g.Count, Reason: g.Reason})
	}
	return out
}
