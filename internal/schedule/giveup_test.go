package schedule_test

import (
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The last attempt broke off before it knew that its file had been recorded, or who the recipients are.
func TestFailKnowsTheFileAndTheRecipients(t *testing.T) {
	for name, lost := range map[string]func(w *world) func(outside) fault{
		"record's reply and the read after it lost": func(*world) func(outside) fault {
			stage := 0
			return func(c outside) fault {
				switch {
				case c.inv.kind != "deliver":
				case stage == 0 && c.name == "S3.PutObject":
					stage = 1
				case stage == 1 && c.name == "DynamoDB.UpdateItem":
					stage = 2
					return lostAfter
				case stage == 2 && c.name == "DynamoDB.GetItem":
					stage = 3
					return lostBefore
				}
				return none
			}
		},
		"definition not read": func(w *world) func(outside) fault {
			w.hooks.answer = answers("b", status(503))
			w.mail.answer = func(string, int) error { return coded("Throttling", "Maximum sending rate exceeded.") }
			w.deliver() // a file, and one mark for each
			w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "1"})
			w.advance(2 * time.Minute)
			reads := 0
			return func(c outside) fault {
				if c.inv.kind == "deliver" && c.name == "DynamoDB.GetItem" {
					if reads++; reads == 3 {
						return lostBefore
					}
				}
				return none
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.admitted(w.definition("s", recipients3...))
			w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "1"})
			if name == "definition not read" {
				w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "2"})
			}
			w.faults.plan = lost(w)
			w.drain()
			r := w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
			if r.File == nil {
				t.Fatal("no file is recorded")
			}
			if err := w.check(run, recipients3...); err != nil {
				t.Fatalf("%v\n%s", err, w.dump())
			}
			w.wantSub(run, "b", schedule.NotSent, string(failure.AttemptsExhausted))
			w.wantSub(run, "a@example.com", schedule.NotSent, string(failure.AttemptsExhausted))
		})
	}
}
