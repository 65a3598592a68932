package store

import (
	"context"
	"strings"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/transition"
)

// Plan records a version of a period together with the period's head. A planned run's owner has an item for its slots
// from then on.
func (s *Snapshots) Plan(ctx context.Context, p snapshot.Planning) error {
	r := p.Run
	if r.Version != p.Head.Latest+1 {
		return &snapshot.Conflict{Event: string(p.Event), Why: "the version does not follow the period's latest", Head: &p.Head}
	}
	row, _ := snapshot.Runs.Next(transition.Absent, p.Event)
	w, err := advance(snapshotStep{table: snapshot.Runs, from: transition.Absent, event: p.Event, key: snapshotKey(r), put: newSnapshot(p, row.To),
		facts: facts{decided: []transition.Guard{snapshot.HeadFree, snapshot.HeadNotActive, snapshot.Eligible, snapshot.OtherReason, snapshot.AttemptPersonal}},
		mine:  func(it item) bool { return str(it, schema.AdmittedBy) == p.Token }})
	if err != nil {
		return asSnapshotConflict(err, r)
	}
	ws := []write{w, headPlanned(p, row.To)}
	if p.Audit != nil {
		ws = append(ws, snapshotAudit(*p.Audit))
	}
	if row.To == snapshot.Planned {
		if err := s.ensureOwner(ctx, r.Owner); err != nil {
			return err
		}
	}
	return s.Store.transact(ctx, ws...)
}

// newSnapshot is a run's row as planning makes it.
func newSnapshot(p snapshot.Planning, to snapshot.State) item {
	r := p.Run
	m := map[string]any{
		schema.OwnerOf: r.Owner, schema.Backfill: r.Backfill, schema.Scope: scopeText(r.Scope), schema.DefVersion: r.Definition,
		schema.PeriodStart: r.Start, schema.PeriodEnd: r.End, schema.Zone: r.Zone, schema.Job: 0, schema.Attempts: 0, schema.Failures: 0,
		schema.RequestedBy: r.RequestedBy, schema.RequestWhy: r.RequestWhy, schema.Accepts: document(r.Accepted, len(r.Accepted) == 0),
		schema.Reason: r.Reason, schema.ReasonText: r.ReasonText, schema.CreatedAt: r.CreatedAt, schema.AdmittedBy: p.Token,
		schema.Timeline: []string{entry(r.CreatedAt, "%s", p.Event)},
	}
	if to == snapshot.Planned {
		for k, v := range work(schema.WorkPlanned(r.Owner, r.Backfill), firstDay(r)) {
			m[k] = v
		}
	} else {
		m[schema.SettledAt] = r.CreatedAt
	}
	return compact(m)
}

// firstDay orders planned runs: the oldest month first, in whatever zone.
func firstDay(r snapshot.Run) time.Time {
	return time.Date(r.Month.Year, r.Month.Month, 1, 0, 0, 0, 0, time.UTC)
}

// work is a run's place in the index of what is to be done; "" takes it out.
func work(partition string, at time.Time) map[string]any {
	return map[string]any{schema.Work: partition, schema.WorkAt: schema.Time(at)}
}

// headPlanned moves a period's head to a new version, as the event allows it on the head as read.
func headPlanned(p snapshot.Planning, to snapshot.State) write {
	w := write{event: string(p.Event), key: headKey(p.Run.Period), refused: "the period has an active version, or its latest is not as read"}
	e := &w.expr
	switch {
	case p.Head.Latest == 0:
		w.condition = "attribute_not_exists(" + e.name(schema.PK) + ")"
	default:
		w.condition = e.equals(schema.Latest, p.Head.Latest) + " AND attribute_not_exists(" + e.name(schema.Active) + ")"
		if p.Event != snapshot.Request {
			w.condition += " AND " + e.equals(schema.LatestState, string(snapshot.Skipped))
		}
		if p.Event == snapshot.PlanIneligible {
			w.condition += " AND " + e.name(schema.LatestWhy) + " <> " + e.value(p.Run.Reason)
		}
	}
	set := map[string]any{schema.OwnerOf: p.Run.Owner, schema.Latest: p.Run.Version, schema.LatestState: string(to), schema.LatestWhy: p.Run.Reason, schema.Active: nil}
	if to == snapshot.Planned {
		set[schema.Active] = p.Run.Version
	}
	for k, v := range late(p.Run.Series, p.LateAt) {
		set[k] = v
	}
	w.update = e.update(update{set: set})
	return w
}

// late is a row's place in the index of late periods; a zero time takes it out.
func late(s snapshot.Series, at time.Time) map[string]any {
	if at.IsZero() {
		return map[string]any{schema.LateShard: nil, schema.LateAt: nil}
	}
	return map[string]any{schema.LateShard: schema.LateShardOf(s.Workspace, s.Type), schema.LateAt: schema.Time(at)}
}

// ensureOwner gives an owner the item that holds its slots, with the default caps.
func (s *Snapshots) ensureOwner(ctx context.Context, id string) error {
	it, err := s.Store.get(ctx, schema.CapsKey(id))
	if err != nil || len(it) > 0 {
		return err
	}
	o := defaultOwner(id)
	return s.Store.putOnce(ctx, "make owner", schema.CapsKey(id), map[string]any{schema.Name: o.Name, schema.Cap: o.Cap, schema.BackfillCap: o.Backfill,
		schema.Slots: item{}, schema.Backfill: item{}, schema.DirKind: schema.DirOwners, schema.DirName: id})
}

