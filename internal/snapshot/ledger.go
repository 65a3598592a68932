package snapshot

import (
	"context"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/source"
)

// The ledger is what the domain asks of the store, in parts by who asks. Every write is conditional on what was read and
// given back with it; a *Conflict carries the row as it stands, any other error leaves unknown whether the write took
// effect. Lists that come from an index only suggest.

// Reading is what all parts read, consistently.
type Reading interface {
	Run(ctx context.Context, id string) (Run, error)
	Head(ctx context.Context, p Period) (Head, error)       // a period without a version is a zero head of that period
	Pointer(ctx context.Context, p Period) (Pointer, error) // version 0: nothing is published
	Definition(ctx context.Context, s Scope, typ string, version int) (Version, error)
	// Present is the version of a definition that is in force.
	Present(ctx context.Context, s Scope, typ string) (Version, error)
}

// Workspace is what snapshots know of a workspace.
type Workspace struct {
	ID      string
	Zone    string
	Owner   string         // never empty
	Start   calendar.Month // the first month that it has; zero: as early as the definition says
	Removed time.Time      // zero: it is there
}

// PlanLedger is what the planner asks.
type PlanLedger interface {
	Reading
	Workspaces(ctx context.Context) ([]Workspace, error)
	Owners(ctx context.Context) ([]Owner, error)
	// Definitions are the versions in force of all definitions.
	Definitions(ctx context.Context) ([]Version, error)
	SeriesNames(ctx context.Context) ([]Series, error)
	Series(ctx context.Context, s Series) (SeriesRow, error)
	// DueSeries suggests series whose PlanAt is until or before it.
	DueSeries(ctx context.Context, shard int, until time.Time, from string, limit int) (list []Series, next string, err error)
	PutSeries(ctx context.Context, s SeriesRow, lateAt time.Time) error
	// MoveSeries writes the planner's place on the condition of the place read.
	MoveSeries(ctx context.Context, read, to SeriesRow, lateAt time.Time) error
	// Plan records a version as planned or as skipped, in one transaction with the period's head, on the condition of
	// the head as read. The token tells a lost reply from another planner's version.
	Plan(ctx context.Context, p Planning) error
	// Months lists heads of a series, oldest first.
	Months(ctx context.Context, s Series) ([]Head, error)
	Cancel(ctx context.Context, r Run, c Cancellation) error
	QueryLedger
}

// Planning is one new version of a period.
type Planning struct {
	Event Event // Plan, PlanIneligible or Request
	Run   Run   // complete: state by the event
	Head  Head  // as read
	// LateAt is the head's from then on: the business time from which the month is late while nothing of it is published.
	// Zero: nobody waits for it, because it is skipped for policy, or was published before.
	LateAt time.Time
	Token  string
	Audit  *Audit // of a request
}

// Cancellation is why and by whom a run is cancelled.
type Cancellation struct {
	Reason string // one of the reasons of cancelled runs
	Text   string // in a person's words
	By     string
	At     time.Time // wall time
	Audit  *Audit    // nil where the planner cancels
}

// Audit is one act of a person; it is written in the act's own transaction.
type Audit struct {
	ID, Subject, Who, What, Why, Before, After string
	At                                         time.Time
}

// DispatchLedger is what the dispatcher asks.
type DispatchLedger interface {
	Reading
	Owners(ctx context.Context) ([]Owner, error)
	Caps(ctx context.Context, owner string) (Caps, error)
	// Planned suggests planned runs of an owner, the oldest period first.
	Planned(ctx context.Context, owner string, backfill bool, limit int) ([]string, error)
	// Retries suggests failed runs whose next attempt is due at now.
	Retries(ctx context.Context, owner string, backfill bool, now time.Time, limit int) ([]string, error)
	// Open suggests the admitted runs of an owner.
	Open(ctx context.Context, owner string) ([]string, error)
	// Claim queues a planned run, or a failed one whose retry is due, under its next job, in one transaction with the
	// owner's slots: the run's id absent there, and the caps as lifecycles D says. It returns the run as it stands then.
	Claim(ctx context.Context, r Run, o Owner, now time.Time) (Run, error)
	Reoffer(ctx context.Context, r Run, now, before time.Time) (Run, error) // before: offered at or before it
	Attach(ctx context.Context, r Run, execution string) error
	Fail(ctx context.Context, r Run, s Settlement, now time.Time) error
}

