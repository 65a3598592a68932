package storetest

import (
	"slices"
	"testing"
	"time"

	"almanac/internal/snapshot"
)

// monthsSideBySide reads what people look at: a line of months with their versions and pointers, the ledger of a type page
// by page, the versions of a definition, and the ids of audits.
func monthsSideBySide(t *testing.T, b *bench) {
	p, r := b.month(t, "validating", nil)
	l, ctx := b.ledger(), t.Context()
	must(t, l.Publish(ctx, r, snapshot.Pointer{Period: p.period(), Version: 3}, wall))
	june := firstPlanning(p, "planner-1")
	june.Run.Month, june.Head.Month = may.Add(1), may.Add(1)
	must(t, l.Plan(ctx, june))

	list, err := l.Line(ctx, p.period().Series, may.Add(-1), may.Add(1))
	if err != nil || len(list) != 2 || list[0].Head.Latest != 4 || list[0].Pointer.Version != 4 || list[0].Pointer.Previous != 3 || len(list[0].Runs) != 1 || list[0].Runs[0].State != snapshot.Published {
		t.Fatalf("%+v, %v", list, err)
	}
	if latest, ok := list[1].Latest(); !ok || latest.ID() != june.Run.ID() || list[1].Pointer.Version != 0 || list[1].Pointer.Month != may.Add(1) {
		t.Errorf("%+v", list[1])
	}
	for months, want := range map[[2]int]int{{-3, -1}: 0, {0, 0}: 1, {1, 5}: 1, {2, 5}: 0} {
		list, err := l.Line(ctx, p.period().Series, may.Add(months[0]), may.Add(months[1]))
		if err != nil || len(list) != want {
			t.Errorf("%v: %d months, %v; want %d", months, len(list), err, want)
		}
	}
	var ids []string
	for next, pages := "", 0; ; pages++ {
		runs, more, err := l.Runs(ctx, p.period().Series, next, 1)
		must(t, err)
		for _, r := range runs {
			ids = append(ids, r.ID())
		}
		if next = more; next == "" || pages > 9 {
			break
		}
	}
	if !slices.Equal(ids, []string{june.Run.ID(), p.snapshot()}) {
		t.Errorf("the ledger is %v", ids)
	}
	if _, _, err := l.Runs(ctx, p.period().Series, `{"pk":"x","sk":"y"}`, 1); err == nil {
		t.Error("a place in no list is gone on from")
	}

	scope := snapshot.Scope{Workspace: p.schedule}
	for n := 1; n <= 2; n++ {
		a := monthAct(p.schedule, "save definition")
		a.ID, a.At = []string{"", "first", "second"}[n], wall.Add(time.Duration(n)*time.Second)
		must(t, l.SaveDefinition(ctx, snapshot.Version{Number: n, Hash: "h", CreatedAt: wall, Definition: snapshot.Definition{Scope: scope, Type: typ, Start: may}}, n-1, a))
	}
	versions, next, err := l.DefinitionVersions(ctx, scope, typ, "", 1)
	if err != nil || len(versions) != 1 || versions[0].Number != 2 || next == "" {
		t.Fatalf("%+v %q %v", versions, next, err)
	}
	if versions, next, err = l.DefinitionVersions(ctx, scope, typ, next, 1); err != nil || len(versions) != 1 || versions[0].Number != 1 {
		t.Errorf("%+v %q %v", versions, next, err)
	}
	if got, err := l.AuditIDs(ctx, p.schedule); err != nil || !slices.Equal(got, []string{"second", "first"}) {
		t.Errorf("audits %v, %v", got, err)
	}
}
