package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/calendar"
	"almanac/internal/snapshot"
)

const seriesPath, monthPath = "/snapshots/months/{workspace}/{type}", "/snapshots/months/{workspace}/{type}/{month}"

func (s *server) registerMonths() {
	op := s.operation
	register(s, op("GET", "/snapshots/grid", "show-grid", "How the months of all series stand, a letter each", 422), s.showGrid)
	register(s, op("GET", seriesPath, "list-snapshots", "The ledger of a type: months and their versions, the latest first", 404, 422), s.listSnapshots)
	register(s, op("GET", monthPath, "show-month", "One month: its versions, and why it stands as it does", 404, 422), s.showMonth)
	registerBody[reasonBody](s, op("POST", monthPath+"/versions", "rerun-month", "Ask for a new version of a month, once per Idempotency-Key", 400, 404, 409, 422), true, s.rerun)
	registerBody[backfillBody](s, op("POST", "/snapshots/backfill", "backfill", "Plan the months of a range of which nothing is published, or say what that would do", 400, 404, 422), true, s.backfill)
	op202 := op("POST", "/snapshots/plan", "plan-months", "Ask the planner to look for closed months now; it comes every 15 minutes by itself")
	op202.DefaultStatus = http.StatusAccepted
	registerBody[planNowBody](s, op202, false, s.planNow)
}

// SeriesID is the path of a workspace's type.
type SeriesID struct {
	Workspace string `path:"workspace" doc:"The workspace's id"`
	Type      string `path:"type" doc:"The type of snapshots"`
}

// MonthID is the path of one month of a series.
type MonthID struct {
	SeriesID
	Month string `path:"month" doc:"A month such as 2013-01"`
}

// series checks the caller's right in the workspace of a path. Another's is not there.
func (s *server) series(ctx context.Context, in SeriesID, right routes.Right) (snapshot.Series, error) {
	out := snapshot.Series{Workspace: in.Workspace, Type: in.Type}
	switch have := caller(ctx).In(in.Workspace); {
	case !identifier(in.Workspace) || !identifier(in.Type) || have < routes.Viewer:
		return out, problem(http.StatusNotFound, "there is no type %q of workspace %q, or you may not see it", clip(in.Type), clip(in.Workspace))
	case have < right:
		return out, lacking(right, in.Workspace)
	}
	return out, nil
}

func (s *server) period(ctx context.Context, in MonthID, right routes.Right) (snapshot.Period, error) {
	sr, err := s.series(ctx, in.SeriesID, right)
	if err != nil {
		return snapshot.Period{}, err
	}
	m, err := month("month", in.Month)
	return snapshot.Period{Series: sr, Month: m}, err
}

// month reads a month; absent is none.
func month(field, text string) (calendar.Month, error) {
	if text == "" {
		return calendar.Month{}, nil
	}
	m, err := calendar.ParseMonth(text)
	if err != nil || len(text) != len("2013-01") || m.Year < 1970 {
		return calendar.Month{}, wrong(field, text, "a month such as 2013-01, from 1970-01 on")
	}
	return m, nil
}

// GridView is a grid of months.
type GridView struct {
	From   string       `json:"from"`
	To     string       `json:"to"`
	Rows   []GridRow    `json:"rows" doc:"by workspace and type"`
	Legend []LegendLine `json:"legend"`
}

// GridRow is one series in a grid.
type GridRow struct {
	Workspace string              `json:"workspace"`
	Type      string              `json:"type"`
	Off       string              `json:"off,omitempty" doc:"why no month of it is planned any more"`
	Months    []snapshot.Standing `json:"months" doc:"each month from from to to"`
}

// LegendLine says what a letter means.
type LegendLine struct {
	Letter  string `json:"letter"`
	Meaning string `json:"meaning"`
}

func (s *server) showGrid(ctx context.Context, in *struct {
	Workspace string `query:"workspace" doc:"only this workspace's"`
	Type      string `query:"type" doc:"only this type"`
	From      string `query:"from" doc:"the first month; absent: eleven before the last"`
	To        string `query:"to" doc:"the last month; absent: the last closed one"`
}) (*reply[GridView], error) {
	q := snapshot.GridQuery{Type: in.Type, Sees: func(w string) bool {
		return caller(ctx).In(w) >= routes.Viewer && (in.Workspace == "" || w == in.Workspace)
	}}
	var err error
	if q.From, err = month("from", in.From); err != nil {
		return nil, err
	}
	if q.To, err = month("to", in.To); err != nil {
		return nil, err
	}
	g, err := s.Months.Board.Grid(ctx, q)
	if err != nil {
		return nil, err
	}
	v := GridView{From: g.From.String(), To: g.To.String(), Rows: []GridRow{}}
	for _, r := range g.Rows {
		v.Rows = append(v.Rows, GridRow{r.Workspace, r.Type, r.Off, r.Cells})
	}
	for _, l := range snapshot.Legend {
		v.Legend = append(v.Legend, LegendLine{l.Letter, l.Meaning})
	}
	return &reply[GridView]{v}, nil
}

