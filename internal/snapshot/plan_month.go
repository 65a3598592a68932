package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
)

// due plans the months that a series owes, and moves its row on.
func (t *planTick) due(ctx context.Context, s Series) error {
	l := t.view.line(s)
	row, err := t.Ledger.Series(ctx, s)
	if errors.Is(err, ErrNotFound) || err == nil && (row.PlanAt.IsZero() || row.PlanAt.After(t.now)) {
		return nil // the index was behind
	}
	if err != nil {
		return err
	}
	to := l.changed(row, t.now)
	if to.Off != "" {
		if all, err := t.cancelOpen(ctx, s, to.Off); err != nil || !all {
			return err // the series stays due: the next tick goes on
		}
	}
	if l.workspace.ID != "" {
		if l, err = l.located(); err != nil {
			return err
		}
	}
	m := &months{planTick: t, supply: supply{read: t.Watermark, line: l}}
	if to.Off == ReasonRemoved || to.Off == ReasonUndefined {
		// Nothing is planned any more, and no month waits for its source.
		to.PlanAt = t.now.Add(t.Timing.OffEvery.Std())
		to.Revisiting, err = m.each(ctx, row.Revisiting)
	} else {
		err = m.walk(ctx, &to)
	}
	if m.done > 0 || !sameRow(row, to) {
		if moved := t.Ledger.MoveSeries(ctx, row, to, l.lateAt(to)); moved != nil {
			return moved
		}
	}
	return err
}

// months plans the months of one series.
type months struct {
	*planTick
	supply
	done int
}

// supply is a series with its source's watermark, which is read once and only when a month asks for it.
type supply struct {
	line line
	read Watermark
	mark *time.Time
}

// walk plans what waited for its source, and then each month that has closed since. It says on the row how far it came,
// also where an error stopped it.
func (m *months) walk(ctx context.Context, to *SeriesRow) (err error) {
	to.PlanAt = m.now // until the end is reached
	if to.Revisiting, err = m.each(ctx, to.Revisiting); err != nil || !m.timeLeft(ctx) {
		return err
	}
	for !m.line.lookAt(to.Next).After(m.now) {
		if !m.timeLeft(ctx) {
			return nil
		}
		again, err := m.plan(ctx, to.Next)
		if err != nil {
			return err
		}
		if again && !slices.Contains(to.Revisiting, to.Next) {
			to.Revisiting = append(to.Revisiting, to.Next)
		}
		to.Next = to.Next.Add(1)
	}
	switch next := m.line.lookAt(to.Next); {
	case len(to.Revisiting) > 0:
	case to.Off != "" && next.After(m.now.Add(m.Timing.OffEvery.Std())):
		to.PlanAt = m.now.Add(m.Timing.OffEvery.Std())
	default:
		to.PlanAt = next
	}
	return nil
}

// each plans months that waited, and returns those that still do.
func (m *months) each(ctx context.Context, list []calendar.Month) (still []calendar.Month, err error) {
	for i, month := range list {
		if err != nil || !m.timeLeft(ctx) {
			return append(still, list[i:]...), err
		}
		var again bool
		if again, err = m.plan(ctx, month); again || err != nil {
			still = append(still, month)
		}
	}
	return still, err
}

// lookAt is when a month may first be planned: a source is never complete before the month's end and its delay.
func (l line) lookAt(m calendar.Month) time.Time {
	_, end := m.Bounds(l.zone)
	return end.Add(l.version.LoadDelay.Std())
}

// contended bounds how often a month is read again because its head changed between read and write.
const contended = 5

// plan plans or skips one month, unless it was before; again: it waits for its source.
func (m *months) plan(ctx context.Context, month calendar.Month) (again bool, err error) {
	for range contended {
		head, err := m.Ledger.Head(ctx, Period{m.line.Series, month})
		if err != nil {
			return false, err
		}
		if head.Active != 0 || head.Latest > 0 && head.LatestState != Skipped {
			return false, nil
		}
		why, err := m.ineligible(ctx, month)
		if err != nil {
			return false, err
		}
		again = why.Reason == ReasonLoading
		if again {
			m.add(&m.Loading)
		}
		if why.Reason != "" && head.Latest > 0 && head.LatestWhy == why.Reason {
			return again, nil
		}
		p, err := m.line.planning(head, m.now, m.Clocks.Wall())
		if err != nil {
			return false, err
		}
		if p.Event, p.Token = Plan, m.Token(); why.Reason != "" {
			p.skip(why, m.Clocks.Wall())
		}
		err = m.Ledger.Plan(ctx, p)
		if IsConflict(err) {
			continue
		}
		if err == nil {
			m.note(p.Run)
		}
		return again, err
	}
	return true, nil // its head changes all the time: the next tick looks again
}

