package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

func (s *server) registerConfiguration() {
	op := s.operation
	register(s, op("GET", "/workspaces", "list-workspaces", "Workspaces"), s.listWorkspaces)
	registerBody[schedule.Workspace](s, op("PUT", "/workspaces/{workspace}", "put-workspace", "Create or change a workspace", 422), true, s.putWorkspace)
	register(s, op("GET", "/sources", "list-sources", "Sources"), s.listSources)
	registerBody[schedule.SourceConfig](s, op("PUT", "/sources/{source}", "put-source", "Create or change a source", 422), true, s.putSource)
}

func (s *server) listWorkspaces(ctx context.Context, _ *struct{}) (*list[schedule.Workspace], error) {
	rows, err := s.Reader.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(w schedule.Workspace) bool { return caller(ctx).In(w.ID) < routes.Viewer })
	return listOf(rows, func(w schedule.Workspace) schedule.Workspace { return w }, cursor{}, ""), nil
}

func (s *server) putWorkspace(ctx context.Context, in *struct {
	Raw
	Workspace string `path:"workspace"`
}) (*reply[schedule.Workspace], error) {
	if caller(ctx).In(in.Workspace) < routes.Admin {
		return nil, lacking(routes.Admin, clip(in.Workspace))
	}
	var w schedule.Workspace
	if err := decode(in.RawBody, &w); err != nil {
		return nil, err
	}
	if w.ID == "" {
		w.ID = in.Workspace
	}
	if w.ID != in.Workspace {
		return nil, wrong("id", w.ID, fmt.Sprintf("%q, as in the path", clip(in.Workspace)))
	}
	rows, err := s.Reader.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	if err := joins(ctx, w, rows); err != nil {
		return nil, err
	}
	return &reply[schedule.Workspace]{w}, s.Editor.PutWorkspace(ctx, w, caller(ctx).Name)
}

// everyWorkspace in a source's list opens it to all.
const everyWorkspace = "*"

// SourceView is a source as its reader may see it.
type SourceView struct {
	Name       string                   `json:"name"`
	Engine     string                   `json:"engine"`
	Object     string                   `json:"object,omitempty" doc:"the file's key in the data bucket; only for those who may change the source"`
	Postgres   *schedule.PostgresSource `json:"postgres,omitempty" doc:"where the database is; only for those who may change the source"`
	Athena     *schedule.AthenaSource   `json:"athena,omitempty" doc:"the catalog's database; only for those who may change the source"`
	Workspaces []string                 `json:"workspaces" doc:"who may use it, of those that you may see; * for all"`
}

func (s *server) listSources(ctx context.Context, _ *struct{}) (*list[SourceView], error) {
	rows, err := s.Reader.Sources(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]SourceView, 0, len(rows))
	for _, c := range rows {
		if v := sourceView(c, caller(ctx)); len(v.Workspaces) > 0 {
			views = append(views, v)
		}
	}
	return listOf(views, func(v SourceView) SourceView { return v }, cursor{}, ""), nil
}

// sourceView leaves out the workspaces that the caller may not see, and where the data are for all but those who are
// administrators of each workspace that it serves.
func sourceView(c schedule.SourceConfig, id Identity) SourceView {
	v := SourceView{Name: c.Name, Engine: c.Engine, Object: c.Object, Postgres: c.Postgres, Athena: c.Athena}
	for _, w := range c.Workspaces {
		right := id.Everywhere()
		if w != everyWorkspace {
			right = id.In(w)
		}
		if w == everyWorkspace || right >= routes.Viewer {
			v.Workspaces = append(v.Workspaces, w)
		}
		if right < routes.Admin {
			v.Object, v.Postgres, v.Athena = "", nil, nil
		}
	}
	return v
}

func (s *server) putSource(ctx context.Context, in *struct {
	Raw
	Source string `path:"source"`
}) (*reply[schedule.SourceConfig], error) {
	var c schedule.SourceConfig
	if err := decode(in.RawBody, &c); err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = in.Source
	}
	if c.Name != in.Source {
		return nil, wrong("name", c.Name, fmt.Sprintf("%q, as in the path", clip(in.Source)))
	}
	// A source is data of each workspace that may use it, before and after; and so is its file, whatever name leads there.
	rows, err := s.Reader.Sources(ctx)
	if err != nil {
		return nil, err
	}
	touched := slices.Clone(c.Workspaces)
	for _, row := range rows {
		if row.Name == c.Name || row.SameData(c) {
			touched = append(touched, row.Workspaces...)
		}
	}
	// A database is signed in to with a secret that the functions may read: whoever names the host is told it. What Athena
	// may read is the functions' right as well, and each query is paid for.
	if c.Postgres != nil || c.Athena != nil {
		touched = append(touched, everyWorkspace)
	}
	if err := administers(ctx, touched); err != nil {
		return nil, err
	}
	return &reply[schedule.SourceConfig]{c}, s.Editor.PutSource(ctx, c, caller(ctx).Name)
}

type clockBody struct {
	At     time.Time `json:"at"`
	Frozen bool      `json:"frozen,omitempty" doc:"true: it stands still; false: it goes on from there"`
}

func (s *server) registerClock() {
	register(s, s.operation("GET", "/clock", "show-clock", "Business time, local profile only"), func(ctx context.Context, _ *struct{}) (*reply[clockBody], error) {
		at, frozen, err := s.Clock.Clock(ctx)
		return &reply[clockBody]{clockBody{at.UTC(), frozen}}, err
	})
	registerBody[clockBody](s, s.operation("PUT", "/clock", "set-clock", "Set business time, local profile only", 422), true, func(ctx context.Context, in *Raw) (*reply[clockBody], error) {
		var body clockBody
		if err := decode(in.RawBody, &body); err != nil {
			return nil, err
		}
		if y := body.At.Year(); y < 1970 || y > 2199 {
			return nil, wrong("at", body.At.Format(time.RFC3339), "a time between 1970 and 2199, such as 2013-07-01T12:00:00Z")
		}
		return &reply[clockBody]{body}, s.Clock.SetClock(ctx, body.At, body.Frozen)
	})
}