// Series reads the planner's place in a series.
func (s *Snapshots) Series(ctx context.Context, sr snapshot.Series) (snapshot.SeriesRow, error) {
	it, err := s.Store.get(ctx, schema.SeriesKey(sr.Workspace, sr.Type))
	if err != nil {
		return snapshot.SeriesRow{}, err
	}
	return decodeSeries(it)
}

func seriesAttributes(s snapshot.SeriesRow, lateAt time.Time) map[string]any {
	m := map[string]any{schema.OwnerOf: s.Owner, schema.Scope: scopeText(s.Scope), schema.NextMonth: monthText(s.Next), schema.Off: s.Off, schema.Revisit: revisits(s),
		schema.PlanShard: nil, schema.PlanAt: schema.Time(s.PlanAt), schema.DirKind: schema.DirSeries, schema.DirName: schema.SeriesName(s.Workspace, s.Type)}
	if !s.PlanAt.IsZero() {
		m[schema.PlanShard] = schema.PlanShardOf(s.Workspace, s.Type)
	}
	for k, v := range late(s.Series, lateAt) {
		m[k] = v
	}
	return m
}

func revisits(s snapshot.SeriesRow) string {
	months := make([]string, len(s.Revisiting))
	for i, m := range s.Revisiting {
		months[i] = m.String()
	}
	return strings.Join(months, " ")
}

// PutSeries begins a series; one that stands is left as it is.
func (s *Snapshots) PutSeries(ctx context.Context, row snapshot.SeriesRow, lateAt time.Time) error {
	return s.Store.putOnce(ctx, "put series", schema.SeriesKey(row.Workspace, row.Type), seriesAttributes(row, lateAt))
}

// MoveSeries writes the planner's place on the condition that it is as read: the next month, when to look, what to look at
// again, and whether at all.
func (s *Snapshots) MoveSeries(ctx context.Context, read, to snapshot.SeriesRow, lateAt time.Time) error {
	set := seriesAttributes(to, lateAt)
	w := write{event: "move series", key: schema.SeriesKey(read.Workspace, read.Type), mine: func(it item) bool { return placeIs(it, to) }}
	e := &w.expr
	w.condition = strings.Join([]string{"attribute_exists(" + e.name(schema.PK) + ")", e.equals(schema.NextMonth, monthText(read.Next)),
		e.equals(schema.PlanAt, schema.Time(read.PlanAt)), e.equals(schema.Revisit, revisits(read)), e.equals(schema.Off, read.Off)}, " AND ")
	w.update = e.update(update{set: set})
	return s.Store.send(ctx, w)
}

func placeIs(it item, s snapshot.SeriesRow) bool {
	return str(it, schema.NextMonth) == monthText(s.Next) && str(it, schema.PlanAt) == schema.Time(s.PlanAt) && str(it, schema.Revisit) == revisits(s) &&
		str(it, schema.Off) == s.Off && str(it, schema.OwnerOf) == s.Owner && str(it, schema.Scope) == scopeText(s.Scope)
}

// Cancel cancels a run as read. One that moved on meanwhile is a *snapshot.Conflict with the run as it stands (N17).
func (s *Snapshots) Cancel(ctx context.Context, r snapshot.Run, c snapshot.Cancellation) error {
	set := settledSnapshot(r, c.At)
	set[schema.Reason], set[schema.ReasonText], set[schema.CancelledBy], set[schema.NextAttempt] = c.Reason, c.Text, c.By, nil
	w, err := runWrite(r, snapshot.Cancel, facts{decided: []transition.Guard{snapshot.ReasonGiven}}, update{set: set, append: entry(c.At, "cancelled: %s", c.Reason)},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Cancelled) && str(it, schema.CancelledBy) == c.By && str(it, schema.SettledAt) == schema.Time(c.At)
		})
	if err != nil {
		return err
	}
	ws := []write{w, headDone(r, snapshot.Cancel, snapshot.Cancelled, c.Reason, c.Reason != snapshot.ReasonOperator)}
	if r.Admitted() {
		ws = append(ws, freeing(r.Owner, r.ID()))
	}
	if c.Audit != nil {
		ws = append(ws, snapshotAudit(*c.Audit))
	}
	return s.Store.transact(ctx, ws...)
}

// settledSnapshot is what every final transition writes: nothing is to be done with the run, and a week later what it
// left may be removed.
func settledSnapshot(r snapshot.Run, at time.Time) map[string]any {
	m := work("", time.Time{})
	m[schema.SettledAt], m[schema.SettledShard] = schema.Time(at), schema.SettledShardOf(r.ID())
	return m
}

// headDone clears a head's active version. quiet takes the period off the late ones: it is published, or nobody waits.
func headDone(r snapshot.Run, event snapshot.Event, state snapshot.State, why string, quiet bool) write {
	w := write{event: string(event), key: headKey(r.Period), refused: "the run is not the period's active version"}
	w.condition = w.expr.equals(schema.Active, r.Version)
	set := map[string]any{schema.Active: nil, schema.LatestState: string(state), schema.LatestWhy: why}
	if quiet {
		set[schema.LateShard], set[schema.LateAt] = nil, nil
	}
	w.update = w.expr.update(update{set: set})
	return w
}

func snapshotAudit(a snapshot.Audit) write {
	return auditWrite(schedule.Audit{ID: a.ID, Subject: a.Subject, At: a.At, Who: a.Who, What: a.What, Why: a.Why, Before: a.Before, After: a.After})
}
