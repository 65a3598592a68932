package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Attribute names of the indexes of the table Snapshots.
const (
	// IndexWork finds runs by what is to be done with them. Sparse: only runs that are not final carry Work.
	//
	//	planned#owner#kind   by the first day of the month: the oldest period first
	//	retry#owner#kind     by the next attempt time
	//	open#owner           admitted runs, by the time they were claimed
	IndexWork = "work"
	Work      = "work"
	WorkAt    = "work_at"

	// IndexPlan finds series whose planner should look, by business time. Sparse.
	IndexPlan = "plan"
	PlanShard = "plan_shard"
	PlanAt    = "plan_at"

	// IndexLate finds periods that are late, by business time. Sparse: a period that is published, or that nobody waits
	// for, carries none; of the months that were never planned the series' row stands for the first.
	IndexLate = "late"
	LateShard = "late_shard"
	LateAt    = "late_at"

	// IndexSettled finds final runs whose leftovers are to be removed, by SettledAt. Sparse: skipped runs left nothing, and
	// a run that was cleaned leaves the index.
	IndexSettled = "settled"
	SettledShard = "settled_shard"
)

// SnapshotsIndexes are the indexes of the table Snapshots: name, partition, sort key. They hold keys only.
var SnapshotsIndexes = [][3]string{
	{IndexWork, Work, WorkAt},
	{IndexPlan, PlanShard, PlanAt},
	{IndexLate, LateShard, LateAt},
	{IndexSettled, SettledShard, SettledAt},
	{IndexDirectory, DirKind, DirName},
}

// Attribute names of snapshot records. Those that schedules have too are spelled beside those.
const (
	Scope       = "scope" // "WS#w" or "OWNER#o"
	OwnerOf     = "owner_id"
	Backfill    = "backfill" // run: whether it is one; caps: the ids of admitted backfills
	PeriodStart = "period_start"
	PeriodEnd   = "period_end"
	Job         = "job"
	Execution   = "execution"
	OfferedAt   = "offered_at"
	ClaimedAt   = "claimed_at"
	StartedAt   = "started_at"
	Failures    = "failures"
	NextAttempt = "next_attempt_at"
	FailedIn    = "failed_in"
	Mode        = "mode"
	Generation  = "generation"
	Cursor      = "cursor" // chunks committed
	CursorKey   = "cursor_key"
	CursorRows  = "cursor_rows"
	CursorDone  = "cursor_done"
	CursorPlace = "cursor_place" // in the result of the generation's query, in bytes
	Basis       = "basis"
	Verdict     = "verdict" // "passed" or "failed"
	Manifest    = "manifest"
	ComparedTo  = "compared_to"
	CheckList   = "checks"
	Accepts     = "accepts"
	RequestWhy  = "request_why"
	CancelledBy = "cancelled_by"
	ReasonText  = "reason_text"
	QueryFor    = "query_for"   // what the recorded query is for: generation and purpose
	QueryNoted  = "query_noted" // what became of it stands in the row

	// period head
	Latest      = "latest"
	LatestState = "latest_state"
	LatestWhy   = "latest_why"
	Active      = "active"

	// current pointer
	Previous = "previous"
	MovedAt  = "moved_at"
	MovedBy  = "moved_by"

	// caps
	Cap         = "cap"
	BackfillCap = "backfill_cap"
	Slots       = "slots"

	// series
	NextMonth = "next_month"
	Off       = "off"
	Revisit   = "revisit"

	// chunk
	Object     = "object"
	SHA        = "sha256"
	Size       = "bytes"
	Rows       = "rows"
	FirstKey   = "first_key"
	LastKey    = "last_key"
	Sums       = "sums"
	Nulls      = "nulls"
	WrongTypes = "wrong_types"
	Columns    = "columns"
	Increasing = "increasing"

	SourceVersion = "source_version" // of the first chunk
)

// Directory kinds of the table Snapshots.
const (
	DirSnapshots = "snapshot" // definitions, by scope and type
	DirOwners    = "owner"
	DirSeries    = "series" // by workspace and type
)

// Sort key prefixes of the table Snapshots.
const (
	PeriodPrefix   = "P#"
	VersionMark    = "#V#"
	CurrentPrefix  = "CURRENT#"
	ChunkPrefix    = "CHUNK#"
	SnapDefPrefix  = "SNAPDEF#"
	MovePrefix     = "MOVE#"
	WorkspaceScope = "WS#"
	OwnerScope     = "OWNER#"
)

// SeriesPartition holds a series' row, its heads, runs, pointers and pointer moves.
func SeriesPartition(workspace, typ string) Partition {
	return Partition("WS#" + workspace + "#TYPE#" + typ)
}

