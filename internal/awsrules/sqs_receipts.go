package awsrules

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func receipts() []Rule {
	return []Rule{
		{"sqs/receipts/delete", "a deleted message does not come back", queueAPI + "DeleteMessage.html", func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "1"})
			c.sent(url, "x")
			m := c.next("the message", url)
			if m == nil || !c.done("the delete", c.remove(url, m.ReceiptHandle)) {
				return
			}
			c.sent(url, "witness")
			for range 2 { // its own time-out passes twice
				if m := c.next("the witness", url); m == nil || aws.ToString(m.Body) != "witness" {
					if m != nil {
						c.unlike("received %q after its delete", *m.Body)
					}
					return
				}
			}
		}},
		{"sqs/receipts/new-handle", "each receive has a receipt handle of its own, the message id stays", pageIDs, func(c *check) {
			c.again(func(_ string, first, second *types.Message) {
				if *first.ReceiptHandle == *second.ReceiptHandle {
					c.unlike("the second receive has the handle of the first")
				}
				if *first.MessageId != *second.MessageId {
					c.unlike("the message has the id %s and then %s", *first.MessageId, *second.MessageId)
				}
			})
		}},
		{"sqs/receipts/old-handle", "a delete by an older receipt handle succeeds, whether it deletes or not", queueAPI + "DeleteMessage.html", func(c *check) {
			c.again(func(url string, first, _ *types.Message) { c.done("the delete", c.remove(url, first.ReceiptHandle)) })
		}},
		{"sqs/receipts/latest-handle", "one by the latest handle deletes", queueAPI + "DeleteMessage.html", func(c *check) {
			c.again(func(url string, _, second *types.Message) {
				if c.done("the delete", c.remove(url, second.ReceiptHandle)) {
					c.sent(url, "witness")
					if m := c.next("the witness", url); m != nil && *m.Body != "witness" {
						c.unlike("received %q after its delete", *m.Body)
					}
				}
			})
		}},
		{"sqs/receipts/late-delete", "so does one after the time-out, if it was not received again", queueAPI + "DeleteMessage.html", func(c *check) {
			url := c.queue("", nil)
			c.sent(url, "x")
			m := c.next("the message", url)
			if m == nil || !c.done("the change", c.hide(url, m, 0)) || !c.done("the delete", c.remove(url, m.ReceiptHandle)) {
				return
			}
			c.sent(url, "witness")
			if m := c.next("the witness", url); m != nil && *m.Body != "witness" {
				c.unlike("received %q after its delete", *m.Body)
			}
		}},
		{"sqs/receipts/no-handle", "what is no receipt handle is refused", queueAPI + "DeleteMessage.html", func(c *check) {
			url := c.queue("", nil)
			c.refused("a delete by any text", c.remove(url, aws.String("not a handle")), "ReceiptHandleIsInvalid")
		}},
		{"sqs/receipts/no-queue", "a queue that is not there is QueueDoesNotExist", queueAPI + "SendMessage.html", func(c *check) {
			url := c.queue("", nil)
			_, err := c.SQS.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: aws.String(url + "-gone"), MessageBody: aws.String("x")})
			as[*types.QueueDoesNotExist](c, "a message to no queue", err)
			_, err = c.SQS.GetQueueUrl(c.ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(c.Run + "-gone")})
			as[*types.QueueDoesNotExist](c, "the URL of no queue", err)
		}},
		{"sqs/receipts/counts", "a queue tells about how many messages it has to give, and how many are in flight", queueAPI + "GetQueueAttributes.html", func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "600"})
			c.sent(url, "x")
			counts := func(want string) {
				got := ""
				if !c.eventually(soon, func() bool {
					out, err := c.SQS.GetQueueAttributes(c.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible}})
					c.ready(err)
					got = out.Attributes["ApproximateNumberOfMessages"] + " " + out.Attributes["ApproximateNumberOfMessagesNotVisible"]
					return got == want
				}) {
					c.unlike("visible and in flight: %s; want %s", got, want)
				}
			}
			counts("1 0")
			if m := c.next("the message", url); m != nil {
				counts("0 1")
				c.done("the delete", c.remove(url, m.ReceiptHandle))
				counts("0 0")
			}
		}},
		{"sqs/receipts/attributes", "a message has its times and its count when asked", queueAPI + "ReceiveMessage.html", func(c *check) {
			url := c.queue("", nil)
			c.sent(url, "x")
			if m := c.next("the message", url); m != nil {
				for _, name := range []string{"SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"} {
					if m.Attributes[name] == "" {
						c.unlike("it has no %s: %v", name, m.Attributes)
					}
				}
			}
		}},
	}
}

// again receives a message twice.
func (c *check) again(then func(url string, first, second *types.Message)) {
	c.Helper()
	url := c.queue("", nil)
	c.sent(url, "x")
	first := c.next("the message", url)
	if first == nil || !c.done("the change", c.hide(url, first, 0)) {
		return
	}
	if second := c.next("the message again", url); second != nil {
		then(url, first, second)
	}
}

func redrive() []Rule {
	// twice has a message received as often as its queue allows, and gives it as it comes out of the dead-letter queue.
	twice := func(c *check) (first, dead *types.Message, source string) {
		deadURL := c.queue("-d", nil)
		out, err := c.SQS.GetQueueAttributes(c.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &deadURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
		c.ready(err)
		arn := out.Attributes["QueueArn"]
		url := c.queue("", map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, arn)})
		c.sent(url, "poison")
		for i := range 2 {
			m := c.next(fmt.Sprint("receive ", i+1), url)
			if m == nil || !c.done("the change", c.hide(url, m, 0)) {
				return nil, nil, ""
			}
			first = m
		}
		if !c.eventually(soon, func() bool {
			c.nothing("a third receive", url)
			got := c.receive(deadURL)
			if len(got) > 0 {
				dead = &got[0]
			}
			return dead != nil
		}) {
			c.unlike("the dead-letter queue has no message within %s", soon)
		}
		return first, dead, strings.TrimSuffix(arn, "-d")
	}
	return []Rule{
		{"sqs/redrive/after-receives", "after as many receives as the policy says a message goes to the dead-letter queue", pageDead, func(c *check) { twice(c) }},
		{"sqs/redrive/as-it-was", "there it has its id, its text and the time when it was sent", pageDead, func(c *check) {
			if first, dead, _ := twice(c); dead != nil && (*first.MessageId != *dead.MessageId || *first.Body != *dead.Body || first.Attributes["SentTimestamp"] != dead.Attributes["SentTimestamp"]) {
				c.unlike("it was %s %q %s and is %s %q %s", *first.MessageId, *first.Body, first.Attributes["SentTimestamp"], *dead.MessageId, *dead.Body, dead.Attributes["SentTimestamp"])
			}
		}},
		{"sqs/redrive/source", "and names the queue that it comes from", queueAPI + "ReceiveMessage.html", func(c *check) {
			if _, dead, source := twice(c); dead != nil && dead.Attributes["DeadLetterQueueSourceArn"] != source {
				c.unlike("DeadLetterQueueSourceArn is %q; want %q", dead.Attributes["DeadLetterQueueSourceArn"], source)
			}
		}},
	}
}