// StepLedger is what the steps of an attempt job ask. Each write carries r.Job: a frozen earlier job is refused.
type StepLedger interface {
	Reading
	// Begin starts a queued run: attempt +1, and the mode, generation, cursor and basis that the caller chose.
	Begin(ctx context.Context, r Run, b Beginning) (Run, error)
	Resume(ctx context.Context, r Run) (Run, error) // running or validating
	Commit(ctx context.Context, r Run, c Chunk, to Cursor, now time.Time) error
	// RecordQuery notes a query's id before anybody waits for it: the first of its generation and purpose, or one after
	// another that ended without a result.
	RecordQuery(ctx context.Context, r Run, q Query) error
	QueryLedger
	BeginValidation(ctx context.Context, r Run, now time.Time) (Run, error)
	Chunks(ctx context.Context, run string, generation, from, limit int) ([]Chunk, error) // numbers from from on
	RecordVerdict(ctx context.Context, r Run, v Verdict, now time.Time) error
	// Publish moves the current pointer from the version compared with to this one, in one transaction with the run,
	// its head and its slot.
	Publish(ctx context.Context, r Run, read Pointer, now time.Time) error
	Fail(ctx context.Context, r Run, s Settlement, now time.Time) error
}

// QueryLedger is what is asked by who ends a query.
type QueryLedger interface {
	// NoteQuery notes what became of the query that a run has recorded. What has been counted before is not counted again.
	NoteQuery(ctx context.Context, r Run, ended bool, c source.Cost) (Run, error)
	// NoteStopped notes that the query of a run that no job holds any more was stopped.
	NoteStopped(ctx context.Context, r Run, c source.Cost) (Run, error)
	Definition(ctx context.Context, s Scope, typ string, version int) (Version, error)
}

// Beginning is what start chooses.
type Beginning struct {
	Mode       Mode
	Generation int
	Cursor     Cursor
	Basis      Basis
	Execution  string
	Now        time.Time
}

// PeopleLedger is what people's commands ask. Each act and its audit are one transaction.
type PeopleLedger interface {
	PlanLedger
	SaveDefinition(ctx context.Context, v Version, read int, a Audit) error // read: the version in force as read; 0: none
	SaveOwner(ctx context.Context, o Owner, a Audit) error
	RetryNow(ctx context.Context, r Run, now time.Time, a Audit) error
	// RollBack moves the pointer as read to an earlier published version, on the condition that no version is active.
	RollBack(ctx context.Context, read Pointer, to Run, a Audit) error
	// Versions lists all runs of a period, the latest first.
	Versions(ctx context.Context, p Period) ([]Run, error)
	// AuditIDs are the ids of the audits of a subject.
	AuditIDs(ctx context.Context, subject string) ([]string, error)
}

// ReconcileLedger is what the reconciler asks beside the dispatcher.
type ReconcileLedger interface {
	DispatchLedger
	// Free removes a run's id from the owner's slots on the condition, in the same transaction, that its row is not
	// admitted; removing an id that is not there changes nothing.
	Free(ctx context.Context, owner, run string) error
	// Late suggests periods that are late at now, and series whose first month that was never planned is.
	Late(ctx context.Context, shard int, now time.Time, from string, limit int) (list []Lateness, next string, err error)
	Series(ctx context.Context, s Series) (SeriesRow, error)
	// Leftovers suggests runs that were published or cancelled at or before until and have not been cleaned, Failures those
	// that failed for good; Cleaned takes one off its list.
	Leftovers(ctx context.Context, shard int, until time.Time, from string, limit int) (runs []string, next string, err error)
	Failures(ctx context.Context, shard int, until time.Time, from string, limit int) (runs []string, next string, err error)
	Cleaned(ctx context.Context, run string) error
}

// Lateness is one entry of the index of late periods.
type Lateness struct {
	Series
	Month calendar.Month // zero: the series' first month that was never planned
	Since time.Time      // business time from which it is late
}
