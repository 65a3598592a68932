package snapshot_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

func TestPlansEachClosedMonthOnce(t *testing.T) {
	d := newDesk(t)
	d.define("2039-12", unchanged)
	if got := d.plan(); got.Planned != 3 || got.Series != 1 {
		t.Errorf("tally %+v", got)
	}
	d.wantLedger("2039-12 v1 planned", "2040-01 v1 planned", "2040-02 v1 planned")
	for m, backfill := range map[string]bool{"2039-12": true, "2040-01": true, "2040-02": false} {
		r := d.run(id(m, 1))
		if r.Backfill != backfill || r.Owner != snapshot.DefaultOwner || r.Definition != 1 || r.Zone != "America/New_York" {
			t.Errorf("%s: %+v", m, r)
		}
		if h := d.head(m); h.Active != 1 || !h.LateAt.Equal(r.End.Add(72*time.Hour)) {
			t.Errorf("head %+v", h)
		}
	}
	row := d.series()
	if row.Next != month("2040-03") || !row.PlanAt.Equal(time.Date(2040, 4, 1, 4, 0, 0, 0, time.UTC)) {
		t.Errorf("the line stands at %+v, want March, to be looked at when it has ended", row)
	}
	d.advance(27 * 24 * time.Hour) // 1 April, noon
	d.plan()
	if r := d.run(id("2040-03", 1)); r.State != snapshot.Planned || r.Backfill {
		t.Errorf("March: %+v", r)
	}
}

// Months are local to the workspace's zone, by business time, and their bounds are frozen.
func TestMonthsAreLocal(t *testing.T) {
	t.Run("T7", func(t *testing.T) {
		d := newDesk(t)
		d.workspace("EWR", func(w *schedule.Workspace) { w.Zone = "Pacific/Auckland" })
		d.define("2024-04", unchanged)
		d.plan()
		r := d.run(id("2024-04", 1))
		if instant(r.Start) != "2024-03-31T11:00:00Z" || instant(r.End) != "2024-04-30T12:00:00Z" || r.End.Sub(r.Start) != 721*time.Hour {
			t.Errorf("[%s, %s)", instant(r.Start), instant(r.End))
		}
	})
	t.Run("T8", func(t *testing.T) {
		d := newDesk(t)
		d.workspace("EWR", func(w *schedule.Workspace) { w.Zone = "UTC" })
		d.define("2040-02", unchanged)
		d.plan()
		if r := d.run(id("2040-02", 1)); r.End.Sub(r.Start) != 696*time.Hour {
			t.Errorf("a leap year's February has %s", r.End.Sub(r.Start))
		}
		d.advance(time.Date(2100, 3, 1, 0, 0, 0, 0, time.UTC).Sub(opening))
		d.plan()
		if r := d.run(id("2100-02", 1)); r.End.Sub(r.Start) != 672*time.Hour || r.Backfill {
			t.Errorf("February 2100 has %s, backfill %v", r.End.Sub(r.Start), r.Backfill)
		}
	})
	t.Run("T9", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-01", unchanged)
		d.advance(time.Date(2041, 1, 31, 12, 0, 0, 0, time.UTC).Sub(opening))
		d.plan()
		d.advance(31 * 24 * time.Hour) // 3 March
		d.plan()
		if r := d.run(id("2041-02", 1)); r.Backfill || d.head("2041-03").Latest != 0 {
			t.Error("after 31 January comes February, and March is not closed on its third day")
		}
	})
	t.Run("T10", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-01", unchanged)
		d.plan()
		d.claim()
		d.publish(id("2040-01", 1))
		before := []snapshot.Run{d.run(id("2040-01", 1)), d.run(id("2040-02", 1))}
		d.workspace("EWR", func(w *schedule.Workspace) { w.Zone = "Pacific/Auckland" })
		d.advance(27 * 24 * time.Hour)
		d.plan()
		for _, r := range before {
			if now := d.run(r.ID()); now.Start != r.Start || now.End != r.End || now.Zone != "America/New_York" {
				t.Errorf("%s moved from %s to %s", r.ID(), r.Start, now.Start)
			}
		}
		if r := d.run(id("2040-03", 1)); r.Zone != "Pacific/Auckland" || instant(r.Start) != "2040-02-29T11:00:00Z" {
			t.Errorf("March: %+v", r)
		}
	})
	t.Run("business time", func(t *testing.T) {
		d := newDesk(t)
		d.shift = -30 * 24 * time.Hour // it is still 4 February
		d.define("2040-01", unchanged)
		d.plan()
		d.wantLedger("2040-01 v1 planned")
	})
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func TestN13TenTicksAfterASettlePlanNothing(t *testing.T) {
	d := newDesk(t)
	d.owner(snapshot.DefaultOwner, 5, 2)
	d.define("2040-01", unchanged)
	d.plan()
	d.claim()
	d.publish(id("2040-01", 1))
	if _, err := d.editor.Cancel(ctx, id("2040-02", 1), "not needed", "ann"); err != nil {
		t.Fatal(err)
	}
	d.advance(28 * 24 * time.Hour)
	d.plan()
	d.claim()
	d.fail(id("2040-03", 1), failure.QueryInvalid) // a refusal is final at once
	want := []string{"2040-01 v1 published", "2040-02 v1 cancelled operator", "2040-03 v1 failed"}
	for range 10 {
		d.advance(15 * time.Minute)
		if got := d.plan(); got.Planned+got.Skipped+got.Cancelled+got.Errors > 0 {
			t.Fatalf("tally %+v", got)
		}
		d.wantLedger(want...)
	}
}

