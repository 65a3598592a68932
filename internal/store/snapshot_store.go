package store

import (
	"context"
	"errors"
	"strings"

	"almanac/internal/calendar"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
)

// Snapshots reads and writes the records of monthly snapshots: Store has their table. Schedules has the other one, where
// workspaces are configured.
type Snapshots struct {
	Store     *Store
	Schedules *Store
}

// NewSnapshots makes a store that waits for real.
func NewSnapshots(db DynamoDB, table string, schedules *Store) *Snapshots {
	return &Snapshots{Store: New(db, table, schedules.Stage), Schedules: schedules}
}

var (
	_ snapshot.DispatchLedger  = (*Snapshots)(nil)
	_ snapshot.StepLedger      = (*Snapshots)(nil)
	_ snapshot.PeopleLedger    = (*Snapshots)(nil)
	_ snapshot.ReconcileLedger = (*Snapshots)(nil)
)

func snapshotKey(r snapshot.Run) schema.Key {
	return schema.SnapshotKey(r.Workspace, r.Type, r.Month.String(), r.Version)
}

func headKey(p snapshot.Period) schema.Key {
	return schema.HeadKey(p.Workspace, p.Type, p.Month.String())
}

func currentKey(p snapshot.Period) schema.Key {
	return schema.CurrentKey(p.Workspace, p.Type, p.Month.String())
}

// keyOfSnapshot finds a run by its id.
func keyOfSnapshot(id string) (schema.Key, bool) {
	workspace, typ, month, version, ok := schema.SplitSnapshotID(id)
	return schema.SnapshotKey(workspace, typ, month, version), ok
}

// Run reads one run.
func (s *Snapshots) Run(ctx context.Context, id string) (snapshot.Run, error) {
	k, ok := keyOfSnapshot(id)
	if !ok {
		return snapshot.Run{}, snapshot.ErrNotFound
	}
	it, err := s.Store.get(ctx, k)
	if err != nil {
		return snapshot.Run{}, err
	}
	return decodeSnapshot(it)
}

// Head reads a period's head; one without a version is zero but for the period.
func (s *Snapshots) Head(ctx context.Context, p snapshot.Period) (snapshot.Head, error) {
	it, err := s.Store.get(ctx, headKey(p))
	if err != nil || len(it) == 0 {
		return snapshot.Head{Period: p}, err
	}
	return decodeHead(it)
}

// Pointer reads a period's current version; version 0: nothing is published.
func (s *Snapshots) Pointer(ctx context.Context, p snapshot.Period) (snapshot.Pointer, error) {
	it, err := s.Store.get(ctx, currentKey(p))
	if err != nil || len(it) == 0 {
		return snapshot.Pointer{Period: p}, err
	}
	return decodePointer(it)
}

// Definition reads one version of a definition.
func (s *Snapshots) Definition(ctx context.Context, sc snapshot.Scope, typ string, version int) (snapshot.Version, error) {
	return s.definition(ctx, schema.SnapshotVersionKey(scopeText(sc), typ, version))
}

// Present reads the version that is in force.
func (s *Snapshots) Present(ctx context.Context, sc snapshot.Scope, typ string) (snapshot.Version, error) {
	return s.definition(ctx, schema.SnapshotDefinitionKey(scopeText(sc), typ))
}

func (s *Snapshots) definition(ctx context.Context, k schema.Key) (snapshot.Version, error) {
	it, err := s.Store.get(ctx, k)
	if err != nil {
		return snapshot.Version{}, err
	}
	return decodeSnapshotVersion(it)
}

// Caps reads an owner's slots. An owner without an item has the default caps and no run.
func (s *Snapshots) Caps(ctx context.Context, owner string) (snapshot.Caps, error) {
	it, err := s.Store.get(ctx, schema.CapsKey(owner))
	if err != nil || len(it) == 0 {
		return snapshot.Caps{Owner: defaultOwner(owner)}, err
	}
	return decodeCaps(it), nil
}

// scopeText spells a scope as keys and rows have it.
func scopeText(sc snapshot.Scope) string {
	if sc.Workspace != "" {
		return schema.ScopeOfWorkspace(sc.Workspace)
	}
	return schema.ScopeOfOwner(sc.Owner)
}

func scopeOf(text string) snapshot.Scope {
	if w, ok := strings.CutPrefix(text, schema.WorkspaceScope); ok {
		return snapshot.Scope{Workspace: w}
	}
	return snapshot.Scope{Owner: strings.TrimPrefix(text, schema.OwnerScope)}
}

func monthOf(text string) calendar.Month {
	m, err := calendar.ParseMonth(text)
	if err != nil {
		return calendar.Month{} // a series without a month to come; keys are made of months only
	}
	return m
}

func monthText(m calendar.Month) string {
	if m == (calendar.Month{}) {
		return ""
	}
	return m.String()
}

// ofSnapshots reports a key of the table Snapshots, audits aside: what a refused write to it is told as.
func ofSnapshots(k schema.Key) bool {
	switch kindOf(k) {
	case schema.PeriodPrefix, schema.CurrentPrefix, schema.ChunkPrefix, schema.SnapDefPrefix, schema.MovePrefix, "SERIES", "CAPS":
		return true
	}
	return false
}

func snapshotConflict(w write, old item) error {
	c := &snapshot.Conflict{Event: w.event, Why: w.why(old)}
	if len(old) == 0 {
		return c
	}
	switch kind := kindOf(w.key); {
	case kind == schema.PeriodPrefix && strings.Contains(string(w.key.SK), schema.VersionMark):
		if r, err := decodeSnapshot(old); err == nil {
			c.Run = &r
		}
	case kind == schema.PeriodPrefix:
		if h, err := decodeHead(old); err == nil {
			c.Head = &h
		}
	case kind == schema.CurrentPrefix:
		if p, err := decodePointer(old); err == nil {
			c.Pointer = &p
		}
	case kind == "CAPS":
		caps := decodeCaps(old)
		c.Caps = &caps
	}
	return c
}

// asSnapshotConflict turns a transition that table D does not have into the conflict that a caller reads again for.
func asSnapshotConflict(err error, r snapshot.Run) error {
	var illegal errIllegal
	if errors.As(err, &illegal) {
		return &snapshot.Conflict{Event: illegal.event, Why: illegal.Error(), Run: &r}
	}
	return err
}

type snapshotStep = step[snapshot.State, snapshot.Event]

// runWrite is a transition of table D on a run as read.
func runWrite(r snapshot.Run, event snapshot.Event, f facts, u update, mine func(item) bool) (write, error) {
	f.run = r
	w, err := advance(snapshotStep{table: snapshot.Runs, from: r.State, event: event, key: snapshotKey(r), facts: f, with: u, mine: mine})
	return w, asSnapshotConflict(err, r)
}

// moved does a transition that touches no other row, and hands back the run as it stands then.
func (s *Snapshots) moved(ctx context.Context, r snapshot.Run, event snapshot.Event, f facts, u update, mine func(item) bool) (snapshot.Run, error) {
	w, err := runWrite(r, event, f, u, mine)
	if err != nil {
		return r, err
	}
	row := item{}
	w.row = &row
	if err := s.Store.send(ctx, w); err != nil {
		return r, err
	}
	return decodeSnapshot(row)
}
