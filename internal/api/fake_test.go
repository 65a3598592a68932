package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot/snapshottest"
	"almanac/internal/source"

	"github.com/aws/aws-lambda-go/events"
)

// world is a small in-memory product behind the API: schedules with versions, runs, links, a clock. It keeps the
// promises of ports.go and steers the faults that a test asks for.
type world struct {
	schedules   map[string]schedule.Schedule
	definitions map[string][]schedule.Version
	runs        map[string]schedule.Run
	hashes      map[string]string // request hashes by occurrence
	submissions map[string][]schedule.Submission
	skips       map[string][]schedule.Skip
	workspaces  map[string]schedule.Workspace
	sources     map[string]schedule.SourceConfig
	groups      map[string][]schedule.GroupVersion
	links       map[string]*link
	audits      map[string][]schedule.Audit
	accesses    map[string][]schedule.Access
	dead        []schedule.DeadLetter
	control     schedule.Control
	stoppable   bool // also settled runs
	at          time.Time
	frozen      bool

	fail   error // returned by every call while set
	panics any   // thrown by Schedules
	race   func()
	writes []string
	signed int
	months *snapshottest.World
	tests  tests
}

// tests stands in for sources that are tested.
type tests struct {
	report source.Report
	err    error
	asked  []string
	left   time.Duration // of the last test's context
}

func (s *tests) Test(ctx context.Context, name, sql string) (source.Report, error) {
	s.asked = append(s.asked, name+": "+sql)
	if end, ok := ctx.Deadline(); ok {
		s.left = time.Until(end)
	}
	return s.report, s.err
}

type link struct {
	name, owner string
	gone        string // why, once it is
	done        bool
}

func newWorld() *world {
	w := &world{
		schedules: map[string]schedule.Schedule{}, definitions: map[string][]schedule.Version{}, runs: map[string]schedule.Run{}, hashes: map[string]string{},
		submissions: map[string][]schedule.Submission{}, skips: map[string][]schedule.Skip{}, links: map[string]*link{},
		audits: map[string][]schedule.Audit{}, accesses: map[string][]schedule.Access{},
		workspaces: map[string]schedule.Workspace{"EWR": {ID: "EWR", Name: "Newark", Zone: "America/New_York"}, "JFK": {ID: "JFK", Name: "Kennedy", Zone: "America/New_York"}},
		sources: map[string]schedule.SourceConfig{"flights": {Name: "flights", Engine: "sqlite", Object: "flights.sqlite", Workspaces: []string{"*"}}, "jfk-only": {Name: "jfk-only", Engine: "sqlite", Object: "j.sqlite", Workspaces: []string{"JFK"}},
			"ewr-only": {Name: "ewr-only", Engine: "sqlite", Object: "f.sqlite", Workspaces: []string{"EWR"}}},
		at: time.Date(2013, 7, 1, 12, 0, 0, 0, time.UTC),
	}
	return w
}

func (w *world) wrote(format string, args ...any) {
	w.writes = append(w.writes, fmt.Sprintf(format, args...))
}

func (w *world) Plan(_ context.Context, def schedule.Definition) (schedule.Change, error) {
	if w.fail != nil {
		return schedule.Change{}, w.fail
	}
	ws, known := w.workspaces[def.Workspace]
	if !known {
		return schedule.Change{}, wrong("workspace", def.Workspace, "a workspace that exists")
	}
	spec := def.Recurrence
	if spec.Zone == "" {
		spec.Zone = ws.Zone
	}
	rule, err := calendar.Parse(spec)
	if err != nil {
		return schedule.Change{}, wrong("recurrence", spec.Cron, err.Error())
	}
	c := schedule.Change{ID: def.ID, Action: "create", Version: 1, NextDue: rule.Preview(w.at, 5)}
	if old, ok := w.schedules[def.ID]; ok {
		c.Action, c.Version = "edit", old.Version+1
		c.Diff = []string{"name: " + old.Name + " → " + def.Name}
		before, _ := json.Marshal(w.definitions[def.ID][old.Version-1].Definition)
		after, _ := json.Marshal(def)
		if bytes.Equal(before, after) {
			c.Action, c.Version, c.Diff = "unchanged", old.Version, nil
		}
	}
	return c, nil
}

