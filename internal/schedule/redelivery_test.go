package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// dies is a plan in which the first worker of a kind dies at its first call of a name.
func dies(kind, name string, f fault) func(outside) fault {
	done := false
	return func(c outside) fault {
		if !done && c.inv.kind == kind && c.name == name {
			done = true
			return f
		}
		return none
	}
}

func TestD1RunPastItsTimeoutIsTakenOverAfterTheLease(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	began := w.wall()
	z, held := w.freezeDeliver(6)
	if !held {
		t.Fatal("not held")
	}
	send := func() {
		if failed, err := w.queue.Send(ctx, []string{run}); err != nil || len(failed) > 0 {
			t.Fatal(failed, err)
		}
	}
	end := w.run(run).LeaseEnd
	if want := began.Add(deliverTime + time.Minute); !end.Equal(want) {
		t.Fatalf("the lease ends at %s; want deadline + 60 s = %s", end, want)
	}
	w.to(end) // not past its end yet
	send()
	if w.deliver(); w.run(run).Attempts != 1 {
		t.Fatal("taken over while the lease lived")
	}
	w.advance(time.Second)
	send()
	if w.deliver(); w.run(run).Attempts != 2 {
		t.Fatal("not taken over after the lease had ended")
	}
	z.release()
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if err := w.check(run, "a@x.com", "b"); err != nil {
		t.Error(err)
	}
}

func TestD2ClaimWithNoTimeLeftWritesALeaseEnd(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	ms := w.receive(w.queue.URL)
	inv := w.invoke("deliver", 0)
	w.faults.plan = func(c outside) fault {
		if c.inv == inv && inv.calls == 4 { // after the begin
			return dieBefore
		}
		return none
	}
	w.consume(inv, ms)
	r := w.run(run)
	if r.State != schedule.Running || !r.LeaseEnd.Equal(w.wall().Add(time.Minute)) || r.LeaseOwner == "" {
		t.Fatalf("lease %q until %s", r.LeaseOwner, r.LeaseEnd)
	}
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

func TestD4MessagesWithoutTheKeyFieldShareNothing(t *testing.T) {
	w := newWorld(t)
	w.apply(w.definition("s", "b"))
	for _, body := range []string{`{}`, `{"run":""}`, `{"Message":"x"}`} {
		w.raw(body)
	}
	w.quiet()
	dead, err := w.store.DeadLetters(ctx)
	w.must(err)
	if len(dead) != 3 || dead[0].MessageID == dead[1].MessageID || dead[0].Body == dead[1].Body {
		t.Fatalf("%+v", dead)
	}
	for _, d := range dead {
		if d.Queue != "query-runs" || d.Reason == "" || d.At.IsZero() {
			t.Errorf("%+v", d)
		}
	}
}

// raw sends any message.
func (w *world) raw(body string) {
	w.t.Helper()
	_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.queue.URL, MessageBody: aws.String(body)})
	w.must(err)
}

func TestPoisonMessageIsKeptForAPerson(t *testing.T) {
	w := newWorld(t, maxReceive(3))
	w.apply(w.definition("s", "b"))
	w.raw("\t not JSON at all")
	w.quiet()
	dead, err := w.store.DeadLetters(ctx)
	w.must(err)
	if len(dead) != 1 || dead[0].Body != "\t not JSON at all" || !strings.Contains(dead[0].Reason, "schedule@occurrence") {
		t.Fatalf("%+v", dead)
	}
	if w.counts["dead_letters unreadable"] != 1 {
		t.Errorf("counts %v", w.counts)
	}
}

