package awsrules

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Pages of AWS about SQS.
const (
	queueGuide     = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
	queueAPI       = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_"
	pageVisibility = queueGuide + "sqs-visibility-timeout.html"
	pageDead       = queueGuide + "sqs-dead-letter-queues.html"
	pageMessages   = queueGuide + "quotas-messages.html"
	pageIDs        = queueGuide + "sqs-queue-message-identifiers.html"
)

// soon is how long a message may take to be received once it is visible.
const soon = 10 * time.Second

// queue makes a queue of the rule's own.
func (c *check) queue(suffix string, attributes map[string]string) (url string) {
	c.Helper()
	name := c.Run + "-" + c.id
	out, err := c.SQS.CreateQueue(c.ctx, &sqs.CreateQueueInput{QueueName: aws.String(name[:min(len(name), 74)] + suffix), Attributes: attributes})
	c.ready(err)
	return *out.QueueUrl
}

// sent sends a message to a queue.
func (c *check) sent(url, body string) {
	c.Helper()
	_, err := c.SQS.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	c.ready(err)
}

// receive asks once.
func (c *check) receive(url string) []types.Message {
	c.Helper()
	out, err := c.SQS.ReceiveMessage(c.ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}})
	c.ready(err)
	return out.Messages
}

// next waits for the next message; nil and a note: there came none.
func (c *check) next(what, url string) *types.Message {
	c.Helper()
	var got []types.Message
	if !c.eventually(soon, func() bool { got = c.receive(url); return len(got) > 0 }) {
		c.unlike("%s: no message within %s", what, soon)
		return nil
	}
	return &got[0]
}

// nothing notes messages in a queue that has none to give.
func (c *check) nothing(what, url string) {
	c.Helper()
	for _, m := range c.receive(url) {
		c.unlike("%s: received %q", what, aws.ToString(m.Body))
	}
}

func (c *check) hide(url string, m *types.Message, seconds int32) error {
	_, err := c.SQS.ChangeMessageVisibility(c.ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

func (c *check) remove(url string, receipt *string) error {
	_, err := c.SQS.DeleteMessage(c.ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: receipt})
	return err
}

// counted notes a receive count other than the wanted one.
func (c *check) counted(m *types.Message, want int) {
	c.Helper()
	if got := m.Attributes["ApproximateReceiveCount"]; got != fmt.Sprint(want) {
		c.unlike("receive %d has the count %q", want, got)
	}
}

func visibility() []Rule {
	return []Rule{
		{"sqs/visibility/hides", "a received message is hidden", pageVisibility, func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "60"})
			c.sent(url, "x")
			if c.next("the message", url) != nil {
				c.nothing("while it is hidden", url)
			}
		}},
		{"sqs/visibility/returns", "it comes back after the queue's time-out, and its count goes up", pageVisibility, func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "1"})
			c.sent(url, "x")
			for i := range 3 {
				m := c.next(fmt.Sprint("receive ", i+1), url)
				if m == nil {
					return
				}
				c.counted(m, i+1)
			}
		}},
		{"sqs/visibility/of-a-receive", "a receive may say another time-out", queueAPI + "ReceiveMessage.html", func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "60"})
			c.sent(url, "x")
			var got []types.Message
			if !c.eventually(soon, func() bool {
				out, err := c.SQS.ReceiveMessage(c.ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 1})
				c.ready(err)
				got = out.Messages
				return len(got) > 0
			}) {
				c.unlike("no message within %s", soon)
				return
			}
			c.next("after one second, not sixty", url)
		}},
		{"sqs/visibility/zero", "a time-out changed to 0 shows a message at once", queueAPI + "ChangeMessageVisibility.html", func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "600"})
			c.sent(url, "x")
			if m := c.next("the message", url); m != nil && c.done("the change", c.hide(url, m, 0)) {
				if m := c.next("after the change", url); m != nil {
					c.counted(m, 2)
				}
			}
		}},
		{"sqs/visibility/longer", "a time-out can be made longer, for one message alone", queueAPI + "ChangeMessageVisibility.html", func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "2"})
			c.sent(url, "held")
			held := c.next("the first message", url)
			if held == nil || !c.done("the change", c.hide(url, held, 600)) {
				return
			}
			c.sent(url, "free")
			for range 3 { // each of them after two seconds
				if m := c.next("the message that is not held", url); m == nil || aws.ToString(m.Body) != "free" {
					if m != nil {
						c.unlike("received %q; it is held", *m.Body)
					}
					return
				}
			}
		}},
		{"sqs/visibility/once", "and not for the receives after it", queueAPI + "ChangeMessageVisibility.html", func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "600"})
			c.sent(url, "x")
			if m := c.next("the message", url); m == nil || !c.done("the change", c.hide(url, m, 0)) {
				return
			}
			if c.next("after the change", url) != nil {
				c.nothing("the queue's own time-out holds again", url)
			}
		}},
		{"sqs/visibility/range", "a time-out is 0 to 43,200 seconds", queueAPI + "ChangeMessageVisibility.html", func(c *check) {
			url := c.queue("", nil)
			c.sent(url, "x")
			if m := c.next("the message", url); m != nil {
				c.refused("43,201 seconds", c.hide(url, m, 43201), "InvalidParameterValue")
				c.refused("-1 seconds", c.hide(url, m, -1), "InvalidParameterValue")
			}
		}},
		{"sqs/visibility/twelve-hours", "in all a message is hidden for 12 hours from its receive", queueAPI + "ChangeMessageVisibility.html", func(c *check) {
			url := c.queue("", map[string]string{"VisibilityTimeout": "60"})
			c.sent(url, "x")
			m := c.next("the message", url)
			if m == nil {
				return
			}
			began := c.Now()
			c.eventually(soon, func() bool { return c.Now().Sub(began) >= 2*time.Second })
			c.refused("twelve hours from now, two seconds after the receive", c.hide(url, m, 43200), "InvalidParameterValue")
		}},
		{"sqs/visibility/not-in-flight", "the time-out of a message that is not in flight cannot be changed", queueAPI + "ChangeMessageVisibility.html", func(c *check) {
			url := c.queue("", nil)
			c.sent(url, "x")
			if m := c.next("the message", url); m != nil && c.done("the change", c.hide(url, m, 0)) {
				c.refused("a change when it is visible", c.hide(url, m, 60), "MessageNotInflight")
			}
		}},
		{"sqs/visibility/deleted", "nor that of one that was deleted", queueAPI + "ChangeMessageVisibility.html", func(c *check) {
			url := c.queue("", nil)
			c.sent(url, "x")
			if m := c.next("the message", url); m != nil && c.done("the delete", c.remove(url, m.ReceiptHandle)) {
				if err := c.hide(url, m, 60); err == nil {
					c.unlike("a change after the delete is taken")
				}
			}
		}},
		{"sqs/visibility/delay", "a delayed message is hidden at first", queueGuide + "sqs-message-timers.html", func(c *check) {
			url := c.queue("", nil)
			_, err := c.SQS.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("late"), DelaySeconds: 4})
			c.ready(err)
			c.nothing("before the delay is over", url)
			if m := c.next("after the delay", url); m != nil {
				c.counted(m, 1)
			}
		}},
		{"sqs/visibility/delay-range", "a delay is at most 15 minutes", queueGuide + "sqs-message-timers.html", func(c *check) {
			url := c.queue("", nil)
			_, err := c.SQS.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("late"), DelaySeconds: 901})
			c.refused("901 seconds", err, "InvalidParameterValue")
		}},
	}
}
