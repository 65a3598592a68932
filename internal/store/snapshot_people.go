package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/transition"
)

// SaveDefinition records a version and makes it the one in force, on the condition that the one in force is as read.
func (s *Snapshots) SaveDefinition(ctx context.Context, v snapshot.Version, read int, a snapshot.Audit) error {
	body, err := json.Marshal(v.Definition)
	if err != nil {
		return fmt.Errorf("snapshot definition %s %s: %w", scopeText(v.Scope), v.Type, err)
	}
	scope := scopeText(v.Scope)
	attributes := compact(map[string]any{schema.Version: v.Number, schema.Hash: v.Hash, schema.Body: string(body), schema.CreatedBy: v.CreatedBy, schema.CreatedAt: v.CreatedAt})
	row := func(k schema.Key) write {
		w := write{event: "save definition", key: k, put: keyItem(k), refused: "another version was saved since it was read"}
		for name, val := range attributes {
			w.put[name] = val
		}
		return w
	}
	hot, version := row(schema.SnapshotDefinitionKey(scope, v.Type)), row(schema.SnapshotVersionKey(scope, v.Type, v.Number))
	hot.put[schema.DirKind], hot.put[schema.DirName] = attr(schema.DirSnapshots), attr(schema.DirDefinitionName(scope, v.Type))
	hot.condition = "attribute_not_exists(" + hot.expr.name(schema.PK) + ")"
	if read > 0 {
		hot.expr = expression{}
		hot.condition = hot.expr.equals(schema.Version, read)
	}
	version.condition = "attribute_not_exists(" + version.expr.name(schema.PK) + ")"
	return s.Store.transact(ctx, hot, version, snapshotAudit(a))
}

// SaveOwner configures an owner; the latest wins. Its slots stay as they are.
func (s *Snapshots) SaveOwner(ctx context.Context, o snapshot.Owner, a snapshot.Audit) error {
	w := write{event: "save owner", key: schema.CapsKey(o.ID)}
	w.update = w.expr.update(update{
		set:   map[string]any{schema.Name: o.Name, schema.Cap: o.Cap, schema.BackfillCap: o.Backfill, schema.DirKind: schema.DirOwners, schema.DirName: o.ID},
		first: map[string]any{schema.Slots: item{}, schema.Backfill: item{}},
	})
	return s.Store.transact(ctx, w, snapshotAudit(a))
}

// RetryNow makes a scheduled retry due.
func (s *Snapshots) RetryNow(ctx context.Context, r snapshot.Run, now time.Time, a snapshot.Audit) error {
	w, err := runWrite(r, snapshot.RetryNow, facts{decided: []transition.Guard{snapshot.AttemptPersonal}},
		update{set: map[string]any{schema.NextAttempt: schema.Time(now), schema.WorkAt: schema.Time(now)}, append: entry(now, "retry now")}, nil)
	if err != nil {
		return err
	}
	return s.Store.transact(ctx, w, snapshotAudit(a))
}

// RollBack moves the current pointer as read to an earlier published version, and records the move. While a version is
// active it is refused (N16): that version was, or will be, compared with the current one.
func (s *Snapshots) RollBack(ctx context.Context, read snapshot.Pointer, to snapshot.Run, a snapshot.Audit) error {
	target := write{event: "roll back", key: snapshotKey(to), check: true, refused: "the version is not published"}
	target.condition = target.expr.equals(schema.State, string(snapshot.Published))
	head := write{event: "roll back", key: headKey(to.Period), check: true, refused: "the period has an active version"}
	head.condition = "attribute_exists(" + head.expr.name(schema.PK) + ") AND attribute_not_exists(" + head.expr.name(schema.Active) + ")"
	key := schema.MoveKey(to.Workspace, to.Type, to.Month.String(), schema.Time(a.At), a.ID)
	move := write{event: "roll back", key: key, put: keyItem(key)}
	for k, v := range compact(map[string]any{schema.Version: to.Version, schema.Previous: read.Version, schema.Manifest: to.Manifest(), schema.Who: a.Who, schema.Why: a.Why}) {
		move.put[k] = v
	}
	point := pointing(read, snapshot.Pointer{Period: to.Period, Version: to.Version, Manifest: to.Manifest(), MovedAt: a.At, MovedBy: a.Who, Reason: a.Why}, "roll back")
	return s.Store.transact(ctx, head, target, point, move, snapshotAudit(a))
}
