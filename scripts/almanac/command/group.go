package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"almanac/internal/api"
	"almanac/internal/input"
	"almanac/scripts/almanac/client"
	"almanac/scripts/almanac/manifest"
)

// groupPrefix marks a group where a schedule or run may be named too.
const groupPrefix = "group/"

// ofGroup takes a group's id out of an argument.
func ofGroup(arg string) (id string, is bool, err error) {
	if id, is = strings.CutPrefix(arg, groupPrefix); is {
		err = named("group", id)
	}
	return id, is, err
}

func groupCells(g api.GroupView) []string {
	return []string{g.ID, strings.Join(g.Workspaces, ", "), fmt.Sprint(g.Version), fmt.Sprint(g.Members), g.Name}
}

func (p *Program) showGroup(ctx context.Context, c *call, conn *client.Client, id string) error {
	var g api.GroupDetail
	if _, err := conn.Call(ctx, "GET", client.Path("groups", id), nil, nil, &g); err != nil {
		return err
	}
	if c.json {
		return printJSON(p.Out, g)
	}
	if c.definition {
		return printJSON(p.Out, map[string]any{"id": g.ID, "name": g.Name, "workspaces": g.Workspaces, "recipients": g.Recipients})
	}
	t := newTable()
	t.row("Group", g.ID)
	t.row("Name", g.Name)
	t.row("Workspaces", strings.Join(g.Workspaces, ", "))
	t.row("Version", fmt.Sprintf("%d%s%s", g.Version, optional(g.By != "", ", by %s", g.By), optional(g.At != nil, ", at %s", when(g.At))))
	t.row("Members", fmt.Sprint(g.Members))
	t.write(p.Out)
	p.printf("\nRecipients\n")
	t = newTable()
	for _, r := range g.Recipients[:min(len(g.Recipients), fewRecipients)] {
		t.row("  "+r.Channel(), r.Address())
	}
	t.write(p.Out)
	if more := len(g.Recipients) - fewRecipients; more > 0 {
		p.printf("  and %d more; almanac show group/%s --definition prints all\n", more, g.ID)
	}
	return nil
}

// printDifference prints how one version of something differs from another.
func printDifference[V any](ctx context.Context, p *Program, c *call, conn *client.Client, path string, numbers [2]int, of func(V) difference) error {
	var v V
	if _, err := conn.Call(ctx, "GET", path, nil, nil, &v); err != nil {
		return err
	}
	if c.json {
		return printJSON(p.Out, v)
	}
	d := of(v)
	p.printf("%s: version %d → version %d (%s, by %s)\n", c.args[0], numbers[0], numbers[1], when(d.at), dash(plain(d.by)))
	for _, line := range d.lines {
		p.printf("  %s\n", plain(line))
	}
	if len(d.lines) == 0 {
		p.printf("  (no difference)\n")
	}
	return nil
}

// difference is what a version of any kind of document says of the one before it.
type difference struct {
	by    string
	at    *time.Time
	lines []string
}

// planGroup asks the API what saving a group would do. Each wrong field is shown with its file and line.
func planGroup(ctx context.Context, conn *client.Client, d manifest.Document) (step, error) {
	var v api.ChangeView
	_, err := conn.Call(ctx, "POST", client.Path("groups", d.Name, "plan"), nil, d.JSON, &v)
	var problem *api.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity {
		var wrong manifest.Errors
		for _, e := range problem.Errors {
			wrong = append(wrong, fmt.Sprintf("%s: %s", d.At(e.Field), fieldLine(e)))
		}
		return step{}, wrong
	}
	return step{doc: d, action: v.Action, version: v.Version, diff: v.Diff}, err
}

// groupsOf are the groups that a schedule names, by the field that does.
func groupsOf(d manifest.Document) map[string]string {
	var doc struct{ Recipients []struct{ Group string } }
	named := map[string]string{}
	if json.Unmarshal(d.JSON, &doc) == nil { // else the API says what is wrong
		for i, r := range doc.Recipients {
			if r.Group != "" {
				named[fmt.Sprintf("recipients[%d].group", i)] = r.Group
			}
		}
	}
	return named
}

// unknownGroups are those that a schedule names and that neither stand nor are described beside it, a line each.
func unknownGroups(d manifest.Document, standing []string, described map[string]bool) (wrong manifest.Errors) {
	known := map[string]bool{}
	for _, id := range standing {
		known[id] = true
	}
	for key := range described {
		if id, is := strings.CutPrefix(key, manifest.Group+" "); is && !known[id] {
			standing, known[id] = append(standing, id), true
		}
	}
	for field, id := range groupsOf(d) {
		if known[id] {
			continue
		}
		near := ""
		if n := input.Nearest(id, standing); n != "" {
			near = fmt.Sprintf(", such as %q", n)
		}
		wrong = append(wrong, fmt.Sprintf("%s: %s is %q; want a group that exists or is described here%s", d.At(field), field, id, near))
	}
	return wrong
}

// printGroups shows how many members a schedule's groups have before anything is applied.
func (p *Program) printGroups(groups []api.GroupCount) {
	for _, g := range groups {
		p.printf("      group %s has %d members now (version %d)\n", plain(g.ID), g.Members, g.Version)
	}
}
