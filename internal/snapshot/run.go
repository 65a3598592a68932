package snapshot

import (
	"fmt"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/source"
)

// Series is a workspace's type: the line of its months.
type Series struct {
	Workspace string
	Type      string
}

// Period is one month of a series.
type Period struct {
	Series
	Month calendar.Month
}

// Owner is a group of workspaces with its caps: how many runs may be admitted at once, and how many of them backfills.
type Owner struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Cap      int    `json:"cap"`      // 1 to MaxCap
	Backfill int    `json:"backfill"` // 0 ≤ backfill < cap
}

// MaxCap is the largest cap: the owner's item holds each admitted run's id (lifecycles D, "Caps").
const MaxCap = 200

// Caps are an owner's slots as they stand.
type Caps struct {
	Owner
	Slots     []string // ids of all admitted runs
	Backfills []string // those of them that are backfills
}

// SeriesRow is the planner's place in a series.
type SeriesRow struct {
	Series
	Owner      string
	Scope      Scope          // of the definition in force
	Next       calendar.Month // the first month that has never been planned
	PlanAt     time.Time      // business time at which the planner looks again
	Off        string         // why it is no longer planned: workspace removed, definition removed; empty: it is
	Revisiting []calendar.Month
}

// Head is a period's head: which versions there are, and which one is under way.
type Head struct {
	Period
	Owner       string
	Latest      int
	LatestState State     // skipped matters: a skipped latest may be planned again
	LatestWhy   string    // of a skipped or cancelled latest
	Active      int       // the version under way; 0: none
	LateAt      time.Time // business time from which it is late; zero: published, or nobody waits for it
}

// Pointer is a period's current version. Every move is a publication or a recorded roll back.
type Pointer struct {
	Period
	Version  int
	Previous int // 0: none
	Manifest string
	MovedAt  time.Time
	MovedBy  string // a run's id and job, or a person
	Reason   string // of a roll back
}

// Run is one version of a period on its way.
type Run struct {
	Period
	Version    int
	Owner      string
	Backfill   bool // an earlier month than the last closed one when it was planned or asked for
	State      State
	Scope      Scope
	Definition int       // version of the definition
	Start, End time.Time // the month's bounds, UTC, half open, frozen at planning (case T10)
	Zone       string

	Job        int // fencing token: the number of the attempt job
	Execution  string
	OfferedAt  time.Time // wall time of the latest offer of the job
	ClaimedAt  time.Time
	StartedAt  time.Time
	Attempts   int
	Failures   int
	NextAt     time.Time // wall time of the next attempt; zero in failed: final
	ErrorCode  string
	ErrorText  string
	FailedIn   State // the state that the latest failure came from; queued only where no attempt had begun before
	Mode       Mode
	Generation int
	Cursor     Cursor
	// Basis is what the generation was begun from. Another basis at the next start begins a new generation.
	Basis   Basis
	Verdict *Verdict
	Query   Query // of an engine whose queries run apart; zero: none was recorded
	// QueryCost is what the run's queries have cost, as far as they were noted.
	QueryCost source.Cost

	RequestedBy string
	RequestWhy  string
	Accepted    []Acceptance // checks that a person accepts, each with the value found
	Reason      string       // skipped, cancelled
	ReasonText  string
	CancelledBy string
	CreatedAt   time.Time
	SettledAt   time.Time
	Timeline    []string
}

// Cursor is how far the generation has come.
type Cursor struct {
	Chunk int    // chunks committed
	Key   string // the last key committed, as EncodeKey spells it; empty: none
	Rows  int64
	Done  bool // the source has no row after Key
	// Place is behind Key's row in the result that the generation is cut from, where its engine keeps one (source.Placed).
	Place int64
}

// Basis names what a generation reads: while it is equal, a retry continues at the cursor.
type Basis struct {
	Definition int
	Start, End time.Time
	Source     string // the source's version, e.g. an object's ETag; empty where the engine has none
}

