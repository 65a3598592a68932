package simulate

import (
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"

	"github.com/anishathalye/porcupine"
)

// inTurn makes a history of operations that follow one another.
func inTurn(pairs ...any) (h []porcupine.Operation) {
	for i := 0; i < len(pairs); i += 2 {
		h = append(h, porcupine.Operation{Input: pairs[i], Output: pairs[i+1], Call: int64(10 * i), Return: int64(10*i + 5)})
	}
	return h
}

// Wrong histories are refused, and the same ones with the right answer are not.
func TestLinearTeeth(t *testing.T) {
	claim := func(run int) claimIn { return claimIn{Run: run, State: snapshot.Planned, Cap: 2, Backfill: 1} }
	for _, c := range []struct {
		name         string
		model        porcupine.Model
		right, wrong []porcupine.Operation
	}{
		{"a third slot of two", slots().model, inTurn(claim(0), "done", claim(2), "done", claim(1), "caps"), inTurn(claim(0), "done", claim(2), "done", claim(1), "done")},
		{"the slot that is left to backfills", slots().model, inTurn(claim(0), "done", claim(1), "caps"), inTurn(claim(0), "done", claim(1), "done")},
		{"one run twice", slots().model, inTurn(claim(0), "done", claim(0), "moved"), inTurn(claim(0), "done", claim(0), "done")},
		{"refused although a slot is free", slots().model, inTurn(claim(0), "done"), inTurn(claim(0), "caps")},
		{"a slot that a failure did not free", slots().model, inTurn(claim(0), "done", failIn{0, 1, 0, snapshot.Queued}, "done", claim(1), "done"),
			inTurn(claim(0), "done", failIn{0, 1, 0, snapshot.Queued}, "done", claim(1), "caps")},
		{"a pointer that goes back by itself", pointers().model, inTurn(publishIn{3}, "done", pointedIn{}, 3), inTurn(publishIn{3}, "done", pointedIn{}, 2)},
		{"a roll back under a version that is under way", pointers().model, inTurn(rollBackIn{1}, "refused"), inTurn(rollBackIn{1}, "done")},
		{"a cancelled version is published", pointers().model, inTurn(stopIn{3}, "done", publishIn{3}, "refused"), inTurn(stopIn{3}, "done", publishIn{3}, "done")},
		{"two versions under way", pointers().model, inTurn(requestIn{}, "refused"), inTurn(requestIn{}, "done")},
		{"two hold a run", leases().model, inTurn(beginIn{1, schedule.Queued, 0, 9}, "done", beginIn{2, schedule.Running, 5, 9}, "moved"),
			inTurn(beginIn{1, schedule.Queued, 0, 9}, "done", beginIn{2, schedule.Running, 5, 9}, "done")},
		{"a settle under an earlier token", leases().model, inTurn(beginIn{1, schedule.Queued, 0, 3}, "done", beginIn{2, schedule.Running, 5, 9}, "done", settleIn{1, 6}, "moved"),
			inTurn(beginIn{1, schedule.Queued, 0, 3}, "done", beginIn{2, schedule.Running, 5, 9}, "done", settleIn{1, 6}, "done")},
		{"a sixth attempt", leases().model,
			inTurn(beginIn{1, schedule.Queued, 0, 1}, "done", beginIn{2, schedule.Running, 2, 3}, "done", beginIn{3, schedule.Running, 4, 5}, "done", beginIn{4, schedule.Running, 6, 7}, "done", beginIn{5, schedule.Running, 8, 9}, "done", beginIn{6, schedule.Running, 10, 11}, "moved"),
			inTurn(beginIn{1, schedule.Queued, 0, 1}, "done", beginIn{2, schedule.Running, 2, 3}, "done", beginIn{3, schedule.Running, 4, 5}, "done", beginIn{4, schedule.Running, 6, 7}, "done", beginIn{5, schedule.Running, 8, 9}, "done", beginIn{6, schedule.Running, 10, 11}, "done")},
	} {
		if !porcupine.CheckOperations(c.model, c.right) {
			t.Errorf("%s: the right history is refused", c.name)
		}
		if porcupine.CheckOperations(c.model, c.wrong) {
			t.Errorf("%s: the wrong history holds", c.name)
		}
	}
}

// A history of the product in which one answer is turned round is refused nearly always: only an operation whose rivals
// overlap it may have come out either way.
func TestLinearTeethOnTurnedAnswers(t *testing.T) {
	for name, x := range map[string]register{"claims": slots(), "pointer moves": pointers(), "begins": leases()} {
		turned, refused := 0, 0
		for seed := uint64(1); seed <= 5; seed++ {
			h, err := x.history(t, seed)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range h {
				was, is := o.Output.(string)
				if !is || was == unsure {
					continue
				}
				h[i].Output = "done"
				if was == "done" {
					h[i].Output = map[string]string{"claims": "moved", "pointer moves": "refused", "begins": "moved"}[name]
				}
				turned++
				if !porcupine.CheckOperations(x.model, h) {
					refused++
				}
				h[i].Output = was
			}
		}
		if t.Logf("%s: %d of %d turned answers are refused", name, refused, turned); refused*10 < turned*6 {
			t.Errorf("%s: of %d turned answers only %d are refused", name, turned, refused)
		}
	}
}
