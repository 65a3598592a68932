package boot_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"almanac/internal/boot"

	"github.com/aws/aws-lambda-go/events"
)

// A batch of mail events names those that failed, and only those; one that all went well answers an empty list.
func TestMailEventsNameWhatFailed(t *testing.T) {
	var log bytes.Buffer
	c := boot.MailEvents{Log: boot.NewLogger(&log), Handle: func(_ context.Context, id, body string) error {
		if body == "bad" {
			return errors.New("eventType is missing")
		}
		return nil
	}}
	batch := func(bodies ...string) (e events.SQSEvent) {
		for i, b := range bodies {
			e.Records = append(e.Records, events.SQSMessage{MessageId: string(rune('a' + i)), Body: b})
		}
		return e
	}
	out, err := c.Batch(t.Context(), batch("good", "bad", "good", "bad"))
	if err != nil || len(out.BatchItemFailures) != 2 || out.BatchItemFailures[0].ItemIdentifier != "b" || out.BatchItemFailures[1].ItemIdentifier != "d" {
		t.Errorf("%+v, %v", out, err)
	}
	if n := strings.Count(log.String(), "eventType is missing"); n != 2 || strings.Contains(log.String(), "bad") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
	if out, err := c.Batch(t.Context(), batch("good")); err != nil || out.BatchItemFailures == nil || len(out.BatchItemFailures) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestTheConfigurationSetAndTheAccountAreRead(t *testing.T) {
	env := environment()
	env[boot.EnvMailSet], env[boot.EnvAccount] = "almanac-set", "111122223333"
	if c, err := read(env); err != nil || c.MailSet != "almanac-set" || c.Account != "111122223333" {
		t.Errorf("%q %q, %v", c.MailSet, c.Account, err)
	}
}
