package channel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure/failuretest"
)

// TestMain fails when a code that channels make is provoked by no test here.
func TestMain(m *testing.M) { failuretest.Main(m, "channel") }

var now = time.Date(2026, 11, 30, 8, 0, 5, 0, time.UTC)

var entropy = bytes.Repeat([]byte{7}, 16)

func delivery(recipient string) channel.Delivery {
	content := []byte("a,b\r\n1,2\r\n")
	sum := sha256.Sum256(content)
	return channel.Delivery{
		Key: "run-1#email#0011", ScheduleID: "s-1", ScheduleName: "Delays", Workspace: "EWR", RunID: "run-1",
		Occurrence: "s-1@2026-11-30T08:00:00Z", Nominal: now.Add(-5 * time.Second), Zone: "America/New_York",
		Recipient: recipient, Owner: "ops@ewr.example", SecretID: "hook",
		FileLink: "https://almanac.example/files/t", Unsubscribe: "https://almanac.example/unsubscribe/t",
		File: channel.File{Name: "delays.csv", MediaType: "text/csv", Rows: 1, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
			DataAsOf: now, Open: func(context.Context) ([]byte, error) { return content, nil }},
	}
}

// send freezes and tries once.
func send(t *testing.T, c channel.Channel, d channel.Delivery) channel.Verdict {
	t.Helper()
	f, err := c.Freeze(t.Context(), d, now, entropy)
	if err != nil {
		t.Fatalf("freeze: %v", err)
	}
	return c.Send(t.Context(), d, f)
}

// check compares a verdict; codes are noted as provoked.
func check(t *testing.T, got, want channel.Verdict) {
	t.Helper()
	if got.Outcome != want.Outcome || got.Reason != want.Reason {
		t.Fatalf("outcome %d reason %q (%s, %v), want %d %q", got.Outcome, got.Reason, got.Detail, got.Failure, want.Outcome, want.Reason)
	}
	if (got.Failure == nil) != (want.Failure == nil) {
		t.Fatalf("failure %v, want %v", got.Failure, want.Failure)
	}
	if want.Failure != nil {
		f := failuretest.Want(t, got.Failure, want.Failure.Code)
		if f.RetryAfter != want.Failure.RetryAfter {
			t.Fatalf("retry after %s, want %s", f.RetryAfter, want.Failure.RetryAfter)
		}
		if f.Message == "" {
			t.Fatal("a failure without a message")
		}
	}
	if got.Outcome == channel.Refused && got.Detail == "" {
		t.Fatal("a refusal that does not say why")
	}
}
