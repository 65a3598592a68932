package storetest

import (
	"context"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// snapshots is the table of monthly snapshots: s is over it, b over the other one, where workspaces are configured.
func snapshots(t *testing.T, b, s *bench) {
	t.Run("table D", func(t *testing.T) { walk(t, s, monthly(s)) })
	t.Run("faults", func(t *testing.T) { eachCall(t, s, monthly(s)) })
	t.Run("S9 applied, reply lost, sent again", func(t *testing.T) { sentAgain(t, s, monthly(s)) })
	t.Run("rivals", func(t *testing.T) { snapshotRivals(t, s) })
	t.Run("slots", func(t *testing.T) { slots(t, s) })
	t.Run("acts", func(t *testing.T) { snapshotActs(t, s) })
	t.Run("parts", func(t *testing.T) { snapshotParts(t, s) })
	t.Run("lists", func(t *testing.T) { snapshotLists(t, b, s) })
	if n := s.tap.eventual.Load(); n > 0 {
		t.Errorf("%d reads of the table's own rows may have been behind, want consistent reads", n)
	}
}

// over is the store of monthly snapshots over a store of their table.
func over(s *store.Store) *store.Snapshots { return &store.Snapshots{Store: s, Schedules: s} }

// The month of every place, its bounds in New York, and what runs of it hold. A place's schedule is its workspace and its
// owner.
var (
	may       = calendar.Month{Year: 2013, Month: time.May}
	mayStart  = at("2013-05-01T04:00:00.000Z")
	mayEnd    = at("2013-06-01T04:00:00.000Z")
	lateSince = at("2013-06-04T04:00:00.000Z")
	offered   = wall.Add(-5 * time.Minute)
	claimedAt = wall.Add(-10 * time.Minute)
)

const (
	typ     = "departures"
	purpose = "2 rows"
	arn     = "arn:aws:states:us-east-1:123456789012:execution:attempts:job-3"
)

func (p place) period() snapshot.Period {
	return snapshot.Period{Series: snapshot.Series{Workspace: p.schedule, Type: typ}, Month: may}
}

// snapshot is the run that a place is about: the fourth version of its month.
func (p place) snapshot() string { return snapshot.Run{Period: p.period(), Version: 4}.ID() }

func (p place) versionKey(n int) schema.Key {
	return schema.SnapshotKey(p.schedule, typ, may.String(), n)
}
func (p place) snapshotKey() schema.Key { return p.versionKey(4) }
func (p place) firstKey() schema.Key    { return p.versionKey(1) }
func (p place) headKey() schema.Key     { return headKey(p.period()) }
func (p place) pointerKey() schema.Key  { return pointerKey(p.period()) }
func (p place) capsKey() schema.Key     { return schema.CapsKey(p.schedule) }
func (p place) chunkKey() schema.Key    { return schema.ChunkKey(p.snapshot(), 2, 13) }

func headKey(p snapshot.Period) schema.Key {
	return schema.HeadKey(p.Workspace, p.Type, p.Month.String())
}
func pointerKey(p snapshot.Period) schema.Key {
	return schema.CurrentKey(p.Workspace, p.Type, p.Month.String())
}

func (b *bench) partitions(p place) []schema.Partition {
	if b.snapshots {
		return []schema.Partition{schema.SeriesPartition(p.schedule, typ), p.capsKey().PK, schema.ChunkPartition(p.snapshot(), 2), auditsOf(p.schedule),
			schema.Partition(schema.ScopeOfWorkspace(p.schedule))}
	}
	return p.partitions()
}

// ledger is the store of monthly snapshots over the bench's table.
func (b *bench) ledger() *store.Snapshots { return over(b.Store) }

func whole(it Item, name string) int {
	v, _ := it[name].(*types.AttributeValueMemberN)
	if v == nil {
		return 0
	}
	n := 0
	for _, d := range v.Value {
		n = 10*n + int(d-'0')
	}
	return n
}

func keysOf(it Item, name string) []string {
	v, _ := it[name].(*types.AttributeValueMemberM)
	if v == nil {
		return nil
	}
	var keys []string
	for k := range v.Value {
		keys = append(keys, k)
	}
	return keys
}

// planRow is what every run has from its planning on.
func planRow(p place) row {
	return row{schema.OwnerOf: p.schedule, schema.Scope: "OWNER#" + p.schedule, schema.DefVersion: 3, schema.PeriodStart: mayStart, schema.PeriodEnd: mayEnd,
		schema.Zone: "America/New_York", schema.Job: 0, schema.Attempts: 0, schema.Failures: 0, schema.CreatedAt: wall.Add(-time.Hour),
		schema.Timeline: []string{"2026-11-30T07:00:00.000Z plan"}}
}

// monthRow is a valid run in a state, in its third job, with one failure behind it.
func monthRow(p place, state string) row {
	r := planRow(p).with(row{schema.State: state, schema.Job: 3, schema.Attempts: 1, schema.Failures: 1, schema.Work: schema.WorkOpen(p.schedule), schema.WorkAt: claimedAt,
		schema.ClaimedAt: claimedAt, schema.Mode: "chunked", schema.Generation: 2, schema.Cursor: 12, schema.CursorKey: "i:1200", schema.CursorRows: 1200, schema.Basis: "3 1367380800000 1370059200000 v1"})
	validated := row{schema.CursorDone: true, schema.Verdict: "passed", schema.Manifest: "cd34", schema.ComparedTo: 3,
		schema.CheckList: `[{"name":"rows","expected":"1200","found":"1200","passed":true}]`}
	final := row{schema.Work: nil, schema.WorkAt: nil, schema.SettledAt: wall.Add(-time.Minute), schema.SettledShard: schema.SettledShardOf(p.snapshot())}
	switch snapshot.State(state) {
	case snapshot.Planned:
		return r.with(row{schema.Work: schema.WorkPlanned(p.schedule, false), schema.WorkAt: at("2013-05-01T00:00:00.000Z"), schema.AdmittedBy: "planner-1"})
	case snapshot.Queued:
		return r.with(row{schema.OfferedAt: offered})
	case snapshot.Running:
		return r.with(row{schema.Execution: arn, schema.StartedAt: claimedAt})
	case snapshot.Validating:
		return r.with(row{schema.Execution: arn, schema.StartedAt: claimedAt}).with(validated)
	case snapshot.Failed:
		return r.with(row{schema.Work: schema.WorkRetry(p.schedule, false), schema.WorkAt: wall.Add(-time.Minute), schema.NextAttempt: wall.Add(-time.Minute),
			schema.Execution: arn, schema.ErrorCode: "source_unavailable", schema.ErrorText: "no answer", schema.FailedIn: "running"})
	case snapshot.Published:
		return r.with(validated).with(final)
	}
	return r.with(final)
}

func monthHead(p place) row {
	return row{schema.OwnerOf: p.schedule, schema.Latest: 4, schema.LatestState: "planned", schema.Active: 4, schema.LateShard: schema.LateShardOf(p.schedule, typ), schema.LateAt: lateSince}
}

func current(p place) row {
	return row{schema.Version: 3, schema.Previous: 2, schema.Manifest: "ab12", schema.MovedAt: wall.Add(-time.Hour), schema.MovedBy: "someone-j1"}
}

// ownerRow is an owner with 5 slots, 2 for backfills.
func ownerRow(p place, slots, backfills []string) row {
	return row{schema.Name: "airports", schema.Cap: 5, schema.BackfillCap: 2, schema.Slots: taken(slots...), schema.Backfill: taken(backfills...),
		schema.DirKind: "owner", schema.DirName: p.schedule}
}

func taken(ids ...string) row {
	r := row{}
	for _, id := range ids {
		r[id] = true
	}
	return r
}

// monthWorld is everything around a run in a state. Two others hold slots, one of them a backfill.
func monthWorld(p place, state string, changes row) world {
	slots := []string{"other-1", "other-2"}
	if snapshot.State(state) == snapshot.Queued || snapshot.State(state) == snapshot.Running || snapshot.State(state) == snapshot.Validating {
		slots = append(slots, p.snapshot())
	}
	return world{}.add(p.snapshotKey(), monthRow(p, state).with(changes)).add(p.headKey(), monthHead(p)).add(p.pointerKey(), current(p)).
		add(p.capsKey(), ownerRow(p, slots, []string{"other-2"}))
}

// monthly is table D.
func monthly(b *bench) subject {
	s := subjectOf(snapshot.Runs)
	s.key = place.snapshotKey
	s.given = func(p place, state string) world { return monthWorld(p, state, nil) }
	s.blank = func(p place) seen {
		return seen{snap: snapshot.Run{Period: p.period(), Version: 4, Owner: p.schedule, Job: 3}}
	}
	s.look = func(ctx context.Context, st *store.Store, p place) (seen, error) {
		r, err := over(st).Run(ctx, p.snapshot())
		return seen{snap: r}, err
	}
	s.ways = append(append(planWays(), claimWays()...), append(stepWays(), endWays()...)...)
	return s
}