func (s *server) listSnapshots(ctx context.Context, in *struct {
	SeriesID
	Listing
}) (*list[SnapshotView], error) {
	sr, err := s.series(ctx, in.SeriesID, routes.Viewer)
	if err != nil {
		return nil, err
	}
	var current map[calendar.Month]snapshot.Pointer
	read := func(ctx context.Context, _, from string, limit int) ([]snapshot.Run, string, error) {
		runs, next, err := s.Months.Reader.Runs(ctx, sr, from, limit)
		if err == nil && len(runs) > 0 {
			current, err = s.Months.Reader.Pointers(ctx, sr, runs[len(runs)-1].Month, runs[0].Month)
		}
		return runs, next, err
	}
	return pageOf(ctx, in.Listing, "snapshots", sr.Workspace+"/"+sr.Type, read, func(r snapshot.Run) SnapshotView {
		return snapshotView(r, current[r.Month])
	})
}

// MonthView is one month with all its versions.
type MonthView struct {
	Workspace string            `json:"workspace"`
	Type      string            `json:"type"`
	Month     string            `json:"month"`
	Standing  snapshot.Standing `json:"standing"`
	Why       []string          `json:"why" doc:"why it stands as it does, in sentences"`
	Current   *CurrentView      `json:"current,omitempty" doc:"the published version that is current"`
	LateFrom  *time.Time        `json:"late_from,omitempty" doc:"business time from which it is late while nothing is published"`
	Versions  []SnapshotView    `json:"versions" doc:"the latest first"`
}

// CurrentView is which version of a month is current.
type CurrentView struct {
	Version  int        `json:"version"`
	Previous int        `json:"previous,omitempty"`
	Manifest string     `json:"manifest" doc:"SHA-256 of the manifest"`
	MovedAt  *time.Time `json:"moved_at"`
	MovedBy  string     `json:"moved_by" doc:"the run's job that published it, or who rolled back"`
	Reason   string     `json:"reason,omitempty" doc:"of a roll back"`
}

func currentView(p snapshot.Pointer) *CurrentView {
	if p.Version == 0 {
		return nil
	}
	return &CurrentView{p.Version, p.Previous, p.Manifest, instant(p.MovedAt), p.MovedBy, p.Reason}
}

func (s *server) showMonth(ctx context.Context, in *MonthID) (*reply[MonthView], error) {
	p, err := s.period(ctx, *in, routes.Viewer)
	if err != nil {
		return nil, err
	}
	a, err := s.Months.Board.Account(ctx, p)
	if err != nil {
		return nil, err
	}
	v := MonthView{Workspace: p.Workspace, Type: p.Type, Month: p.Month.String(), Standing: a.Cell, Why: orEmpty(a.Why), Current: currentView(a.Pointer),
		LateFrom: instant(a.Head.LateAt), Versions: []SnapshotView{}}
	for _, r := range slices.Backward(a.Runs) {
		v.Versions = append(v.Versions, snapshotView(r, a.Pointer))
	}
	return &reply[MonthView]{v}, nil
}

type snapshotReply struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotency-Replayed"`
	Body     SnapshotView
}

// versionMade answers what a request made, or had made before.
func versionMade(r snapshot.Run, created bool) *snapshotReply {
	out := &snapshotReply{Status: http.StatusCreated, Location: "/snapshots/runs/" + r.ID(), Body: snapshotView(r, snapshot.Pointer{})}
	if !created {
		out.Status, out.Replayed = http.StatusOK, "true"
	}
	return out
}

func (s *server) rerun(ctx context.Context, in *struct {
	MonthID
	Raw
	Key string `header:"Idempotency-Key" doc:"required; the same key makes one version"`
}) (*snapshotReply, error) {
	p, err := s.period(ctx, in.MonthID, routes.Operator)
	if err != nil {
		return nil, err
	}
	var body reasonBody
	if err := reasoning(in.RawBody, &body, &body.Reason); err != nil {
		return nil, err
	}
	once, err := onceBy(ctx, in.Key, "rerun", body.Reason)
	if err != nil {
		return nil, err
	}
	r, created, err := s.Months.Editor.RequestOnce(ctx, p, body.Reason, caller(ctx).Name, once)
	if err != nil {
		return nil, reused(err, in.Key)
	}
	return versionMade(r, created), nil
}

// MaxBackfill is how many periods one request may name: each takes some ten milliseconds, and an answer ten seconds.
const MaxBackfill = 240

