package boot

import (
	"context"
	"log/slog"
	"time"

	"almanac/internal/schedule"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"
)

// Consumer turns an SQS batch into dispositions: what is not done is named in the answer, after its visibility was set;
// the rest of the batch is deleted (cases D5, D6).
type Consumer struct {
	Handle func(ctx context.Context, body string) schedule.Disposition
	Hide   func(ctx context.Context, receipt string, d time.Duration) error
	Busy   func() bool // whether an earlier run's engine does not stop; nil: none can
	Log    *slog.Logger
}

// backAt is when messages that met a process which ends are seen again: a fresh one takes them.
const backAt = time.Second

// Batch handles one event of the delivery queue.
//
// A process in which an engine does not stop must be replaced, and the answer to the batch that started it must not be
// lost: no function can tell that its answer has been taken. So the batch is answered as ever, Lambda freezes the
// process, and the next batch finds it busy. Of that one nothing has been touched: its messages are made visible again
// at once and the invocation fails, by an error on which the runtime's client reports the failure first and then ends
// the process (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html, Invocation error). Lambda starts another.
// That costs each message one receive of the many that its queue allows.
func (c Consumer) Batch(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	if c.Busy != nil && c.Busy() {
		c.Log.Error("the engine of an earlier query does not stop; the process ends, and a fresh one takes the messages", "messages", len(e.Records))
		for _, m := range e.Records {
			c.hide(ctx, m, backAt)
		}
		return events.SQSEventResponse{}, messages.InvokeResponse_Error{Type: "EngineBusy", Message: "the engine of an earlier query does not stop: the process ends", ShouldExit: true}
	}
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, m := range e.Records {
		d := c.Handle(ctx, m.Body)
		if !d.Again {
			continue
		}
		out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		c.hide(ctx, m, d.Visible)
	}
	return out, nil
}

func (c Consumer) hide(ctx context.Context, m events.SQSMessage, d time.Duration) {
	hide, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := c.Hide(hide, m.ReceiptHandle, d); err != nil {
		// The message then stays hidden for as long as after a crash; the sweep looks earlier.
		c.Log.Warn("the message's visibility could not be set", "message", m.MessageId, "error", err.Error())
	}
}

// MailEvents turns a batch of the mail service's events into calls. One whose handling failed is seen again when the
// queue's visibility time-out is over, and goes to the dead letters after some tries.
type MailEvents struct {
	Handle func(ctx context.Context, messageID, body string) error
	Log    *slog.Logger
}

// Batch handles one event of the queue.
func (c MailEvents) Batch(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	return each(ctx, e, c.Handle, c.Log, "a mail event comes again"), nil
}

// DeadLetters turns a batch of the dead-letter queue into calls; a letter whose handling failed stays in the queue.
type DeadLetters struct {
	Handle func(ctx context.Context, messageID, body string) error
	Log    *slog.Logger
}

// Batch handles one event of the dead-letter queue.
func (c DeadLetters) Batch(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	return each(ctx, e, c.Handle, c.Log, "a dead letter stays in the queue"), nil
}

// each handles the messages of a batch one by one and names those that failed.
func each(ctx context.Context, e events.SQSEvent, handle func(ctx context.Context, messageID, body string) error, log *slog.Logger, failed string) events.SQSEventResponse {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, m := range e.Records {
		if err := handle(ctx, m.MessageId, m.Body); err != nil {
			log.Error(failed, "message", m.MessageId, "error", err.Error())
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return out
}
