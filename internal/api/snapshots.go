package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
)

const snapshotPath = "/snapshots/runs/{snapshot}"

func (s *server) registerSnapshots() {
	register(s, s.operation("GET", snapshotPath, "show-snapshot", "One version of a month: attempts, checks, timeline", 404), s.showSnapshot)
	register(s, s.operation("GET", snapshotPath+"/audits", "list-snapshot-audits", "What people did to a version, the latest first", 404, 422), s.listSnapshotAudits)
}

// SnapshotID is the path of one version of a month.
type SnapshotID struct {
	Snapshot string `path:"snapshot" doc:"Its id, such as EWR_carrier-performance_2013-01_v1"`
}

// splitSnapshot takes an id apart; ok is false where it is none that could be a key.
func splitSnapshot(id string) (workspace, typ string, m calendar.Month, version int, ok bool) {
	workspace, typ, text, version, ok := schema.SplitSnapshotID(id)
	if !ok || !identifier(workspace) || !identifier(typ) {
		return "", "", m, 0, false
	}
	m, err := calendar.ParseMonth(text)
	return workspace, typ, m, version, err == nil
}

// visibleSnapshot reads a version for a caller who needs a right in its workspace. One that the caller may not see is not
// there.
func (s *server) visibleSnapshot(ctx context.Context, id string, right routes.Right) (snapshot.Run, error) {
	none := problem(http.StatusNotFound, "there is no snapshot %q, or you may not see it", clip(id))
	workspace, _, _, _, ok := splitSnapshot(id)
	if !ok || caller(ctx).In(workspace) < routes.Viewer {
		return snapshot.Run{}, none
	}
	if caller(ctx).In(workspace) < right {
		return snapshot.Run{}, lacking(right, workspace)
	}
	r, err := s.Months.Reader.Run(ctx, id)
	if errors.Is(err, snapshot.ErrNotFound) {
		return r, none
	}
	return r, err
}

// SnapshotView is a version of a month, as lists show it.
type SnapshotView struct {
	ID        string     `json:"id"`
	Workspace string     `json:"workspace"`
	Type      string     `json:"type"`
	Month     string     `json:"month"`
	Version   int        `json:"version"`
	State     string     `json:"state" enum:"planned,queued,running,validating,published,failed,skipped,cancelled"`
	Letter    string     `json:"letter" doc:"as the grid shows it"`
	Current   bool       `json:"current" doc:"it is the month's current version"`
	Backfill  bool       `json:"backfill" doc:"an earlier month than the last closed one when it was planned"`
	Attempts  int        `json:"attempts"`
	Failures  int        `json:"failures"`
	NextAt    *time.Time `json:"next_attempt,omitempty" doc:"of a failed version that is tried again"`
	Code      string     `json:"code,omitempty" doc:"of the latest failure"`
	Reason    string     `json:"reason,omitempty" doc:"of a skipped or cancelled version"`
	Manifest  string     `json:"manifest,omitempty" doc:"SHA-256 of the manifest, of a published version"`
	CreatedAt *time.Time `json:"created_at"`
	SettledAt *time.Time `json:"settled_at,omitempty"`
}

func snapshotView(r snapshot.Run, current snapshot.Pointer) SnapshotView {
	v := SnapshotView{ID: r.ID(), Workspace: r.Workspace, Type: r.Type, Month: r.Month.String(), Version: r.Version, State: string(r.State), Letter: r.Letter(),
		Current: current.Version == r.Version, Backfill: r.Backfill, Attempts: r.Attempts, Failures: r.Failures, NextAt: instant(r.NextAt), Code: r.ErrorCode,
		Reason: r.Reason, CreatedAt: instant(r.CreatedAt), SettledAt: instant(r.SettledAt)}
	if r.State == snapshot.Published {
		v.Manifest = r.Manifest()
	}
	return v
}

// SnapshotDetail is all about one version of a month.
type SnapshotDetail struct {
	SnapshotView
	Owner       string           `json:"owner" doc:"whose slots it takes"`
	Definition  string           `json:"definition" doc:"the definition's id"`
	DefVersion  int              `json:"definition_version"`
	Start       *time.Time       `json:"period_start,omitempty"`
	End         *time.Time       `json:"period_end,omitempty"`
	Zone        string           `json:"zone,omitempty"`
	Mode        string           `json:"mode,omitempty" enum:"single,chunked" doc:"chosen at the first start"`
	Generation  int              `json:"generation"`
	Chunks      int              `json:"chunks" doc:"committed in this generation"`
	Rows        int64            `json:"rows"`
	Job         int              `json:"job" doc:"number of the attempt job"`
	Execution   string           `json:"execution,omitempty"`
	ClaimedAt   *time.Time       `json:"claimed_at,omitempty"`
	StartedAt   *time.Time       `json:"started_at,omitempty"`
	Query       *QueryView       `json:"query,omitempty"`
	Error       *ErrorView       `json:"error,omitempty" doc:"the latest failure"`
	FailedIn    string           `json:"failed_in,omitempty" doc:"the state that it failed in"`
	Checks      []snapshot.Check `json:"checks" doc:"what the latest validation found"`
	ComparedTo  int              `json:"compared_to,omitempty" doc:"the version that was current then"`
	Object      string           `json:"manifest_object,omitempty" doc:"the manifest's key in the bucket"`
	RequestedBy string           `json:"requested_by,omitempty"`
	RequestWhy  string           `json:"request_why,omitempty"`
	Accepted    []AcceptedView   `json:"accepted,omitempty" doc:"failed checks that a person accepts for exactly the value found"`
	ReasonText  string           `json:"reason_text,omitempty"`
	CancelledBy string           `json:"cancelled_by,omitempty"`
	Why         []string         `json:"why" doc:"why its month stands as it does, in sentences"`
	Timeline    []string         `json:"timeline"`
}

