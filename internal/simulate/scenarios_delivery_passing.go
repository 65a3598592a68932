package simulate

import (
	"time"
)

// replies are what a receiver answers to its first requests, one after the other.
func replies(to string, list ...Reply) func(string, int) Reply {
	return func(name string, n int) Reply {
		if name == to && n <= len(list) {
			return list[n-1]
		}
		return Reply{}
	}
}

// passingScenarios meet failures that pass, and come back.
func passingScenarios() []Scenario {
	return []Scenario{
		{Name: "retried", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: one(Once("s", "a@example.com", "b"), func(w *World) {
				w.Hooks.Answer = replies("b", Reply{Status: 503}, Reply{Cut: true})
				w.Mail.Answer = func(_ string, n int) error {
					if n == 1 {
						return Coded("Throttling", "Maximum sending rate exceeded.")
					}
					return nil
				}
			})},
		{Name: "yields", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted c:submitted d:submitted e:submitted", Or: mailLost(" b:submitted c:submitted d:submitted e:submitted"),
			Drive: one(Once("s", "b", "c", "d", "e", "a@example.com"), slow)},
		{Name: "redelivery", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: func(w *World) {
				w.atOnce(2)
				twice, own := false, w.Duplicate
				w.Duplicate = func() bool { // the first message goes to two consumers at once
					before := twice
					twice = true
					return !before || own != nil && own()
				}
				w.Apply(Once("s", "a@example.com", "b"))
				w.For(40 * time.Minute)
				_, err := w.Kit(nil).Queue().Send(background, []string{FirstRun("s")}) // and once more when all is done
				w.must(err)
			}},
		{Name: "send off and on", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted c:submitted", Or: mailLost(" b:submitted c:submitted"),
			Drive: func(w *World) {
				w.atOnce(2)
				w.Hooks.Slow = 9 * time.Second
				w.insistAfter(12*time.Second, "send off", turn(false))
				w.insistAfter(3*time.Minute, "send on", turn(true))
				w.Apply(Once("s", "b", "c", "a@example.com"))
				w.For(2 * time.Hour)
			}},
	}
}

// slow leaves a run no time for all of its recipients in one invocation.
func slow(w *World) {
	w.Data.Slow, w.Hooks.Slow = 4*time.Minute, 9*time.Second
}