func (w *world) Apply(ctx context.Context, def schedule.Definition, by string, ifVersion int) (schedule.Change, error) {
	if w.race != nil {
		w.race()
	}
	c, err := w.Plan(ctx, def)
	if err != nil {
		return c, err
	}
	row, exists := w.schedules[def.ID]
	switch {
	case exists && row.State == schedule.Deleted:
		return c, &schedule.Conflict{Event: "edit", Why: "the schedule is deleted", Schedule: &row}
	case ifVersion != 0 && row.Version != ifVersion:
		return c, &schedule.Conflict{Event: "edit", Why: fmt.Sprintf("version %d was asked for", ifVersion), Schedule: &row}
	case c.Action == "unchanged":
		return c, nil
	case !exists:
		row = schedule.Schedule{ID: def.ID, Workspace: def.Workspace, State: schedule.Active, CreatedAt: w.at}
	}
	row.Name, row.Version, row.NextDue = def.Name, c.Version, c.NextDue[0].At
	w.schedules[def.ID] = row
	w.definitions[def.ID] = append(w.definitions[def.ID], schedule.Version{Definition: def, Number: c.Version, CreatedBy: by, CreatedAt: w.at})
	w.wrote("apply %s v%d by %s", def.ID, c.Version, by)
	return c, nil
}

func (w *world) Pause(_ context.Context, id, reason, by string) (schedule.Schedule, error) {
	row := w.schedules[id]
	if row.State != schedule.Active {
		return row, &schedule.Conflict{Event: "pause", Why: "the schedule is " + string(row.State), Schedule: &row}
	}
	row.State, row.PauseReason, row.PausedBy, row.NextDue = schedule.Paused, reason, by, time.Time{}
	w.schedules[id] = row
	w.wrote("pause %s: %s by %s", id, reason, by)
	return row, nil
}

func (w *world) Resume(_ context.Context, id, reason, by string) (schedule.Schedule, error) {
	row := w.schedules[id]
	if row.State != schedule.Paused {
		return row, &schedule.Conflict{Event: "resume", Why: "the schedule is " + string(row.State), Schedule: &row}
	}
	row.State, row.PauseReason, row.NextDue = schedule.Active, "", w.at.Add(time.Hour)
	w.schedules[id] = row
	w.wrote("resume %s: %s by %s", id, reason, by)
	return row, nil
}

func (w *world) Delete(_ context.Context, id, reason, by string) error {
	row := w.schedules[id]
	row.State, row.NextDue = schedule.Deleted, time.Time{}
	w.schedules[id] = row
	w.wrote("delete %s: %s by %s", id, reason, by)
	return nil
}

func (w *world) RunNow(_ context.Context, id, principal, key, hash string) (schedule.Run, bool, error) {
	occurrence := schedule.ManualKey(principal, key)
	if run, ok := w.runs[schema.RunID(id, occurrence)]; ok {
		if w.hashes[occurrence] != hash {
			return run, false, &schedule.Conflict{Event: "run now", Why: "key reused for another request", Run: &run}
		}
		return run, false, nil
	}
	run := schedule.Run{Schedule: id, Occurrence: occurrence, Workspace: w.schedules[id].Workspace, Version: w.schedules[id].Version, Manual: true,
		Nominal: w.at, State: schedule.Queued, RequestedBy: principal, CreatedAt: w.at}
	w.runs[run.ID()], w.hashes[occurrence] = run, hash
	w.wrote("run %s", run.ID())
	return run, true, nil
}

func (w *world) PutWorkspace(_ context.Context, ws schedule.Workspace, by string) error {
	if _, err := calendar.LoadZone(ws.Zone); err != nil {
		return wrong("zone", ws.Zone, "an IANA zone")
	}
	w.workspaces[ws.ID] = ws
	w.wrote("workspace %s by %s", ws.ID, by)
	return nil
}

func (w *world) PutSource(_ context.Context, s schedule.SourceConfig, by string) error {
	w.sources[s.Name] = s
	w.wrote("source %s by %s", s.Name, by)
	return nil
}

