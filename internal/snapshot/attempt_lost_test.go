package snapshot_test

import (
	"testing"

	"almanac/internal/failure"
	"almanac/internal/snapshot"
)

// N14: a validation fails, and the job of the next attempt is lost before it begins. The attempt after that still reads
// everything again: what a failed validation looked at is never gone on with.
func TestN14LostJobAfterAFailedValidation(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	d := trips()
	d.Control = "select count(*) + 1 as rows from trips where workspace = :workspace and at >= :period_start and at < :period_end"
	a.save(d, 2)
	r := a.plan(newark, func(r *snapshot.Run) { r.Definition = 2 })
	a.walk(a.claim(r.ID()))
	if r = a.run(r.ID()); r.ErrorCode != "validation_mismatch" || r.FailedIn != snapshot.Validating || r.Generation != 1 || !r.Cursor.Done {
		t.Fatalf("%+v", r)
	}
	a.claim(r.ID())
	queued := a.run(r.ID())
	now := a.steps.Clocks.Wall()
	a.must(a.ledger.Fail(bg, queued, a.steps.Timing.Settle(queued, failure.New(failure.JobLost, "it has closed"), now), now))
	a.walk(a.claim(r.ID()))
	if r = a.run(r.ID()); r.Failures != 3 || r.Attempts != 2 || r.Generation != 2 {
		t.Fatalf("%d failures, %d attempts, generation %d; want 3, 2 and a generation of its own", r.Failures, r.Attempts, r.Generation)
	}
}
