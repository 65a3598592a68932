package schedule_test

import (
	"reflect"
	"testing"

	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// While the last attempt works, no attempt is left: whoever else meets the run leaves it, and its recipients, to its worker.
func TestTheLastAttemptIsLeftToItsWorker(t *testing.T) {
	for name, meet := range map[string]func(*world, string){
		"its message once more": func(w *world, run string) {
			w.raw(schedule.EncodeMessage(run))
			w.deliver()
		},
		"a dead letter": func(w *world, run string) {
			_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeMessage(run))})
			w.must(err)
			w.exhaust()
		},
	} {
		t.Run(name, func(t *testing.T) {
			met := 0
			for n := 1; ; n++ {
				w := newWorld(t, timing(func(t *schedule.Timing) { t.MaxAttempts = 1 }))
				run := w.admitted(w.definition("s", recipients3...))
				z, held := w.freezeDeliver(n)
				if !held {
					w.hooks.server.Close()
					break
				}
				r := w.run(run)
				subs, err := w.store.Submissions(ctx, run)
				w.must(err)
				meet(w, run)
				if r.LeaseLive(w.wall()) {
					met++
					after, err := w.store.Submissions(ctx, run)
					w.must(err)
					if now := w.run(run); !reflect.DeepEqual(now, r) || !reflect.DeepEqual(after, subs) {
						t.Errorf("held at call %d, the run and its submissions changed under its worker:\n%s", n, w.dump())
					}
				}
				z.release()
				w.quiet()
				w.wantState(run, schedule.Succeeded, "")
				w.hooks.server.Close()
			}
			if met < 10 {
				t.Errorf("%d calls were met under the lease", met)
			}
		})
	}
}