// slice cuts sorted rows; its cursors are the offset.
func slice[T any](rows []T, cursor string, limit int) ([]T, string, error) {
	from := 0
	if cursor != "" {
		var err error
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 || from > len(rows) {
			return nil, "", wrong("cursor", cursor, "a place in this list")
		}
	}
	to := min(from+limit, len(rows))
	next := ""
	if to < len(rows) {
		next = strconv.Itoa(to)
	}
	return rows[from:to], next, nil
}

func sorted[T any](m map[string]T) []T {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	rows := make([]T, 0, len(m))
	for _, k := range keys {
		rows = append(rows, m[k])
	}
	return rows
}

func (w *world) Schedules(_ context.Context, workspace, cursor string, limit int) ([]schedule.Schedule, string, error) {
	if w.panics != nil {
		panic(w.panics)
	}
	if w.fail != nil {
		return nil, "", w.fail
	}
	rows := slices.DeleteFunc(sorted(w.schedules), func(s schedule.Schedule) bool { return workspace != "" && s.Workspace != workspace })
	return slice(rows, cursor, limit)
}

func (w *world) Schedule(_ context.Context, id string) (schedule.Schedule, error) {
	row, ok := w.schedules[id]
	if !ok {
		return row, schedule.ErrNotFound
	}
	return row, w.fail
}

func (w *world) Definition(_ context.Context, id string, version int) (schedule.Version, error) {
	if versions := w.definitions[id]; version >= 1 && version <= len(versions) {
		return versions[version-1], nil
	}
	return schedule.Version{}, schedule.ErrNotFound
}

func (w *world) Runs(_ context.Context, id, cursor string, limit int) ([]schedule.Run, string, error) {
	rows := slices.DeleteFunc(sorted(w.runs), func(r schedule.Run) bool { return r.Schedule != id })
	return slice(rows, cursor, limit)
}

func (w *world) Run(_ context.Context, id string) (schedule.Run, error) {
	row, ok := w.runs[id]
	if !ok {
		return row, schedule.ErrNotFound
	}
	return row, nil
}

func (w *world) EachSubmission(_ context.Context, id string, each func(schedule.Submission)) error {
	for _, s := range w.submissions[id] {
		each(s)
	}
	return w.fail
}

func (w *world) SubmissionPage(_ context.Context, id string, state schedule.SubmissionState, cursor string, limit int) ([]schedule.Submission, string, error) {
	rows := slices.DeleteFunc(slices.Clone(w.submissions[id]), func(s schedule.Submission) bool { return state != "" && s.State != state })
	return slice(rows, cursor, limit)
}

func (w *world) Skips(_ context.Context, id, cursor string, limit int) ([]schedule.Skip, string, error) {
	return slice(w.skips[id], cursor, limit)
}

func (w *world) Workspaces(context.Context) ([]schedule.Workspace, error) {
	return sorted(w.workspaces), nil
}

func (w *world) Workspace(_ context.Context, id string) (schedule.Workspace, error) {
	ws, ok := w.workspaces[id]
	if !ok {
		return ws, schedule.ErrNotFound
	}
	return ws, nil
}

func (w *world) Sources(context.Context) ([]schedule.SourceConfig, error) {
	return sorted(w.sources), nil
}

func (w *world) link(token string) (*link, error) {
	l := w.links[token]
	switch {
	case l == nil:
		return nil, &schedule.LinkGone{Why: "unknown"}
	case l.gone != "":
		return nil, &schedule.LinkGone{Why: l.gone, Owner: l.owner, ScheduleName: l.name}
	}
	return l, nil
}

func (w *world) Open(_ context.Context, token string) (string, error) {
	if _, err := w.link(token); err != nil {
		return "", err
	}
	w.signed++
	w.wrote("access")
	return fmt.Sprintf("https://files.example/f.csv?X-Amz-Expires=60&signature=%d", w.signed), nil
}

func (w *world) Unsubscription(_ context.Context, token string) (schedule.Unsubscription, error) {
	l, err := w.link(token)
	if err != nil {
		return schedule.Unsubscription{}, err
	}
	return schedule.Unsubscription{ScheduleName: l.name, Owner: l.owner, Done: l.done}, nil
}

