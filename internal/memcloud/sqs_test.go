package memcloud

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// line is a queue "runs" with a dead-letter queue after three receives.
type line struct {
	*SQS
	t         testing.TB
	clock     *clock
	url, dead *string
}

func newLine(t testing.TB, attributes map[string]string) *line {
	t.Helper()
	c := newClock()
	s := NewSQS(c.read)
	dead, err := s.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("dead")})
	must(t, err)
	all := map[string]string{"VisibilityTimeout": "60", "RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":"3"}`}
	for k, v := range attributes {
		all[k] = v
	}
	q, err := s.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("runs"), Attributes: all})
	must(t, err)
	return &line{s, t, c, q.QueueUrl, dead.QueueUrl}
}

func (l *line) send(body string, delay int32) {
	l.t.Helper()
	_, err := l.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: l.url, MessageBody: aws.String(body), DelaySeconds: delay})
	must(l.t, err)
}

func (l *line) receive(url *string) []types.Message {
	l.t.Helper()
	out, err := l.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}})
	must(l.t, err)
	return out.Messages
}

// counts gives visible, in flight, delayed.
func (l *line) counts(url *string) string {
	l.t.Helper()
	out, err := l.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	must(l.t, err)
	a := out.Attributes
	return fmt.Sprint(a["ApproximateNumberOfMessages"], " ", a["ApproximateNumberOfMessagesNotVisible"], " ", a["ApproximateNumberOfMessagesDelayed"])
}

func (l *line) want(url *string, counts string) {
	l.t.Helper()
	if got := l.counts(url); got != counts {
		l.t.Errorf("visible, in flight, delayed: %s, want %s", got, counts)
	}
}

func TestVisibilityAndRedrive(t *testing.T) {
	l := newLine(t, nil)
	l.send("poison", 0)
	l.want(l.url, "1 0 0")
	for i := 1; i <= 3; i++ {
		got := l.receive(l.url)
		if len(got) != 1 || got[0].Attributes["ApproximateReceiveCount"] != fmt.Sprint(i) {
			t.Fatalf("receive %d: %+v", i, got)
		}
		l.want(l.url, "0 1 0")
		l.clock.forward(59 * time.Second)
		if len(l.receive(l.url)) != 0 {
			t.Fatal("visible too early")
		}
		l.clock.forward(time.Second)
		l.want(l.url, "1 0 0")
	}
	if len(l.receive(l.url)) != 0 {
		t.Fatal("received a fourth time")
	}
	l.want(l.url, "0 0 0")
	l.want(l.dead, "1 0 0")
	dead := l.receive(l.dead)
	if len(dead) != 1 || *dead[0].Body != "poison" || dead[0].Attributes["DeadLetterQueueSourceArn"] != "arn:aws:sqs:us-east-1:000000000000:runs" {
		t.Fatalf("%+v", dead)
	}
}

func TestDeleteByReceipt(t *testing.T) {
	l := newLine(t, nil)
	l.send("x", 0)
	first := l.receive(l.url)[0]
	l.clock.forward(time.Minute)
	second := l.receive(l.url)[0]
	remove := func(receipt *string) error {
		_, err := l.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: l.url, ReceiptHandle: receipt})
		return err
	}
	must(t, remove(first.ReceiptHandle)) // superseded: succeeds, deletes nothing
	l.want(l.url, "0 1 0")
	must(t, remove(second.ReceiptHandle))
	must(t, remove(second.ReceiptHandle))
	l.want(l.url, "0 0 0")
	wantCode(t, remove(aws.String("rubbish")), "ReceiptHandleIsInvalid", "rubbish")
	wantCode(t, remove(nil), "ReceiptHandleIsInvalid", "")
}

func TestChangeVisibility(t *testing.T) {
	l := newLine(t, nil)
	l.send("x", 0)
	m := l.receive(l.url)[0]
	change := func(receipt *string, seconds int32) error {
		_, err := l.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: l.url, ReceiptHandle: receipt, VisibilityTimeout: seconds})
		return err
	}
	must(t, change(m.ReceiptHandle, 600))
	l.clock.forward(599 * time.Second)
	l.want(l.url, "0 1 0")
	must(t, change(m.ReceiptHandle, 0))
	l.want(l.url, "1 0 0")
	wantCode(t, change(m.ReceiptHandle, 1), "AWS.SimpleQueueService.MessageNotInflight", "")
	again := l.receive(l.url)[0]
	wantCode(t, change(m.ReceiptHandle, 1), "InvalidParameterValue", "not available for visibility timeout change")
	wantCode(t, change(again.ReceiptHandle, -1), "InvalidParameterValue", "between 0 and 43200")
	wantCode(t, change(again.ReceiptHandle, 43201), "InvalidParameterValue", "between 0 and 43200")
	must(t, change(again.ReceiptHandle, 43200))
	l.clock.forward(time.Hour)
	wantCode(t, change(again.ReceiptHandle, 43200), "InvalidParameterValue", "Total VisibilityTimeout for the message is beyond the limit")
	must(t, change(again.ReceiptHandle, 43200-3600))
}

func TestDelayAndOrder(t *testing.T) {
	l := newLine(t, map[string]string{"DelaySeconds": "5"})
	l.send("late", 900)
	l.send("default", 0)
	l.send("soon", 1)
	l.want(l.url, "0 0 3")
	l.clock.forward(5 * time.Second)
	l.want(l.url, "2 0 1")
	got := l.receive(l.url)
	if len(got) != 2 || *got[0].Body != "soon" || *got[1].Body != "default" {
		t.Errorf("%+v", got)
	}
	l.clock.forward(895 * time.Second)
	if got := l.receive(l.url); len(got) != 3 {
		t.Errorf("%d messages", len(got))
	}
}

// A queue whose order is mixed hands out the same messages in another one.
func TestShuffle(t *testing.T) {
	l := newLine(t, nil)
	for _, body := range []string{"1", "2", "3"} {
		l.send(body, 0)
	}
	l.Shuffle = func(n int, swap func(i, j int)) { swap(0, n-1) }
	var got []string
	for _, m := range l.receive(l.url) {
		got = append(got, *m.Body)
	}
	if want := "3 2 1"; strings.Join(got, " ") != want {
		t.Errorf("received %q, want %s", got, want)
	}
}

func TestRefusedMessages(t *testing.T) {
	l := newLine(t, nil)
	attribute := types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("v")}
	eleven := map[string]types.MessageAttributeValue{}
	for i := range 11 {
		eleven[fmt.Sprint(i)] = attribute
	}
	for name, c := range map[string]struct {
		in          sqs.SendMessageInput
		code, words string
	}{
		"no body":         {sqs.SendMessageInput{}, "MissingParameter", "MessageBody"},
		"long delay":      {sqs.SendMessageInput{MessageBody: aws.String("x"), DelaySeconds: 901}, "InvalidParameterValue", "<= 900"},
		"negative delay":  {sqs.SendMessageInput{MessageBody: aws.String("x"), DelaySeconds: -1}, "InvalidParameterValue", ">= 0"},
		"over 1 MiB":      {sqs.SendMessageInput{MessageBody: aws.String(strings.Repeat("x", 1048577))}, "InvalidParameterValue", "shorter than 1048576 bytes"},
		"with attributes": {sqs.SendMessageInput{MessageBody: aws.String(strings.Repeat("x", 1048576)), MessageAttributes: map[string]types.MessageAttributeValue{"a": attribute}}, "InvalidParameterValue", "shorter than"},
		"control":         {sqs.SendMessageInput{MessageBody: aws.String("a\x00b")}, "InvalidMessageContents", ""},
		"no UTF-8":        {sqs.SendMessageInput{MessageBody: aws.String("a\xff")}, "InvalidMessageContents", ""},
		"eleven":          {sqs.SendMessageInput{MessageBody: aws.String("x"), MessageAttributes: eleven}, "InvalidParameterValue", "[11]"},
		"untyped":         {sqs.SendMessageInput{MessageBody: aws.String("x"), MessageAttributes: map[string]types.MessageAttributeValue{"a": {}}}, "InvalidParameterValue", "non-empty type"},
		"FIFO":            {sqs.SendMessageInput{MessageBody: aws.String("x"), MessageDeduplicationId: aws.String("d")}, "InvalidParameterValue", "MessageDeduplicationId"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.QueueUrl = l.url
			_, err := l.SendMessage(ctx, &c.in)
			wantCode(t, err, c.code, c.words)
		})
	}
	_, err := l.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("https://nowhere"), MessageBody: aws.String("x")})
	wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue", "nowhere")
	var missing *types.QueueDoesNotExist
	if !errors.As(err, &missing) {
		t.Error("QueueDoesNotExist is not typed")
	}
	l.send(strings.Repeat("x", 1048576), 0)
	l.want(l.url, "1 0 0")

	old := newLine(t, map[string]string{"MaximumMessageSize": "262144"})
	_, err = old.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: old.url, MessageBody: aws.String(strings.Repeat("x", 262145))})
	wantCode(t, err, "InvalidParameterValue", "shorter than 262144 bytes")
	for name, in := range map[string]sqs.ReceiveMessageInput{"eleven": {MaxNumberOfMessages: 11}, "hidden too long": {VisibilityTimeout: 43201}, "long poll": {WaitTimeSeconds: 21}} {
		in.QueueUrl = l.url
		_, err := l.ReceiveMessage(ctx, &in)
		t.Log(name)
		wantCode(t, err, "InvalidParameterValue", "Must be")
	}
}

func TestSendBatch(t *testing.T) {
	l := newLine(t, nil)
	entry := func(id, body string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: aws.String(id), MessageBody: aws.String(body)}
	}
	batch := func(entries ...types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
		return l.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: l.url, Entries: entries})
	}
	l.FailEntry = func(e types.SendMessageBatchRequestEntry) *types.BatchResultErrorEntry {
		if *e.MessageBody == "unlucky" {
			return &types.BatchResultErrorEntry{Code: aws.String("InternalError"), Message: aws.String("try again")}
		}
		return nil
	}
	out, err := batch(entry("a", "1"), entry("b", "unlucky"), entry("c", "a\x00b"), entry("d", "2"))
	must(t, err)
	if len(out.Successful) != 2 || len(out.Failed) != 2 || *out.Failed[0].Id != "b" || out.Failed[0].SenderFault || *out.Failed[1].Code != "InvalidMessageContents" || !out.Failed[1].SenderFault {
		t.Fatalf("%+v", out)
	}
	l.want(l.url, "2 0 0")
	if n := l.Requests()["SendMessageBatch"]; n != 1 {
		t.Errorf("%d requests", n)
	}
	var eleven []types.SendMessageBatchRequestEntry
	for i := range 11 {
		eleven = append(eleven, entry(fmt.Sprint(i), "x"))
	}
	half := strings.Repeat("x", 600_000)
	for code, entries := range map[string][]types.SendMessageBatchRequestEntry{
		"AWS.SimpleQueueService.EmptyBatchRequest":            nil,
		"AWS.SimpleQueueService.TooManyEntriesInBatchRequest": eleven,
		"AWS.SimpleQueueService.BatchEntryIdsNotDistinct":     {entry("a", "x"), entry("a", "y")},
		"AWS.SimpleQueueService.InvalidBatchEntryId":          {entry("a b", "x")},
		"AWS.SimpleQueueService.BatchRequestTooLong":          {entry("a", half), entry("b", half)},
	} {
		_, err := batch(entries...)
		wantCode(t, err, code, "")
	}
	l.want(l.url, "2 0 0")
}

func TestReceiveShowsWhatWasAskedFor(t *testing.T) {
	l := newLine(t, nil)
	v := types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("v")}
	_, err := l.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: l.url, MessageBody: aws.String("x"), MessageAttributes: map[string]types.MessageAttributeValue{"run.id": v, "other": v}})
	must(t, err)
	out, err := l.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: l.url, MessageAttributeNames: []string{"run.*"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"ApproximateReceiveCount"}})
	must(t, err)
	m := out.Messages[0]
	if len(m.MessageAttributes) != 1 || len(m.Attributes) != 1 || *m.MD5OfBody != "9dd4e461268c8034f5c8564e155c67a6" {
		t.Errorf("%+v", m)
	}
}

func TestRetention(t *testing.T) {
	l := newLine(t, map[string]string{"MessageRetentionPeriod": "3600"})
	l.send("x", 0)
	l.clock.forward(time.Hour - time.Second)
	l.want(l.url, "1 0 0")
	l.clock.forward(time.Second)
	l.want(l.url, "0 0 0")
}

func TestQueues(t *testing.T) {
	l := newLine(t, nil)
	create := func(name string, attributes map[string]string) (*string, error) {
		out, err := l.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
		if err != nil {
			return nil, err
		}
		return out.QueueUrl, nil
	}
	url, err := create("dead", nil)
	must(t, err)
	if *url != *l.dead {
		t.Error("the same queue has another URL")
	}
	found, err := l.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("runs")})
	must(t, err)
	if *found.QueueUrl != *l.url {
		t.Error(*found.QueueUrl)
	}
	_, err = l.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("gone")})
	wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue", "gone")
	for name, c := range map[string]struct {
		queue      string
		attributes map[string]string
		code       string
	}{
		"other settings":  {"dead", map[string]string{"DelaySeconds": "1"}, "QueueAlreadyExists"},
		"no name":         {"", nil, "InvalidParameterValue"},
		"FIFO":            {"a.fifo", nil, "InvalidParameterValue"},
		"delay":           {"a", map[string]string{"DelaySeconds": "901"}, "InvalidAttributeValue"},
		"visibility":      {"a", map[string]string{"VisibilityTimeout": "x"}, "InvalidAttributeValue"},
		"size":            {"a", map[string]string{"MaximumMessageSize": "1048577"}, "InvalidAttributeValue"},
		"unknown":         {"a", map[string]string{"Colour": "red"}, "InvalidAttributeName"},
		"redrive to none": {"a", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:x","maxReceiveCount":3}`}, "InvalidParameterValue"},
		"redrive never":   {"a", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead"}`}, "InvalidParameterValue"},
		"redrive rubbish": {"a", map[string]string{"RedrivePolicy": `x`}, "InvalidParameterValue"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(c.queue, c.attributes)
			wantCode(t, err, c.code, "")
		})
	}
}
