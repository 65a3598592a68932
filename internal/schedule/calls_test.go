package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"almanac/internal/schedule"
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

// The same by size, up to as many recipients as there can be, mails all of them, each outside call taking 20 ms: what a
// run needs more than the floor is what its further invocations cost. A yield and the resume after it are a write unit
// each and two in the index, one receive and one change of visibility; and each invocation reads a list that stands apart.
func TestCallsOfARunBySize(t *testing.T) {
	t.Parallel()
	t.Logf("%10s %11s %7s %7s %6s %6s %9s %6s %6s %6s", "recipients", "invocations", "floor", "writes", "turns", "index", "reads", "SQS", "S3 PUT", "S3 GET")
	for _, n := range []int{1, 10, 1_000, schedule.MaxRecipients} {
		w := newWorld(t)
		turns := w.watchTakes()
		w.apply(w.hundreds("s", n))
		w.to(firstDue)
		units, sqs, s3 := w.db.Units(), w.sqs.Requests(), w.s3.Requests()
		w.taking(20*time.Millisecond, nil)
		invocations := 0
		for w.tick(); w.deliver(); invocations++ { // a message that yields can be seen at once
		}
		total := w.db.Units().Since(units).Total()
		since := func(after, before map[string]int, names ...string) (sum int) {
			for _, name := range names {
				sum += after[name] - before[name]
			}
			return sum
		}
		sqsNow, s3Now := w.sqs.Requests(), w.s3.Requests()
		r := w.runs("s")[0]
		if r.State != schedule.Succeeded || r.Submitted != n || r.Attempts != invocations || r.Yields != invocations-1 {
			t.Fatalf("%s, %d submitted, %d attempts, %d yields, %d invocations", r.State, r.Submitted, r.Attempts, r.Yields, invocations)
		}
		floor, more := 10+2*n, invocations-1
		requests := since(sqsNow, sqs, "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility")
		puts, gets := since(s3Now, s3, "PutObject"), since(s3Now, s3, "GetObject", "HeadObject")
		t.Logf("%10d %11d %7d %7.0f %6d %6.0f %9.1f %6d %6d %6d", n, invocations, floor, total.TableWrite-float64(turns.units), turns.units, total.IndexWrite,
			total.TableRead+total.IndexRead, requests, puts, gets)
		// The timeline of several yields takes the run's row beyond 1 KB: then each of its writes costs one unit more, in a
		// transaction two.
		for what, x := range map[string]struct{ real, least, most int }{
			"write units":       {int(total.TableWrite) - turns.units, floor + 2*more, floor + 2*more + 2*more},
			"index write units": {int(total.IndexWrite), 6 + 4*more, 6 + 4*more},
			"SQS requests":      {requests, 4 + 2*more, 4 + 2*more}, // the last receive finds nothing
			"S3 PUT":            {puts, 1, 1},
		} {
			if x.real < x.least || x.real > x.most {
				t.Errorf("%d recipients: %s: %d, want %d to %d", n, what, x.real, x.least, x.most)
			}
		}
		lists := 0
		if n > schedule.InlineRecipients {
			lists = invocations
		}
		// Besides: the source's database once, and the file for whoever attaches it, once per invocation.
		if least, most := lists+1, lists+1+2*invocations; gets < least || gets > most {
			t.Errorf("%d recipients: %d S3 reads, want %d to %d", n, gets, least, most)
		}
	}
}
