package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"almanac/internal/api"
	"almanac/internal/schedule"
	"almanac/scripts/almanac/client"
	"almanac/scripts/almanac/manifest"
)

// plan compares each document with what stands.
func plan(ctx context.Context, conn *client.Client, docs []manifest.Document) ([]step, error) {
	workspaces, err := listOf[schedule.Workspace](ctx, conn, "/workspaces", nil)
	if err != nil {
		return nil, err
	}
	sources, err := listOf[schedule.SourceConfig](ctx, conn, "/sources", nil)
	if err != nil {
		return nil, err
	}
	groups, err := listOf[api.GroupView](ctx, conn, "/groups", nil)
	if err != nil {
		return nil, err
	}
	var standing []string
	for _, g := range groups {
		standing = append(standing, g.ID)
	}
	stands := map[string]json.RawMessage{}
	for _, w := range workspaces {
		stands["workspace "+w.ID], _ = json.Marshal(w) // plain texts always marshal
	}
	for _, s := range sources {
		stands["source "+s.Name], _ = json.Marshal(s)
	}
	owners, err := standingOwners(ctx, conn, docs)
	if err != nil {
		return nil, err
	}
	for _, o := range owners {
		stands["owner "+o.ID], _ = json.Marshal(o.Owner)
	}
	var steps []step
	var schedules, snapshots []manifest.Document
	changing := map[string]bool{} // "workspace EWR": its document will change something
	for _, d := range docs {
		if d.Kind == manifest.Schedule {
			schedules = append(schedules, d)
			continue
		}
		if d.Kind == manifest.Snapshot {
			snapshots = append(snapshots, d)
			continue
		}
		if d.Kind == manifest.Group {
			s, err := planGroup(ctx, conn, d)
			if err != nil {
				return nil, err
			}
			changing[d.Kind+" "+d.Name] = s.action != unchanged
			steps = append(steps, s)
			continue
		}
		s := step{doc: d, action: create}
		if old, ok := stands[d.Kind+" "+d.Name]; ok {
			s.diff = differences(old, d.JSON)
			s.action = edit
			if len(s.diff) == 0 {
				s.action = unchanged
			}
		}
		changing[d.Kind+" "+d.Name] = s.action != unchanged
		steps = append(steps, s)
	}
	if err := resolve(slices.Concat(schedules, snapshots), stands, standing, changing); err != nil {
		return nil, err
	}
	planned, err := planSchedules(ctx, conn, schedules, changing)
	if err != nil {
		return nil, err
	}
	defined, err := planSnapshots(ctx, conn, snapshots, changing)
	return append(append(steps, planned...), defined...), err
}

