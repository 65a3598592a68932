package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"almanac/internal/api"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/scripts/almanac/client"
	"almanac/scripts/almanac/manifest"
)

// What happens to a document.
const (
	create    = "create"
	edit      = "edit"
	unchanged = "unchanged"
)

// step is one document with what applying it would do.
type step struct {
	doc     manifest.Document
	action  string
	version int // schedules and groups: the version it will have; 0 where only what is applied before it can tell
	diff    []string
	dues    []api.Due
	groups  []api.GroupCount
}

func (p *Program) apply(ctx context.Context, c *call) error {
	if c.folder == "" {
		return usage("usage: almanac apply -f FOLDER [--yes]")
	}
	docs, err := manifest.Read(c.folder)
	if err != nil {
		return err
	}
	if err := check(docs); err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	steps, err := plan(ctx, conn, docs)
	if err != nil {
		return err
	}
	p.printPlan(conn.Base, steps)
	if !pending(steps) {
		return nil
	}
	if !c.yes {
		if err := p.ask("Apply? [y/N] "); err != nil {
			return err
		}
	}
	if c.yes || !p.Terminal { // a person's own return key ends the line otherwise
		p.printf("\n")
	}
	for _, s := range steps {
		if s.action == unchanged {
			continue
		}
		if err := p.carryOut(ctx, conn, s); err != nil {
			return err
		}
	}
	return nil
}

// check reads owners, workspaces, sources and snapshots as the API will, before anything is sent. Groups and schedules the
// API itself checks, in the plan.
func check(docs []manifest.Document) error {
	var wrong manifest.Errors
	for _, d := range docs {
		var problems schedule.Problems
		switch d.Kind {
		case manifest.Workspace:
			var w schedule.Workspace
			if problems = strict(d, &w); len(problems) == 0 {
				problems = w.Check()
			}
		case manifest.Source:
			var s schedule.SourceConfig
			if problems = strict(d, &s); len(problems) == 0 {
				problems = s.Check()
			}
		case manifest.Owner:
			problems = problemsOf(snapshot.ParseOwner(d.JSON))
		case manifest.Snapshot:
			problems = problemsOf(snapshot.ParseDefinition(d.JSON))
		}
		for _, f := range problems {
			wrong = append(wrong, fmt.Sprintf("%s: %s", d.At(f.Field), f))
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

func strict(d manifest.Document, into any) schedule.Problems {
	dec := json.NewDecoder(strings.NewReader(string(d.JSON)))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		return schedule.Problems{{Field: kind.Field, Value: "a " + kind.Value, Want: "a " + kind.Type.String()}}
	}
	field, _ := strconv.Unquote(strings.TrimPrefix(err.Error(), "json: unknown field "))
	return schedule.Problems{{Field: field, Value: "not a field of a " + d.Kind, Want: "fields that a " + d.Kind + " has"}}
}

var signs = map[string]string{create: "+", edit: "~", unchanged: "="}

func (p *Program) printPlan(base string, steps []step) {
	p.printf("Plan for %s\n\n", base)
	width := 0
	for _, s := range steps {
		width = max(width, len(s.doc.Name))
	}
	count := map[string]int{}
	for _, s := range steps {
		count[s.action]++
		version := ""
		if s.version > 0 {
			version = fmt.Sprintf("version %d", s.version)
		}
		p.printf("%s\n", strings.TrimRight(fmt.Sprintf("  %s %-9s  %-*s  %-9s  %s", signs[s.action], s.doc.Kind, width, s.doc.Name, s.action, version), " "))
		if s.action == unchanged {
			continue
		}
		for _, line := range s.diff {
			p.printf("      %s\n", plain(line))
		}
		if s.doc.Kind == manifest.Snapshot && s.version == 0 {
			p.printf("      its version is known once what it names is there\n")
		} else if s.doc.Kind == manifest.Schedule && s.version == 0 {
			p.printf("      its due times are known once its workspace, source and groups are there\n")
		} else if s.doc.Kind == manifest.Schedule {
			p.printGroups(s.groups)
			p.printf("      next due\n")
			p.printDues("        ", s.dues)
		}
	}
	p.printf("\n%d to create, %d to edit, %d unchanged.\n", count[create], count[edit], count[unchanged])
}

func pending(steps []step) bool {
	for _, s := range steps {
		if s.action != unchanged {
			return true
		}
	}
	return false
}

// ask wants a yes. Where nobody sits at the terminal, an answer must be piped in, or --yes given.
func (p *Program) ask(question string) error {
	p.printf("\n%s", question)
	answer, err := bufio.NewReader(io.LimitReader(p.In, 100)).ReadString('\n')
	if answer == "" && err != nil && !p.Terminal {
		p.printf("\n")
		return usage("nobody is there to ask; give --yes to apply without asking")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	p.printf("Nothing was applied.\n")
	return errFailed
}

// carryOut applies one step; an edit of a schedule or group only if it still has the version that the plan saw.
func (p *Program) carryOut(ctx context.Context, conn *client.Client, s step) error {
	path := client.Path(map[string]string{manifest.Owner: "owners", manifest.Workspace: "workspaces", manifest.Source: "sources", manifest.Group: "groups", manifest.Schedule: "schedules"}[s.doc.Kind], s.doc.Name)
	if s.doc.Kind == manifest.Snapshot {
		path = definitionPath(s.doc.Name)
	}
	header := http.Header{}
	if s.action == edit && s.version > 1 {
		header.Set("If-Match", strconv.Quote(strconv.Itoa(s.version-1)))
	}
	var done api.ChangeView
	status, err := conn.Call(ctx, "PUT", path, header, s.doc.JSON, &done)
	var problem *api.Problem
	if errors.As(err, &problem) {
		p.printf("%s %s: refused\n", s.doc.Kind, s.doc.Name)
		if status == http.StatusUnprocessableEntity {
			var wrong manifest.Errors
			for _, e := range problem.Errors {
				wrong = append(wrong, fmt.Sprintf("%s: %s", s.doc.At(e.Field), fieldLine(e)))
			}
			problem.Errors, problem.Detail = nil, wrong.Error()
		}
		if status == http.StatusPreconditionFailed {
			problem.Detail += "; it changed since the plan: apply again"
		}
		return problem
	} else if err != nil {
		return err
	}
	switch s.doc.Kind {
	case manifest.Owner, manifest.Workspace, manifest.Source:
		p.printf("%s %s: %s\n", s.doc.Kind, s.doc.Name, past[s.action])
		return nil
	case manifest.Group, manifest.Snapshot:
		p.printf("%s %s: %s, version %d\n", s.doc.Kind, s.doc.Name, past[done.Action], done.Version)
		return nil
	}
	next := ""
	for _, d := range done.NextDue {
		if !d.Skipped {
			next = ", next due " + d.Local
			break
		}
	}
	p.printf("schedule %s: %s, version %d%s\n", s.doc.Name, past[done.Action], done.Version, next)
	return nil
}

var past = map[string]string{create: "created", edit: "edited", unchanged: "unchanged"}