// Query is an engine's query that runs apart from us, recorded so that the next invocation finds it instead of paying
// twice.
type Query struct {
	Number int    // counts the run's queries; part of the engine's client token
	For    string // generation and purpose, e.g. "2 control"
	ID     string // the engine's
	Ended  bool   // it ended without a result for a passing reason: another one may follow
	Noted  bool   // what became of it is known, and its cost counted
}

// Chunk is one committed part of a generation.
type Chunk struct {
	Number     int
	Object     string // key in the bucket
	SHA256     string // of the object's bytes
	Bytes      int64
	Rows       int64
	First      string // first and last key, as EncodeKey spells them
	Last       string
	Sums       map[string]string // by column that is to be summed, as EncodeSum spells them
	Nulls      map[string]int64  // by column that must have none: how many it has; only those that have some
	Wrong      map[string]int64  // by column whose type is demanded: cells of another one; only those that have some
	Increasing bool              // keys increase strictly within the chunk
	Columns    []Column          // of a generation's first chunk only: what every chunk of it has
	Source     string            // of a generation's first chunk only: the version of the source that it was read from
}

// Column is one column of a month's files.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as the engine declares it: integer, real, decimal, text, bytes, boolean, date, timestamp, unknown
	// Parquet is the type in Parquet files, as the month's first chunk decided it: INT64, DOUBLE, DECIMAL(10,2), STRING,
	// BYTE_ARRAY, BOOLEAN, DATE, TIMESTAMP(MICROS,UTC) or TIMESTAMP(MICROS). Empty in a month of CSV.
	Parquet string `json:"parquet,omitempty"`
}

// Verdict is what validation found.
type Verdict struct {
	Passed   bool
	Manifest string // SHA-256 of the manifest's bytes, its name
	Current  int    // the current version that it was compared with; 0: none
	Checks   []Check
}

// Check is one thing that validation looked at.
type Check struct {
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Passed   bool   `json:"passed"`
	Accepted string `json:"accepted,omitempty"` // by whom and why, where a person accepted it
}

// Acceptance is a person's acceptance of a failed check of an earlier version, for exactly the value found then.
type Acceptance struct {
	Check, Found string
	By, Why      string
}

// Reasons of skipped and cancelled runs.
const (
	ReasonLoading   = "loading"           // skipped: the source is not past the month's end plus its delay
	ReasonPolicy    = "policy"            // the type is switched off, or the month is before the workspace's start
	ReasonRemoved   = "workspace_removed" // the workspace was removed
	ReasonOperator  = "operator"          // cancelled by a person
	ReasonUndefined = "definition_removed"
)

// ID names the run in messages, logs and routes, and is the first part of its jobs' names.
func (r Run) ID() string { return schema.SnapshotID(r.Workspace, r.Type, r.Month.String(), r.Version) }

// Manifest is the manifest that validation found, by its hash; empty before it.
func (r Run) Manifest() string {
	if r.Verdict == nil {
		return ""
	}
	return r.Verdict.Manifest
}

// JobName is the name of the execution of one job: at most 80 letters, digits, "-" and "_".
// Source: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html, "name".
func (r Run) JobName() string { return fmt.Sprintf("%s-j%d", r.ID(), r.Job) }

// Admitted reports whether the run holds a slot.
func (r Run) Admitted() bool { return r.State == Queued || r.State == Running || r.State == Validating }

// Final reports whether the run has settled for good: a failed run with a next attempt has not.
func (r Run) Final() bool {
	if r.State == Failed {
		return r.NextAt.IsZero()
	}
	return Runs.Settled(r.State)
}

// Job is the whole input of an attempt job and of each of its steps: ids only.
type Job struct {
	Run string `json:"run"`
	Job int    `json:"job"`
}

// Settlement is how a failure settles an attempt.
type Settlement struct {
	Code   failure.Code
	Text   string
	NextAt time.Time // zero: final
}
