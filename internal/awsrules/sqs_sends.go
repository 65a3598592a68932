package awsrules

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const apiSend, apiBatch = queueAPI + "SendMessage.html", queueAPI + "SendMessageBatch.html"

func (c *check) send(url, body string) error {
	_, err := c.SQS.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	return err
}

func sends() []Rule {
	return []Rule{
		{"sqs/send/megabyte", "a message has up to 1 MiB", pageMessages, func(c *check) {
			c.done("1,048,576 bytes", c.send(c.queue("", nil), strings.Repeat("x", 1<<20)))
		}},
		{"sqs/send/above-a-megabyte", "and not a byte more", pageMessages, func(c *check) {
			c.refused("1,048,577 bytes", c.send(c.queue("", nil), strings.Repeat("x", 1<<20+1)), "InvalidParameterValue")
		}},
		{"sqs/send/attributes-count", "its attributes count", pageMessages, func(c *check) {
			url := c.queue("", nil)
			_, err := c.SQS.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(strings.Repeat("x", 1<<20-5)), MessageAttributes: map[string]types.MessageAttributeValue{"name": {DataType: aws.String("String"), StringValue: aws.String("value")}}})
			c.refused("1 MiB with an attribute", err, "InvalidParameterValue")
		}},
		{"sqs/send/maximum-of-the-queue", "a queue may have a smaller limit", queueAPI + "CreateQueue.html", func(c *check) {
			url := c.queue("", map[string]string{"MaximumMessageSize": "1024"})
			c.done("1,024 bytes", c.send(url, strings.Repeat("x", 1024)))
			c.refused("1,025 bytes", c.send(url, strings.Repeat("x", 1025)), "InvalidParameterValue")
		}},
		{"sqs/send/characters", "a character that XML does not know is refused", pageMessages, func(c *check) {
			c.refused("U+0001", c.send(c.queue("", nil), "a\x01b"), "InvalidMessageContents")
		}},
		{"sqs/send/as-it-is", "a message arrives as it was sent, with its digest", apiSend, func(c *check) {
			url, body := c.queue("", nil), "  {\"a\": \"é \U0001F600\"}\t\n<&>"
			out, err := c.SQS.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{"name": {DataType: aws.String("String"), StringValue: aws.String("value")}}})
			if !c.done("the message", err) {
				return
			}
			sum := md5.Sum([]byte(body))
			if want := hex.EncodeToString(sum[:]); aws.ToString(out.MD5OfMessageBody) != want || aws.ToString(out.MessageId) == "" {
				c.unlike("the answer is %s with the digest %s; want an id and %s", aws.ToString(out.MessageId), aws.ToString(out.MD5OfMessageBody), want)
			}
			c.eventually(soon, func() bool {
				got, err := c.SQS.ReceiveMessage(c.ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MessageAttributeNames: []string{"All"}})
				c.ready(err)
				if len(got.Messages) == 0 {
					return false
				}
				m := got.Messages[0]
				if *m.Body != body || *m.MessageId != *out.MessageId || aws.ToString(m.MessageAttributes["name"].StringValue) != "value" {
					c.unlike("received %s %q with %v", *m.MessageId, *m.Body, m.MessageAttributes)
				}
				return true
			})
		}},
		{"sqs/send/empty", "a message is not empty", apiSend, func(c *check) {
			c.refused("an empty message", c.send(c.queue("", nil), ""), "MissingParameter", "InvalidParameterValue")
		}},
		{"sqs/send/ten-at-once", "a receive gives at most 10 messages", queueAPI + "ReceiveMessage.html", func(c *check) {
			url := c.queue("", nil)
			_, err := c.SQS.ReceiveMessage(c.ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 11})
			c.refused("eleven", err, "InvalidParameterValue")
		}},
		{"sqs/send/same-queue", "a queue of the same name and attributes is the same queue; with others it is refused", queueAPI + "CreateQueue.html", func(c *check) {
			first := c.queue("", map[string]string{"VisibilityTimeout": "60"})
			if second := c.queue("", map[string]string{"VisibilityTimeout": "60"}); second != first {
				c.unlike("the second is %s; want %s", second, first)
			}
			name := first[strings.LastIndex(first, "/")+1:]
			_, err := c.SQS.CreateQueue(c.ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "61"}})
			as[*types.QueueNameExists](c, "the same name with another time-out", err)
		}},
	}
}

// entries are n messages with ids and texts 0, 1, ….
func entries(n int) (out []types.SendMessageBatchRequestEntry) {
	for i := range n {
		out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(fmt.Sprint(i))})
	}
	return out
}

