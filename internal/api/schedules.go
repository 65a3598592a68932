package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

type ScheduleID struct {
	Schedule string `path:"schedule" doc:"The schedule's id"`
}

// Listing are the parameters of every list.
type Listing struct {
	Cursor string `query:"cursor" doc:"next of an earlier answer; absent for the first page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
}

// list is every list's answer.
type list[T any] struct {
	Body struct {
		Items []T    `json:"items"`
		Next  string `json:"next,omitempty" doc:"cursor of the next page; absent on the last"`
	}
}

func listOf[R, T any](rows []R, view func(R) T, at cursor, next string) *list[T] {
	out := &list[T]{}
	out.Body.Items = make([]T, 0, len(rows))
	for _, r := range rows {
		out.Body.Items = append(out.Body.Items, view(r))
	}
	if at.Place = next; next != "" {
		out.Body.Next = at.String()
	}
	return out
}

// reply is a body without more.
type reply[T any] struct{ Body T }

func (s *server) registerSchedules() {
	op := s.operation
	registerBody[planBody](s, withDefinitions(op("POST", "/schedules/plan", "plan-schedules", "What applying definitions would do", 422)), true, s.plan)
	register(s, op("GET", "/schedules", "list-schedules", "Schedules", 422), s.listSchedules)
	registerBody[schedule.Definition](s, withDefinitions(op("PUT", "/schedules/{schedule}", "apply-schedule", "Create a schedule, or give it a new version", 404, 409, 412, 422)), true, s.apply)
	register(s, op("GET", "/schedules/{schedule}", "show-schedule", "One schedule, its definition and its next due times", 404), s.showSchedule)
	registerBody[reasonBody](s, op("DELETE", "/schedules/{schedule}", "delete-schedule", "Delete a schedule; runs in work settle", 404, 409, 422), true, s.deleteSchedule)
	registerBody[reasonBody](s, op("POST", "/schedules/{schedule}/pause", "pause-schedule", "Admit nothing until it is resumed", 404, 409, 422), true, s.pause)
	registerBody[reasonBody](s, op("POST", "/schedules/{schedule}/resume", "resume-schedule", "Admit again; nothing missed meanwhile is sent", 404, 409, 422), true, s.resume)
	registerBody[runNowBody](s, op("POST", "/schedules/{schedule}/runs", "run-schedule", "Run a schedule now, once per Idempotency-Key", 400, 404, 409, 412, 422), false, s.runNow)
	register(s, op("GET", "/schedules/{schedule}/skips", "list-skips", "Due times that did not run, and why", 404, 422), s.listSkips)
}

// visible reads a schedule for a caller who needs a right in its workspace. One that the caller may not see is not
// there.
func (s *server) visible(ctx context.Context, id string, right routes.Right) (schedule.Schedule, error) {
	none := problem(http.StatusNotFound, "there is no schedule %q, or you may not see it", clip(id))
	if !identifier(id) {
		return schedule.Schedule{}, none
	}
	row, err := s.Reader.Schedule(ctx, id)
	switch {
	case errors.Is(err, schedule.ErrNotFound):
		return row, none
	case err != nil:
		return row, err
	}
	switch have := caller(ctx).In(row.Workspace); {
	case have < routes.Viewer:
		return schedule.Schedule{}, none
	case have < right:
		return schedule.Schedule{}, lacking(right, row.Workspace)
	}
	return row, nil
}

// identifier reports a text that can name a schedule, workspace or source at all; the domain's own rule is stricter.
func identifier(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '@' || r == '#' || r == '/' })
}

func clip(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

func (s *server) listSchedules(ctx context.Context, in *struct {
	Listing
	Workspace string `query:"workspace" doc:"only this workspace's"`
}) (*list[ScheduleView], error) {
	at, err := parseCursor(in.Cursor, "schedules", in.Workspace)
	if err != nil {
		return nil, err
	}
	id := caller(ctx)
	names, all := id.Workspaces()
	switch {
	case in.Workspace != "" && (!identifier(in.Workspace) || id.In(in.Workspace) < routes.Viewer):
		names = nil // as if it were empty; what can be no workspace's name would be a key of something else
	case in.Workspace != "":
		names = []string{in.Workspace}
	case all:
		names = []string{""}
	}
	slices.Sort(names)
	rows, end, err := s.walk(ctx, names, at, in.Limit)
	if err != nil {
		return nil, forged(err, at, in.Cursor)
	}
	at = end
	out := listOf(rows, scheduleView, at, at.Place)
	if at.Workspace != "" {
		out.Body.Next = at.String()
	}
	return out, nil
}

// walk reads a page of the schedules of several workspaces, one after the other. The cursor it returns has neither
// place nor workspace at the end.
func (s *server) walk(ctx context.Context, names []string, at cursor, limit int) ([]schedule.Schedule, cursor, error) {
	var rows []schedule.Schedule
	from := at
	at.Place, at.Workspace = "", ""
	for _, name := range names {
		if name < from.Workspace {
			continue
		}
		if len(rows) == limit {
			at.Workspace = name
			return rows, at, nil
		}
		place := ""
		if name == from.Workspace || len(names) == 1 {
			place = from.Place
		}
		page, next, err := s.Reader.Schedules(ctx, name, place, limit-len(rows))
		if err != nil {
			return nil, at, err
		}
		for _, row := range page {
			if caller(ctx).In(row.Workspace) >= routes.Viewer {
				rows = append(rows, row)
			}
		}
		if next != "" {
			at.Place, at.Workspace = next, name
			return rows, at, nil
		}
	}
	return rows, at, nil
}

type scheduleReply struct {
	ETag string `header:"ETag"`
	Body ScheduleDetail
}

func etag(version int) string { return `"` + strconv.Itoa(version) + `"` }

func (s *server) showSchedule(ctx context.Context, in *ScheduleID) (*scheduleReply, error) {
	row, err := s.visible(ctx, in.Schedule, routes.Viewer)
	if err != nil {
		return nil, err
	}
	def, err := s.Reader.Definition(ctx, row.ID, row.Version)
	if err != nil {
		return nil, fmt.Errorf("schedule %s, version %d: %w", row.ID, row.Version, err)
	}
	next, err := s.preview(ctx, row, def.Definition)
	if err != nil {
		return nil, err
	}
	return &scheduleReply{etag(row.Version), ScheduleDetail{
		ScheduleView: scheduleView(row), DefinedBy: def.CreatedBy, DefinedAt: instant(def.CreatedAt),
		Definition: masked(def.Definition, caller(ctx).In(row.Workspace)), NextDueTimes: next,
	}}, nil
}

// masked hides the addresses of a definition from viewers.
func masked(d schedule.Definition, right routes.Right) schedule.Definition {
	if right >= routes.Operator {
		return d
	}
	d.Recipients = maskedRecipients(d.Recipients)
	return d
}

// maskedRecipients hides addresses; a group's id is none.
func maskedRecipients(list []schedule.Recipient) []schedule.Recipient {
	list = slices.Clone(list)
	for i, r := range list {
		switch {
		case r.Webhook != "":
			list[i].Webhook = mask(r.Channel(), r.Webhook)
		case r.Group == "":
			list[i].Email = mask(r.Channel(), r.Email)
		}
	}
	return list
}

type changeReply struct {
	Status int
	ETag   string `header:"ETag"`
	Body   ChangeView
}

func (s *server) apply(ctx context.Context, in *struct {
	ScheduleID
	Raw
	IfMatch string `header:"If-Match" doc:"the ETag that the edit is made from; 412 when the schedule has moved on"`
}) (*changeReply, error) {
	def, err := schedule.ParseDefinition(in.RawBody)
	if err != nil {
		return nil, err
	}
	if def.ID != in.Schedule {
		return nil, wrong("id", def.ID, fmt.Sprintf("%q, as in the path", clip(in.Schedule)))
	}
	row, err := s.visible(ctx, def.ID, routes.Admin)
	exists := err == nil
	var none *Problem
	if err != nil && !(errors.As(err, &none) && none.Status == http.StatusNotFound) {
		return nil, err
	}
	if !exists {
		// It is absent, or hidden from this caller: only the former may be created.
		if _, err := s.Reader.Schedule(ctx, def.ID); !errors.Is(err, schedule.ErrNotFound) {
			return nil, errors.Join(none, err)
		}
	}
	if caller(ctx).In(def.Workspace) < routes.Admin {
		return nil, lacking(routes.Admin, clip(def.Workspace))
	}
	version, err := ifMatch(in.IfMatch, row, exists)
	if err != nil {
		return nil, err
	}
	change, err := s.Editor.Apply(ctx, def, caller(ctx).Name, version)
	var conflict *schedule.Conflict
	if version != 0 && errors.As(err, &conflict) {
		return nil, conflicting(http.StatusPreconditionFailed, conflict)
	} else if err != nil {
		return nil, err
	}
	out := &changeReply{http.StatusOK, etag(change.Version), changeView(change)}
	if change.Action == "create" {
		out.Status = http.StatusCreated
	}
	return out, nil
}

// ifMatch reads the header against the row and returns the version that the edit must still find, 0 for any.
// Source: RFC 9110, 13.1.1: strong comparison, a list or "*".
func ifMatch(header string, row schedule.Schedule, exists bool) (int, error) {
	if header == "" {
		return 0, nil
	}
	if !exists {
		return 0, ifMatches(header, "schedule", 0)
	}
	err := ifMatches(header, "schedule", row.Version)
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusPreconditionFailed {
		p.Current = &Current{Schedule: row.ID, State: string(row.State), Version: row.Version}
	}
	return row.Version, err
}

// ifMatches compares the header with the version that stands, 0: none.
func ifMatches(header, what string, version int) error {
	if header == "" {
		return nil
	}
	if version == 0 {
		return problem(http.StatusPreconditionFailed, "If-Match %s: there is no such %s yet; leave the header out to create it", clip(header), what)
	}
	for _, tag := range strings.Split(header, ",") {
		switch tag = strings.TrimSpace(tag); {
		case tag == "*", tag == etag(version):
			return nil
		case strings.HasPrefix(tag, "W/"), len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"':
		default:
			return problem(http.StatusUnprocessableEntity, "a header cannot be used").field("If-Match", header, `the ETag of an earlier answer, with its quotes, such as "3"`)
		}
	}
	return problem(http.StatusPreconditionFailed, "the %s has version %d now; read it again and repeat the edit", what, version)
}

type reasonBody struct {
	Reason string `json:"reason"`
}

type reasoned struct {
	ScheduleID
	Raw
}

// why checks the caller's right and reads the reason.
func (s *server) why(ctx context.Context, in *reasoned, right routes.Right) (string, error) {
	if _, err := s.visible(ctx, in.Schedule, right); err != nil {
		return "", err
	}
	var body reasonBody
	if err := decode(in.RawBody, &body); err != nil {
		return "", err
	}
	return body.Reason, reason(body.Reason)
}

func (s *server) pause(ctx context.Context, in *reasoned) (*reply[ScheduleView], error) {
	return s.switched(ctx, in, s.Editor.Pause)
}

func (s *server) resume(ctx context.Context, in *reasoned) (*reply[ScheduleView], error) {
	return s.switched(ctx, in, s.Editor.Resume)
}

func (s *server) switched(ctx context.Context, in *reasoned, change func(ctx context.Context, id, reason, by string) (schedule.Schedule, error)) (*reply[ScheduleView], error) {
	why, err := s.why(ctx, in, routes.Operator)
	if err != nil {
		return nil, err
	}
	row, err := change(ctx, in.Schedule, why, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &reply[ScheduleView]{scheduleView(row)}, nil
}

func (s *server) deleteSchedule(ctx context.Context, in *reasoned) (*struct{}, error) {
	why, err := s.why(ctx, in, routes.Admin)
	if err != nil {
		return nil, err
	}
	return nil, s.Editor.Delete(ctx, in.Schedule, why, caller(ctx).Name)
}
