package api

import (
	"context"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// Months is what the routes of monthly snapshots stand on.
type Months struct {
	Editor MonthEditor
	Reader MonthReader
	Board  snapshot.Board
	Files  snapshot.Reader
	// Planner is asked to look now. It looks by itself, a quarter of an hour later at the most.
	Planner snapshot.Dispatch
	// Sign makes an address that serves an object under a name for some time.
	Sign   func(ctx context.Context, object, name string, life time.Duration) (string, error)
	Bounds AnswerBounds
}

// MonthEditor carries out people's commands on snapshots. Errors are input.Problems where the input is wrong,
// snapshot.ErrNotFound, or a *snapshot.Conflict that names what stands in the way; any other leaves unknown whether the
// change was made.
type MonthEditor interface {
	PlanDefinition(ctx context.Context, d snapshot.Definition) (snapshot.Change, error)
	SaveDefinition(ctx context.Context, d snapshot.Definition, by string, ifVersion int) (snapshot.Change, error)
	SaveOwner(ctx context.Context, o snapshot.Owner, by string) error
	RequestOnce(ctx context.Context, p snapshot.Period, why, by string, o snapshot.Once) (r snapshot.Run, created bool, err error)
	AcceptOnce(ctx context.Context, id string, checks []string, why, by string, o snapshot.Once) (r snapshot.Run, created bool, err error)
	Backfill(ctx context.Context, g snapshot.Range, why, by string, dryRun bool) ([]snapshot.Proposal, error)
	BackfillOnce(ctx context.Context, g snapshot.Range, why, by string, o snapshot.Once) ([]snapshot.Proposal, error)
	RetryNow(ctx context.Context, id, why, by string) (snapshot.Run, error)
	Cancel(ctx context.Context, id, why, by string) (snapshot.Run, error)
	RollBack(ctx context.Context, p snapshot.Period, version int, why, by string) (snapshot.Pointer, error)
}

// MonthReader reads the records of snapshots consistently, but for lists of definitions and owners.
type MonthReader interface {
	snapshot.BoardLedger
	Owners(ctx context.Context) ([]snapshot.Owner, error)
	// Runs are a series' versions, the latest month first; a page may hold fewer than limit and yet not be the last.
	Runs(ctx context.Context, s snapshot.Series, cursor string, limit int) ([]snapshot.Run, string, error)
	// Pointers are the current versions of the months from one to another.
	Pointers(ctx context.Context, s snapshot.Series, from, to calendar.Month) (map[calendar.Month]snapshot.Pointer, error)
	DefinitionVersions(ctx context.Context, s snapshot.Scope, typ, cursor string, limit int) ([]snapshot.Version, string, error)
	// Audits of a run's id, or of snapshot.DefinitionSubject or snapshot.OwnerSubject, the latest first.
	Audits(ctx context.Context, subject, cursor string, limit int) ([]schedule.Audit, string, error)
}