// resolve checks that each name a schedule or snapshot refers to stands, or is described beside it: the API cannot tell
// before those are applied.
func resolve(docs []manifest.Document, stands map[string]json.RawMessage, groups []string, described map[string]bool) error {
	var wrong manifest.Errors
	for _, d := range docs {
		wrong = append(wrong, unknownGroups(d, groups, described)...)
		for _, kind := range []string{manifest.Workspace, manifest.Source} {
			var fields map[string]any
			if err := json.Unmarshal(d.JSON, &fields); err != nil {
				return err
			}
			name, _ := fields[kind].(string)
			_, there := stands[kind+" "+name]
			if _, here := described[kind+" "+name]; name != "" && !there && !here {
				wrong = append(wrong, fmt.Sprintf("%s: %s is %q; want a %s that exists or is described here", d.At(kind), kind, name, kind))
			}
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// chunk is how many definitions one plan request holds.
const chunk = 100

// fitting is how many of the documents go in one plan request: so many, and so many bytes, but one at least.
func fitting(docs []manifest.Document) int {
	bytes := len(`{"definitions":[]}`)
	for i, d := range docs {
		if bytes += len(d.JSON) + 1; i > 0 && (i == chunk || bytes > api.MaxDefinitions) {
			return i
		}
	}
	return len(docs)
}

// planSchedules asks the API. A schedule that is refused only because of a workspace, source or group that this very call
// will create or change is planned when that is done.
func planSchedules(ctx context.Context, conn *client.Client, docs []manifest.Document, changing map[string]bool) ([]step, error) {
	var steps []step
	for n := fitting(docs); n < len(docs); n = fitting(docs) {
		part, err := planSchedules(ctx, conn, docs[:n], changing)
		if err != nil {
			return nil, err
		}
		steps, docs = append(steps, part...), docs[n:]
	}
	later := map[int]bool{}
	for {
		var ask []json.RawMessage
		var index []int
		for i, d := range docs {
			if !later[i] {
				ask, index = append(ask, d.JSON), append(index, i)
			}
		}
		var answer api.PlanView
		if len(ask) > 0 {
			_, err := conn.Call(ctx, "POST", "/schedules/plan", nil, map[string]any{"definitions": ask}, &answer)
			found, err := postponed(err, docs, index, changing)
			if err != nil {
				return nil, err
			}
			if len(found) > 0 {
				for _, i := range found {
					later[i] = true
				}
				continue
			}
		}
		if len(answer.Changes) != len(ask) {
			return nil, &client.Unreachable{Base: conn.Base, Cause: fmt.Errorf("it planned %d of %d schedules", len(answer.Changes), len(ask))}
		}
		for i, d := range docs {
			if later[i] {
				action, err := standing(ctx, conn, d)
				if err != nil {
					return nil, err
				}
				steps = append(steps, step{doc: d, action: action})
				continue
			}
			c := answer.Changes[0]
			answer.Changes = answer.Changes[1:]
			steps = append(steps, step{d, c.Action, c.Version, c.Diff, c.NextDue, c.Groups})
		}
		return steps, nil
	}
}

// standing tells an edit from a creation where no plan could be made.
func standing(ctx context.Context, conn *client.Client, d manifest.Document) (string, error) {
	_, err := conn.Call(ctx, "GET", client.Path("schedules", d.Name), nil, nil, nil)
	if client.Is(err, http.StatusNotFound) {
		return create, nil
	}
	return edit, err
}

var definitionField = regexp.MustCompile(`^definitions\[(\d+)\](?:\.(.*))?$`)

// postponed reads a plan's refusal: the documents to be planned later, or an error that shows each wrong field with
// its file and line.
func postponed(err error, docs []manifest.Document, index []int, changing map[string]bool) ([]int, error) {
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity {
		return nil, err
	}
	var later []int
	var wrong manifest.Errors
	for _, e := range p.Errors {
		m := definitionField.FindStringSubmatch(e.Field)
		n := -1
		if m != nil {
			n, _ = strconv.Atoi(m[1])
		}
		if n < 0 || n >= len(index) {
			return nil, err
		}
		d := docs[index[n]]
		if refers(d, m[2], changing) {
			later = append(later, index[n])
			continue
		}
		e.Field = m[2]
		wrong = append(wrong, fmt.Sprintf("%s: %s", d.At(m[2]), fieldLine(e)))
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return later, nil
}

// refers reports whether the field names something that is about to change.
func refers(d manifest.Document, field string, changing map[string]bool) bool {
	if id, is := groupsOf(d)[field]; is {
		return changing[manifest.Group+" "+id]
	}
	if field != manifest.Workspace && field != manifest.Source {
		return false
	}
	var names struct{ Workspace, Source string }
	if json.Unmarshal(d.JSON, &names) != nil {
		return false
	}
	// A source that is there may not yet be open to a workspace: then its document changes it.
	return field == manifest.Workspace && changing["workspace "+names.Workspace] || field == manifest.Source && changing["source "+names.Source]
}

// differences lists the fields of a flat document that differ.
func differences(old, new json.RawMessage) []string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(old, &a) != nil || json.Unmarshal(new, &b) != nil {
		return []string{"cannot be compared"}
	}
	var lines []string
	for _, name := range []string{"name", "zone", "owner", "start", "removed", "engine", "object", "workspaces", "cap", "backfill"} {
		if before, after := compact(a[name]), compact(b[name]); before != after {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", name, before, after))
		}
	}
	return lines
}

func compact(v json.RawMessage) string {
	var x any
	if v == nil || json.Unmarshal(v, &x) != nil {
		return "(absent)"
	}
	b, _ := json.Marshal(x) // it was JSON a moment ago
	return string(b)
}
