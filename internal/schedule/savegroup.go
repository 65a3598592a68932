package schedule

import (
	"context"
	"errors"
	"fmt"

	"almanac/internal/failure"
	"almanac/internal/input"
)

// GroupLedger is what saving and naming groups asks of the store.
type GroupLedger interface {
	GroupReader
	// Groups lists all groups by id.
	Groups(ctx context.Context) ([]GroupHead, error)
	// PutGroup saves a version and makes it the group's present one, in one transaction with its audit, on the condition that
	// the version before it is the present one. Otherwise it is a Conflict.
	PutGroup(ctx context.Context, v GroupVersion, a Audit) error
}

// GroupSubject is what audits of a group are about.
func GroupSubject(id string) string { return "group " + id }

// groupComparison is a group beside what stands.
type groupComparison struct {
	Change
	group Group
	head  GroupHead
}

// PlanGroup says what ApplyGroup would do; it changes nothing.
func (e *Editor) PlanGroup(ctx context.Context, g Group) (Change, error) {
	c, err := e.compareGroup(ctx, g)
	return c.Change, err
}

// ApplyGroup saves a group: a new one, a new version, or nothing where it is equal. seen is the version that the caller
// has seen and may change, 0 where there was none; another one is a Conflict.
func (e *Editor) ApplyGroup(ctx context.Context, g Group, by string, seen int) (Change, error) {
	c, err := e.compareGroup(ctx, g)
	if err != nil {
		return c.Change, err
	}
	if c.head.Version != seen {
		return c.Change, &Conflict{Event: "save group", Why: fmt.Sprintf("you have seen version %d, the group is at version %d", seen, c.head.Version)}
	}
	if c.Action == "unchanged" {
		return c.Change, nil
	}
	v := GroupVersion{Group: g, Number: seen + 1, Hash: g.Hash(), CreatedBy: by, CreatedAt: e.Clocks.Wall()}
	before := ""
	if seen > 0 {
		before = fmt.Sprintf("version %d, %d recipients", seen, c.head.Members)
	}
	return c.Change, e.Ledger.PutGroup(ctx, v, e.audit(GroupSubject(g.ID), by, "save", "", before, fmt.Sprintf("version %d, %d recipients", v.Number, v.Head().Members)))
}

func (e *Editor) compareGroup(ctx context.Context, g Group) (groupComparison, error) {
	c := groupComparison{Change: Change{ID: g.ID, Action: "create", Version: 1}, group: g}
	if ps := g.Check(); len(ps) > 0 {
		return c, ps
	}
	heads, err := e.Ledger.GroupHeads(ctx, []string{g.ID})
	if err != nil {
		return c, err
	}
	c.head = heads[g.ID]
	if c.head.Version == 0 {
		return c, nil
	}
	old, err := e.Ledger.GroupVersion(ctx, g.ID, c.head.Version)
	lost := failure.Is(err, failure.DefinitionInvalid) || errors.Is(err, ErrNotFound)
	if err != nil && !lost {
		return c, err
	}
	c.Action, c.Version = "edit", c.head.Version+1
	switch {
	case lost: // saving them again is what helps, also where nothing else changes
		c.Diff = []string{fmt.Sprintf("recipients: the list of version %d cannot be read → %d", c.head.Version, len(g.Recipients))}
		old.Recipients = g.Recipients
	case old.Hash == g.Hash():
		c.Action, c.Version = "unchanged", c.head.Version
	}
	c.Diff = append(c.Diff, DiffGroups(old.Group, g)...)
	return c, nil
}

// groups reads the groups that a definition names, as they stand now. One that is not there, or not for its workspace, is
// a Problem of the recipient that names it; so are more recipients than a run may have.
func (e *Editor) groups(ctx context.Context, d Definition) ([]GroupHead, error) {
	ids := d.GroupsOf()
	if len(ids) == 0 {
		return nil, nil
	}
	heads, err := e.Ledger.GroupHeads(ctx, ids)
	if err != nil {
		return nil, err
	}
	var list []GroupHead
	var ps Problems
	versions := map[string]int{}
	most := len(d.Recipients)
	var usable []string // read once somebody asks
	for i, r := range d.Recipients {
		if h, there := heads[r.Group]; r.Group == "" || versions[r.Group] != 0 {
			continue
		} else if there && h.Serves(d.Workspace) {
			list = append(list, h)
			versions[h.ID] = h.Version
			most += h.Members
			continue
		}
		if usable == nil {
			if usable, err = e.usable(ctx, d.Workspace); err != nil {
				return nil, err
			}
		}
		want := fmt.Sprintf("a group that workspace %s may use; `almanac get groups` lists them", d.Workspace)
		if near := input.Nearest(r.Group, usable); near != "" {
			want = fmt.Sprintf("a group that workspace %s may use, such as %q", d.Workspace, near)
		}
		ps = append(ps, input.Wrong(fmt.Sprintf("recipients[%d].group", i), input.Quote(r.Group), want))
	}
	if len(ps) > 0 {
		return nil, ps
	}
	if most <= MaxRecipients {
		return list, nil
	}
	_, err = wholeTargets(ctx, e.Ledger, d.Recipients, d.Workspace, versions)
	var f *failure.Failure
	if errors.As(err, &f) && f.Code == failure.DefinitionInvalid {
		return nil, Problems{input.Wrong("recipients", f.Message, fmt.Sprintf("at most %d recipients, groups written out", MaxRecipients))}
	}
	return list, err
}

// usable are the ids of the groups that a workspace may use.
func (e *Editor) usable(ctx context.Context, workspace string) ([]string, error) {
	all, err := e.Ledger.Groups(ctx)
	ids := []string{}
	for _, h := range all {
		if h.Serves(workspace) {
			ids = append(ids, h.ID)
		}
	}
	return ids, err
}
