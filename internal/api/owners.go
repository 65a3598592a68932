package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

func (s *server) registerOwners() {
	op := s.operation
	register(s, op("GET", "/owners", "list-owners", "Owners of workspaces, their caps of monthly snapshots and the slots that are taken"), s.listOwners)
	registerBody[snapshot.Owner](s, op("PUT", "/owners/{owner}", "put-owner", "Create or change an owner and its caps", 422), true, s.putOwner)
	register(s, op("GET", "/owners/{owner}/audits", "list-owner-audits", "What people did to an owner, the latest first", 404, 422), s.listOwnerAudits)
}

// OwnerView is an owner with its caps and what it has admitted.
type OwnerView struct {
	snapshot.Owner
	Workspaces []string `json:"workspaces" doc:"those that you may see"`
	Taken      int      `json:"taken" doc:"slots that are taken"`
	Backfills  int      `json:"taken_by_backfills"`
	Runs       []string `json:"runs" doc:"admitted runs of the workspaces that you may see"`
}

type OwnerID struct {
	Owner string `path:"owner" doc:"The owner's id"`
}

// owned are the workspaces of each owner, removed ones left out.
func (s *server) owned(ctx context.Context) (map[string][]string, error) {
	list, err := s.Months.Reader.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	there := list[:0:0]
	for _, w := range list {
		if w.Removed.IsZero() {
			there = append(there, w)
		}
	}
	return snapshot.Owned(there), nil
}

// seesOwner reports whether the caller sees one of an owner's workspaces, or all there are.
func seesOwner(id Identity, workspaces []string) bool {
	return id.Everywhere() >= routes.Viewer || len(seen(workspaces, id)) > 0
}

func (s *server) listOwners(ctx context.Context, _ *struct{}) (*list[OwnerView], error) {
	owned, err := s.owned(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := s.Months.Reader.Owners(ctx)
	if err != nil {
		return nil, err
	}
	var views []OwnerView
	for _, o := range owners {
		if !seesOwner(caller(ctx), owned[o.ID]) {
			continue
		}
		caps, err := s.Months.Reader.Caps(ctx, o.ID)
		if err != nil {
			return nil, err
		}
		v := OwnerView{Owner: caps.Owner, Workspaces: seen(owned[o.ID], caller(ctx)), Taken: len(caps.Slots), Backfills: len(caps.Backfills), Runs: []string{}}
		for _, run := range caps.Slots {
			if workspace, _, _, _, ok := splitSnapshot(run); ok && caller(ctx).In(workspace) >= routes.Viewer {
				v.Runs = append(v.Runs, run)
			}
		}
		views = append(views, v)
	}
	return listOf(views, func(v OwnerView) OwnerView { return v }, cursor{}, ""), nil
}

func (s *server) putOwner(ctx context.Context, in *struct {
	OwnerID
	Raw
}) (*reply[snapshot.Owner], error) {
	o, err := snapshot.ParseOwner(in.RawBody)
	if err != nil {
		return nil, err
	}
	if o.ID != in.Owner {
		return nil, wrong("id", o.ID, fmt.Sprintf("%q, as in the path", clip(in.Owner)))
	}
	return &reply[snapshot.Owner]{o}, s.Months.Editor.SaveOwner(ctx, o, caller(ctx).Name)
}

func (s *server) listOwnerAudits(ctx context.Context, in *struct {
	OwnerID
	Listing
}) (*list[AuditView], error) {
	owned, err := s.owned(ctx)
	if err != nil {
		return nil, err
	}
	if !identifier(in.Owner) || !seesOwner(caller(ctx), owned[in.Owner]) {
		return nil, problem(http.StatusNotFound, "there is no owner %q, or you may not see it", clip(in.Owner))
	}
	read := func(ctx context.Context, id, from string, limit int) ([]schedule.Audit, string, error) {
		return s.Months.Reader.Audits(ctx, snapshot.OwnerSubject(id), from, limit)
	}
	return pageOf(ctx, in.Listing, "owner audits", in.Owner, read, auditView)
}

// joins refuses a workspace that comes to another owner, unless the caller administers all workspaces: it takes the
// slots of those that the owner has, and gets what is defined for them.
func joins(ctx context.Context, w schedule.Workspace, rows []schedule.Workspace) error {
	before := snapshot.DefaultOwner
	for _, row := range rows {
		if row.ID == w.ID && row.Owner != "" {
			before = row.Owner
		}
	}
	after := w.Owner
	if strings.TrimSpace(after) == "" {
		after = snapshot.DefaultOwner
	}
	if before != after && caller(ctx).Everywhere() < routes.Admin {
		p := lacking(routes.Admin, "")
		p.Detail = fmt.Sprintf("workspace %s comes from owner %s to owner %s, whose slots and definitions all its workspaces share; %s", clip(w.ID), clip(before), clip(after), p.Detail)
		return p
	}
	return nil
}