func (m *months) note(r Run) {
	m.done++
	if r.State == Skipped {
		m.add(&m.Skipped)
	} else {
		m.add(&m.Planned)
	}
	m.Log.Info("planned", "run", r.ID(), "state", r.State, "reason", r.Reason, "backfill", r.Backfill)
}

// ineligibility is why a month cannot be generated; zero: it can.
type ineligibility struct{ Reason, Text string }

func (s *supply) ineligible(ctx context.Context, m calendar.Month) (ineligibility, error) {
	if why := s.line.policy(m); why.Reason != "" || s.line.version.Watermark == "" {
		return why, nil
	}
	if s.mark == nil {
		mark, err := s.read(ctx, s.line.version, s.line.workspace)
		if err != nil {
			return ineligibility{}, err
		}
		s.mark = &mark
	}
	return s.line.loading(m, *s.mark), nil
}

// policy is what forbids a month whatever its source holds.
func (l line) policy(m calendar.Month) ineligibility {
	switch {
	case l.off == ReasonRemoved:
		return ineligibility{ReasonRemoved, "workspace " + l.Workspace + " was removed"}
	case l.off == ReasonUndefined:
		return ineligibility{ReasonUndefined, "type " + l.Type + " is no longer defined for workspace " + l.Workspace}
	case l.off == ReasonPolicy:
		return ineligibility{ReasonPolicy, "type " + l.Type + " is switched off"}
	case m.Before(l.workspace.Start):
		return ineligibility{ReasonPolicy, fmt.Sprintf("workspace %s starts in %s", l.Workspace, l.workspace.Start)}
	}
	return ineligibility{}
}

// loading is what the source's watermark says about a month: it must be past the month's end plus the delay.
func (l line) loading(m calendar.Month, mark time.Time) ineligibility {
	if ready := l.lookAt(m); !mark.After(ready) {
		return ineligibility{ReasonLoading, fmt.Sprintf("the source is complete up to %s; want later than %s", instant(mark), instant(ready))}
	}
	return ineligibility{}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// planning is a month's next version. Its bounds are those of the workspace's zone now, for good (case T10).
func (l line) planning(head Head, now, wall time.Time) (Planning, error) {
	if head.Latest >= MaxVersions {
		return Planning{}, failure.New(failure.DefinitionInvalid, "%s has %d versions, as many as a month may have", head.Month, head.Latest)
	}
	r := Run{Period: head.Period, Version: head.Latest + 1, Owner: l.workspace.Owner, State: Planned, Scope: l.version.Scope,
		Definition: l.version.Number, Zone: l.workspace.Zone, CreatedAt: wall}
	p := Planning{Run: r, Head: head}
	if l.zone == nil { // a workspace that is not even known any more: what is skipped has no bounds to freeze
		return p, nil
	}
	p.Run.Start, p.Run.End = head.Month.Bounds(l.zone)
	p.Run.Backfill = head.Month.Before(calendar.MonthOf(now, l.zone).Add(-1))
	p.LateAt = p.Run.End.Add(l.version.DueAfter.Std())
	return p, nil
}

func (p *Planning) skip(why ineligibility, wall time.Time) {
	p.Event, p.Run.State = PlanIneligible, Skipped
	p.Run.Reason, p.Run.ReasonText, p.Run.SettledAt = why.Reason, why.Text, wall
	if why.Reason != ReasonLoading {
		p.LateAt = time.Time{}
	}
}

// cancelOpen cancels every open version of a series that is no longer generated; all: time was left for each.
func (t *planTick) cancelOpen(ctx context.Context, s Series, reason string) (all bool, err error) {
	heads, err := t.Ledger.Months(ctx, s)
	if err != nil {
		return false, err
	}
	for _, h := range heads {
		if h.Active == 0 {
			continue
		}
		if !t.timeLeft(ctx) {
			return false, nil
		}
		c := Cancellation{Reason: reason, Text: "by the planner", By: "planner", At: t.Clocks.Wall()}
		r, err := cancel(ctx, t.Ledger, Run{Period: h.Period, Version: h.Active}.ID(), c)
		var refused *Conflict
		if errors.As(err, &refused) {
			continue // it settled by itself
		}
		if err != nil {
			return false, err
		}
		t.add(&t.Cancelled)
		stopJob(ctx, t.Jobs, r, "cancelled: "+reason, t.Log)
		_, cost := stopQuery(ctx, t.Ledger, t.Queries, r, t.Log)
		cost.Count(t.Count)
		ask(ctx, t.Dispatch, t.Log)
	}
	return true, nil
}
