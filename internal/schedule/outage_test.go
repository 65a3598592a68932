package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	"everything":                         func(first, c outside) bool { return true },
	"this operation":                     func(first, c outside) bool { return c.name == first.name },
	"this request":                       same,
	"this request until another is made": same,
}

const shortly = "this request until another is made"

func same(first, c outside) bool { return c.name == first.name && asked(c) == asked(first) }

// asked is what a call asks for.
func asked(c outside) string {
	b, err := json.Marshal(c.input)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// outage lets calls of one invocation fail from its n-th on; met says that there was one.
func outage(kind string, n int, what string) (plan func(outside) fault, met func() bool) {
	var inv *invocation
	var first *outside
	fails, over := outages[what], false
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
		if first != nil && !over {
			if fails(*first, c) {
				return lostBefore
			}
			over = what == shortly
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
		"last attempt, its receiver is busy": func(w *world, _ string) {
			w.hooks.answer = answers("b", status(503))
			w.set(firstRun, schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "1"})
		},
		"time is up after the first recipient": func(w *world, _ string) {
			w.hooks.during = func(string, int) {
				w.hooks.during = nil
				w.advance(deliverTime - w.timing.Reserve.Std() + time.Second)
			}
		},
	} {
		for what := range outages {
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
					plan, met := outage("deliver", n, what)
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
		for what := range outages {
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
					plan, met := outage("exhaust", n, what)
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

// named is what differs from world to world: tokens, hashes, the receiver's port and what was frozen with it.
var named = regexp.MustCompile(`"detail":\{"Value":"[^"]*"|token-[0-9]+|0x[0-9a-f]+|[0-9a-f]{8,}|127\.0\.0\.1:[0-9]+|[A-Za-z0-9+/=]{60,}|\[[0-9]+( [0-9]+){20,}\]`)

// stands lists what is in the table. Messages are hints, and are offered again.
func (w *world) stands() string {
	var list []string
	w.db.Any("Schedules", func(it map[string]types.AttributeValue) bool {
		b, err := json.Marshal(it)
		w.must(err)
		list = append(list, named.ReplaceAllString(string(b), "*"))
		return false
	})
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// missing lists the lines of one text that are not in another.
func missing(of, in string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(of, "\n"), func(line string) bool { return slices.Contains(strings.Split(in, "\n"), line) }), "\n")
}

// misleads reports an error that tells of something else than an outage.
func misleads(err error) bool {
	return errors.Is(err, schedule.ErrNotFound) || schedule.IsConflict(err) || errors.As(err, new(schedule.Problems)) || errors.As(err, new(*schedule.LinkGone))
}

// Whatever fails while somebody acts, he is not told that it was done, or what is there, unless it was so.
func TestNoOutageIsTakenForSuccess(t *testing.T) {
	for name, a := range acts {
		t.Run(name, func(t *testing.T) {
			try := func(n int, what string) (before, stands, said string, err error, met func() bool) {
				w := newWorld(t)
				w.faulty()
				subject := a.given(w)
				before = w.stands()
				w.faults.plan, met = outage("act", n, what)
				inv := w.invoke("act", dispatchTime)
				got, err := a.do(inv, w, subject)
				w.end(inv)
				w.faults.plan = nil
				w.hooks.server.Close()
				return before, w.stands(), named.ReplaceAllString(fmt.Sprintf("%+v", got), "*"), err, met
			}
			before, want, answer, err, _ := try(1000, "everything")
			if err != nil {
				t.Fatal(err)
			}
			if before == want && !a.reads {
				t.Fatalf("nothing is done; the answer is %s", answer)
			}
			for what := range outages {
				for n := 1; ; n++ {
					_, stands, said, err, met := try(n, what)
					if !met() {
						break
					}
					if err == nil && stands != want {
						t.Errorf("%s fails from call %d on, and nobody is told that this is missing:\n%s\nbut this is there:\n%s", what, n, missing(want, stands), missing(stands, want))
					}
					if a.reads && stands != want {
						t.Errorf("%s fails from call %d on, and this is changed:\n%s\nto:\n%s", what, n, missing(want, stands), missing(stands, want))
					}
					if misleads(err) {
						t.Errorf("%s fails from call %d on, and what is told is: %v", what, n, err)
					}
					if err == nil && said != answer {
						t.Errorf("%s fails from call %d on, and the answer is\n%s\nwant\n%s", what, n, said, answer)
					}
				}
			}
		})
	}
}
