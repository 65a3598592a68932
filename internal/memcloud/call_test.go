package memcloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var errCut = errors.New("connection cut")

// Each service: an error of Before leaves nothing done, an error of After
// leaves it done, and the caller sees the same.
func TestEachCallFailsAppliedAndNotApplied(t *testing.T) {
	c := newClock()
	d, b, q := newTestDynamo(t, c), NewS3(c.read), NewSQS(c.read)
	_, err := b.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("bucket")})
	must(t, err)
	made, err := q.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("queue")})
	must(t, err)
	for _, c := range []struct {
		service   string
		operation string
		hooks     *Hooks
		call      func() error
		done      func() int
	}{
		{ServiceDynamoDB, "UpdateItem", &d.Hooks, func() error {
			_, err := d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: attributes{"pk": str("a")}})
			return err
		}, func() int { return d.Units()["UpdateItem"].Calls }},
		{ServiceDynamoDB, "TransactWriteItems", &d.Hooks, func() error { return transact(d, "", addAction("b")) }, func() int { return d.Units()["TransactWriteItems"].Calls }},
		{ServiceS3, "PutObject", &b.Hooks, func() error {
			_, err := b.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("k"), Body: strings.NewReader("x")})
			return err
		}, func() int { return b.Requests()["PutObject"] }},
		{ServiceSQS, "SendMessage", &q.Hooks, func() error {
			_, err := q.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: aws.String("x")})
			return err
		}, func() int { return q.Requests()["SendMessage"] }},
	} {
		var seen []string
		cut := func(_ context.Context, call Call) error {
			seen = append(seen, fmt.Sprint(call.Service, " ", call.Operation, " ", call.Input != nil, " ", call.Output != nil))
			return errCut
		}
		c.hooks.Before = cut
		if err := c.call(); !errors.Is(err, errCut) || c.done() != 0 {
			t.Errorf("%s before: %v, done %d times", c.operation, err, c.done())
		}
		c.hooks.Before, c.hooks.After = nil, cut
		if err := c.call(); !errors.Is(err, errCut) || c.done() != 1 || !strings.Contains(err.Error(), "operation error "+c.service+": "+c.operation) {
			t.Errorf("%s after: %v, done %d times", c.operation, err, c.done())
		}
		c.hooks.After = nil
		if got, want := fmt.Sprint(seen), fmt.Sprintf("[%s %s true false %s %s true true]", c.service, c.operation, c.service, c.operation); got != want {
			t.Errorf("hooks saw %s, want %s", got, want)
		}
	}
}

// After sees refusals and may hide them; a Before error of an SDK type
// arrives as that type.
func TestHooksAndRefusals(t *testing.T) {
	d := newTestDynamo(t, newClock())
	refused := func() error {
		_, err := d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: attributes{"pk": str("a")}, ConditionExpression: aws.String("attribute_exists(pk)")})
		return err
	}
	var saw error
	d.After = func(_ context.Context, call Call) error { saw = call.Err; return nil }
	err := refused()
	var conditional *types.ConditionalCheckFailedException
	if !errors.As(err, &conditional) || !errors.As(saw, &conditional) {
		t.Errorf("got %v, the hook saw %v", err, saw)
	}
	var response *awshttp.ResponseError
	if !errors.As(err, &response) || response.HTTPStatusCode() != http.StatusBadRequest {
		t.Errorf("no HTTP response in %v", err)
	}
	d.After = func(context.Context, Call) error { return errCut }
	if err := refused(); !errors.Is(err, errCut) || errors.As(err, &conditional) {
		t.Errorf("got %v", err)
	}
	d.After = nil
	d.Before = func(context.Context, Call) error { return &types.TransactionConflictException{} }
	var conflict *types.TransactionConflictException
	if err := refused(); !errors.As(err, &conflict) {
		t.Errorf("got %v", err)
	}
	// A hook may call the service, and set the lag of the read that it precedes.
	d.Before = func(_ context.Context, call Call) error { d.StaleIndex(3); d.Items("main"); return nil }
	if err := refused(); !errors.As(err, &conditional) || d.lag != 3 {
		t.Errorf("got %v", err)
	}
}

func TestEndedContext(t *testing.T) {
	d := newTestDynamo(t, newClock())
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := d.PutItem(ended, &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: attributes{"pk": str("a")}})
	if !errors.Is(err, context.Canceled) || len(d.Items("plain")) != 0 {
		t.Errorf("got %v", err)
	}
}
