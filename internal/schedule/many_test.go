package schedule_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// tenThousand is a definition with as many recipients as there can be, every tenth a webhook.
func tenThousand(w *world, id string) schedule.Definition {
	names := make([]string, schedule.MaxRecipients)
	for i := range names {
		if names[i] = fmt.Sprintf("somebody.%05d@example.com", i); i%10 == 9 {
			names[i] = fmt.Sprintf("hook-%05d", i)
		}
	}
	return w.definition(id, names...)
}

// taking lets each outside call take so long.
func (w *world) taking(d time.Duration, f func(outside) fault) {
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" || c.inv.kind == "exhaust" {
			w.advance(d)
		}
		if f != nil {
			return f(c)
		}
		return none
	}
}

// settles lets time pass until the run has settled.
func (w *world) settles(run string) schedule.Run {
	w.t.Helper()
	for end := w.wall().Add(24 * time.Hour); ; w.advance(5 * time.Second) {
		w.minute()
		w.drain()
		if r := w.run(run); r.Settled() {
			return r
		}
		if w.wall().After(end) {
			r := w.run(run)
			w.t.Fatalf("not settled after a day: %s, %d attempts, %d yields\n%s", r.State, r.Attempts, r.Yields, strings.Join(r.Timeline, "\n"))
		}
	}
}

// asked counts the requests that each address got.
func (w *world) asked() map[string]int {
	n := map[string]int{}
	for _, l := range w.mail.kept {
		n[l.to]++
	}
	for _, p := range w.hooks.posts {
		n[w.hooks.address(p.name)]++
	}
	return n
}

// outcomes are the submissions of a run, by state, after checking that there is one for each recipient.
func (w *world) outcomes(run string, d schedule.Definition) map[schedule.SubmissionState]int {
	w.t.Helper()
	states, seen := map[schedule.SubmissionState]int{}, map[string]bool{}
	for _, s := range w.subs(run) {
		states[s.State]++
		seen[s.Recipient] = true
	}
	for _, r := range d.Recipients {
		if !seen[r.Address()] {
			w.t.Fatalf("%s has no outcome", r.Address())
		}
	}
	return states
}

// apart puts the recipients of a version where those of long lists stand, and returns the object's key.
func (w *world) apart(id string, version int) string {
	w.t.Helper()
	v, err := w.store.Outline(ctx, id, version)
	w.must(err)
	b, err := json.Marshal(v.Recipients)
	w.must(err)
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	w.must(w.store.Lists.PutList(ctx, hash, b))
	k := schema.DefinitionKey(id, version)
	w.set(k, schema.RecipientsHash, txt(hash))
	w.set(k, schema.RecipientsCount, &dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(len(v.Recipients))})
	v.Recipients = nil
	rest, err := json.Marshal(v.Definition)
	w.must(err)
	w.set(k, schema.Body, txt(string(rest)))
	return schema.ListKey(hash)
}

// gone removes an object of the files bucket.
func (w *world) gone(key string) {
	w.t.Helper()
	_, err := w.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String("files"), Key: &key})
	w.must(err)
}

// safely are deaths at which nobody has to become unknown: never between a mail's intent and the record of its outcome.
func safely(c outside) fault {
	switch c.name {
	case "DynamoDB.BatchGetItem", "DynamoDB.Query", "DynamoDB.GetItem", "DynamoDB.PutItem":
		return dieBefore
	case "DynamoDB.UpdateItem":
		return dieAfter
	}
	return none
}

// Ten thousand recipients, several invocations, workers that die and messages that come twice: everybody is asked once,
// and the run succeeds.
func TestTenThousandRecipientsAreAskedOnceOverManyInvocations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := tenThousand(w, "s")
	run := w.admitted(d)
	for range 2 { // the message comes thrice
		_, err := w.queue.Send(ctx, []string{run})
		w.must(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	var deaths []int
	for range 4 {
		deaths = append(deaths, random.IntN(4*schedule.MaxRecipients))
	}
	slices.Sort(deaths)
	calls, invocations := 0, map[*invocation]bool{}
	w.taking(40*time.Millisecond, func(c outside) fault {
		if c.inv.kind != "deliver" {
			return none
		}
		invocations[c.inv] = true
		if calls++; len(deaths) > 0 && calls > deaths[0] && c.inv.calls > 10 {
			if f := safely(c); f != none {
				deaths = deaths[1:]
				return f
			}
		}
		return none
	})
	r := w.settles(run)
	if r.State != schedule.Succeeded || r.Submitted != schedule.MaxRecipients || r.SkippedN != 0 || len(deaths) != 0 {
		t.Fatalf("%s %s %s: %d submitted, %d deaths left\n%s", r.State, r.ErrorCode, r.ErrorText, r.Submitted, len(deaths), strings.Join(r.Timeline, "\n"))
	}
	if len(invocations) < 5 || r.Yields == 0 || r.Attempts-r.Yields != 5 {
		t.Errorf("%d invocations, %d attempts, %d yields", len(invocations), r.Attempts, r.Yields)
	}
	if o := w.outcomes(run, d); o[schedule.Submitted] != schedule.MaxRecipients || len(o) != 1 {
		t.Errorf("outcomes %v", o)
	}
	asked := w.asked()
	for _, to := range d.Recipients {
		if n := asked[to.Address()]; n != 1 {
			t.Fatalf("%s was asked %d times", to.Address(), n)
		}
	}
	t.Logf("%d invocations, %d attempts, %d yields, %s", len(invocations), r.Attempts, r.Yields, r.SettledAt.Sub(firstDue))
}

// Deaths at any call: a mail whose answer was lost is unknown and never sent again; everybody else is asked once.
func TestManyRecipientsAndDeathsAnywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := tenThousand(w, "s")
	d.Recipients = d.Recipients[:2000]
	run := w.admitted(d)
	random := rand.New(rand.NewPCG(3, 1))
	next, calls, deaths := random.IntN(1800), 0, 0
	w.taking(100*time.Millisecond, func(c outside) fault {
		if calls++; c.inv.kind != "deliver" || deaths == 4 || calls < next {
			return none
		}
		deaths, next = deaths+1, calls+random.IntN(1800)
		return []fault{dieBefore, dieAfter}[random.IntN(2)]
	})
	r := w.settles(run)
	o := w.outcomes(run, d)
	t.Logf("%s %s: %v after %d deaths, %d attempts, %d yields", r.State, r.ErrorCode, o, deaths, r.Attempts, r.Yields)
	if deaths != 4 || o[schedule.Unknown] > deaths || o[schedule.Submitted]+o[schedule.Unknown] != len(d.Recipients) {
		t.Errorf("outcomes %v", o)
	}
	if want := map[bool]schedule.RunState{true: schedule.Failed, false: schedule.Succeeded}[o[schedule.Unknown] > 0]; r.State != want || r.Submitted != o[schedule.Submitted] {
		t.Errorf("%s %s with %d submitted", r.State, r.ErrorCode, r.Submitted)
	}
	asked := w.asked()
	for _, to := range d.Recipients {
		if n := asked[to.Address()]; to.Email != "" && n > 1 || n > 1+deaths {
			t.Fatalf("%s was asked %d times", to.Address(), n)
		}
	}
}