func (c *check) sendBatch(url string, es []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return c.SQS.SendMessageBatch(c.ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: es})
}

// failedBatch is a rule of batches: one entry fails, by its code, and the others are sent.
func failedBatch(id, says, source, code string, change func(*types.SendMessageBatchRequestEntry)) Rule {
	return Rule{"sqs/batches/" + id, says, source, func(c *check) {
		url, es := c.queue("", nil), entries(3)
		change(&es[1])
		out, err := c.sendBatch(url, es)
		if !c.done("the batch", err) {
			return
		}
		if len(out.Successful) != 2 || len(out.Failed) != 1 {
			c.unlike("%d successes and %d failures; want 2 and 1", len(out.Successful), len(out.Failed))
			return
		}
		if f := out.Failed[0]; aws.ToString(f.Id) != "1" || aws.ToString(f.Code) != code {
			c.unlike("the failure is %s of entry %s; want %s of entry 1", aws.ToString(f.Code), aws.ToString(f.Id), code)
		}
		seen := map[string]bool{}
		c.eventually(soon, func() bool {
			for _, m := range c.receive(url) {
				seen[*m.Body] = true
			}
			return len(seen) >= 2
		})
		if len(seen) != 2 || !seen["0"] || !seen["2"] {
			c.unlike("received %v; want 0 and 2", seen)
		}
	}}
}

func sendBatches() []Rule {
	return []Rule{
		{"sqs/batches/results", "each entry of a batch has its result, by its id", apiBatch, func(c *check) {
			url := c.queue("", nil)
			out, err := c.sendBatch(url, entries(10))
			if !c.done("ten entries", err) {
				return
			}
			seen := map[string]bool{}
			for _, s := range out.Successful {
				seen[aws.ToString(s.Id)] = aws.ToString(s.MessageId) != ""
			}
			if len(out.Failed) != 0 || len(seen) != 10 {
				c.unlike("%d failures, successes %v; want none and ten", len(out.Failed), seen)
			}
		}},
		failedBatch("contents-of-one", "an entry with a character that XML does not know fails alone", apiBatch, "InvalidMessageContents", func(e *types.SendMessageBatchRequestEntry) { e.MessageBody = aws.String("a\x01b") }),
		failedBatch("delay-of-one", "so does one with a delay out of range", apiBatch, "InvalidParameterValue", func(e *types.SendMessageBatchRequestEntry) { e.DelaySeconds = 901 }),
		{"sqs/batches/sender-fault", "a failure says whether it is the sender's fault", queueAPI + "BatchResultErrorEntry.html", func(c *check) {
			es := entries(2)
			es[1].MessageBody = aws.String("a\x01b")
			out, err := c.sendBatch(c.queue("", nil), es)
			if !c.done("the batch", err) {
				return
			}
			if len(out.Failed) != 1 || !out.Failed[0].SenderFault {
				c.unlike("%d failures; want one, of the sender", len(out.Failed))
			}
		}},
		{"sqs/batches/eleven", "a batch has at most ten entries", pageMessages, func(c *check) {
			_, err := c.sendBatch(c.queue("", nil), entries(11))
			c.refused("eleven entries", err, "TooManyEntriesInBatchRequest")
		}},
		{"sqs/batches/none", "and at least one", apiBatch, func(c *check) {
			_, err := c.sendBatch(c.queue("", nil), []types.SendMessageBatchRequestEntry{})
			c.refused("no entry", err, "EmptyBatchRequest")
		}},
		{"sqs/batches/distinct", "their ids are distinct", apiBatch, func(c *check) {
			es := entries(2)
			es[1].Id = es[0].Id
			_, err := c.sendBatch(c.queue("", nil), es)
			c.refused("one id twice", err, "BatchEntryIdsNotDistinct")
		}},
		{"sqs/batches/ids", "and have 1 to 80 letters, digits, hyphens and underscores", pageMessages, func(c *check) {
			url := c.queue("", nil)
			for _, id := range []string{"a b", "a.b", strings.Repeat("a", 81)} {
				es := entries(1)
				es[0].Id = aws.String(id)
				_, err := c.sendBatch(url, es)
				c.refused(fmt.Sprintf("the id %.10q", id), err, "InvalidBatchEntryId")
			}
		}},
		{"sqs/batches/megabyte", "a batch has at most 1 MiB in all", apiBatch, func(c *check) {
			es := entries(2)
			for i := range es {
				es[i].MessageBody = aws.String(strings.Repeat("x", 600_000))
			}
			_, err := c.sendBatch(c.queue("", nil), es)
			c.refused("two of 600 KB", err, "BatchRequestTooLong")
		}},
	}
}
