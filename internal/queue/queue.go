// Package queue offers runs over SQS. Messages carry ids only; a message is a hint, the run's row decides.
package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// API is the part of SQS that the package uses.
type API interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// Queue is one queue by its URL.
type Queue struct {
	API API
	URL string
	// Parallel is how many requests of one Send are under way at once; 0 counts as 1.
	Parallel int
}

var _ schedule.DispatchQueue = (*Queue)(nil)

// batch is how many messages go in one request.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
const batch = 10

// Send offers runs and returns those that SQS did not take, with the reason of the last of them.
func (q *Queue) Send(ctx context.Context, runs []string) (failed []string, err error) {
	return q.all(ctx, runs, schedule.EncodeMessage)
}

// SendNotices has notices sent, and returns those whose messages SQS did not take.
func (q *Queue) SendNotices(ctx context.Context, ids []string) (failed []string, err error) {
	return q.all(ctx, ids, schedule.EncodeNotice)
}

// SendResends has resends carried out, and returns those whose messages SQS did not take.
func (q *Queue) SendResends(ctx context.Context, ids []string) (failed []string, err error) {
	return q.all(ctx, ids, schedule.EncodeResend)
}

// all sends in batches, and returns in the order of ids what was not taken.
func (q *Queue) all(ctx context.Context, ids []string, encode func(string) string) (failed []string, err error) {
	batches := slices.Collect(slices.Chunk(ids, batch))
	left, errs := make([][]string, len(batches)), make([]error, len(batches))
	slots := make(chan struct{}, max(1, q.Parallel))
	var wg sync.WaitGroup
	for i, b := range batches {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			left[i], errs[i] = q.send(ctx, b, encode)
		})
	}
	wg.Wait()
	for i := range batches {
		failed = append(failed, left[i]...)
		if errs[i] != nil {
			err = errs[i]
		}
	}
	return failed, err
}

func (q *Queue) send(ctx context.Context, ids []string, encode func(string) string) (failed []string, err error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.URL}
	for i, id := range ids {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(encode(id))})
	}
	out, err := q.API.SendMessageBatch(ctx, in)
	if err != nil {
		return ids, fmt.Errorf("send to queue: %w", err)
	}
	for _, f := range out.Failed {
		i, convErr := strconv.Atoi(aws.ToString(f.Id))
		if convErr != nil || i < 0 || i >= len(ids) {
			return ids, fmt.Errorf("send to queue: the answer names entry %q, which was not sent", aws.ToString(f.Id))
		}
		failed = append(failed, ids[i])
		err = fmt.Errorf("send to queue: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
	}
	return failed, err
}

// Backlog is the approximate number of visible messages.
func (q *Queue) Backlog(ctx context.Context) (int, error) {
	const name = types.QueueAttributeNameApproximateNumberOfMessages
	out, err := q.API.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.URL, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		return 0, fmt.Errorf("queue's backlog: %w", err)
	}
	n, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil {
		return 0, fmt.Errorf("queue's backlog is %q; want a number", out.Attributes[string(name)])
	}
	return n, nil
}

// Hide sets when a received message may be seen again: a release, not the visibility of a crash.
func (q *Queue) Hide(ctx context.Context, receipt string, d time.Duration) error {
	if receipt == "" {
		return errors.New("the message has no receipt handle")
	}
	seconds := int32((d + time.Second - 1) / time.Second)
	_, err := q.API.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &q.URL, ReceiptHandle: &receipt, VisibilityTimeout: seconds})
	if err != nil {
		return fmt.Errorf("message's visibility: %w", err)
	}
	return nil
}
