package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/queue"
	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var start = time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC)

func newQueue(t *testing.T) (*queue.Queue, *memcloud.SQS, *time.Time) {
	t.Helper()
	now := start
	mem := memcloud.NewSQS(func() time.Time { return now })
	out, err := mem.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("runs"), Attributes: map[string]string{"VisibilityTimeout": "1800"}})
	if err != nil {
		t.Fatal(err)
	}
	return &queue.Queue{API: mem, URL: *out.QueueUrl}, mem, &now
}

func ids(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("s%03d@2040-03-05T12:00:00Z", i))
	}
	return out
}

// bodies receives everything that can be seen.
func bodies(t *testing.T, mem *memcloud.SQS, url string) (out []string) {
	t.Helper()
	for {
		got, err := mem.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Messages) == 0 {
			return out
		}
		for _, m := range got.Messages {
			out = append(out, *m.Body)
		}
	}
}

func TestSendInBatchesOfTen(t *testing.T) {
	for _, n := range []int{0, 1, 10, 11, 35} {
		q, mem, _ := newQueue(t)
		failed, err := q.Send(t.Context(), ids(n))
		if err != nil || len(failed) != 0 {
			t.Fatal(failed, err)
		}
		if got, want := mem.Requests()["SendMessageBatch"], (n+9)/10; got != want {
			t.Errorf("%d messages took %d requests, want %d", n, got, want)
		}
		if got, err := q.Backlog(t.Context()); err != nil || got != n {
			t.Errorf("backlog %d %v, want %d", got, err, n)
		}
		got := bodies(t, mem, q.URL)
		for i, id := range ids(n) {
			if m, err := schedule.DecodeMessage(got[i]); err != nil || m.Run != id {
				t.Errorf("message %d: %+v %v", i, m, err)
			}
		}
	}
}

func TestSendNoticesInBatchesOfTen(t *testing.T) {
	q, mem, _ := newQueue(t)
	var notices []string
	for _, id := range ids(11) {
		notices = append(notices, id+"#failed#email#ff")
	}
	if failed, err := q.SendNotices(t.Context(), notices); err != nil || len(failed) != 0 || mem.Requests()["SendMessageBatch"] != 2 {
		t.Fatal(failed, err, mem.Requests())
	}
	for i, body := range bodies(t, mem, q.URL) {
		if m, err := schedule.DecodeMessage(body); err != nil || m != (schedule.Message{Notice: notices[i]}) {
			t.Errorf("message %d: %+v %v", i, m, err)
		}
	}
}

func TestSendTellsWhatSQSDidNotTake(t *testing.T) {
	q, mem, _ := newQueue(t)
	mem.FailEntry = func(e types.SendMessageBatchRequestEntry) *types.BatchResultErrorEntry {
		if strings.Contains(*e.MessageBody, "s003") || strings.Contains(*e.MessageBody, "s021") {
			return &types.BatchResultErrorEntry{Code: aws.String("InternalError"), Message: aws.String("later")}
		}
		return nil
	}
	failed, err := q.Send(t.Context(), ids(25))
	if err == nil || !slices.Equal(failed, []string{ids(25)[3], ids(25)[21]}) || !strings.Contains(err.Error(), "InternalError") {
		t.Fatalf("%v %v", failed, err)
	}
	if n := len(bodies(t, mem, q.URL)); n != 23 {
		t.Errorf("%d were sent", n)
	}
}

func TestSendWhoseRequestFails(t *testing.T) {
	q, mem, _ := newQueue(t)
	calls := 0
	mem.Hooks.Before = func(context.Context, memcloud.Call) error {
		if calls++; calls == 2 {
			return errors.New("connection reset")
		}
		return nil
	}
	failed, err := q.Send(t.Context(), ids(25))
	if err == nil || !slices.Equal(failed, ids(25)[10:20]) {
		t.Fatalf("%v %v; want the second batch, whole", failed, err)
	}
}

// held lets no request through before as many as should be under way at once have come, and counts how many were.
type held struct {
	queue.API
	mu      sync.Mutex
	now     int
	most    int
	want    int
	reached chan struct{}
}

