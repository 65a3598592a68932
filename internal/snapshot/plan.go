package snapshot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/source"
)

// Watermark reads up to which instant a definition's source is complete for a workspace. It is asked only where the
// definition has a watermark query. Failures: those of internal/source.
type Watermark func(ctx context.Context, v Version, w Workspace) (time.Time, error)

// Planner keeps a line of months for each workspace and each type that is defined for it, and plans the closed ones
// (lifecycles D, "plan"). Several at once plan each month once: a plan is conditional on the month's head as read.
type Planner struct {
	Ledger    PlanLedger
	Watermark Watermark
	Jobs      JobStopper
	Queries   source.Stopper // nil: no engine's queries go on
	Dispatch  Dispatch
	Clocks    Clocks
	Timing    Timing
	Token     func() string
	Log       *slog.Logger
	Count     Counter
}

// PlanTally is what a tick of the planner did.
type PlanTally struct {
	Series    int  `json:"series"`  // lines made, changed or switched off
	Planned   int  `json:"planned"` // versions
	Skipped   int  `json:"skipped"` // versions
	Loading   int  `json:"loading"` // months that wait for their source
	Cancelled int  `json:"cancelled"`
	Errors    int  `json:"errors"`  // series that could not be handled; the next tick finds them again
	Partial   bool `json:"partial"` // time was nearly up: the next tick goes on
}

// Tick brings the lines of months up to date with workspaces and definitions, and then plans what is due. It returns an
// error only where nothing could be done at all.
func (p *Planner) Tick(ctx context.Context) (PlanTally, error) {
	t := &planTick{Planner: p}
	var err error
	if t.now, err = p.Clocks.Business(ctx); err != nil {
		return t.PlanTally, err
	}
	if t.view, err = viewOf(ctx, p.Ledger); err != nil {
		return t.PlanTally, err
	}
	names, err := p.Ledger.SeriesNames(ctx)
	if err != nil {
		return t.PlanTally, err
	}
	quarter := int(p.Clocks.Wall().Unix() / 900)
	t.each(ctx, rotated(t.view.all(names), quarter), t.sync)
	for i := range schema.Shards { // each tick begins elsewhere, so that no shard starves
		t.dueShard(ctx, (quarter+i)%schema.Shards)
	}
	for outcome, n := range map[string]int{"planned": t.Planned, "skipped": t.Skipped, "cancelled": t.Cancelled} {
		p.Count("snapshots_planned", n, outcome, "")
	}
	p.Count("plan_errors", t.Errors, "", "")
	p.Log.Info("plan", "business_time", t.now, "tally", t.PlanTally)
	return t.PlanTally, nil
}

type planTick struct {
	*Planner
	view view
	now  time.Time // business time

	mu sync.Mutex
	PlanTally
}

func (t *planTick) add(n *int) { t.mu.Lock(); *n++; t.mu.Unlock() }

func (t *planTick) timeLeft(ctx context.Context) bool {
	if t.Timing.timeLeft(ctx, t.Clocks.Wall()) {
		return true
	}
	t.mu.Lock()
	t.Partial = true
	t.mu.Unlock()
	return false
}

func (t *planTick) trouble(what string, s Series, err error, args ...any) {
	t.add(&t.Errors)
	t.Log.Error(what, append(args, "workspace", s.Workspace, "type", s.Type, "code", failure.From(err).Code, "error", err.Error())...)
}

// each looks at every series, at most Parallel at once, while time is left.
func (t *planTick) each(ctx context.Context, list []Series, look func(context.Context, Series) error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, t.Timing.Parallel)
	for _, s := range list {
		slots <- struct{}{}
		if !t.timeLeft(ctx) {
			return
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := look(ctx, s); err != nil && !IsConflict(err) { // another planner was faster: the next tick looks again
				t.trouble("series could not be planned", s, err)
			}
		})
	}
}

func (t *planTick) dueShard(ctx context.Context, shard int) {
	for from := ""; t.timeLeft(ctx); {
		list, next, err := t.Ledger.DueSeries(ctx, shard, t.now, from, t.Timing.PageSize)
		if err != nil {
			t.trouble("due series could not be read", Series{}, err, "shard", shard)
			return
		}
		t.each(ctx, list, t.due)
		if from = next; from == "" {
			return
		}
	}
}

// sync makes the row of a new series, and lets one that must be looked at anew be due.
func (t *planTick) sync(ctx context.Context, s Series) error {
	l := t.view.line(s)
	row, err := t.Ledger.Series(ctx, s)
	if errors.Is(err, ErrNotFound) {
		if l.off == ReasonRemoved || l.off == ReasonUndefined {
			return nil
		}
		to := l.fresh(t.now)
		if err := t.Ledger.PutSeries(ctx, to, l.lateAt(to)); err != nil {
			return err
		}
		t.add(&t.Series)
		return nil
	}
	if err != nil {
		return err
	}
	to := l.changed(row, t.now)
	if to.Off == "" || to.Off == ReasonPolicy {
		// Months that the line has passed and that are wanted now: the definition or the workspace starts earlier than
		// it did.
		first := l.first()
		if first.Before(to.Next) {
			head, err := t.Ledger.Head(ctx, Period{s, first})
			if err != nil {
				return err
			}
			if head.Latest == 0 || to.Off == "" && head.LatestState == Skipped && head.LatestWhy == ReasonPolicy {
				to.Next, to.PlanAt = l.version.Start, t.now
			}
		}
	}
	if sameRow(row, to) {
		return nil
	}
	if err := t.Ledger.MoveSeries(ctx, row, to, l.lateAt(to)); err != nil {
		return err
	}
	t.add(&t.Series)
	return nil
}

