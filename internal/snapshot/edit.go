package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"almanac/internal/input"
	"almanac/internal/source"
)

// Editor carries out people's commands on snapshots. Each reads, decides and writes on the condition of what it read;
// where a row changed meanwhile it reads again.
type Editor struct {
	Ledger    PeopleLedger
	Watermark Watermark
	// Serves reports whether there is the definition's source and the workspace may use it. What its engine cannot do for
	// months comes as input.Problems.
	Serves   func(ctx context.Context, d Definition, workspace string) (bool, error)
	Jobs     JobStopper
	Queries  source.Stopper // nil: no engine's queries go on
	Dispatch Dispatch
	Clocks   Clocks
	Timing   Timing
	Token    func() string
	Log      *slog.Logger
}

// Change is what saving a definition does, or would do.
type Change struct {
	Scope
	Type    string
	Action  string // "create", "edit" or "unchanged"
	Version int
	Diff    []string // one line per field that differs
}

// PlanDefinition says what SaveDefinition would do; it changes nothing.
func (e *Editor) PlanDefinition(ctx context.Context, d Definition) (Change, error) {
	c, _, err := e.compare(ctx, d)
	return c, err
}

// SaveDefinition saves a definition: a new one, a new version, or nothing where it is equal. ifVersion, where not 0, is
// the version that the caller has seen; another one is a Conflict. The planner hears of it at its next tick.
func (e *Editor) SaveDefinition(ctx context.Context, d Definition, by string, ifVersion int) (Change, error) {
	for try := 0; ; try++ {
		c, old, err := e.compare(ctx, d)
		if err != nil {
			return c, err
		}
		if ifVersion != 0 && old.Number != ifVersion {
			return c, &Conflict{Event: "edit", Why: fmt.Sprintf("you have seen version %d, the definition is at version %d", ifVersion, old.Number)}
		}
		if c.Action == "unchanged" {
			return c, nil
		}
		d := d.withDefaults()
		v := Version{Definition: d, Number: c.Version, Hash: d.Hash(), CreatedBy: by, CreatedAt: e.Clocks.Wall()}
		before := ""
		if old.Number > 0 {
			before = fmt.Sprintf("version %d", old.Number)
		}
		err = e.Ledger.SaveDefinition(ctx, v, old.Number, e.audit(DefinitionSubject(d.Scope, d.Type), by, c.Action, "", before, fmt.Sprintf("version %d", v.Number)))
		if IsConflict(err) && ctx.Err() == nil && try < rereads {
			continue // somebody saved between read and write
		}
		return c, err
	}
}

// DefinitionSubject names a definition in audits.
func DefinitionSubject(s Scope, typ string) string {
	if s.Owner != "" {
		return "snapshot owner " + s.Owner + "/" + typ
	}
	return "snapshot " + s.Workspace + "/" + typ
}

// OwnerSubject names an owner in audits.
func OwnerSubject(id string) string { return "owner " + id }

func (e *Editor) compare(ctx context.Context, d Definition) (Change, Version, error) {
	d = d.withDefaults()
	c := Change{Scope: d.Scope, Type: d.Type, Action: "create", Version: 1}
	if ps := d.Check(); len(ps) > 0 {
		return c, Version{}, ps
	}
	if err := e.references(ctx, d); err != nil {
		return c, Version{}, err
	}
	old, err := e.Ledger.Present(ctx, d.Scope, d.Type)
	if errors.Is(err, ErrNotFound) {
		return c, Version{}, nil
	}
	if err != nil {
		return c, old, err
	}
	c.Action, c.Version, c.Diff = "edit", old.Number+1, DiffDefinitions(old.Definition, d)
	if old.Hash == d.Hash() {
		c.Action, c.Version = "unchanged", old.Number
	}
	return c, old, nil
}

// DiffDefinitions lists the fields in which a definition differs from another, a line each.
func DiffDefinitions(from, to Definition) []string { return input.Diff(from, to) }

// references checks the names that a definition refers to: the source must serve each workspace that it is about.
func (e *Editor) references(ctx context.Context, d Definition) error {
	workspaces, err := e.Ledger.Workspaces(ctx)
	if err != nil {
		return err
	}
	found := false
	for _, w := range workspaces {
		if !w.Removed.IsZero() || w.ID != d.Workspace && (d.Owner == "" || w.Owner != d.Owner) {
			continue
		}
		found = true
		serves, err := e.Serves(ctx, d, w.ID)
		if err != nil {
			return err
		}
		if !serves {
			return input.Problems{input.Wrong("source", fmt.Sprintf("%q", d.Source), fmt.Sprintf("a source that workspace %s may use; `almanac get sources` lists them", w.ID))}
		}
	}
	if d.Workspace != "" && !found {
		return input.Problems{input.Wrong("workspace", fmt.Sprintf("%q", d.Workspace), "a workspace that exists and is not removed; `almanac get workspaces` lists them")}
	}
	if d.Owner == "" {
		return nil
	}
	owners, err := e.Ledger.Owners(ctx)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if o.ID == d.Owner {
			return nil
		}
	}
	return input.Problems{input.Wrong("owner", fmt.Sprintf("%q", d.Owner), "an owner that exists; `almanac get owners` lists them")}
}

// SaveOwner configures an owner's caps. Runs that are admitted stay, also above a cap that was lowered.
func (e *Editor) SaveOwner(ctx context.Context, o Owner, by string) error {
	if ps := o.Check(); len(ps) > 0 {
		return ps
	}
	owners, err := e.Ledger.Owners(ctx)
	if err != nil {
		return err
	}
	before := ""
	for _, old := range owners {
		if old.ID == o.ID {
			before = caps(old)
		}
	}
	if err := e.Ledger.SaveOwner(ctx, o, e.audit(OwnerSubject(o.ID), by, "save", "", before, caps(o))); err != nil {
		return err
	}
	ask(ctx, e.Dispatch, e.Log) // a cap that was raised
	return nil
}

func caps(o Owner) string {
	return fmt.Sprintf("%s, cap %d, of them %d for backfills", o.Name, o.Cap, o.Backfill)
}

// audit notes an act that is about to be done.
func (e *Editor) audit(subject, by, what, why, before, after string) Audit {
	return Audit{ID: e.Token(), Subject: subject, At: e.Clocks.Wall(), Who: by, What: what, Why: why, Before: before, After: after}
}

// needReason checks the reason that a person gives for an act.
func needReason(reason string) error {
	var c checker
	if c.Line("reason", reason, MaxReason, true); len(c.Problems) > 0 {
		return c.Problems
	}
	return nil
}
