package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"almanac/internal/schedule"
)

// groupOf is a valid group as JSON.
func groupOf(id, workspace string, members ...string) string {
	g := schedule.Group{ID: id, Name: "Managers", Workspaces: []string{workspace}}
	for _, m := range append(members, "boss@example.com") {
		g.Recipients = append(g.Recipients, schedule.Recipient{Email: m})
	}
	b, err := json.Marshal(g)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w *world) PlanGroup(_ context.Context, g schedule.Group) (schedule.Change, error) {
	versions := w.groups[g.ID]
	c := schedule.Change{ID: g.ID, Action: "create", Version: len(versions) + 1}
	if n := len(versions); n > 0 {
		c.Action, c.Diff = "edit", schedule.DiffGroups(versions[n-1].Group, g)
		if len(c.Diff) == 0 {
			c.Action, c.Version = "unchanged", n
		}
	}
	return c, w.fail
}

func (w *world) ApplyGroup(ctx context.Context, g schedule.Group, by string, seen int) (schedule.Change, error) {
	if w.race != nil {
		w.race()
	}
	c, err := w.PlanGroup(ctx, g)
	if now := len(w.groups[g.ID]); err == nil && now != seen {
		err = &schedule.Conflict{Event: "save group", Why: fmt.Sprintf("you have seen version %d, the group is at version %d", seen, now)}
	}
	if err != nil || c.Action == "unchanged" {
		return c, err
	}
	w.groups[g.ID] = append(w.groups[g.ID], schedule.GroupVersion{Group: g, Number: c.Version, Hash: g.Hash(), CreatedBy: by, CreatedAt: w.at})
	w.wrote("group %s v%d by %s", g.ID, c.Version, by)
	return c, nil
}

func (w *world) Groups(context.Context) (heads []schedule.GroupHead, err error) {
	for _, versions := range sorted(w.groups) {
		heads = append(heads, versions[len(versions)-1].Head())
	}
	return heads, w.fail
}

func (w *world) GroupHeads(_ context.Context, ids []string) (map[string]schedule.GroupHead, error) {
	heads := map[string]schedule.GroupHead{}
	for _, id := range ids {
		if versions := w.groups[id]; len(versions) > 0 {
			heads[id] = versions[len(versions)-1].Head()
		}
	}
	return heads, w.fail
}

func (w *world) GroupVersion(_ context.Context, id string, version int) (schedule.GroupVersion, error) {
	if versions := w.groups[id]; version >= 1 && version <= len(versions) {
		return versions[version-1], w.fail
	}
	return schedule.GroupVersion{}, schedule.ErrNotFound
}

func (w *world) GroupVersions(_ context.Context, id, cursor string, limit int) ([]schedule.GroupVersion, string, error) {
	rows := slices.Clone(w.groups[id])
	slices.Reverse(rows)
	return slice(rows, cursor, limit)
}