func (h *held) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	h.mu.Lock()
	h.now++
	if h.most = max(h.most, h.now); h.now == h.want {
		select {
		case <-h.reached:
		default:
			close(h.reached)
		}
	}
	h.mu.Unlock()
	<-h.reached
	defer func() { h.mu.Lock(); h.now--; h.mu.Unlock() }()
	return h.API.SendMessageBatch(ctx, in, o...)
}

func TestBatchesGoSideBySideWithinABound(t *testing.T) {
	q, mem, _ := newQueue(t)
	mem.FailEntry = func(e types.SendMessageBatchRequestEntry) *types.BatchResultErrorEntry {
		if strings.Contains(*e.MessageBody, "s003") || strings.Contains(*e.MessageBody, "s088") {
			return &types.BatchResultErrorEntry{Code: aws.String("InternalError"), Message: aws.String("later")}
		}
		return nil
	}
	h := &held{API: mem, want: 4, reached: make(chan struct{})}
	q.API, q.Parallel = h, 4
	failed, err := q.Send(t.Context(), ids(95))
	if want := []string{ids(95)[3], ids(95)[88]}; err == nil || !slices.Equal(failed, want) {
		t.Errorf("%v %v; want %v, in the order that was given", failed, err, want)
	}
	if h.most != 4 {
		t.Errorf("%d requests at once, want 4", h.most)
	}
	got := bodies(t, mem, q.URL)
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 93 {
		t.Errorf("%d messages, want 93", n)
	}
}

// odd answers as SQS must not.
type odd struct{ queue.API }

func (odd) SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return &sqs.SendMessageBatchOutput{Failed: []types.BatchResultErrorEntry{{Id: aws.String("77")}}}, nil
}

func (odd) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"ApproximateNumberOfMessages": "many"}}, nil
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	q := &queue.Queue{API: odd{}}
	if failed, err := q.Send(t.Context(), ids(3)); err == nil || len(failed) != 3 || !strings.Contains(err.Error(), `"77"`) {
		t.Errorf("%v %v", failed, err)
	}
	if _, err := q.Backlog(t.Context()); err == nil || !strings.Contains(err.Error(), `"many"; want a number`) {
		t.Errorf("%v", err)
	}
}

func TestBacklogCountsWhatCanBeSeen(t *testing.T) {
	q, mem, now := newQueue(t)
	if _, err := q.Send(t.Context(), ids(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q.URL, MaxNumberOfMessages: 2}); err != nil {
		t.Fatal(err)
	}
	if n, err := q.Backlog(t.Context()); err != nil || n != 3 {
		t.Errorf("%d %v", n, err)
	}
	*now = now.Add(31 * time.Minute)
	if n, err := q.Backlog(t.Context()); err != nil || n != 5 {
		t.Errorf("%d %v", n, err)
	}
	q.URL += "x"
	if _, err := q.Backlog(t.Context()); err == nil {
		t.Error("a queue that is not there has no backlog")
	}
}

func TestHide(t *testing.T) {
	for _, row := range []struct{ wish, seen time.Duration }{{0, 0}, {time.Minute, time.Minute}, {1500 * time.Millisecond, 2 * time.Second}, {15 * time.Minute, 15 * time.Minute}} {
		q, mem, now := newQueue(t)
		if _, err := q.Send(t.Context(), ids(1)); err != nil {
			t.Fatal(err)
		}
		got, err := mem.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q.URL})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Hide(t.Context(), *got.Messages[0].ReceiptHandle, row.wish); err != nil {
			t.Fatal(err)
		}
		if row.seen > 0 {
			*now = now.Add(row.seen - time.Millisecond)
			if n := len(bodies(t, mem, q.URL)); n != 0 {
				t.Errorf("hidden for %s, and seen before", row.wish)
			}
			*now = now.Add(time.Millisecond)
		}
		if n := len(bodies(t, mem, q.URL)); n != 1 {
			t.Errorf("hidden for %s, and not seen after %s", row.wish, row.seen)
		}
	}
	q, _, _ := newQueue(t)
	for name, receipt := range map[string]string{"absent": "", "no receipt": "x"} {
		if err := q.Hide(t.Context(), receipt, time.Minute); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