// The keys of every snapshot record; doc.go lists them beside their guards and access patterns.
func SeriesKey(workspace, typ string) Key { return Key{SeriesPartition(workspace, typ), "SERIES"} }
func HeadKey(workspace, typ, month string) Key {
	return Key{SeriesPartition(workspace, typ), Sort(PeriodPrefix + month)}
}
func SnapshotKey(workspace, typ, month string, version int) Key {
	return Key{SeriesPartition(workspace, typ), Sort(fmt.Sprintf("%s%s%s%04d", PeriodPrefix, month, VersionMark, version))}
}
func CurrentKey(workspace, typ, month string) Key {
	return Key{SeriesPartition(workspace, typ), Sort(CurrentPrefix + month)}
}

// MoveKey is the record of one roll back of a pointer; publications stand on their runs.
func MoveKey(workspace, typ, month, at, id string) Key {
	return Key{SeriesPartition(workspace, typ), Sort(MovePrefix + month + "#" + at + "#" + id)}
}
func ChunkKey(run string, generation, chunk int) Key {
	return Key{ChunkPartition(run, generation), Sort(fmt.Sprintf("%s%08d", ChunkPrefix, chunk))}
}
func ChunkPartition(run string, generation int) Partition {
	return Partition(fmt.Sprintf("SNAP#%s#G#%d", run, generation))
}
func CapsKey(owner string) Key { return Key{Partition("OWNER#" + owner), "CAPS"} }

// SnapshotDefinitionKey is the hot row of a definition: its latest version. scope is "WS#w" or "OWNER#o".
func SnapshotDefinitionKey(scope, typ string) Key {
	return Key{Partition(scope), Sort(SnapDefPrefix + typ)}
}
func SnapshotVersionKey(scope, typ string, version int) Key {
	return Key{Partition(scope), Sort(fmt.Sprintf("%s%s%s%06d", SnapDefPrefix, typ, VersionMark, version))}
}

// SnapshotID names a snapshot run in messages, logs, routes and jobs.
func SnapshotID(workspace, typ, month string, version int) string {
	return fmt.Sprintf("%s_%s_%s_v%d", workspace, typ, month, version)
}

// A type holds no underscore, so that an id comes apart also where the workspace's does.
var snapshotID = regexp.MustCompile(`^(.+)_([^_]+)_(\d{4}-\d{2})_v([1-9]\d{0,3})$`)

// SnapshotOf names the run of a key; ok is false where it is no run's.
func SnapshotOf(k Key) (run string, ok bool) {
	workspace, typ, ok := SeriesOf(k.PK)
	month, version, found := strings.Cut(strings.TrimPrefix(string(k.SK), PeriodPrefix), VersionMark)
	n, err := strconv.Atoi(version)
	if !ok || !found || err != nil {
		return "", false
	}
	return SnapshotID(workspace, typ, month, n), true
}

// SeriesOf takes the partition of a series apart; ok is false where it is none. Neither part holds a "#".
func SeriesOf(pk Partition) (workspace, typ string, ok bool) {
	rest, isWorkspace := strings.CutPrefix(string(pk), WorkspaceScope)
	workspace, typ, found := strings.Cut(rest, "#TYPE#")
	return workspace, typ, isWorkspace && found
}

// SplitSnapshotID takes a snapshot run's id apart; ok is false where it is none.
func SplitSnapshotID(id string) (workspace, typ, month string, version int, ok bool) {
	m := snapshotID.FindStringSubmatch(id)
	if m == nil {
		return "", "", "", 0, false
	}
	version, err := strconv.Atoi(m[4])
	return m[1], m[2], m[3], version, err == nil
}

// Partition values of the index IndexWork.
func WorkPlanned(owner string, backfill bool) string { return "planned#" + owner + kind(backfill) }
func WorkRetry(owner string, backfill bool) string   { return "retry#" + owner + kind(backfill) }
func WorkOpen(owner string) string                   { return "open#" + owner }

func kind(backfill bool) string {
	if backfill {
		return "#backfill"
	}
	return "#current"
}

// Shards of the sparse indexes of the table Snapshots.
func PlanShardOf(workspace, typ string) string   { return spread("plan", workspace+"#"+typ) }
func LateShardOf(workspace, typ string) string   { return spread("late", workspace+"#"+typ) }
func SettledShardOf(run string) string           { return spread("settled", run) }
func FailedShardOf(run string) string            { return spread("failed", run) } // of the same index as SettledShardOf
func PlanShardAt(i int) string                   { return fmt.Sprintf("plan#%02d", i) }
func LateShardAt(i int) string                   { return fmt.Sprintf("late#%02d", i) }
func SettledShardAt(i int) string                { return fmt.Sprintf("settled#%02d", i) }
func FailedShardAt(i int) string                 { return fmt.Sprintf("failed#%02d", i) }
func SeriesName(workspace, typ string) string    { return workspace + "/" + typ }
func ScopeOfWorkspace(workspace string) string   { return WorkspaceScope + workspace }
func ScopeOfOwner(owner string) string           { return OwnerScope + owner }
func DirDefinitionName(scope, typ string) string { return scope + "/" + typ }
