package boot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/schedule"

	"github.com/aws/aws-lambda-go/events"
)

// FuzzBatch: whatever Lambda hands over from a queue, each message is handled once, in order, and the answer names exactly
// those that are to come again, in the form that Lambda reads, which holds no null and no other name
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html: an empty or unknown identifier, or a null,
// would bring the whole batch back).
func FuzzBatch(f *testing.F) {
	record := func(id, body string) string {
		return fmt.Sprintf(`{"messageId":%q,"receiptHandle":"r-%s","body":%q}`, id, id, body)
	}
	for _, records := range []string{``, record("a", "good"), record("a", "good") + `,` + record("b", "again") + `,` + record("c", "again"), record("a", "again") + `,` + record("a", "good"),
		record("", "again"), `{}`, `null`, `{"body":7}`, `{"messageId":"a","body":"again","attributes":{"ApproximateReceiveCount":"20"}}`} {
		f.Add([]byte(`{"Records":[` + records + `]}`))
	}
	for _, text := range []string{``, `{}`, `null`, `[]`, `{"Records":null}`, `{"records":[{"body":"again"}]}`, `{"Records":{}}`, "\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e events.SQSEvent
		if json.Unmarshal(text, &e) != nil {
			return // Lambda's runtime refuses it by itself
		}
		var bodies, receipts, want, hidden []string
		for _, r := range e.Records {
			bodies = append(bodies, r.Body)
			if strings.Contains(r.Body, "again") {
				want, receipts = append(want, r.MessageId), append(receipts, r.ReceiptHandle)
			}
		}
		var log bytes.Buffer
		var handled []string
		logger := boot.NewLogger(&log)
		fails := func(_ context.Context, _, body string) error {
			if handled = append(handled, body); strings.Contains(body, "again") {
				return errors.New("not now")
			}
			return nil
		}
		consumer := boot.Consumer{Log: logger,
			Handle: func(_ context.Context, body string) schedule.Disposition {
				handled = append(handled, body)
				return schedule.Disposition{Again: strings.Contains(body, "again"), Visible: time.Minute}
			},
			Hide: func(_ context.Context, receipt string, d time.Duration) error {
				if hidden = append(hidden, receipt); d != time.Minute {
					t.Errorf("hidden for %s", d)
				}
				return errors.New("throttled") // then the message is hidden for as long as after a crash
			}}
		for name, batch := range map[string]func(context.Context, events.SQSEvent) (events.SQSEventResponse, error){
			"consumer": consumer.Batch, "mail events": boot.MailEvents{Handle: fails, Log: logger}.Batch, "dead letters": boot.DeadLetters{Handle: fails, Log: logger}.Batch} {
			handled = nil
			out, err := batch(t.Context(), e)
			answer, bad := json.Marshal(out)
			var said struct {
				Failures []struct {
					ID *string `json:"itemIdentifier"`
				} `json:"batchItemFailures"`
			}
			if err != nil || bad != nil || json.Unmarshal(answer, &said) != nil || said.Failures == nil {
				t.Fatalf("%s: %s answers %s: %v %v", name, text, answer, err, bad)
			}
			var got []string
			for _, x := range said.Failures {
				got = append(got, *x.ID)
			}
			if !slices.Equal(handled, bodies) || !slices.Equal(valid(got), valid(want)) {
				t.Fatalf("%s: %s: handled %q, named %q, want %q", name, text, handled, got, want)
			}
		}
		if !slices.Equal(hidden, receipts) {
			t.Fatalf("%s: hidden %q, want %q", text, hidden, receipts)
		}
	})
}

// valid is as JSON carries it.
func valid(list []string) (out []string) {
	for _, s := range list {
		out = append(out, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return out
}
