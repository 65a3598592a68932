package snapshot_test

import (
	"errors"
	"slices"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

func TestSaveDefinition(t *testing.T) {
	d := newDesk(t)
	plan, err := d.editor.PlanDefinition(ctx, delays("2040-01"))
	if err != nil || plan.Action != "create" || plan.Version != 1 {
		t.Errorf("%+v, %v", plan, err)
	}
	if _, err := d.store.Present(ctx, snapshot.Scope{Workspace: "EWR"}, "delays"); !errors.Is(err, snapshot.ErrNotFound) {
		t.Fatalf("a plan saved something: %v", err)
	}
	d.define("2040-01", unchanged)
	if c := d.define("2040-01", unchanged); c.Action != "unchanged" || c.Version != 1 || len(c.Diff) != 0 {
		t.Errorf("%+v", c)
	}
	c := d.define("2039-12", func(def *snapshot.Definition) { def.ChunkRows = 10 })
	if c.Action != "edit" || c.Version != 2 || !slices.Equal(c.Diff, []string{"chunk_rows: 50000 → 10", `start: "2040-01" → "2039-12"`}) {
		t.Errorf("%+v", c)
	}
	first, err := d.store.Definition(ctx, snapshot.Scope{Workspace: "EWR"}, "delays", 1)
	if err != nil || first.Start != month("2040-01") || first.CreatedBy != "ann" {
		t.Errorf("%+v, %v", first, err)
	}
	_, err = d.editor.SaveDefinition(ctx, delays("2039-11"), "ann", 1)
	wantConflict(t, err, "you have seen version 1, the definition is at version 2")
	if _, err = d.editor.SaveDefinition(ctx, delays("2039-11"), "ann", 2); err != nil {
		t.Error(err)
	}
	d.wantAudit("snapshot EWR/delays", "ann, create")
	d.wantAudit("snapshot EWR/delays", "ann, edit")
}

func TestDefinitionsReferToWhatIsThere(t *testing.T) {
	d := newDesk(t)
	d.workspace("OLD", func(w *schedule.Workspace) { w.Removed = "2040-01-01" })
	save := func(change func(*snapshot.Definition)) error {
		def := delays("2040-01")
		change(&def)
		_, err := d.editor.SaveDefinition(ctx, def, "ann", 0)
		return err
	}
	wantProblem(t, save(func(def *snapshot.Definition) { def.Workspace = "LGA" }), `workspace is "LGA"`, "exists and is not removed")
	wantProblem(t, save(func(def *snapshot.Definition) { def.Workspace = "OLD" }), `workspace is "OLD"`)
	wantProblem(t, save(func(def *snapshot.Definition) { def.Scope = snapshot.Scope{Owner: "nobody"} }), `owner is "nobody"`, "an owner that exists")
	d.denied["flights"] = true
	wantProblem(t, save(unchanged), `source is "flights"`, "workspace EWR may use")
	wantProblem(t, save(func(def *snapshot.Definition) { def.Scope = snapshot.Scope{Owner: snapshot.DefaultOwner} }), `source is "flights"`, "workspace EWR may use")
	wantProblem(t, save(func(def *snapshot.Definition) { def.Key = "" }), "key is missing")
	d.broken = errors.New("the table is away")
	if err := save(unchanged); err == nil || snapshot.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

func TestSaveOwner(t *testing.T) {
	d := newDesk(t)
	wantProblem(t, d.editor.SaveOwner(ctx, snapshot.Owner{ID: "o", Name: "o", Cap: 5, Backfill: 5}, "ann"), "backfill is 5 beside cap 5")
	d.owner("o", 5, 2)
	asked := d.asked
	d.owner("o", 6, 3)
	if c := d.caps("o"); c.Cap != 6 || c.Owner.Backfill != 3 || d.asked == asked {
		t.Errorf("%+v", c)
	}
	d.wantAudit("owner o", "ann, save")
}
