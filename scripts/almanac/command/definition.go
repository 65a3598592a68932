package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"almanac/internal/api"
	"almanac/internal/input"
	"almanac/scripts/almanac/client"
	"almanac/scripts/almanac/manifest"
)

// snapshotPrefix marks a definition of snapshots where a schedule or run may be named too, and ownerPrefix an owner.
const snapshotPrefix, ownerPrefix = "snapshot/", "owner/"

// definitionPath is where the API has a definition: of WORKSPACE/TYPE, or of owner/OWNER/TYPE.
func definitionPath(name string) string {
	parts := strings.Split(name, "/")
	if len(parts) == 3 {
		return client.Path("snapshots", "definitions", "owner", parts[1], parts[2])
	}
	return client.Path("snapshots", "definitions", "workspace", parts[0], parts[len(parts)-1])
}

// ofDefinition takes a definition's name out of an argument such as snapshot/EWR/hourly-weather.
func ofDefinition(arg string) (name string, is bool, err error) {
	if name, is = strings.CutPrefix(arg, snapshotPrefix); !is {
		return "", false, nil
	}
	parts := strings.Split(name, "/")
	if len(parts) != 2 && !(len(parts) == 3 && parts[0] == "owner") {
		return "", true, usage("%q names no definition of snapshots; want snapshot/WORKSPACE/TYPE or snapshot/owner/OWNER/TYPE", arg)
	}
	for _, p := range parts {
		if err := named("definition of snapshots", p); err != nil {
			return "", true, err
		}
	}
	return name, true, nil
}

// problemsOf are the wrong fields of what was parsed.
func problemsOf[T any](_ T, err error) input.Problems {
	var problems input.Problems
	errors.As(err, &problems)
	return problems
}

// standingOwners reads the owners where a file describes one: not everybody who applies schedules may see them.
func standingOwners(ctx context.Context, conn *client.Client, docs []manifest.Document) ([]api.OwnerView, error) {
	for _, d := range docs {
		if d.Kind == manifest.Owner {
			return listOf[api.OwnerView](ctx, conn, "/owners", nil)
		}
	}
	return nil, nil
}

// planSnapshots asks the API what saving each definition would do. One that is refused only because of an owner, workspace
// or source that this very call will create or change is planned when that is done.
func planSnapshots(ctx context.Context, conn *client.Client, docs []manifest.Document, changing map[string]bool) (steps []step, err error) {
	var wrong manifest.Errors
	for _, d := range docs {
		var v api.ChangeView
		_, err := conn.Call(ctx, "POST", definitionPath(d.Name)+"/plan", nil, d.JSON, &v)
		var problem *api.Problem
		if errors.As(err, &problem) && (problem.Status == http.StatusUnprocessableEntity || problem.Status == http.StatusNotFound) {
			refused := refusedFields(d, problem, changing)
			if len(refused) > 0 {
				wrong = append(wrong, refused...)
				continue
			}
			later, err := standingDefinition(ctx, conn, d)
			if err != nil {
				return nil, err
			}
			steps = append(steps, step{doc: d, action: later})
			continue
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{doc: d, action: v.Action, version: v.Version, diff: v.Diff})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return steps, nil
}

// refusedFields are the wrong fields of a definition that nothing in this call will mend, each with its line.
func refusedFields(d manifest.Document, problem *api.Problem, changing map[string]bool) (wrong manifest.Errors) {
	var names struct{ Workspace, Owner, Source string }
	_ = json.Unmarshal(d.JSON, &names) // it has been read as a definition before
	comes := map[string]bool{"workspace": changing["workspace "+names.Workspace], "owner": changing["owner "+names.Owner], "source": changing["source "+names.Source]}
	if names.Owner != "" { // its workspaces may come with this call
		for key := range changing {
			comes["owner"] = comes["owner"] || strings.HasPrefix(key, "workspace ") && changing[key]
			comes["source"] = comes["source"] || strings.HasPrefix(key, "workspace ") && changing[key]
		}
	}
	if problem.Status == http.StatusNotFound && !comes["workspace"] && !comes["owner"] {
		return manifest.Errors{fmt.Sprintf("%s: %s", d.At("workspace"), problem.Detail)}
	}
	for _, e := range problem.Errors {
		if !comes[e.Field] {
			wrong = append(wrong, fmt.Sprintf("%s: %s", d.At(e.Field), fieldLine(e)))
		}
	}
	return wrong
}

// standingDefinition tells an edit from a creation where no plan could be made.
func standingDefinition(ctx context.Context, conn *client.Client, d manifest.Document) (string, error) {
	_, err := conn.Call(ctx, "GET", definitionPath(d.Name), nil, nil, nil)
	if client.Is(err, http.StatusNotFound) {
		return create, nil
	}
	return edit, err
}

func definitionCells(d api.DefinitionView) []string {
	return []string{d.ID, fmt.Sprint(d.Version), d.Start, d.Mode, d.Source, optional(d.Off, "off"), d.Name}
}

func ownerCells(o api.OwnerView) []string {
	return []string{o.ID, fmt.Sprintf("%d of %d", o.Taken, o.Cap), fmt.Sprintf("%d of %d", o.Backfills, o.Owner.Backfill), strings.Join(o.Workspaces, ", "), o.Name}
}

func (p *Program) showDefinition(ctx context.Context, c *call, conn *client.Client, name string) error {
	var d api.DefinitionDetail
	if _, err := conn.Call(ctx, "GET", definitionPath(name), nil, nil, &d); err != nil {
		return err
	}
	switch {
	case c.json:
		return printJSON(p.Out, d)
	case c.definition:
		return printJSON(p.Out, d.Definition)
	}
	t := newTable()
	t.row("Snapshot", d.ID)
	t.row("Name", d.Name)
	t.row("Version", fmt.Sprintf("%d, by %s, at %s", d.Version, dash(d.By), when(d.At)))
	t.row("Source", d.Source)
	t.row("First month", d.Start)
	t.row("Key", d.Definition.Key)
	t.row("Mode", d.Mode+optional(d.Off, ", switched off"))
	t.write(p.Out)
	for _, q := range []struct{ title, text string }{{"Query", d.Definition.Query}, {"Control", d.Definition.Control}, {"Watermark", d.Definition.Watermark}} {
		if q.text == "" {
			continue
		}
		p.printf("\n%s\n", q.title)
		for _, line := range strings.Split(strings.TrimSpace(q.text), "\n") {
			p.printf("  %s\n", plain(line))
		}
	}
	return nil
}
