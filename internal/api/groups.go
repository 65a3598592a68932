package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

func (s *server) registerGroups() {
	op := s.operation
	register(s, op("GET", "/groups", "list-groups", "Groups of recipients"), s.listGroups)
	registerBody[schedule.Group](s, withDefinitions(op("POST", "/groups/{group}/plan", "plan-group", "What saving a group would do", 404, 422)), true, s.planGroup)
	registerBody[schedule.Group](s, withDefinitions(op("PUT", "/groups/{group}", "put-group", "Create a group, or give it a new version", 404, 409, 412, 422)), true, s.putGroup)
	register(s, op("GET", "/groups/{group}", "show-group", "One group and its members", 404), s.showGroup)
	register(s, op("GET", "/groups/{group}/versions", "list-group-versions", "Versions of a group, the latest first", 404, 422), s.listGroupVersions)
	register(s, op("GET", "/groups/{group}/versions/{version}", "show-group-version", "One version of a group, and how it differs from another", 404, 422), s.showGroupVersion)
	register(s, op("GET", "/groups/{group}/audits", "list-group-audits", "What people did to a group, the latest first", 404, 422), s.listGroupAudits)
}

// GroupView is a group as lists show it.
type GroupView struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Workspaces []string `json:"workspaces" doc:"whose schedules may name it, of those that you may see; * for all"`
	Version    int      `json:"version"`
	Members    int      `json:"members" doc:"distinct recipients"`
}

func groupView(h schedule.GroupHead, id Identity) GroupView {
	return GroupView{h.ID, h.Name, seen(h.Workspaces, id), h.Version, h.Members}
}

// seen are those of a list of workspaces that the caller may see.
func seen(list []string, id Identity) []string {
	out := []string{}
	for _, w := range list {
		if w == everyWorkspace || id.In(w) >= routes.Viewer {
			out = append(out, w)
		}
	}
	return out
}

// GroupDetail is one version of a group with its members.
type GroupDetail struct {
	GroupView
	By         string               `json:"by,omitempty" doc:"who saved the version"`
	At         *time.Time           `json:"at,omitempty"`
	Hash       string               `json:"hash,omitempty" doc:"SHA-256 of the version: equal hashes, equal groups"`
	Recipients []schedule.Recipient `json:"recipients"`
	Against    int                  `json:"against,omitempty"`
	Diff       []string             `json:"diff,omitzero" doc:"what differs from the version against, a line each; long lists of members are counted"`
}

type groupReply struct {
	ETag string `header:"ETag"`
	Body GroupDetail
}

type GroupID struct {
	Group string `path:"group" doc:"The group's id"`
}

// rightIn is what a caller may do with what several workspaces use: the most that it may do in one of them.
func rightIn(id Identity, workspaces []string) routes.Right {
	right := routes.Public
	for _, w := range workspaces {
		if w == everyWorkspace {
			return id.Highest()
		}
		right = max(right, id.In(w))
	}
	return right
}

// group reads a group for a caller. One that the caller may not see is not there.
func (s *server) group(ctx context.Context, id string) (schedule.GroupHead, error) {
	none := problem(http.StatusNotFound, "there is no group %q, or you may not see it", clip(id))
	if !identifier(id) {
		return schedule.GroupHead{}, none
	}
	heads, err := s.Reader.GroupHeads(ctx, []string{id})
	if err != nil {
		return schedule.GroupHead{}, err
	}
	if h, ok := heads[id]; ok && rightIn(caller(ctx), h.Workspaces) >= routes.Viewer {
		return h, nil
	}
	return schedule.GroupHead{}, none
}

func (s *server) listGroups(ctx context.Context, _ *struct{}) (*list[GroupView], error) {
	rows, err := s.Reader.Groups(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(h schedule.GroupHead) bool { return rightIn(caller(ctx), h.Workspaces) < routes.Viewer })
	return listOf(rows, func(h schedule.GroupHead) GroupView { return groupView(h, caller(ctx)) }, cursor{}, ""), nil
}

func (s *server) showGroup(ctx context.Context, in *GroupID) (*groupReply, error) {
	h, err := s.group(ctx, in.Group)
	if err != nil {
		return nil, err
	}
	v, err := s.Reader.GroupVersion(ctx, h.ID, h.Version)
	if err != nil {
		return nil, fmt.Errorf("group %s, version %d: %w", h.ID, h.Version, err)
	}
	return &groupReply{etag(h.Version), groupDetail(v, h, caller(ctx))}, nil
}

// groupDetail shows the members to operators of a workspace that may use the group now: in its runs they see them too.
func groupDetail(v schedule.GroupVersion, now schedule.GroupHead, id Identity) GroupDetail {
	d := GroupDetail{GroupView: groupView(v.Head(), id), By: v.CreatedBy, At: instant(v.CreatedAt), Hash: v.Hash, Recipients: v.Recipients}
	if right := rightIn(id, now.Workspaces); right < routes.Operator {
		d.Recipients, d.Hash = maskedRecipients(v.Recipients), ""
	}
	return d
}

// described reads a group's description, and the group as it stands; version 0: there is none. One that the caller may
// not see is not there, and cannot be made either.
func (s *server) described(ctx context.Context, id string, raw []byte) (g schedule.Group, h schedule.GroupHead, err error) {
	if g, err = schedule.ParseGroup(raw); err != nil {
		return g, h, err
	}
	if g.ID != id {
		return g, h, wrong("id", g.ID, fmt.Sprintf("%q, as in the path", clip(id)))
	}
	heads, err := s.Reader.GroupHeads(ctx, []string{g.ID})
	if err != nil {
		return g, h, err
	}
	if h = heads[g.ID]; h.Version > 0 && rightIn(caller(ctx), h.Workspaces) < routes.Viewer {
		return g, h, problem(http.StatusNotFound, "there is no group %q, or you may not see it", clip(id))
	}
	return g, h, nil
}

