package snapshot_test

import (
	"context"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// slowStop stops jobs, and takes ten seconds for each.
type slowStop struct{ d *desk }

func (s slowStop) Stop(ctx context.Context, name, why string) error {
	s.d.advance(10 * time.Second)
	return s.d.jobs.Stop(ctx, name, why)
}

// A planner whose time is up before all versions of a removed workspace are cancelled leaves the series due: the next tick
// goes on, not one of the next day.
func TestVersionsLeftToCancelAreCancelledByTheNextTick(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", unchanged)
	d.plan()
	d.claim()
	d.workspace("EWR", func(w *schedule.Workspace) { w.Removed = "2040-03-05" })
	d.planner.Jobs = slowStop{d}
	short, cancel := context.WithDeadline(ctx, d.wall().Add(12*time.Second))
	defer cancel()
	got, err := d.planner.Tick(short)
	d.must(err)
	if got.Cancelled != 1 || !got.Partial {
		t.Fatalf("%+v; want one version cancelled and time up", got)
	}
	d.plan()
	d.wantLedger("2040-01 v1 cancelled workspace_removed", "2040-02 v1 cancelled workspace_removed")
	if row := d.series(); row.Off != snapshot.ReasonRemoved || !row.PlanAt.After(d.wall()) {
		t.Errorf("%+v", row)
	}
}
