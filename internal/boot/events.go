package boot

import (
	"context"
	"log/slog"
	"time"

	"almanac/internal/schedule"

	"github.com/aws/aws-lambda-go/events"
)

// Consumer turns an SQS batch into dispositions: what is not done is named in the answer, after its visibility was set;
// the rest of the batch is deleted (cases D5, D6).
type Consumer struct {
	Handle func(ctx context.Context, body string) schedule.Disposition
	Hide   func(ctx context.Context, receipt string, d time.Duration) error
	Log    *slog.Logger
}

// Batch handles one event of the delivery queue.
func (c Consumer) Batch(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, m := range e.Records {
		d := c.Handle(ctx, m.Body)
		if !d.Again {
			continue
		}
		out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		hide, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		if err := c.Hide(hide, m.ReceiptHandle, d.Visible); err != nil {
			// The message then stays hidden for as long as after a crash; the sweep looks earlier.
			c.Log.Warn("the message's visibility could not be set", "message", m.MessageId, "error", err.Error())
		}
		cancel()
	}
	return out, nil
}

// DeadLetters turns a batch of the dead-letter queue into calls; a letter whose handling failed stays in the queue.
type DeadLetters struct {
	Handle func(ctx context.Context, messageID, body string) error
	Log    *slog.Logger
}

// Batch handles one event of the dead-letter queue.
func (c DeadLetters) Batch(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, m := range e.Records {
		if err := c.Handle(ctx, m.MessageId, m.Body); err != nil {
			c.Log.Error("a dead letter stays in the queue", "message", m.MessageId, "error", err.Error())
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return out, nil
}
