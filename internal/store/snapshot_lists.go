package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Planned suggests planned runs of an owner, the oldest month first.
func (s *Snapshots) Planned(ctx context.Context, owner string, backfill bool, limit int) ([]string, error) {
	sp := beginning(schema.Work, schema.WorkPlanned(owner, backfill), schema.WorkAt, "")
	sp.in.IndexName = aws.String(schema.IndexWork)
	return s.suggested(ctx, sp, limit)
}

// Retries suggests failed runs whose next attempt is due, the longest due first.
func (s *Snapshots) Retries(ctx context.Context, owner string, backfill bool, now time.Time, limit int) ([]string, error) {
	return s.suggested(ctx, index(schema.IndexWork, schema.Work, schema.WorkRetry(owner, backfill), schema.WorkAt, schema.Time(now)), limit)
}

// Open suggests the admitted runs of an owner, the first claimed first. An owner has at most snapshot.MaxCap.
func (s *Snapshots) Open(ctx context.Context, owner string) ([]string, error) {
	sp := beginning(schema.Work, schema.WorkOpen(owner), schema.WorkAt, "")
	sp.in.IndexName = aws.String(schema.IndexWork)
	return s.suggested(ctx, sp, 0)
}

// suggested reads at most limit runs of an index; 0: all.
func (s *Snapshots) suggested(ctx context.Context, sp span, limit int) (runs []string, err error) {
	err = s.each(ctx, sp, limit, func(it item) error {
		id, ok := schema.SnapshotOf(keyOf(it))
		if !ok {
			return fmt.Errorf("%s stands in the index %s: want a run", keyOf(it), aws.ToString(sp.in.IndexName))
		}
		runs = append(runs, id)
		return nil
	})
	return runs, err
}

// each reads the rows of a span, page by page, at most limit; 0: all.
func (s *Snapshots) each(ctx context.Context, sp span, limit int, do func(item) error) error {
	var from item
	for n := 0; ; {
		p, err := s.Store.query(ctx, sp, from, limit-n)
		if err != nil {
			return err
		}
		for _, it := range p.items {
			if err := do(it); err != nil {
				return err
			}
		}
		n += len(p.items)
		if from = p.next; len(from) == 0 || limit > 0 && n >= limit {
			return nil
		}
	}
}

// DueSeries suggests series whose planner should look.
func (s *Snapshots) DueSeries(ctx context.Context, shard int, until time.Time, from string, limit int) ([]snapshot.Series, string, error) {
	keys, next, err := s.Store.suggest(ctx, index(schema.IndexPlan, schema.PlanShard, schema.PlanShardAt(shard), schema.PlanAt, schema.Time(until)), from, limit)
	list := make([]snapshot.Series, len(keys))
	for i, k := range keys {
		list[i] = periodOf(k, "").Series
	}
	return list, next, err
}

// Late suggests periods that are late at now; the first entry of a shard has been for longest.
func (s *Snapshots) Late(ctx context.Context, shard int, now time.Time, from string, limit int) ([]snapshot.Lateness, string, error) {
	p, err := s.Store.list(ctx, index(schema.IndexLate, schema.LateShard, schema.LateShardAt(shard), schema.LateAt, schema.Time(now)), from, limit)
	if err != nil {
		return nil, "", err
	}
	var t times
	list := make([]snapshot.Lateness, len(p.items))
	for i, it := range p.items {
		period := periodOf(keyOf(it), schema.PeriodPrefix) // the row of a series has no month
		list[i] = snapshot.Lateness{Series: period.Series, Month: period.Month, Since: t.read(it, schema.LateAt)}
	}
	return list, cursor(p.next), t.err
}

// Leftovers suggests runs that were published or cancelled at or before until.
func (s *Snapshots) Leftovers(ctx context.Context, shard int, until time.Time, from string, limit int) ([]string, string, error) {
	return s.settled(ctx, schema.SettledShardAt(shard), until, from, limit)
}

// Failures suggests runs that failed for good at or before until.
func (s *Snapshots) Failures(ctx context.Context, shard int, until time.Time, from string, limit int) ([]string, string, error) {
	return s.settled(ctx, schema.FailedShardAt(shard), until, from, limit)
}

