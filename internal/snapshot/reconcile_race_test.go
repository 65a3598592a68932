package snapshot_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/snapshot"
)

// meanwhile does something before the second read of a run: between what a reconciler found and what it does about it.
type meanwhile struct {
	snapshot.ReconcileLedger
	reads int
	do    func()
}

func (m *meanwhile) Run(ctx context.Context, id string) (snapshot.Run, error) {
	if m.reads++; m.reads == 2 {
		m.do()
	}
	return m.ReconcileLedger.Run(ctx, id)
}

// A run whose job was found closed may settle by itself, and be claimed under its next job, before it is settled for that:
// neither is touched.
func TestAJobThatClosedSettlesNoOther(t *testing.T) {
	for name, next := range map[string]bool{"it settled by itself": false, "its next job was claimed": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.define("2040-02", unchanged)
			d.plan()
			d.claim()
			run := id("2040-02", 1)
			d.begin(run)
			d.jobs.close("EWR_delays_2040-02_v1-j1", "FAILED")
			var want snapshot.Run
			m := &meanwhile{ReconcileLedger: d.mender.Ledger, do: func() {
				d.fail(run, failure.SourceUnavailable)
				if next {
					d.advance(6 * time.Minute)
					d.claim()
				}
				want = d.run(run)
			}}
			d.mender.Ledger = m
			f := d.mend()
			if m.reads < 2 || f.Lost != 0 || f.Errors != 0 {
				t.Errorf("%d reads, findings %+v; want nothing settled", m.reads, f)
			}
			if want.State == "" || next != (want.Job == 2) {
				t.Fatalf("the run meanwhile: %+v", want)
			}
			if got := d.run(run); !reflect.DeepEqual(got, want) {
				t.Errorf("the run is %+v, want %+v", got, want)
			}
		})
	}
}
