package snapshot_test

import (
	"context"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/snapshot"
)

// readCounter counts the runs that a reconciler reads.
type readCounter struct {
	snapshot.ReconcileLedger
	runs int
}

func (c *readCounter) Run(ctx context.Context, id string) (snapshot.Run, error) {
	c.runs++
	return c.ReconcileLedger.Run(ctx, id)
}

// What a tick reads does not grow with the months that are published: only final failures, and what is to be cleaned, are
// read.
func TestReconcileReadsNoMonthThatIsDone(t *testing.T) {
	d := newDesk(t)
	d.define("2039-12", unchanged)
	d.plan()
	for range 3 {
		d.claim()
		for _, m := range []string{"2039-12", "2040-01"} {
			if d.run(id(m, 1)).State == snapshot.Queued {
				d.publish(id(m, 1))
			}
		}
	}
	d.fail(id("2040-02", 1), failure.QueryInvalid)
	c := &readCounter{ReconcileLedger: d.mender.Ledger}
	d.mender.Ledger = c
	if f := d.mend(); f.FinalFailures != 1 || f.Errors != 0 || c.runs != 1 {
		t.Errorf("%d runs were read, want the one that failed; findings %+v", c.runs, f)
	}
	c.runs = 0
	d.advance(7 * 24 * time.Hour)
	if f := d.mend(); f.Cleaned != 3 || f.Errors != 0 {
		t.Errorf("findings %+v", f)
	}
	c.runs = 0
	if f := d.mend(); f.FinalFailures != 0 || c.runs != 0 {
		t.Errorf("%d runs were read after all were cleaned; findings %+v", c.runs, f)
	}
}
