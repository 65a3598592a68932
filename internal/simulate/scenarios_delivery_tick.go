package simulate

import (
	"time"

	"almanac/internal/schedule"
)

// tickScenarios are about admission.
func tickScenarios() []Scenario {
	return []Scenario{
		{Name: "D16 two ticks at once", Half: "delivery", Ended: ended, Want: "succeeded b:submitted",
			Drive: func(w *World) {
				w.atOnce(2)
				w.Apply(Once("s", "b"))
				w.Off[ruleDispatch] = true
				w.For(30 * time.Minute)
				w.fire(ruleDispatch)
				w.fire(ruleDispatch)
				w.Off[ruleDispatch] = false
			}},
		{Name: "catch-up and overlap", Half: "delivery", Ended: ended, Want: "succeeded b:submitted; succeeded b:submitted",
			Drive: func(w *World) {
				d := Once("s", "b")
				d.Recurrence.Cron, d.Overlap, d.CatchUp = "30 12-16 5 3 *", schedule.OverlapSkip, schedule.CatchUpLatest
				w.Apply(d)
				w.Off[ruleDispatch] = true
				w.For(2*time.Hour + 45*time.Minute) // 12:30, 13:30 and 14:30 are missed: the latest of them runs
				w.Off[ruleDispatch], w.Off[queueRuns] = false, true
				w.For(time.Hour) // and 15:30 is passed over, because that one is still open
				w.Off[queueRuns] = false
				w.For(time.Hour) // 16:30 runs
			}},
	}
}
