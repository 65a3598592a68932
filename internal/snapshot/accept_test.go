package snapshot_test

import (
	"testing"

	"almanac/internal/failure"
	"almanac/internal/snapshot"
)

// A person accepts a named check of a version that failed for good, with the value that it found; nothing else.
func TestAccept(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	first := id("2040-02", 1)
	_, err := d.editor.Accept(ctx, first, []string{"drift_rows.previous_month"}, "a strike", "ann")
	wantConflict(t, err, "accept refused", "the run is planned")
	d.claim()
	d.validating(first)
	d.verdict(first, snapshot.Check{Name: "drift_rows.previous_month", Expected: "at most 25 %", Found: "40 %"},
		snapshot.Check{Name: "not_null.id", Expected: "0", Found: "3"}, snapshot.Check{Name: "keys", Passed: true})
	d.fail(first, failure.QueryTimeout) // as a failure that passes would: it waits
	_, err = d.editor.Accept(ctx, first, []string{"not_null.id"}, "a strike", "ann")
	wantConflict(t, err, "failed and will be tried again")
	d.advance(hours(1).Std())
	d.claim()
	d.validating2(first)
	d.verdict(first, snapshot.Check{Name: "drift_rows.previous_month", Expected: "at most 25 %", Found: "41 %"},
		snapshot.Check{Name: "not_null.id", Expected: "0", Found: "3"}, snapshot.Check{Name: "keys", Passed: true})
	d.fail(first, failure.QueryInvalid)

	_, err = d.editor.Accept(ctx, first, nil, "a strike", "ann")
	wantProblem(t, err, "checks is missing", "drift_rows.previous_month")
	_, err = d.editor.Accept(ctx, first, []string{"keys"}, "a strike", "ann")
	wantProblem(t, err, `checks[0] is "keys"`, "a check that EWR_delays_2040-02_v1 failed")
	_, err = d.editor.Accept(ctx, first, []string{"not_null.id"}, "", "ann")
	wantProblem(t, err, "reason is missing")

	r, err := d.editor.Accept(ctx, first, []string{"drift_rows.previous_month"}, "a strike", "ann")
	d.must(err)
	second := d.run(r.ID())
	if second.Version != 2 || second.State != snapshot.Planned || len(second.Accepted) != 1 ||
		second.Accepted[0] != (snapshot.Acceptance{Check: "drift_rows.previous_month", Found: "41 %", By: "ann", Why: "a strike"}) {
		t.Errorf("%+v", second)
	}
	d.wantAudit(r.ID(), "ann, accept checks, a strike")
	_, err = d.editor.Accept(ctx, first, []string{"not_null.id"}, "a strike", "ann")
	wantConflict(t, err, "EWR_delays_2040-02_v2 is planned")

	// The second version fails by the other check: what was accepted before stays so.
	d.claim()
	d.validating(second.ID())
	d.verdict(second.ID(), snapshot.Check{Name: "drift_rows.previous_month", Expected: "at most 25 %", Found: "41 %", Passed: true, Accepted: "ann: a strike"},
		snapshot.Check{Name: "not_null.id", Expected: "0", Found: "3"})
	d.fail(second.ID(), failure.QueryInvalid)
	_, err = d.editor.Accept(ctx, first, []string{"not_null.id"}, "a strike", "ann")
	wantConflict(t, err, "version 2 has followed")
	r, err = d.editor.Accept(ctx, second.ID(), []string{"not_null.id"}, "three flights without a number", "ben")
	d.must(err)
	third := d.run(r.ID())
	if len(third.Accepted) != 2 || third.Accepted[0].Found != "41 %" || third.Accepted[1] != (snapshot.Acceptance{Check: "not_null.id", Found: "3", By: "ben", Why: "three flights without a number"}) {
		t.Errorf("%+v", third.Accepted)
	}
}