func TestN13AMonthThatLoads(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", func(def *snapshot.Definition) { loading(def); def.LoadDelay = hours(24) })
	end := time.Date(2040, 3, 1, 5, 0, 0, 0, time.UTC)
	d.marks["EWR"] = end.Add(24 * time.Hour) // exactly the end and its delay is not past it
	for n := range 10 {
		if got := d.plan(); got.Loading != 1 || got.Skipped != map[bool]int{true: 1}[n == 0] {
			t.Fatalf("tick %d: %+v", n, got)
		}
		d.advance(15 * time.Minute)
	}
	d.wantLedger("2040-02 v1 skipped loading")
	if r := d.run(id("2040-02", 1)); r.ReasonText != "the source is complete up to 2040-03-02T05:00:00Z; want later than 2040-03-02T05:00:00Z" {
		t.Errorf("reason %q", r.ReasonText)
	}
	if h := d.head("2040-02"); h.LateAt.IsZero() {
		t.Error("nobody waits for a month that loads")
	}
	d.marks["EWR"] = end.Add(24*time.Hour + time.Second)
	for range 3 {
		d.plan()
	}
	d.wantLedger("2040-02 v1 skipped loading", "2040-02 v2 planned")
	if row := d.series(); len(row.Revisiting) != 0 || !row.PlanAt.Equal(time.Date(2040, 4, 2, 4, 0, 0, 0, time.UTC)) {
		t.Errorf("the line stands at %+v", row)
	}
}

// A month after one that loads is planned as soon as it may be: the waiting one holds up no other.
func TestALoadingMonthHoldsUpNoOther(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", loading)
	d.marks["EWR"] = time.Date(2040, 2, 15, 0, 0, 0, 0, time.UTC)
	d.plan()
	d.wantLedger("2040-01 v1 planned", "2040-02 v1 skipped loading")
	if d.read != 1 {
		t.Errorf("the watermark was read %d times for one line", d.read)
	}
	d.advance(27 * 24 * time.Hour)
	d.plan()
	d.wantLedger("2040-01 v1 planned", "2040-02 v1 skipped loading", "2040-03 v1 skipped loading")
	d.marks["EWR"] = time.Date(2040, 3, 15, 0, 0, 0, 0, time.UTC)
	d.plan()
	d.wantLedger("2040-01 v1 planned", "2040-02 v1 skipped loading", "2040-02 v2 planned", "2040-03 v1 skipped loading")
	if r := d.run(id("2040-02", 2)); !r.Backfill {
		t.Error("February is no backfill in April")
	}
}

// Without a watermark a month is looked at when its delay is over, and never skipped for loading.
func TestLoadDelayWithoutAWatermark(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", func(def *snapshot.Definition) { def.LoadDelay, def.DueAfter = hours(5*24), hours(10*24) })
	d.plan()
	d.wantLedger("2040-01 v1 planned")
	d.advance(24 * time.Hour) // 6 March, noon: later than the end, 05:00, and five days
	d.plan()
	d.wantLedger("2040-01 v1 planned", "2040-02 v1 planned")
}

func TestAWatermarkThatCannotBeRead(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", loading)
	d.workspace("JFK", func(*schedule.Workspace) {})
	other := delays("2040-02")
	other.Workspace = "JFK"
	_, err := d.editor.SaveDefinition(ctx, other, "ann", 0)
	d.must(err)
	d.broken = failure.New(failure.SourceUnavailable, "the source is away")
	if got := d.plan(); got.Errors != 1 || got.Planned != 1 {
		t.Errorf("tally %+v", got)
	}
	d.wantLedger() // not skipped: nobody knows
	if row := d.series(); row.Next != month("2040-02") || row.PlanAt.After(d.wall()) {
		t.Errorf("the line moved on to %+v", row)
	}
	d.broken, d.marks["EWR"] = nil, d.wall()
	d.plan()
	d.wantLedger("2040-02 v1 planned")
}