// AcceptedView is a check that a person accepts.
type AcceptedView struct {
	Check string `json:"check"`
	Found string `json:"found"`
	By    string `json:"by"`
	Why   string `json:"why"`
}

func (s *server) showSnapshot(ctx context.Context, in *SnapshotID) (*reply[SnapshotDetail], error) {
	r, err := s.visibleSnapshot(ctx, in.Snapshot, routes.Viewer)
	if err != nil {
		return nil, err
	}
	a, err := s.Months.Board.Account(ctx, r.Period)
	if err != nil {
		return nil, err
	}
	d := snapshotDetail(r, a.Pointer)
	d.Why = orEmpty(a.Why)
	return &reply[SnapshotDetail]{d}, nil
}

func snapshotDetail(r snapshot.Run, current snapshot.Pointer) SnapshotDetail {
	d := SnapshotDetail{SnapshotView: snapshotView(r, current), Owner: r.Owner, Definition: definitionName(r.Scope, r.Type), DefVersion: r.Definition,
		Start: instant(r.Start), End: instant(r.End), Zone: r.Zone, Mode: string(r.Mode), Generation: r.Generation, Chunks: r.Cursor.Chunk, Rows: r.Cursor.Rows,
		Job: r.Job, Execution: r.Execution, ClaimedAt: instant(r.ClaimedAt), StartedAt: instant(r.StartedAt), FailedIn: string(r.FailedIn), Checks: []snapshot.Check{},
		RequestedBy: r.RequestedBy, RequestWhy: r.RequestWhy, ReasonText: r.ReasonText, CancelledBy: r.CancelledBy, Timeline: orEmpty(r.Timeline)}
	if q := r.Query; q.ID != "" {
		d.Query = queryView(q.ID, q.Number, r.QueryCost)
	}
	if r.ErrorCode != "" {
		e, _ := failure.Lookup(failure.Code(r.ErrorCode))
		d.Error = &ErrorView{r.ErrorCode, e.Meaning, e.Remedy, r.ErrorText}
	}
	if v := r.Verdict; v != nil {
		d.Checks, d.ComparedTo = orEmpty(v.Checks), v.Current
		if v.Manifest != "" {
			d.Object = snapshot.ManifestKey(r.Period, r.Version, v.Manifest)
		}
	}
	for _, a := range r.Accepted {
		d.Accepted = append(d.Accepted, AcceptedView{a.Check, a.Found, a.By, a.Why})
	}
	return d
}

func (s *server) listSnapshotAudits(ctx context.Context, in *struct {
	SnapshotID
	Listing
}) (*list[AuditView], error) {
	if _, err := s.visibleSnapshot(ctx, in.Snapshot, routes.Viewer); err != nil {
		return nil, err
	}
	return pageOf(ctx, in.Listing, "snapshot audits", in.Snapshot, s.Months.Reader.Audits, auditView)
}

// busyMonth tells a conflict, and names the version that stands in the way.
func busyMonth(status int, c *snapshot.Conflict) *Problem {
	p := problem(status, "%s: %s", c.Event, c.Why)
	switch {
	case c.Run != nil && c.Run.Version > 0:
		p.Current = &Current{Run: c.Run.ID(), State: string(c.Run.State), Version: c.Run.Version}
	case c.Pointer != nil && c.Pointer.Version > 0:
		p.Current = &Current{Run: snapshot.Run{Period: c.Pointer.Period, Version: c.Pointer.Version}.ID(), State: "current", Version: c.Pointer.Version}
	case c.Head != nil && c.Head.Latest > 0:
		p.Current = &Current{Run: snapshot.Run{Period: c.Head.Period, Version: c.Head.Latest}.ID(), State: string(c.Head.LatestState), Version: c.Head.Latest}
	}
	return p
}

// reused tells a key that another request has used from other refusals.
func reused(err error, key string) error {
	var c *snapshot.Conflict
	if errors.As(err, &c) && strings.HasPrefix(c.Why, snapshot.KeyReused) {
		return busyMonth(http.StatusUnprocessableEntity, c).field("Idempotency-Key", key, "a key that no other request has used")
	}
	return err
}
