package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// deadScenarios go through the dead-letter queue, or to the end of a run's attempts.
func deadScenarios() []Scenario {
	return []Scenario{
		{Name: "poison", Half: "delivery", Ended: letters, Want: "2 dead letters", // in one batch
			Drive: func(w *World) {
				for _, body := range []string{`{"run": 7}`, `{"run": 77}`} {
					_, err := w.SQS.SendMessage(background, &sqs.SendMessageInput{QueueUrl: &w.runs, MessageBody: &body})
					w.must(err)
				}
				w.For(time.Minute)
			}},
		{Name: "redrive days later", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: func(w *World) {
				w.Apply(Once("s", "a@example.com", "b"))
				w.Off[queueRuns] = true
				first(w)
				w.Off[ruleDispatch] = true // nothing works, for days
				letter := schedule.DeadLetter{MessageID: "letter", Queue: queryRuns, Body: schedule.EncodeMessage(FirstRun("s")), Reason: "a version that could not read it", At: w.Now()}
				w.must(w.Kit(nil).Store().RecordDead(background, letter, w.Now().Add(w.Schedule.RunRetention.Std())))
				w.delivery.idle = 5*24*time.Hour + 2*time.Hour
				w.For(5 * 24 * time.Hour)
				w.Off[queueRuns] = false
				w.insistAfter(5*24*time.Hour+time.Hour, "redrive", func(ctx context.Context, e *schedule.Editor) error {
					_, err := e.Redrive(ctx, "letter", "it can be read now", "ann")
					return err
				})
				w.For(2 * time.Hour)
				w.Off[ruleDispatch] = false
			}},
		{Name: "never started", Half: "delivery", Ended: ended, Want: "failed never_started",
			Drive: func(w *World) {
				w.befalls(func(c *Call) Form {
					if c.Worker.Name == queueRuns {
						return DieBefore
					}
					return AsAsked
				})
				w.Apply(Once("s", "a@example.com", "b"))
				first(w)
				w.Off[ruleDispatch] = true       // the dead letters alone bring it to its end
				w.delivery.idle = 48 * time.Hour // its readers die beyond that too
				w.For(36 * time.Hour)
				w.Off[ruleDispatch] = false
			}},
		{Name: "D14 told by the sweep", Half: "delivery", Ended: told2, Want: "failed never_started; told failed",
			Drive: func(w *World) {
				w.befalls(func(c *Call) Form {
					if c.Worker.Name == queueRuns && !settled(w.delivery.run(FirstRun("s"))) {
						return DieBefore
					}
					return AsAsked
				})
				w.Apply(telling(Once("s", "b")))
				first(w)
				w.Off[ruleDispatch] = true
				w.delivery.idle = 48 * time.Hour // its readers die beyond that too
				w.For(36 * time.Hour)
				w.Off[ruleDispatch] = false
			}},
		{Name: "dies always", Half: "delivery", Ended: ended, Want: "failed attempts_exhausted b:unknown c:unknown",
			// One of the requests that kill their worker goes wrong otherwise.
			Or: []string{"failed attempts_exhausted b:submitted c:unknown", "failed attempts_exhausted b:unknown c:not_sent", "failed attempts_exhausted b:unknown c:submitted"},
			Drive: one(Once("s", "b", "c"), func(w *World) {
				w.befalls(func(c *Call) Form {
					if c.Name == "Webhook.Post" {
						return DieAfter
					}
					return AsAsked
				})
			})},
	}
}

// letters says how many dead letters are kept.
func letters(w *World) string {
	list, _, err := w.Kit(nil).Store().DeadLetterPage(background, "", 10)
	w.must(err)
	for _, l := range list {
		if !strings.Contains(l.Body, "7") {
			w.Failf("the dead letter %s holds %q", l.MessageID, l.Body)
		}
	}
	return fmt.Sprintf("%d dead letters", len(list))
}
