package api

import (
	"context"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/source"
)

// Editor changes schedules, workspaces and sources. Errors are schedule.Problems where the input is wrong,
// schedule.ErrNotFound, or a *schedule.Conflict that carries the current row; any other error leaves unknown whether
// the change was made, and asking again is safe.
type Editor interface {
	// Plan says what Apply would do, and changes nothing.
	Plan(ctx context.Context, def schedule.Definition) (schedule.Change, error)
	// Apply creates or edits. ifVersion other than 0 makes it a conflict when the schedule has another version.
	Apply(ctx context.Context, def schedule.Definition, by string, ifVersion int) (schedule.Change, error)
	Pause(ctx context.Context, id, reason, by string) (schedule.Schedule, error)
	Resume(ctx context.Context, id, reason, by string) (schedule.Schedule, error)
	Delete(ctx context.Context, id, reason, by string) error
	// RunNow admits a manual run once per principal and key; created is false where the key had made it before.
	RunNow(ctx context.Context, id, principal, idempotencyKey, requestHash string) (run schedule.Run, created bool, err error)
	// Stop asks an open run to end; a second ask finds the first, a settled run is a conflict.
	Stop(ctx context.Context, run, reason, by string) (schedule.Run, error)
	// RevokeLinks takes back the link of a recipient, named by hash, or of all; a second ask finds the first.
	RevokeLinks(ctx context.Context, run, recipient, reason, by string) (schedule.Revocation, error)
	// Resolve records what a person found out about an unknown, named by hash: "submitted" or "skipped".
	Resolve(ctx context.Context, run, recipient, as, reason, by string) (schedule.Submission, error)
	// Resend asks that an unknown be sent again; a second ask before it is carried out finds the first.
	Resend(ctx context.Context, run, recipient, reason, by string) (schedule.Submission, error)
	// Redrive reads a dead letter again and offers what it names.
	Redrive(ctx context.Context, message, reason, by string) (schedule.DeadLetter, error)
	// PlanRetry says whom Retry would send to; it changes nothing.
	PlanRetry(ctx context.Context, run string, q schedule.RetryRequest) (schedule.RetryPlan, error)
	// Retry admits a run that repeats another, once per principal and key, as RunNow does.
	Retry(ctx context.Context, run string, q schedule.RetryRequest, reason, principal, idempotencyKey, requestHash string) (r schedule.Run, created bool, err error)
	// Lift lets a suppressed recipient, named by hash, be sent to again; a second ask finds the first.
	Lift(ctx context.Context, channel, recipient, reason, by string) (schedule.Suppression, error)
	// Switch turns the stage's switches.
	Switch(ctx context.Context, s schedule.Switches, reason, by string) (schedule.Control, error)
	PutWorkspace(ctx context.Context, w schedule.Workspace, by string) error
	PutSource(ctx context.Context, s schedule.SourceConfig, by string) error
	// PlanGroup says what ApplyGroup would do, and changes nothing.
	PlanGroup(ctx context.Context, g schedule.Group) (schedule.Change, error)
	// ApplyGroup saves a group whose present version is the one seen, 0: none; another is a conflict.
	ApplyGroup(ctx context.Context, g schedule.Group, by string, seen int) (schedule.Change, error)
}

// Reader reads, consistently where design.md §3 says so. Cursors are the reader's own text, empty at the start and
// at the end.
type Reader interface {
	Schedules(ctx context.Context, workspace, cursor string, limit int) ([]schedule.Schedule, string, error)
	Schedule(ctx context.Context, id string) (schedule.Schedule, error)
	Definition(ctx context.Context, id string, version int) (schedule.Version, error)
	Runs(ctx context.Context, id, cursor string, limit int) ([]schedule.Run, string, error)
	Run(ctx context.Context, runID string) (schedule.Run, error)
	// EachSubmission hands over a run's submissions one by one; SubmissionPage lists those of one state, or all.
	EachSubmission(ctx context.Context, runID string, each func(schedule.Submission)) error
	SubmissionPage(ctx context.Context, runID string, state schedule.SubmissionState, cursor string, limit int) ([]schedule.Submission, string, error)
	Skips(ctx context.Context, id, cursor string, limit int) ([]schedule.Skip, string, error)
	// Versions come the latest first, and may hold some that a deleted schedule of the same id left, above the row's own.
	Versions(ctx context.Context, id, cursor string, limit int) ([]schedule.Version, string, error)
	Accesses(ctx context.Context, runID, cursor string, limit int) ([]schedule.Access, string, error)
	// Audits of a schedule's id, a run's id or schedule.ControlSubject, the latest first.
	Audits(ctx context.Context, subject, cursor string, limit int) ([]schedule.Audit, string, error)
	DeadLetterPage(ctx context.Context, cursor string, limit int) ([]schedule.DeadLetter, string, error)
	// Suppression of a recipient, also one that was lifted.
	Suppression(ctx context.Context, channel, recipientHash string) (schedule.Suppression, error)
	Suppressions(ctx context.Context, cursor string, limit int) ([]schedule.Suppression, string, error)
	Control(ctx context.Context) (schedule.Control, error)
	Workspaces(ctx context.Context) ([]schedule.Workspace, error)
	Workspace(ctx context.Context, id string) (schedule.Workspace, error)
	Sources(ctx context.Context) ([]schedule.SourceConfig, error)
	Groups(ctx context.Context) ([]schedule.GroupHead, error)
	// GroupHeads leaves out those that are not there.
	GroupHeads(ctx context.Context, ids []string) (map[string]schedule.GroupHead, error)
	GroupVersion(ctx context.Context, id string, version int) (schedule.GroupVersion, error)
	GroupVersions(ctx context.Context, id, cursor string, limit int) ([]schedule.GroupVersion, string, error)
}

// SourceTester tests a configured source, within the context's time; schedule.ErrNotFound where there is none. sql is the
// query whose first rows are wanted; empty: those of some table.
type SourceTester interface {
	Test(ctx context.Context, name, sql string) (source.Report, error)
}

// Links answers the two public routes. The token is the right; errors are *schedule.LinkGone where it is none (any
// more), else passing.
type Links interface {
	// Open signs the file's address at the click and records who asked.
	Open(ctx context.Context, token string) (signedURL string, err error)
	// Unsubscription says what Unsubscribe would do, and changes nothing.
	Unsubscription(ctx context.Context, token string) (schedule.Unsubscription, error)
	Unsubscribe(ctx context.Context, token string) (schedule.Unsubscription, error)
}

// Clock is business time, in the local profile only.
type Clock interface {
	Clock(ctx context.Context) (business time.Time, frozen bool, err error)
	SetClock(ctx context.Context, at time.Time, frozen bool) error
}
