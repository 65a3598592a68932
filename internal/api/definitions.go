package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

const definitionPath = "/snapshots/definitions/{scope}/{of}/{type}"

func (s *server) registerDefinitions() {
	op := s.operation
	register(s, op("GET", "/snapshots/definitions", "list-snapshot-definitions", "Definitions of monthly snapshots that are in force"), s.listDefinitions)
	register(s, op("GET", definitionPath, "show-snapshot-definition", "One definition", 404), s.showDefinition)
	registerBody[snapshot.Definition](s, op("POST", definitionPath+"/plan", "plan-snapshot-definition", "What saving a definition would do", 404, 422), true, s.planDefinition)
	registerBody[snapshot.Definition](s, op("PUT", definitionPath, "put-snapshot-definition", "Define a type of monthly snapshots, or give it a new version", 404, 409, 412, 422), true, s.putDefinition)
	register(s, op("GET", definitionPath+"/versions", "list-snapshot-definition-versions", "Versions of a definition, the latest first", 404, 422), s.listDefinitionVersions)
	register(s, op("GET", definitionPath+"/versions/{version}", "show-snapshot-definition-version", "One version, and how it differs from another", 404, 422), s.showDefinitionVersion)
	register(s, op("GET", definitionPath+"/audits", "list-snapshot-definition-audits", "What people did to a definition, the latest first", 404, 422), s.listDefinitionAudits)
}

// DefinitionID is the path of a definition.
type DefinitionID struct {
	Scope string `path:"scope" enum:"workspace,owner" doc:"Whose months it is about: one workspace's, or those of all workspaces of an owner"`
	Of    string `path:"of" doc:"The workspace's or owner's id"`
	Type  string `path:"type" doc:"The type of snapshots"`
}

// scope is the domain's scope of a path.
func (d DefinitionID) scope() snapshot.Scope {
	if d.Scope == "owner" {
		return snapshot.Scope{Owner: d.Of}
	}
	return snapshot.Scope{Workspace: d.Of}
}

// DefinitionView is a definition of snapshots, as lists show it.
type DefinitionView struct {
	ID        string     `json:"id" doc:"WORKSPACE/TYPE, or owner/OWNER/TYPE"`
	Workspace string     `json:"workspace,omitempty"`
	Owner     string     `json:"owner,omitempty"`
	Type      string     `json:"type"`
	Name      string     `json:"name"`
	Source    string     `json:"source"`
	Start     string     `json:"start" doc:"the first month"`
	Mode      string     `json:"mode"`
	Off       bool       `json:"off" doc:"the type is switched off"`
	Version   int        `json:"version"`
	By        string     `json:"by,omitempty"`
	At        *time.Time `json:"at,omitempty"`
	Hash      string     `json:"hash"`
}

// DefinitionDetail is one version of a definition.
type DefinitionDetail struct {
	DefinitionView
	Definition snapshot.Definition `json:"definition"`
	Against    int                 `json:"against,omitempty"`
	Diff       []string            `json:"diff,omitzero" doc:"one line per field: name: value in against → value in this version"`
}

func definitionView(v snapshot.Version) DefinitionView {
	return DefinitionView{definitionName(v.Scope, v.Type), v.Workspace, v.Owner, v.Type, v.Name, v.Source, v.Start.String(), string(v.Mode), v.Off,
		v.Number, v.CreatedBy, instant(v.CreatedAt), v.Hash}
}

func definitionDetail(v snapshot.Version) DefinitionDetail {
	return DefinitionDetail{DefinitionView: definitionView(v), Definition: v.Definition}
}

func definitionName(s snapshot.Scope, typ string) string {
	if s.Owner != "" {
		return "owner/" + s.Owner + "/" + typ
	}
	return s.Workspace + "/" + typ
}

// sees reports whether the caller may see what is defined for a scope.
func sees(id Identity, s snapshot.Scope, owned map[string][]string) bool {
	if s.Owner != "" {
		return seesOwner(id, owned[s.Owner])
	}
	return id.In(s.Workspace) >= routes.Viewer
}