func TestDecodeMessage(t *testing.T) {
	if m, err := schedule.DecodeMessage(schedule.EncodeMessage("s@2040-01-01T00:00:00Z")); err != nil || m != (schedule.Message{Run: "s@2040-01-01T00:00:00Z"}) {
		t.Fatal(m, err)
	}
	const notice = "s@2040-01-01T00:00:00Z#failed#email#ff"
	if m, err := schedule.DecodeMessage(schedule.EncodeNotice(notice)); err != nil || m != (schedule.Message{Notice: notice}) {
		t.Fatal(m, err)
	}
	for name, body := range map[string]string{
		"D4 absent": `{}`, "empty": ``, "empty run": `{"run":""}`, "wrong type": `{"run":7}`, "null": `{"run":null}`, "a list": `["s@o"]`,
		"both": `{"run":"s@o","notice":"s@o#failed#email#ff"}`, "empty notice": `{"notice":""}`, "notice of the wrong type": `{"notice":{}}`,
		"notice of no run": `{"notice":"s#failed#email#ff"}`, "notice without recipient": `{"notice":"s@o#failed#email#"}`, "notice of three parts": `{"notice":"s@o#failed#email"}`,
		"notice of five parts": `{"notice":"s@o#failed#email#ff#gg"}`, "hostile notice": "{\"notice\":\"\x00\n; DROP\"}", "empty run and a notice of none": `{"run":"","notice":"x"}`,
		"no occurrence": `{"run":"s@"}`, "no schedule": `{"run":"@o"}`, "no @": `{"run":"s"}`, "another field": `{"run":"s@o","x":1}`,
		"something follows": `{"run":"s@o"} {"run":"t@o"}`, "no JSON": "hello", "hostile": "{\"run\":\"\x00\n; DROP\"}", "long": `{"run":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.DecodeMessage(body)
			f := failuretest.Want(t, err, failure.MessageInvalid)
			if !strings.Contains(f.Message, "schedule@occurrence") || len(f.Message) > 900 {
				t.Errorf("it does not say what would be right: %q", f.Message)
			}
		})
	}
}

func TestD5D6OnlyWhatFailedIsNamed(t *testing.T) {
	w := newWorld(t)
	w.apply(w.definition("s", "b"))
	run := w.admitted(w.definition("t", "c"))
	w.hooks.answer = answers("b", status(503))
	w.raw("poison")
	out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &w.queue.URL, MaxNumberOfMessages: 10})
	w.must(err)
	inv := w.invoke("deliver", deliverTime)
	resp, err := w.consumer.Batch(inv, event(out.Messages))
	w.must(err)
	w.end(inv)
	if len(out.Messages) != 3 || len(resp.BatchItemFailures) != 2 {
		t.Fatalf("%d of %d are named: %+v", len(resp.BatchItemFailures), len(out.Messages), resp)
	}
	w.wantState(run, schedule.Succeeded, "")
	for _, m := range out.Messages {
		named := false
		for _, f := range resp.BatchItemFailures {
			named = named || f.ItemIdentifier == *m.MessageId
		}
		if good := *m.Body == schedule.EncodeMessage(run); good == named {
			t.Errorf("%s named: %v", *m.Body, named)
		}
	}
}

func TestD8BothTriesCarryOneKeyAndEqualBytes(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", status(500), reply{cut: true}, ok())
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	got := w.hooks.to("b")
	if len(got) != 3 || got[0].key == "" || got[0].key != got[1].key || got[0].body != got[1].body || got[1].body != got[2].body || got[1].key != got[2].key {
		t.Fatalf("%+v", got)
	}
	if s := w.sub(run, "b"); s.Tries != 3 || s.State != schedule.Submitted {
		t.Errorf("%+v", s)
	}
}

func TestD9MailIsNeverResentAfterADeathBetweenSendAndRecord(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.faults.plan = dies("deliver", "SES.SendRawEmail", dieAfter)
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.DeliveryUnknown)
	w.wantSub(run, "a@x.com", schedule.Unknown, "")
	w.wantSub(run, "b", schedule.Submitted, "")
	if n := len(w.mail.to("a@x.com")); n != 1 || r.Attempts != 2 {
		t.Errorf("%d mails in %d attempts", n, r.Attempts)
	}
}

func TestD9WebhookIsAskedAgainUnderItsKey(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if got := w.hooks.to("b"); len(got) != 2 || got[0].key != got[1].key || got[0].body != got[1].body {
		t.Errorf("%+v", got)
	}
}

func TestD10OnlyTheThrottledWaitAndEachGetsOne(t *testing.T) {
	w := newWorld(t)
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf("r%02d@x.com", i))
	}
	w.mail.answer = func(to string, n int) error {
		if n == 1 && to[2]%3 == 0 {
			return coded("Throttling", "Maximum sending rate exceeded.")
		}
		return nil
	}
	run := w.admitted(w.definition("s", all...))
	w.quiet()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Submitted != 20 || r.Attempts != 2 {
		t.Errorf("%d submitted in %d attempts", r.Submitted, r.Attempts)
	}
	for _, to := range all {
		want := 1
		if to[2]%3 == 0 {
			want = 2
		}
		if len(w.mail.to(to)) != 1 || w.mail.asked[to] != want {
			t.Errorf("%s: %d mails, asked %d times, want %d", to, len(w.mail.to(to)), w.mail.asked[to], want)
		}
	}
}

func TestD13RedrivenDaysLater(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.quiet()
	before := w.wantState(run, schedule.Succeeded, "")
	w.advance(3 * 24 * time.Hour)
	w.raw(schedule.EncodeMessage(run))
	w.raw(schedule.EncodeMessage("s@2001-01-01T00:00:00Z")) // and one whose run is gone
	w.drain()
	after := w.run(run)
	if fmt.Sprint(after.Timeline, after.State, after.SettledAt) != fmt.Sprint(before.Timeline, before.State, before.SettledAt) {
		t.Error("a settled run changed")
	}
	if len(w.mail.kept) != 1 || len(w.hooks.posts) != 1 || w.messages(w.queue.URL) != 0 {
		t.Error(w.dump())
	}
}

func TestD14StreakHangsOnTheOneTransition(t *testing.T) {
	for _, f := range []fault{lostAfter, sentTwice, dieAfter} {
		t.Run(kinds[f], func(t *testing.T) {
			w := newWorld(t)
			d := w.definition("s", "b")
			d.Query = "SELECT nothing"
			run := w.admitted(d)
			w.faults.plan = dies("deliver", "DynamoDB.TransactWriteItems", f)
			w.quiet()
			w.wantState(run, schedule.Failed, failure.QueryInvalid)
			if s := w.schedule("s"); s.Streak != 1 {
				t.Errorf("streak %d", s.Streak)
			}
		})
	}
}

func TestD15OneScheduledTimeDeliveredTwice(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.tick()
	w.tick()
	w.raw(schedule.EncodeMessage(run))
	w.raw(schedule.EncodeMessage(run))
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if len(w.runs("s")) != 1 || r.Attempts != 1 || len(w.mail.kept) != 1 || len(w.hooks.posts) != 1 {
		t.Error(w.dump())
	}
	if want := "s@" + firstDue.Format(time.RFC3339); r.ID() != want {
		t.Errorf("named %s, want %s", r.ID(), want)
	}
}

func TestS7KilledWorkerIsResumedFromTheRecords(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b", "c"))
	sends := 0
	w.faults.plan = func(c outside) fault {
		if c.name == "Webhook.Send" {
			if sends++; sends == 2 {
				return dieBefore
			}
		}
		return none
	}
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if r.Attempts != 2 || len(w.objects()) != 1 || len(w.mail.kept) != 1 || len(w.hooks.to("b")) != 1 || len(w.hooks.to("c")) != 1 {
		t.Error(w.dump())
	}
}

func TestS9AppliedThenSentAgainBySDK(t *testing.T) {
	for _, name := range []string{"DynamoDB.PutItem", "DynamoDB.UpdateItem", "DynamoDB.TransactWriteItems", "S3.PutObject"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(w.definition("s", "a@x.com", "b"))
			w.faults.plan = func(c outside) fault { // every such call is sent twice, I8: without a token
				if c.name == name && c.inv.kind != "poller" {
					return sentTwice
				}
				return none
			}
			w.to(firstDue)
			w.quiet()
			run := schema.RunID("s", schedule.OccurrenceKey(firstDue))
			if r := w.wantState(run, schedule.Succeeded, ""); r.Attempts != 1 || len(w.mail.kept) != 1 || len(w.hooks.posts) != 1 || len(w.objects()) != 1 {
				t.Error(w.dump())
			}
		})
	}
}

// A conflict of transactions is tried again and counts as nothing (I8, and lifecycles A).
func TestI8TransactionConflictIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.apply(w.definition("s", "b"))
	met := map[string]int{}
	w.db.Hooks.Before = func(ctx context.Context, c memcloud.Call) error {
		if c.Operation == "TransactWriteItems" {
			if met[c.Operation]++; met[c.Operation]%3 != 0 {
				return &types.TransactionCanceledException{Message: aws.String("conflict"), CancellationReasons: []types.CancellationReason{
					{Code: aws.String("TransactionConflict")}, {Code: aws.String("None")}}}
			}
		}
		return nil
	}
	w.to(firstDue)
	w.quiet()
	run := schema.RunID("s", schedule.OccurrenceKey(firstDue))
	if r := w.wantState(run, schedule.Succeeded, ""); r.Attempts != 1 || met["TransactWriteItems"] != 6 {
		t.Errorf("%d attempts, %v", r.Attempts, met)
	}
}

func TestS10IndexesOnlySuggest(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.db.StaleIndex(1) // the due index still shows what was admitted a moment ago
	if tally := w.tick(); tally.Admitted != 0 || tally.Errors != 0 {
		t.Fatalf("%+v", tally)
	}
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	w.db.StaleIndex(3) // the open-run index shows a run that has settled
	w.advance(10 * time.Minute)
	if tally := w.tick(); tally.Reoffer != 0 || tally.Errors != 0 || len(w.runs("s")) != 1 {
		t.Fatalf("%+v", tally)
	}
}

func TestD7HTTPStatusOfOneDoesNotHoldUpTheOthers(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "c", "a@x.com"))
	w.hooks.answer = answers("b", status(http.StatusTooManyRequests))
	w.deliver()
	w.wantSub(run, "c", schedule.Submitted, "")
	w.wantSub(run, "a@x.com", schedule.Submitted, "")
	if s := w.sub(run, "b"); s.State != schedule.Pending || !s.NotAccepted {
		t.Errorf("%+v", s)
	}
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
	w.wantSub(run, "b", schedule.NotSent, string(failure.AttemptsExhausted))
	if r.Attempts != 5 || r.Submitted != 2 || len(w.hooks.to("b")) != 5 || len(w.hooks.to("c")) != 1 {
		t.Error(w.dump())
	}
	if !strings.Contains(r.ErrorText, string(failure.SendThrottled)) {
		t.Errorf("the last error is not named: %q", r.ErrorText)
	}
}

// A webhook whose answers are always lost ends as unknown when the run fails, not before.
func TestLostAnswersOfAWebhookEndAsUnknown(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", reply{cut: true})
	w.deliver()
	w.wantSub(run, "b", schedule.Pending, "")
	w.quiet()
	w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
	w.wantSub(run, "b", schedule.Unknown, "")
	if n := len(w.hooks.to("b")); n != 5 {
		t.Errorf("asked %d times", n)
	}
}

func TestRefusedRecipientIsSkippedAndTheRunSucceeds(t *testing.T) {
	w := newWorld(t)
	w.mail.answer = func(to string, _ int) error {
		if to == "gone@x.com" {
			return coded("MessageRejected", "Address blacklisted.")
		}
		return nil
	}
	w.hooks.answer = answers("b", status(http.StatusGone))
	run := w.admitted(w.definition("s", "a@x.com", "gone@x.com", "b"))
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	w.wantSub(run, "gone@x.com", schedule.NotDelivered, "suppressed")
	w.wantSub(run, "b", schedule.NotDelivered, "refused")
	if r.Submitted != 1 || r.SkippedN != 2 {
		t.Errorf("%d submitted, %d skipped", r.Submitted, r.SkippedN)
	}
}

func TestDeadLettersNeverStarted(t *testing.T) {
	w := newWorld(t, maxReceive(2))
	run := w.admitted(w.definition("s", "b"))
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" {
			return dieBefore // no invocation gets as far as its first call
		}
		return none
	}
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.NeverStarted)
	if r.Attempts != 1 || w.counts["dead_letters reoffered"] != 2 || len(w.hooks.posts) != 0 {
		t.Errorf("%d attempts, %v", r.Attempts, w.counts)
	}
	body, _ := json.Marshal(r.Timeline)
	if n := strings.Count(string(body), "came out of the dead-letter queue"); n != 2 {
		t.Errorf("%d visits in %s", n, body)
	}
}

func TestDeadLetterOfARunThatIsHeldIsLeftToTheSweep(t *testing.T) {
	w := newWorld(t, maxReceive(1))
	run := w.admitted(w.definition("s", "b"))
	z, held := w.freezeDeliver(6)
	if !held {
		t.Fatal("not held")
	}
	w.raw(schedule.EncodeMessage(run))
	w.receive(w.queue.URL) // a delivery that was throttled away
	w.advance(visibility - 27*time.Minute)
	w.must(func() error {
		_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeMessage(run))})
		return err
	}())
	if !w.exhaust() || w.run(run).DeadLetters != 0 || w.messages(w.dlq) != 0 {
		t.Error(w.dump())
	}
	z.release()
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

func TestDeadLetterOfASpentRunSettlesIt(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "1"})
	w.faults.plan = dies("deliver", "S3.HeadObject", dieBefore)
	w.deliver()
	w.advance(7 * time.Minute)
	_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeMessage(run))})
	w.must(err)
	w.exhaust()
	w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
	// A letter of a settled run, and of one that is gone, are no news.
	for _, id := range []string{run, "s@2001-01-01T00:00:00Z"} {
		_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeMessage(id))})
		w.must(err)
	}
	w.quiet()
}

// Lost and duplicate messages between queue and consumer.
func TestLostMessageIsOfferedAgain(t *testing.T) {
	w := newWorld(t)
	w.apply(w.definition("s", "b"))
	w.to(firstDue)
	w.faults.plan = func(c outside) fault {
		if c.name == "SQS.SendMessageBatch" {
			return lostBefore
		}
		return none
	}
	if tally := w.tick(); tally.Admitted != 1 || tally.Unsent != 1 {
		t.Fatalf("%+v", tally)
	}
	w.faults.plan = nil
	w.advance(4*time.Minute + 59*time.Second)
	if tally := w.tick(); tally.Reoffer != 0 {
		t.Fatalf("%+v: too early", tally)
	}
	w.advance(time.Second)
	if tally := w.tick(); tally.Reoffer != 1 {
		t.Fatalf("%+v: five minutes have passed", tally)
	}
	w.quiet()
	w.wantState(w.runs("s")[0].ID(), schedule.Succeeded, "")
}

func TestOffersWiden(t *testing.T) {
	timing := schedule.DefaultTiming()
	for n, want := range map[int]time.Duration{0: 5 * time.Minute, 1: 10 * time.Minute, 3: 40 * time.Minute, 4: time.Hour, 5: time.Hour, 4000: time.Hour} {
		if got := schedule.OfferPause(n, timing); got != want {
			t.Errorf("offer %d: %s, want %s", n, got, want)
		}
	}
	for _, row := range []struct {
		n    int
		wish time.Duration
		want time.Duration
	}{{1, 0, time.Minute}, {2, 0, 2 * time.Minute}, {4, 0, 8 * time.Minute}, {5, 0, 15 * time.Minute}, {500, 0, 15 * time.Minute}, {1, 20 * time.Second, 20 * time.Second}, {3, 2 * time.Hour, 15 * time.Minute}} {
		if got := schedule.Backoff(row.n, row.wish, timing); got != row.want {
			t.Errorf("attempt %d, wish %s: %s, want %s", row.n, row.wish, got, row.want)
		}
	}
}

// A 503 to the second try says nothing about the first, whose answer was lost: the receiver may have taken it.
func TestDoubtAboutAnEarlierTryStays(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "c"))
	w.hooks.answer = func(name string, n int) reply {
		if name == "b" && n == 1 {
			return reply{cut: true}
		}
		return status(503)
	}
	w.quiet()
	w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
	w.wantSub(run, "b", schedule.Unknown, "")
	w.wantSub(run, "c", schedule.NotSent, string(failure.AttemptsExhausted))
	if len(w.hooks.to("b")) != 5 || len(w.hooks.to("c")) != 5 {
		t.Error(w.dump())
	}
}

// A worker that dies while it gives up its recipients leaves a run that can only fail: nobody else is asked.
func TestAFailThatWasInterruptedAsksNobodyElse(t *testing.T) {
	w := newWorld(t)
	w.mail.answer = func(string, int) error { return coded("AccountSendingPausedException", "paused") }
	run := w.admitted(w.definition("s", "a@x.com", "b", "c"))
	puts := 0
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" && c.name == "DynamoDB.PutItem" {
			if puts++; puts == 2 { // the first is the mail's intent, the second gives b up
				return dieAfter
			}
		}
		return none
	}
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.SenderRefused)
	if len(w.hooks.posts) != 0 || r.Attempts != 2 {
		t.Errorf("%d requests left: %s", len(w.hooks.posts), w.dump())
	}
	w.wantSub(run, "c", schedule.NotSent, string(failure.SenderRefused))
}

// A message once more of a run that has settled costs a read or two, and no write that would be refused.
func TestACopyOfASettledRunsMessageWritesNothing(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	before := len(w.faults.log)
	_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeMessage(run))})
	w.must(err)
	w.exhaust()
	if got, want := w.faults.log[before:], []string{"exhaust DynamoDB.GetItem", "poller SQS.DeleteMessage"}; !slices.Equal(got, want) {
		t.Errorf("a dead letter's calls: %q, want %q", got, want)
	}
	before = len(w.faults.log)
	w.raw(schedule.EncodeMessage(run))
	w.deliver()
	if got, want := w.faults.log[before:], []string{"deliver DynamoDB.GetItem", "deliver DynamoDB.GetItem", "poller SQS.DeleteMessage"}; !slices.Equal(got, want) {
		t.Errorf("calls: %q, want %q", got, want)
	}
}