type backfillBody struct {
	Type       string   `json:"type"`
	Workspaces []string `json:"workspaces"`
	From       string   `json:"from" doc:"the first month, such as 2013-01"`
	To         string   `json:"to" doc:"the last month; at most 240 months of all workspaces at once"`
	DryRun     bool     `json:"dry_run,omitempty" doc:"true: only say what would be done"`
	Reason     string   `json:"reason"`
}

// BackfillView is what a backfill does, or would do.
type BackfillView struct {
	DryRun  bool           `json:"dry_run"`
	Planned int            `json:"planned"`
	Refused int            `json:"refused"`
	Months  []ProposalView `json:"months"`
}

// ProposalView is what a backfill does with one month.
type ProposalView struct {
	Workspace string `json:"workspace"`
	Type      string `json:"type"`
	Month     string `json:"month"`
	Run       string `json:"run,omitempty" doc:"the version that is planned, or would be"`
	Refused   string `json:"refused,omitempty" doc:"why none is"`
}

func (s *server) backfill(ctx context.Context, in *struct {
	Raw
	Key string `header:"Idempotency-Key" doc:"required unless dry_run; the same key plans each month once"`
}) (*reply[BackfillView], error) {
	var body backfillBody
	if err := reasoning(in.RawBody, &body, &body.Reason); err != nil {
		return nil, err
	}
	g, err := s.backfillRange(ctx, body)
	if err != nil {
		return nil, err
	}
	var proposals []snapshot.Proposal
	if body.DryRun {
		proposals, err = s.Months.Editor.Backfill(ctx, g, body.Reason, caller(ctx).Name, true)
	} else {
		var once snapshot.Once
		if once, err = onceBy(ctx, in.Key, "backfill", body.Reason); err != nil {
			return nil, err
		}
		proposals, err = s.Months.Editor.BackfillOnce(ctx, g, body.Reason, caller(ctx).Name, once)
	}
	if err != nil {
		return nil, err
	}
	v := BackfillView{DryRun: body.DryRun, Months: []ProposalView{}}
	for _, p := range proposals {
		if p.Run != "" {
			v.Planned++
		} else {
			v.Refused++
		}
		v.Months = append(v.Months, ProposalView{p.Workspace, p.Type, p.Month.String(), p.Run, p.Why})
	}
	return &reply[BackfillView]{v}, nil
}

func (s *server) backfillRange(ctx context.Context, body backfillBody) (g snapshot.Range, err error) {
	if !identifier(body.Type) {
		return g, wrong("type", body.Type, "the type of snapshots; `almanac get snapshots` lists them")
	}
	if n := len(body.Workspaces); n == 0 || n > MaxBackfill {
		return g, wrong("workspaces", fmt.Sprintf("%d workspaces", n), fmt.Sprintf("1 to %d workspaces", MaxBackfill))
	}
	for i, w := range body.Workspaces {
		field := fmt.Sprintf("workspaces[%d]", i)
		have := caller(ctx).In(w)
		if !identifier(w) || have < routes.Viewer {
			return g, wrong(field, w, "a workspace that you may see")
		}
		if have < routes.Operator {
			return g, lacking(routes.Operator, w)
		}
		g.Series = append(g.Series, snapshot.Series{Workspace: w, Type: body.Type})
	}
	if g.From, err = month("from", body.From); err != nil {
		return g, err
	}
	if g.To, err = month("to", body.To); err != nil {
		return g, err
	}
	months := (g.To.Year-g.From.Year)*12 + int(g.To.Month) - int(g.From.Month) + 1
	if n := months * len(g.Series); g.From.Year > 0 && g.To.Year > 0 && n > MaxBackfill {
		return g, wrong("to", fmt.Sprintf("%s: %d months in all", body.To, n), fmt.Sprintf("at most %d months of all workspaces at once; ask in parts", MaxBackfill))
	}
	return g, nil
}

type planNowBody struct{}

// PlanNowView says that the planner has been asked.
type PlanNowView struct {
	Asked bool `json:"asked"`
}

func (s *server) planNow(ctx context.Context, in *Raw) (*reply[PlanNowView], error) {
	if len(in.RawBody) > 0 {
		if err := decode(in.RawBody, &planNowBody{}); err != nil {
			return nil, err
		}
	}
	if err := s.Months.Planner.Ask(ctx); err != nil {
		p := problem(http.StatusServiceUnavailable, "the planner cannot be asked now; asking again is safe, and it comes every 15 minutes by itself").header("Retry-After", "2")
		p.RequestID = requestID(ctx)
		s.Log.ErrorContext(ctx, "the planner cannot be asked", "request", p.RequestID, "error", err.Error())
		return nil, p
	}
	return &reply[PlanNowView]{PlanNowView{true}}, nil
}