func (s *server) listDefinitions(ctx context.Context, _ *struct{}) (*list[DefinitionView], error) {
	owned, err := s.owned(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.Months.Reader.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	var shown []snapshot.Version
	for _, v := range rows {
		if sees(caller(ctx), v.Scope, owned) {
			shown = append(shown, v)
		}
	}
	return listOf(shown, definitionView, cursor{}, ""), nil
}

func noDefinition(in DefinitionID) *Problem {
	return problem(http.StatusNotFound, "there is no definition %q, or you may not see it", clip(definitionName(in.scope(), in.Type)))
}

// definition reads the version in force for a caller. One that the caller may not see is not there.
func (s *server) definition(ctx context.Context, in DefinitionID) (snapshot.Version, error) {
	if err := s.scoped(ctx, in); err != nil {
		return snapshot.Version{}, err
	}
	v, err := s.Months.Reader.Present(ctx, in.scope(), in.Type)
	if errors.Is(err, snapshot.ErrNotFound) {
		return v, noDefinition(in)
	}
	return v, err
}

// scoped refuses a path that names nothing that the caller may see.
func (s *server) scoped(ctx context.Context, in DefinitionID) error {
	if !identifier(in.Of) || !identifier(in.Type) {
		return noDefinition(in)
	}
	owned, err := s.owned(ctx)
	if err == nil && !sees(caller(ctx), in.scope(), owned) {
		err = noDefinition(in)
	}
	return err
}

type definitionReply struct {
	ETag string `header:"ETag"`
	Body DefinitionDetail
}

func (s *server) showDefinition(ctx context.Context, in *DefinitionID) (*definitionReply, error) {
	v, err := s.definition(ctx, *in)
	if err != nil {
		return nil, err
	}
	return &definitionReply{etag(v.Number), definitionDetail(v)}, nil
}

type definitionBody struct {
	DefinitionID
	Raw
	IfMatch string `header:"If-Match" doc:"the ETag that the edit is made from; 412 when the definition has moved on"`
}

// described reads a definition, which must be of the path that it came by.
func (in definitionBody) described() (snapshot.Definition, error) {
	d, err := snapshot.ParseDefinition(in.RawBody)
	if err != nil {
		return d, err
	}
	for _, f := range []struct{ name, got, want string }{{"workspace", d.Workspace, in.scope().Workspace}, {"owner", d.Owner, in.scope().Owner}, {"type", d.Type, in.Type}} {
		if f.got != f.want {
			want := fmt.Sprintf("%q, as in the path", clip(f.want))
			if f.want == "" {
				want = "nothing: the path names another scope"
			}
			return d, wrong(f.name, f.got, want)
		}
	}
	return d, nil
}

func snapshotChange(c snapshot.Change) ChangeView {
	return changeView(schedule.Change{ID: definitionName(c.Scope, c.Type), Action: c.Action, Version: c.Version, Diff: c.Diff})
}

func (s *server) planDefinition(ctx context.Context, in *struct {
	DefinitionID
	Raw
}) (*reply[ChangeView], error) {
	if err := s.scoped(ctx, in.DefinitionID); err != nil {
		return nil, err
	}
	d, err := definitionBody{DefinitionID: in.DefinitionID, Raw: in.Raw}.described()
	if err != nil {
		return nil, err
	}
	c, err := s.Months.Editor.PlanDefinition(ctx, d)
	return &reply[ChangeView]{snapshotChange(c)}, err
}

func (s *server) putDefinition(ctx context.Context, in *definitionBody) (*changeReply, error) {
	if err := s.scoped(ctx, in.DefinitionID); err != nil {
		return nil, err
	}
	if err := s.defines(ctx, in.scope()); err != nil {
		return nil, err
	}
	d, err := in.described()
	if err != nil {
		return nil, err
	}
	seenVersion := 0
	if in.IfMatch != "" {
		v, err := s.Months.Reader.Present(ctx, in.scope(), in.Type)
		if err != nil && !errors.Is(err, snapshot.ErrNotFound) {
			return nil, err
		}
		if err := ifMatches(in.IfMatch, "definition", v.Number); err != nil {
			return nil, err
		}
		seenVersion = v.Number
	}
	c, err := s.Months.Editor.SaveDefinition(ctx, d, caller(ctx).Name, seenVersion)
	var conflict *snapshot.Conflict
	if in.IfMatch != "" && errors.As(err, &conflict) {
		return nil, busyMonth(http.StatusPreconditionFailed, conflict)
	} else if err != nil {
		return nil, err
	}
	out := &changeReply{http.StatusOK, etag(c.Version), snapshotChange(c)}
	if c.Action == "create" {
		out.Status = http.StatusCreated
	}
	return out, nil
}

// defines refuses a caller who is no admin of each workspace that a definition is about. An owner without one is about
// whatever comes to it.
func (s *server) defines(ctx context.Context, sc snapshot.Scope) error {
	if sc.Workspace != "" {
		return administers(ctx, []string{sc.Workspace})
	}
	owned, err := s.owned(ctx)
	if err != nil {
		return err
	}
	if len(owned[sc.Owner]) == 0 {
		return administers(ctx, []string{everyWorkspace})
	}
	return administers(ctx, owned[sc.Owner])
}

func (s *server) listDefinitionVersions(ctx context.Context, in *struct {
	DefinitionID
	Listing
}) (*list[VersionView], error) {
	if _, err := s.definition(ctx, in.DefinitionID); err != nil {
		return nil, err
	}
	read := func(ctx context.Context, _, from string, limit int) ([]snapshot.Version, string, error) {
		return s.Months.Reader.DefinitionVersions(ctx, in.scope(), in.Type, from, limit)
	}
	return pageOf(ctx, in.Listing, "definition versions", definitionName(in.scope(), in.Type), read, func(v snapshot.Version) VersionView {
		return VersionView{v.Number, v.CreatedBy, instant(v.CreatedAt), v.Hash}
	})
}

func (s *server) showDefinitionVersion(ctx context.Context, in *struct {
	DefinitionID
	Version int `path:"version" minimum:"1" doc:"The version's number"`
	Against int `query:"against" minimum:"1" doc:"the version to compare with"`
}) (*reply[DefinitionDetail], error) {
	now, err := s.definition(ctx, in.DefinitionID)
	if err != nil {
		return nil, err
	}
	v, err := s.Months.Reader.Definition(ctx, in.scope(), in.Type, in.Version)
	if errors.Is(err, snapshot.ErrNotFound) {
		return nil, problem(http.StatusNotFound, "definition %s has no version %d; it has versions 1 to %d", definitionName(in.scope(), in.Type), in.Version, now.Number)
	} else if err != nil {
		return nil, err
	}
	out := definitionDetail(v)
	if in.Against > 0 {
		other, err := s.Months.Reader.Definition(ctx, in.scope(), in.Type, in.Against)
		if errors.Is(err, snapshot.ErrNotFound) {
			return nil, schedule.Problems{{Field: "against", Value: fmt.Sprint(in.Against), Want: fmt.Sprintf("a version of the definition, 1 to %d", now.Number)}}
		} else if err != nil {
			return nil, err
		}
		out.Against, out.Diff = in.Against, orEmpty(snapshot.DiffDefinitions(other.Definition, v.Definition))
	}
	return &reply[DefinitionDetail]{out}, nil
}

func (s *server) listDefinitionAudits(ctx context.Context, in *struct {
	DefinitionID
	Listing
}) (*list[AuditView], error) {
	if _, err := s.definition(ctx, in.DefinitionID); err != nil {
		return nil, err
	}
	read := func(ctx context.Context, _, from string, limit int) ([]schedule.Audit, string, error) {
		return s.Months.Reader.Audits(ctx, snapshot.DefinitionSubject(in.scope(), in.Type), from, limit)
	}
	return pageOf(ctx, in.Listing, "definition audits", definitionName(in.scope(), in.Type), read, auditView)
}
