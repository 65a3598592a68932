package schedule_test

import (
	"fmt"
	"testing"
)

// What a run asks of AWS, through the real dispatcher, consumer, store, queue and bucket, beside the floor: 10 write
// units and 2 per recipient, and 1 for its mails' turns at the account's send rate, 3 SQS requests, 1 invocation, 1 S3 PUT. Reads and index writes have no floor; they are
// printed, so that a change is seen.
func TestCallsOfARunBesideTheFloor(t *testing.T) {
	for _, recipients := range [][]string{{"a@x.com"}, {"a@x.com", "b", "c"}} {
		t.Run(fmt.Sprintf("%d recipients", len(recipients)), func(t *testing.T) {
			w := newWorld(t)
			turns := w.watchTakes()
			w.apply(w.definition("s", recipients...))
			w.to(firstDue)
			before, sqs, puts, gets := w.db.Units(), w.sqs.Requests(), w.s3.PutClass(), w.s3.Requests()
			w.tick()
			w.deliver()
			units, after, s3 := w.db.Units().Since(before), w.sqs.Requests(), w.s3.Requests()
			if r := w.runs("s")[0]; r.Attempts != 1 || r.Submitted != len(recipients) {
				t.Fatal(w.dump())
			}
			total := units.Total()
			rows := []struct {
				what        string
				floor, real int
			}{
				{"DynamoDB write units", 10 + 2*len(recipients), int(total.TableWrite) - turns.units},
				{"and for its mails' turns", 1, turns.units}, // one for every 2 s worth of the send rate
				{"SQS send", 1, after["SendMessageBatch"] - sqs["SendMessageBatch"]},
				{"SQS receive", 1, after["ReceiveMessage"] - sqs["ReceiveMessage"]},
				{"SQS delete", 1, after["DeleteMessage"] - sqs["DeleteMessage"]},
				{"Lambda invocations", 1, 1},
				{"S3 PUT-class", 1, w.s3.PutClass() - puts},
			}
			t.Logf("%-24s %6s %6s", "", "floor", "run")
			for _, r := range rows {
				t.Logf("%-24s %6d %6d", r.what, r.floor, r.real)
				if r.real != r.floor {
					t.Errorf("%s: %d, the floor is %d", r.what, r.real, r.floor)
				}
			}
			t.Logf("%-24s %6s %6.0f", "index write units", "-", total.IndexWrite)
			t.Logf("%-24s %6s %6.1f", "read units, tick included", "-", total.TableRead+total.IndexRead)
			t.Logf("%-24s %6s %6d", "S3 HEAD and GET", "-", s3["HeadObject"]-gets["HeadObject"]+s3["GetObject"]-gets["GetObject"])
		})
	}
}