// administers refuses a caller who is not an admin in each of some workspaces.
func administers(ctx context.Context, workspaces []string) error {
	for _, w := range workspaces {
		if w == everyWorkspace && caller(ctx).Everywhere() < routes.Admin {
			return lacking(routes.Admin, "")
		} else if w != everyWorkspace && caller(ctx).In(w) < routes.Admin {
			return lacking(routes.Admin, clip(w))
		}
	}
	return nil
}

func (s *server) planGroup(ctx context.Context, in *struct {
	GroupID
	Raw
}) (*reply[ChangeView], error) {
	g, h, err := s.described(ctx, in.Group, in.RawBody)
	if err != nil {
		return nil, err
	}
	change, err := s.Editor.PlanGroup(ctx, g)
	if rightIn(caller(ctx), h.Workspaces) < routes.Operator {
		change.Diff = slices.Compact(withoutAddresses(change.Diff))
	}
	if len(seen(h.Workspaces, caller(ctx))) < len(h.Workspaces) {
		for i, line := range change.Diff {
			if strings.HasPrefix(line, "workspaces: ") {
				change.Diff[i] = "workspaces: differ (some that may use the group are not yours to see)"
			}
		}
	}
	return &reply[ChangeView]{changeView(change)}, err
}

func (s *server) putGroup(ctx context.Context, in *struct {
	GroupID
	Raw
	IfMatch string `header:"If-Match" doc:"the ETag that the edit is made from; 412 when the group has moved on"`
}) (*changeReply, error) {
	g, h, err := s.described(ctx, in.Group, in.RawBody)
	if err != nil {
		return nil, err
	}
	// A group belongs to each workspace that uses it, before and after: its members get what all of them send.
	if err := administers(ctx, append(slices.Clone(g.Workspaces), h.Workspaces...)); err != nil {
		return nil, err
	}
	if err := ifMatches(in.IfMatch, "group", h.Version); err != nil {
		return nil, err
	}
	change, err := s.Editor.ApplyGroup(ctx, g, caller(ctx).Name, h.Version)
	var conflict *schedule.Conflict
	if in.IfMatch != "" && errors.As(err, &conflict) {
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

// GroupVersionView is one version of a group, as lists show it.
type GroupVersionView = VersionView

func (s *server) listGroupVersions(ctx context.Context, in *struct {
	GroupID
	Listing
}) (*list[GroupVersionView], error) {
	h, err := s.group(ctx, in.Group)
	if err != nil {
		return nil, err
	}
	hides := rightIn(caller(ctx), h.Workspaces) < routes.Operator
	return pageOf(ctx, in.Listing, "group versions", in.Group, s.Reader.GroupVersions, func(v schedule.GroupVersion) GroupVersionView {
		if hides {
			v.Hash = "" // by which a guess at the members could be proved
		}
		return VersionView{v.Number, v.CreatedBy, instant(v.CreatedAt), v.Hash}
	})
}

func (s *server) showGroupVersion(ctx context.Context, in *struct {
	GroupID
	Version int `path:"version" minimum:"1" doc:"The version's number"`
	Against int `query:"against" minimum:"1" doc:"the version to compare with"`
}) (*reply[GroupDetail], error) {
	h, err := s.group(ctx, in.Group)
	if err != nil {
		return nil, err
	}
	v, err := s.Reader.GroupVersion(ctx, h.ID, in.Version)
	if errors.Is(err, schedule.ErrNotFound) {
		return nil, problem(http.StatusNotFound, "group %s has no version %d; it has versions 1 to %d", h.ID, in.Version, h.Version)
	} else if err != nil {
		return nil, err
	}
	out := groupDetail(v, h, caller(ctx))
	if in.Against == 0 {
		return &reply[GroupDetail]{out}, nil
	}
	other, err := s.Reader.GroupVersion(ctx, h.ID, in.Against)
	if errors.Is(err, schedule.ErrNotFound) {
		return nil, schedule.Problems{{Field: "against", Value: fmt.Sprint(in.Against), Want: fmt.Sprintf("a version of the group, 1 to %d", h.Version)}}
	} else if err != nil {
		return nil, err
	}
	other.Workspaces, v.Workspaces = seen(other.Workspaces, caller(ctx)), seen(v.Workspaces, caller(ctx))
	out.Against, out.Diff = in.Against, orEmpty(schedule.DiffGroups(other.Group, v.Group))
	if rightIn(caller(ctx), h.Workspaces) < routes.Operator {
		out.Diff = slices.Compact(withoutAddresses(out.Diff))
	}
	return &reply[GroupDetail]{out}, nil
}

func (s *server) listGroupAudits(ctx context.Context, in *struct {
	GroupID
	Listing
}) (*list[AuditView], error) {
	if _, err := s.group(ctx, in.Group); err != nil {
		return nil, err
	}
	read := func(ctx context.Context, id, from string, limit int) ([]schedule.Audit, string, error) {
		return s.Reader.Audits(ctx, schedule.GroupSubject(id), from, limit)
	}
	return pageOf(ctx, in.Listing, "group audits", in.Group, read, auditView)
}