func TestPolicyBeforeTheWorkspacesStart(t *testing.T) {
	d := newDesk(t)
	d.workspace("EWR", func(w *schedule.Workspace) { w.Start = "2040-02" })
	d.define("2039-12", loading)
	d.marks["EWR"] = d.wall()
	d.plan()
	d.wantLedger("2039-12 v1 skipped policy", "2040-01 v1 skipped policy", "2040-02 v1 planned")
	if r := d.run(id("2039-12", 1)); r.ReasonText != "workspace EWR starts in 2040-02" || !d.head("2039-12").LateAt.IsZero() {
		t.Errorf("%+v", r)
	}
	for range 3 {
		d.advance(time.Hour)
		d.plan()
	}
	d.wantLedger("2039-12 v1 skipped policy", "2040-01 v1 skipped policy", "2040-02 v1 planned")

	d.workspace("EWR", func(w *schedule.Workspace) { w.Start = "2040-01" }) // it started earlier after all
	for range 2 {
		d.plan()
	}
	d.wantLedger("2039-12 v1 skipped policy", "2040-01 v1 skipped policy", "2040-01 v2 planned", "2040-02 v1 planned")
}

func TestADefinitionThatStartsEarlierThanItDid(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.define("2039-12", unchanged)
	d.plan()
	d.wantLedger("2039-12 v1 planned", "2040-01 v1 planned", "2040-02 v1 planned")
	if r := d.run(id("2039-12", 1)); r.Definition != 2 || d.run(id("2040-02", 1)).Definition != 1 {
		t.Error("a run names the version that it was planned under")
	}
	if row := d.series(); row.Next != month("2040-03") {
		t.Errorf("the line stands at %+v", row)
	}
	d.define("2040-05", unchanged) // and later: what is between is not wanted
	d.plan()
	d.advance(150 * 24 * time.Hour) // 2 August
	d.plan()
	if d.head("2040-03").Latest+d.head("2040-04").Latest != 0 || d.head("2040-05").Latest != 1 {
		t.Errorf("ledger %v", d.ledger())
	}
}

func TestATypeThatIsSwitchedOff(t *testing.T) {
	d := newDesk(t)
	d.define("2039-12", unchanged)
	d.plan()
	d.claim()
	d.publish(id("2039-12", 1))
	d.fail(id("2040-02", 1), failure.QueryTimeout) // waits for its retry
	d.define("2039-12", func(def *snapshot.Definition) { def.Off = true })
	asked := d.asked
	if got := d.plan(); got.Cancelled != 2 {
		t.Errorf("tally %+v", got)
	}
	d.wantLedger("2039-12 v1 published", "2040-01 v1 cancelled policy", "2040-02 v1 cancelled policy")
	if c := d.caps(snapshot.DefaultOwner); len(c.Slots) != 0 || d.asked == asked {
		t.Errorf("slots %v, asked %d times", c.Slots, d.asked-asked)
	}
	if len(d.jobs.running()) != 0 {
		t.Errorf("jobs run on: %v", d.jobs.running())
	}
	d.advance(27 * 24 * time.Hour)
	d.plan()
	d.wantLedger("2039-12 v1 published", "2040-01 v1 cancelled policy", "2040-02 v1 cancelled policy", "2040-03 v1 skipped policy")

	d.define("2039-12", unchanged) // on again: what was skipped is planned, what was cancelled stays so
	d.plan()
	d.wantLedger("2039-12 v1 published", "2040-01 v1 cancelled policy", "2040-02 v1 cancelled policy", "2040-03 v1 skipped policy", "2040-03 v2 planned")
}

func TestAMonthThatLoadedWhenItsTypeWasSwitchedOff(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", loading)
	d.plan()
	d.define("2040-02", func(def *snapshot.Definition) { loading(def); def.Off = true })
	for range 3 {
		d.plan()
	}
	d.wantLedger("2040-02 v1 skipped loading", "2040-02 v2 skipped policy")
	if !d.head("2040-02").LateAt.IsZero() {
		t.Error("somebody waits for it")
	}
}

