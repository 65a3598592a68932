package schedule_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// outages are what fails from a call on, for the rest of one invocation.
var outages = map[string]func(first, c outside) bool{
	"everything":     func(first, c outside) bool { return true },
	"this operation": func(first, c outside) bool { return c.name == first.name },
	"this request":   func(first, c outside) bool { return c.name == first.name && asked(c) == asked(first) },
}

// asked is what a call asks for.
func asked(c outside) string {
	b, err := json.Marshal(c.input)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// outage lets calls of one invocation fail from its n-th on; met says that there was one.
func outage(kind string, n int, fails func(first, c outside) bool) (plan func(outside) fault, met func() bool) {
	var inv *invocation
	var first *outside
	return func(c outside) fault {
		if inv == nil && c.inv.kind == kind {
			inv = c.inv
		}
		if c.inv != inv {
			return none
		}
		if inv.calls == n {
			first = &c
		}
		if first != nil && fails(*first, c) {
			return lostBefore
		}
		return none
	}, func() bool { return first != nil }
}

// Whatever fails for the rest of an invocation, its message is not taken for done while the run is open, and once the
// outage is over every promise is kept.
func TestNoOutageDropsAMessage(t *testing.T) {
	mixed := []string{"a@x.com", "b", "c"}
	for name, begin := range map[string]func(w *world, run string){
		"first attempt": func(*world, string) {},
		"second attempt": func(w *world, run string) {
			w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
			w.deliver()
			w.to(w.run(run).LeaseEnd.Add(time.Second))
		},
		"no attempt left": func(w *world, run string) {
			w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
			w.deliver()
			r := w.run(run)
			w.to(r.LeaseEnd.Add(time.Second))
			w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "0"})
		},
		"asked to stop": func(w *world, run string) {
			_, err := w.editor.Stop(ctx, run, "enough", "ann")
			w.must(err)
		},
		"no rows": func(*world, string) {},
	} {
		for what, fails := range outages {
			t.Run(name+", "+what, func(t *testing.T) {
				for n := 1; ; n++ {
					w := newWorld(t)
					w.faulty()
					def := w.definition("s", mixed...)
					if name == "no rows" {
						def.Query, def.Empty = "SELECT id FROM flights WHERE id > 99", schedule.SuppressEmpty
					}
					run := w.admitted(def)
					begin(w, run)
					plan, met := outage("deliver", n, fails)
					w.faults.plan = plan
					for w.messages(w.queue.URL) > 0 && !w.deliver() {
						w.advance(time.Minute)
					}
					w.faults.plan = nil
					if r := w.run(run); !r.Settled() && w.messages(w.queue.URL) == 0 {
						t.Errorf("call %d: no message is left of an open run\n%s", n, w.dump())
					}
					w.quiet()
					w.hooks.server.Close()
					if !met() {
						if n < 5 {
							t.Fatalf("the invocation makes %d calls", n-1)
						}
						return
					}
				}
			})
		}
	}
}

// The same of a dead letter: it is gone only once its run was offered again or settled.
func TestNoOutageDropsADeadLetter(t *testing.T) {
	for _, left := range []string{"4", "0"} {
		for what, fails := range outages {
			t.Run(fmt.Sprintf("%s attempts left, %s", left, what), func(t *testing.T) {
				for n := 1; ; n++ {
					w := newWorld(t)
					run := w.admitted(w.definition("s", "b"))
					w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
					w.deliver()
					before := w.run(run)
					w.to(before.LeaseEnd.Add(time.Second))
					w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &types.AttributeValueMemberN{Value: left})
					_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeMessage(run))})
					w.must(err)
					plan, met := outage("exhaust", n, fails)
					w.faults.plan = plan
					w.exhaust()
					w.faults.plan = nil
					if r := w.run(run); !r.Settled() && r.DeadLetters == 0 && w.messages(w.dlq) == 0 {
						t.Errorf("call %d: the dead letter of an open run is gone\n%s", n, w.dump())
					}
					w.quiet()
					w.hooks.server.Close()
					if !met() {
						if n < 3 {
							t.Fatalf("the invocation makes %d calls", n-1)
						}
						return
					}
				}
			})
		}
	}
}
