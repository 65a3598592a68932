package snapshot_test

import (
	"slices"
	"testing"

	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
)

// A single pass is of one view of the source: where the call that read its rows died before the control query was asked,
// another version of the source is not asked in its place, however well their numbers agree. The next attempt reads anew.
func TestSinglePassIsNeverJudgedByAnotherView(t *testing.T) {
	mended := []string{tripsTable, rowsFrom(5, 250), "update trips set carrier = 'ZZ' where id = 15"} // as many rows, and the same sums
	for name, twin := range map[string]bool{"the call died": false, "a twin committed its rows": true} {
		d := trips()
		d.Mode = snapshot.Single
		a := newAttempts(t, d)
		a.load(tripsTable, rowsFrom(5, 250))
		r := a.plan(newark)
		j := a.claim(r.ID())
		_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
		a.must(err)
		killed, raced := false, false
		a.fault = func(_ int, c memcloud.Call, after bool) bool {
			if c.Operation != "TransactWriteItems" || killed {
				return false
			}
			if twin && !raced { // the first call is about to commit; the source changes, and a twin commits and dies
				raced = true
				a.load(mended...)
				if _, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j}); err == nil {
					t.Error("the twin was to die")
				}
				return false
			}
			killed = after
			return after
		}
		_, err = a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
		if err == nil {
			t.Fatalf("%s: the month was judged: %+v", name, a.run(r.ID()))
		}
		if a.run(r.ID()).Cursor.Chunk != 1 {
			t.Fatalf("%s: %+v", name, a.run(r.ID()))
		}
		if !twin {
			a.load(mended...)
		}
		a.fault = nil
		if twin {
			a.load(append(mended, "update trips set carrier = 'ZZ' where id = 25")...)
		}
		a.walk(j)
		if r = a.run(r.ID()); r.ErrorCode != "source_changed" || r.NextAt.IsZero() {
			t.Fatalf("%s: %s %s %s", name, r.State, r.ErrorCode, r.ErrorText)
		}
		a.walk(a.claim(r.ID()))
		r = a.published(r.ID())
		m := a.current(newark)
		if r.Generation != 2 || m.Source.Version == "" || m.Source.Version != m.Source.Validated || slices.Equal(a.rows(m), expected(5, 250)) {
			t.Fatalf("%s: generation %d, %+v", name, r.Generation, m.Source)
		}
	}
}
