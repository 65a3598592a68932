package simulate

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"
)

// regressions are the product's defects that the simulation found, each with the world that showed it.
var regressions = []struct {
	what   string // went wrong
	mended string
	replay func(*testing.T) error
}{
	{"a failure that another had settled meanwhile was taken for one's own where the reply was lost, and so counted twice",
		"what tells one's own failure holds its code and time", linear(slots, 6)},
	{"a backfills' cap that was raised between a dispatcher's read and its claim did not refuse a current month, which took the slot that is left to backfills",
		"a claim holds to both caps as it read them", linear(slots, 68)},
	{"a run whose schedule was deleted, or paused for its source, before it began was delivered nevertheless, where its first attempt broke off before it looked at the schedule",
		"a run is in work once it has its file or has asked a recipient, not once it was begun", crash("deleted while queued", 66, LostRequest)},
	{"a run without a file that had no attempt left was settled although its frozen last holder had just recorded one: no recipient was given up, and the holder asked them after the run had failed",
		"who fails a run without a file fails it only while none is recorded", order("exhaust, no attempt left × deliver, lease over/0s/B4A7BA")},
}

// order replays two workers' calls in one order.
func order(of string) func(*testing.T) error {
	return func(t *testing.T) error {
		p, skew, path, err := parseReplay(of)
		if err == nil {
			_, err = p.Play(t, skew, path)
		}
		return err
	}
}

// linear replays a history of a seed and checks it.
func linear(of func() register, seed uint64) func(*testing.T) error {
	return func(t *testing.T) error {
		h, err := of().history(t, seed)
		if err == nil && !porcupine.CheckOperations(of().model, h) {
			err = fmt.Errorf("seed %d: no order of whole operations gives these answers:\n%s", seed, listed(h))
		}
		return err
	}
}

// crash replays a scenario with one thing that goes wrong.
func crash(scenario string, call int, form Form) func(*testing.T) error {
	return func(t *testing.T) error {
		s, err := ScenarioNamed(scenario)
		if err == nil {
			_, err = s.Play(t, func(w *World) { w.Fault = at(call, form) })
		}
		return err
	}
}

// What was mended stays so.
func TestRegressions(t *testing.T) {
	for i, r := range regressions {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			if err := r.replay(t); err != nil {
				t.Errorf("%s (mended: %s)\n%v", r.what, r.mended, err)
			}
		})
	}
}