func sameRow(a, b SeriesRow) bool {
	return a.Series == b.Series && a.Owner == b.Owner && a.Scope == b.Scope && a.Next == b.Next && a.PlanAt.Equal(b.PlanAt) && a.Off == b.Off && slices.Equal(a.Revisiting, b.Revisiting)
}

// configured is where people's configuration is read.
type configured interface {
	Workspaces(ctx context.Context) ([]Workspace, error)
	Definitions(ctx context.Context) ([]Version, error)
}

// view is what is configured: workspaces and definitions, read once a tick.
type view struct {
	workspaces map[string]Workspace
	effective  map[Series]Version
}

func viewOf(ctx context.Context, ledger configured) (view, error) {
	v := view{workspaces: map[string]Workspace{}, effective: map[Series]Version{}}
	workspaces, err := ledger.Workspaces(ctx)
	if err != nil {
		return v, err
	}
	definitions, err := ledger.Definitions(ctx)
	if err != nil {
		return v, err
	}
	byOwner := map[string][]Version{}
	for _, d := range definitions {
		if d.Owner != "" {
			byOwner[d.Owner] = append(byOwner[d.Owner], d)
		} else {
			v.effective[Series{d.Workspace, d.Type}] = d
		}
	}
	for _, w := range workspaces {
		v.workspaces[w.ID] = w
		for _, d := range byOwner[w.Owner] {
			if _, own := v.effective[Series{w.ID, d.Type}]; !own {
				v.effective[Series{w.ID, d.Type}] = d
			}
		}
	}
	return v, nil
}

// all lists the series that are defined, and those that were.
func (v view) all(names []Series) []Series {
	set := map[Series]bool{}
	for _, s := range names {
		set[s] = true
	}
	for s := range v.effective {
		set[s] = true
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Type, b.Type))
	})
}

// line is a series as it is configured.
type line struct {
	Series
	workspace Workspace
	version   Version // the definition in force; zero where off says that there is none
	off       string  // ReasonRemoved, ReasonUndefined, ReasonPolicy; empty: months are generated
	zone      *time.Location
}

func (v view) line(s Series) line {
	l := line{Series: s}
	w, there := v.workspaces[s.Workspace]
	d, defined := v.effective[s]
	l.workspace, l.version = w, d
	switch {
	case !there || !w.Removed.IsZero():
		l.off = ReasonRemoved
	case !defined:
		l.off = ReasonUndefined
	case d.Off:
		l.off = ReasonPolicy
	}
	return l
}

// located is the line with its workspace's zone.
func (l line) located() (line, error) {
	zone, err := calendar.LoadZone(l.workspace.Zone)
	l.zone = zone
	return l, err
}

// first is the first month that is generated.
func (l line) first() calendar.Month {
	if l.version.Start.Before(l.workspace.Start) {
		return l.workspace.Start
	}
	return l.version.Start
}

// fresh is the row of a line that was never planned.
func (l line) fresh(now time.Time) SeriesRow {
	return SeriesRow{Series: l.Series, Owner: l.workspace.Owner, Scope: l.version.Scope, Next: l.version.Start, PlanAt: now, Off: l.off}
}

// changed is a row as it should stand. Where something differs the planner looks at once; where the type was switched on
// again, at all of its months.
func (l line) changed(row SeriesRow, now time.Time) SeriesRow {
	to := row
	to.Off = l.off
	if l.version.Number != 0 {
		to.Owner, to.Scope = l.workspace.Owner, l.version.Scope
		if to.Next.Before(l.version.Start) || row.Off != "" && to.Off == "" {
			to.Next = l.version.Start
		}
	}
	if !sameRow(row, to) {
		to.PlanAt = now
	}
	return to
}

// lateAt is from when the series is late for the first month that it never planned; zero: nobody waits for one.
func (l line) lateAt(row SeriesRow) time.Time {
	l, err := l.located()
	if err != nil || row.Off != "" {
		return time.Time{}
	}
	m := row.Next
	for m.Before(l.first()) || waived(l.version.Waived, m) != "" {
		m = m.Add(1)
	}
	_, end := m.Bounds(l.zone)
	return end.Add(l.version.DueAfter.Std())
}

// waived is the reason for which a month is never late; empty: there is none.
func waived(list []Waiver, m calendar.Month) string {
	for _, w := range list {
		if w.Month == m {
			return w.Reason
		}
	}
	return ""
}
