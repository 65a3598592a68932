//go:build cloud

package probes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queueAndFunction makes a queue with a dead-letter queue, and a function that it triggers.
func queueAndFunction(t *testing.T, visibility int, mostReceives int, change func(*lambda.CreateEventSourceMappingInput)) (url, deadURL string) {
	t.Helper()
	deadURL, deadARN := makeQueue(t, name(t, "-dead"), nil)
	url, arn := makeQueue(t, name(t, ""), map[string]string{
		"VisibilityTimeout": fmt.Sprint(visibility),
		"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, deadARN, mostReceives),
	})
	f := name(t, "-f")
	makeFunction(t, f, func(in *lambda.CreateFunctionInput) { in.Timeout = aws.Int32(int32(min(visibility, 30))) })
	connect(t, arn, f, change)
	return url, deadURL
}

func TestSQSPartialBatchFailures(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	url, _ := queueAndFunction(t, 3, 10, nil)
	good, bad := t.Name()+"-good-"+run, t.Name()+"-bad-"+run
	began := time.Now()
	send(t, url, map[string]any{"do": "identity", "key": good})
	send(t, url, map[string]any{"do": "fail", "key": bad})
	all := waitDeliveries(t, bad, 3, 40*time.Second)
	t.Logf("from send to first delivery: %s", all[0].At.Sub(began))
	for i, d := range all[:3] {
		if d.Received != i+1 {
			unlike(t, "delivery %d has receive count %d", i+1, d.Received)
		}
	}
	if got := deliveries(t, good); len(got) != 1 {
		unlike(t, "the good message was delivered %d times, want once: %+v; the bad one: %+v", len(got), got, all)
	}
}

func TestSQSChangeVisibilityInsidePartialFailure(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	url, _ := queueAndFunction(t, 60, 10, nil)
	key := t.Name() + run
	send(t, url, map[string]any{"do": "visibility", "key": key, "path": url, "seconds": 3})
	all := waitDeliveries(t, key, 2, 30*time.Second)
	if gap := all[1].At.Sub(all[0].At); gap < 2500*time.Millisecond || gap > 10*time.Second {
		unlike(t, "delivered again after %s, want about the 3 s that were set, not the queue's 60 s", gap)
	}
}

func TestSQSToDeadLetterQueue(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	url, dead := queueAndFunction(t, 1, 3, nil)
	key := t.Name() + run
	send(t, url, map[string]any{"do": "fail", "key": key})
	message := receive(t, dead, 40*time.Second)
	if !strings.Contains(aws.ToString(message.Body), key) {
		unlike(t, "the dead-letter queue holds %s", aws.ToString(message.Body))
	}
	if got := deliveries(t, key); len(got) != 3 {
		unlike(t, "delivered %d times before it went to the dead-letter queue, want 3", len(got))
	}
}

func receive(t *testing.T, url string, within time.Duration) sqstypes.Message {
	t.Helper()
	var message sqstypes.Message
	eventually(t, within, func() (bool, string) {
		out, err := queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 1, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return false, "no message"
		}
		message = out.Messages[0]
		return true, ""
	})
	return message
}

func TestSQSFunctionErrorReturnsTheWholeBatch(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	url, _ := queueAndFunction(t, 2, 10, nil)
	key := t.Name() + run
	send(t, url, map[string]any{"do": "fail", "text": "whole", "key": key})
	all := waitDeliveries(t, key, 2, 40*time.Second)
	if gap := all[1].At.Sub(all[0].At); gap < 1500*time.Millisecond {
		unlike(t, "delivered again after %s, before the queue's visibility time-out of 2 s", gap)
	}
}

func TestSQSEmptyFailureIDIsIgnored(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	url, _ := queueAndFunction(t, 1, 10, nil)
	key := t.Name() + run
	send(t, url, map[string]any{"do": "empty-id", "key": key})
	waitDeliveries(t, key, 1, 20*time.Second)
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html: an empty itemIdentifier makes the
	// whole batch fail. The visibility time-out is one second.
	if delivered(t, key, 2, 15*time.Second) {
		like(t, "the message came back")
	}
}

func TestSQSNullListOfFailuresReturnsTheBatch(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	url, _ := queueAndFunction(t, 1, 10, nil)
	key := t.Name() + run
	send(t, url, map[string]any{"do": "null-list", "key": key})
	waitDeliveries(t, key, 1, 30*time.Second)
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html: a null list is a complete success.
	if !delivered(t, key, 2, 10*time.Second) {
		like(t, "the message was delivered once, its visibility time-out is one second")
	}
}

func TestSQSMaximumConcurrency(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	url, _ := queueAndFunction(t, 30, 10, func(in *lambda.CreateEventSourceMappingInput) {
		in.BatchSize = aws.Int32(1)
		in.ScalingConfig = &lambdatypes.ScalingConfig{MaximumConcurrency: aws.Int32(2)}
	})
	key := t.Name() + run
	for range 6 {
		send(t, url, map[string]any{"do": "sleep", "ms": 1500, "key": key})
	}
	all := waitDeliveries(t, key, 6, 60*time.Second)
	for i := 2; i < len(all); i++ {
		if gap := all[i].At.Sub(all[i-2].At); gap < 1400*time.Millisecond {
			unlike(t, "deliveries %d and %d began %s apart: more than 2 at once", i-1, i+1, gap)
		}
	}
}

func TestSQSEncryptionKeyIsNotUsed(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	// On AWS a sender needs kms:GenerateDataKey on the queue's key, and a key that does not exist refuses each send:
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
	url, _ := makeQueue(t, name(t, ""), map[string]string{"KmsMasterKeyId": "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000"})
	if _, err := queues().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x")}); err != nil {
		like(t, "a send with a missing key: %v", err)
	}
}