func TestAWorkspaceThatIsRemoved(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", loading)
	d.marks["EWR"] = time.Date(2040, 2, 2, 0, 0, 0, 0, time.UTC)
	d.plan()
	d.claim()
	d.workspace("EWR", func(w *schedule.Workspace) { w.Removed = "2040-03-05" })
	for range 3 {
		d.plan()
	}
	d.wantLedger("2040-01 v1 cancelled workspace_removed", "2040-02 v1 skipped loading", "2040-02 v2 skipped workspace_removed")
	if row := d.series(); row.Off != snapshot.ReasonRemoved || len(row.Revisiting) != 0 {
		t.Errorf("%+v", row)
	}
	// What another planner, which had read the workspace before, planned meanwhile is cancelled within a day.
	r, err := d.store.Run(ctx, id("2040-01", 1))
	d.must(err)
	late := snapshot.Planning{Event: snapshot.Request, Run: r, Head: d.head("2040-01"), Token: d.token()}
	late.Run.Version, late.Run.State = 2, snapshot.Planned
	d.must(d.store.Plan(ctx, late))
	d.advance(25 * time.Hour)
	d.plan()
	d.wantState(id("2040-01", 2), snapshot.Cancelled, "")

	d.advance(27 * 24 * time.Hour)
	d.plan()
	if d.head("2040-03").Latest != 0 {
		t.Error("a removed workspace's month was planned")
	}
	d.workspace("EWR", func(*schedule.Workspace) {}) // it is back
	d.marks["EWR"] = d.wall()
	d.plan()
	d.wantLedger("2040-01 v1 cancelled workspace_removed", "2040-01 v2 cancelled workspace_removed",
		"2040-02 v1 skipped loading", "2040-02 v2 skipped workspace_removed", "2040-02 v3 planned", "2040-03 v1 planned")
}

func TestAWorkspacesOwnDefinitionGoesBeforeItsOwners(t *testing.T) {
	d := newDesk(t)
	d.workspace("JFK", func(*schedule.Workspace) {})
	d.workspace("LGA", func(w *schedule.Workspace) { w.Owner = "others" })
	d.define("2040-02", unchanged)
	shared := delays("2040-01")
	shared.Scope = snapshot.Scope{Owner: snapshot.DefaultOwner}
	_, err := d.editor.SaveDefinition(ctx, shared, "ann", 0)
	d.must(err)
	d.plan()
	d.wantLedger("2040-02 v1 planned")
	jfk := snapshot.Series{Workspace: "JFK", Type: "delays"}
	heads, err := d.store.Months(ctx, jfk)
	d.must(err)
	if len(heads) != 2 {
		t.Errorf("JFK has %+v", heads)
	}
	if row, err := d.store.Series(ctx, jfk); err != nil || row.Scope.Owner != snapshot.DefaultOwner {
		t.Errorf("%+v, %v", row, err)
	}
	if _, err := d.store.Series(ctx, snapshot.Series{Workspace: "LGA", Type: "delays"}); !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("another owner's workspace has a line: %v", err)
	}
	// JFK moves to an owner that defines nothing: its months are no longer planned.
	d.workspace("JFK", func(w *schedule.Workspace) { w.Owner = "others" })
	d.plan()
	if row, err := d.store.Series(ctx, jfk); err != nil || row.Off != snapshot.ReasonUndefined {
		t.Errorf("%+v, %v", row, err)
	}
	r := d.run("JFK_delays_2040-01_v1")
	if r.State != snapshot.Cancelled || r.Reason != snapshot.ReasonUndefined {
		t.Errorf("%+v", r)
	}
}

// A tick that cannot read which series there are plans nothing, and says so: what a definition left behind would stand as it is.
func TestATickThatCannotReadTheSeriesSaysSo(t *testing.T) {
	d := newDesk(t)
	d.planner.Ledger = noSeries{d.planner.Ledger}
	if _, err := d.planner.Tick(ctx); !failure.Is(err, failure.StoreUnavailable) {
		t.Errorf("%v", err)
	}
}

type noSeries struct{ snapshot.PlanLedger }

func (noSeries) SeriesNames(context.Context) ([]snapshot.Series, error) {
	return nil, failure.New(failure.StoreUnavailable, "no answer")
}

// Two planners at once plan each month once.
func TestPlannersAtOnce(t *testing.T) {
	d := newDesk(t)
	d.define("2039-01", unchanged)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := d.planner.Tick(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	d.plan()
	if got := d.ledger(); len(got) != 14 || slices.ContainsFunc(got, func(s string) bool { return s[8:] != "v1 planned" }) {
		t.Errorf("ledger %v", got)
	}
}

// A tick whose time is nearly up stops, and the next one goes on where it stopped.
func TestATickStopsInTime(t *testing.T) {
	d := newDesk(t)
	d.define("2039-01", unchanged)
	d.step = time.Second // each plan takes a second
	short, cancel := context.WithDeadline(ctx, d.wall().Add(9*time.Second))
	defer cancel()
	got, err := d.planner.Tick(short)
	d.must(err)
	if !got.Partial || got.Planned == 0 || got.Planned > 5 {
		t.Errorf("tally %+v", got)
	}
	if row := d.series(); row.Next != month("2039-01").Add(got.Planned) || row.PlanAt.After(d.wall()) {
		t.Errorf("the line stands at %+v", row)
	}
	d.plan()
	if n := len(d.ledger()); n != 14 {
		t.Errorf("%d months", n)
	}
}