func (s *Snapshots) settled(ctx context.Context, shard string, until time.Time, from string, limit int) ([]string, string, error) {
	keys, next, err := s.Store.suggest(ctx, index(schema.IndexSettled, schema.SettledShard, shard, schema.SettledAt, schema.Time(until)), from, limit)
	if err != nil {
		return nil, "", err
	}
	runs := make([]string, len(keys))
	for i, k := range keys {
		runs[i], _ = schema.SnapshotOf(k)
	}
	return runs, next, nil
}

// Cleaned takes a run off the leftovers and the final failures; it may be repeated.
func (s *Snapshots) Cleaned(ctx context.Context, run string) error {
	k, ok := keyOfSnapshot(run)
	if !ok {
		return snapshot.ErrNotFound
	}
	w := write{event: "cleaned", key: k}
	w.condition = "attribute_exists(" + w.expr.name(schema.PK) + ")"
	w.update = w.expr.update(update{set: map[string]any{schema.SettledShard: nil}})
	return s.Store.send(ctx, w)
}

// Months lists heads of a series, oldest first. Runs stand between them, and are left out.
func (s *Snapshots) Months(ctx context.Context, sr snapshot.Series) (list []snapshot.Head, err error) {
	err = s.each(ctx, below(schema.SeriesPartition(sr.Workspace, sr.Type), schema.PeriodPrefix, false), 0, func(it item) error {
		if strings.Contains(string(keyOf(it).SK), schema.VersionMark) {
			return nil
		}
		h, err := decodeHead(it)
		list = append(list, h)
		return err
	})
	return list, err
}

// Versions lists the runs of a period, the latest first.
func (s *Snapshots) Versions(ctx context.Context, p snapshot.Period) (list []snapshot.Run, err error) {
	err = s.each(ctx, below(schema.SeriesPartition(p.Workspace, p.Type), string(headKey(p).SK)+schema.VersionMark, true), 0, func(it item) error {
		r, err := decodeSnapshot(it)
		list = append(list, r)
		return err
	})
	return list, err
}

// named reads every row of one kind of the directory. Rows are read consistently; one that is gone is left out.
func (s *Snapshots) named(ctx context.Context, kind string, do func(item) error) error {
	for from := ""; ; {
		keys, next, err := s.Store.directory(ctx, kind, "", from, 100)
		if err != nil {
			return err
		}
		rows, err := s.Store.batch(ctx, keys)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if len(rows[k]) == 0 {
				continue
			}
			if err := do(rows[k]); err != nil {
				return err
			}
		}
		if from = next; from == "" {
			return nil
		}
	}
}

// Definitions lists the versions in force, by scope and type.
func (s *Snapshots) Definitions(ctx context.Context) (list []snapshot.Version, err error) {
	err = s.named(ctx, schema.DirSnapshots, func(it item) error {
		v, err := decodeSnapshotVersion(it)
		list = append(list, v)
		return err
	})
	return list, err
}

// SeriesNames lists all series, by workspace and type.
func (s *Snapshots) SeriesNames(ctx context.Context) (list []snapshot.Series, err error) {
	sp := beginning(schema.DirKind, schema.DirSeries, schema.DirName, "")
	sp.in.IndexName = aws.String(schema.IndexDirectory)
	err = s.each(ctx, sp, 0, func(it item) error {
		list = append(list, periodOf(keyOf(it), "").Series)
		return nil
	})
	return list, err
}

// Owners lists all owners by id; the default owner is one of them also before anything is planned.
func (s *Snapshots) Owners(ctx context.Context) (list []snapshot.Owner, err error) {
	err = s.named(ctx, schema.DirOwners, func(it item) error {
		list = append(list, decodeCaps(it).Owner)
		return nil
	})
	if !slices.ContainsFunc(list, func(o snapshot.Owner) bool { return o.ID == snapshot.DefaultOwner }) {
		list = append(list, defaultOwner(snapshot.DefaultOwner))
	}
	return list, err
}

// Workspaces lists all workspaces as they are configured for the whole product.
func (s *Snapshots) Workspaces(ctx context.Context) ([]snapshot.Workspace, error) {
	rows, err := s.Schedules.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]snapshot.Workspace, len(rows))
	for i, w := range rows {
		removed, err := w.RemovedAt()
		if err != nil {
			return nil, fmt.Errorf("workspace %s: removed: %w", w.ID, err)
		}
		list[i] = snapshot.Workspace{ID: w.ID, Zone: w.Zone, Owner: cmp.Or(w.Owner, snapshot.DefaultOwner), Start: monthOf(w.Start), Removed: removed}
	}
	return list, nil
}