func (w *world) Unsubscribe(ctx context.Context, token string) (schedule.Unsubscription, error) {
	if l, err := w.link(token); err == nil {
		l.done = true
		w.wrote("unsubscribe")
	}
	return w.Unsubscription(ctx, token)
}

func (w *world) Clock(context.Context) (time.Time, bool, error) { return w.at, w.frozen, nil }

func (w *world) SetClock(_ context.Context, at time.Time, frozen bool) error {
	w.at, w.frozen = at, frozen
	w.wrote("clock")
	return nil
}

// client calls the whole handler the way an HTTP API does: by an event, with the claims that the authorizer passes on.
type client struct {
	t     *testing.T
	serve func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	logs  *bytes.Buffer
}

func start(t *testing.T, w *world) *client {
	t.Helper()
	logs := &bytes.Buffer{}
	h := API{Editor: w, Reader: w, Links: w, Sources: &w.tests, Clock: w, Months: monthsOf(t, w), Claims: AuthorizerClaims{}, Log: slog.New(slog.NewJSONHandler(logs, nil)),
		Now: func() time.Time { return w.at }, NewID: func() string { return "made-here" }, Version: "test"}.Handler()
	return &client{t, Lambda(h), logs}
}

type answer struct {
	events.APIGatewayV2HTTPResponse
	t *testing.T
}

// as calls with the token of somebody in groups; "" sends no token.
func (c *client) as(groups, method, target, body string, headers ...string) answer {
	c.t.Helper()
	path, query, _ := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(path)
	if err != nil {
		c.t.Fatal(err)
	}
	e := events.APIGatewayV2HTTPRequest{RawPath: decoded, RawQueryString: query, Body: body, Headers: map[string]string{"user-agent": "Mail (KHTML, like Gecko)"}}
	e.RequestContext.HTTP.Method, e.RequestContext.HTTP.SourceIP, e.RequestContext.RequestID = method, "192.0.2.7", "req-1"
	for i := 0; i < len(headers); i += 2 {
		e.Headers[headers[i]] = headers[i+1]
	}
	if groups != "" {
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
			Claims: map[string]string{"sub": "sub-1", "username": "ada", "cognito:groups": "[" + groups + "]"}}}
	}
	r, err := c.serve(context.Background(), e)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, target, err)
	}
	return answer{r, c.t}
}

// want checks the status and returns the body.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.StatusCode != status {
		a.t.Fatalf("status %d, want %d: %s", a.StatusCode, status, a.Body)
	}
	return a
}

// into reads the body.
func (a answer) into(v any) answer {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		a.t.Fatalf("%v in %s", err, a.Body)
	}
	return a
}

// problem checks a refusal: its status, its media type and, where field is given, the entry about that field.
func (a answer) problem(status int, field string) Problem {
	a.t.Helper()
	a.want(status)
	if ct := a.Headers["Content-Type"]; ct != "application/problem+json" {
		a.t.Fatalf("content type %q", ct)
	}
	var p Problem
	a.into(&p)
	if p.Status != status || p.Title == "" || p.Detail == "" || p.Type == "" {
		a.t.Fatalf("incomplete problem %s", a.Body)
	}
	if field == "" {
		return p
	}
	for _, e := range p.Errors {
		if e.Field == field {
			if e.Want == "" {
				a.t.Fatalf("field %s has no want: %s", field, a.Body)
			}
			return p
		}
	}
	a.t.Fatalf("no error about %q in %s", field, a.Body)
	return p
}

// definition is a valid one as JSON; edits replace or, with a nil value, remove members.
func definition(id, workspace string, edits ...any) string {
	m := map[string]any{
		"id": id, "workspace": workspace, "name": "Delayed departures", "owner": "ops@example.com", "source": "flights",
		"query":      "select * from flights where origin = :workspace",
		"recurrence": map[string]any{"cron": "0 9 * * MON-FRI", "zone": "America/New_York"},
		"file":       map[string]any{"kind": "csv"},
		"recipients": []any{map[string]any{"email": "ada@example.com"}},
	}
	for i := 0; i < len(edits); i += 2 {
		if edits[i+1] == nil {
			delete(m, edits[i].(string))
			continue
		}
		m[edits[i].(string)] = edits[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}