// A run of ten thousand that can only fail brings all of them to their ends, over several invocations and a death, and
// nobody is given up twice.
func TestTenThousandRecipientsAreGivenUp(t *testing.T) {
	for _, row := range []struct {
		name    string
		code    failure.Code
		prepare func(w *world, run string)
		asked   int // who got a request
	}{
		{"account refused", failure.SenderRefused, func(w *world, _ string) {
			w.mail.answer = func(string, int) error { return coded("MailFromDomainNotVerifiedException", "not verified") }
		}, 0},
		{"stopped after some", failure.StoppedByOperator, func(w *world, run string) {
			w.mail.during = func(to string) {
				if to == "somebody.00100@example.com" {
					_, err := w.editor.Stop(ctx, run, "enough", "ann")
					w.must(err)
				}
			}
		}, 101},
		{"stopped before it begins, no attempt left", failure.StoppedByOperator, func(w *world, run string) {
			w.faults.plan = func(c outside) fault {
				return map[bool]fault{true: dieBefore, false: none}[c.name == "DynamoDB.BatchGetItem"]
			}
			w.drain()
			_, err := w.editor.Stop(ctx, run, "enough", "ann")
			w.must(err)
			w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &dynamotypes.AttributeValueMemberN{Value: "0"})
		}, 0},
		{"by the dead-letter queue, then by the sweep", failure.NeverStarted, func(w *world, run string) {
			w.faults.plan = func(c outside) fault {
				return map[bool]fault{true: dieBefore, false: none}[c.name == "DynamoDB.BatchGetItem"]
			}
			w.drain()
			w.advance(deliverTime + 2*time.Minute)
			w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.DeadLetters, &dynamotypes.AttributeValueMemberN{Value: "2"})
			_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeMessage(run))})
			w.must(err)
			w.taking(400*time.Millisecond, nil)
			w.exhaust()
			if r := w.run(run); r.Yields != 1 || r.Settled() || w.messages(w.dlq) != 0 {
				w.t.Fatalf("%s with %d yields, %d dead letters", r.State, r.Yields, w.messages(w.dlq))
			}
		}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, timing(func(x *schedule.Timing) { x.Parallel = 16 }))
			d := tenThousand(w, "s")
			run := w.admitted(d)
			row.prepare(w, run)
			before := len(w.subs(run))
			given, died, invocations := 0, false, map[*invocation]bool{}
			w.taking(60*time.Millisecond, func(c outside) fault {
				w.mu.Lock()
				defer w.mu.Unlock()
				invocations[c.inv] = true
				if c.name == "DynamoDB.PutItem" {
					given++
				}
				if given > 7000-before && !died {
					died = true
					return dieBefore
				}
				return none
			})
			r := w.settles(run)
			w.wantState(run, schedule.Failed, row.code)
			o := w.outcomes(run, d)
			if o[schedule.NotSent] != schedule.MaxRecipients-row.asked || o[schedule.Submitted] != row.asked || r.Submitted != row.asked {
				t.Errorf("outcomes %v, %d counted", o, r.Submitted)
			}
			// One put for each recipient, asked or not; those under way when the worker died may be put once more.
			if least, most := schedule.MaxRecipients-before, schedule.MaxRecipients-before+16; given < least || given > most || !died {
				t.Errorf("%d puts, want %d at least and %d at most", given, least, most)
			}
			if len(invocations) < 3 {
				t.Errorf("%d invocations", len(invocations))
			}
			t.Logf("%d invocations, %d attempts, %d yields, %s", len(invocations), r.Attempts, r.Yields, r.SettledAt.Sub(firstDue))
		})
	}
}
