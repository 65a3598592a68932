package command

import (
	"strings"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
)

func TestWrongSuppressionsSayWhatIsRight(t *testing.T) {
	s := ready(t, "admin")
	for _, x := range []struct{ args, want string }{
		{"unsuppress", "usage: almanac unsuppress ADDRESS"},
		{"unsuppress ada@example.com", "--reason is missing"},
		{"unsuppress nobody --reason x", "ADDRESS: recipient \"nobody\""},
		{"unsuppress https:// --reason x", "ADDRESS: recipient"},
		{"get suppressions nobody", "name@example.com"},
		{"get suppressions a@example.com b@example.com", "usage: almanac get"},
	} {
		_, err := s.run(Usage, strings.Split(x.args, " ")...)
		has(t, err, x.want)
	}
}

// TestBouncesAreShownAndSuppressionsLifted: beside the outcome in `show`, in the list by hash, by the address.
func TestBouncesAreShownAndSuppressionsLifted(t *testing.T) {
	s := applied(t, "admin")
	id := s.made()
	var sub schedule.Submission
	for _, x := range s.product.Deliver(t, id) {
		if x.Channel == channel.Email {
			sub = x
		}
	}
	if sub.Recipient == "" {
		t.Fatal("no mail was sent")
	}
	_, err := s.run(Refused, "get", "suppressions", sub.Recipient)
	has(t, err, "404", "not suppressed")
	out, _ := s.run(Done, "get", "suppressions")
	has(t, out, "(none)")
	sent, err2 := s.product.Store.Submission(t.Context(), id, sub.Channel, sub.RecipientHash)
	if err2 != nil {
		t.Fatal(err2)
	}
	at := s.product.Wall().Add(-time.Minute)
	for _, f := range []channel.Feedback{{Kind: channel.Bounced, At: at, Type: channel.Permanent, Why: "mailbox does not exist", Mail: sent.ProviderID}, {Kind: channel.Complained, At: at, Mail: "another"}} {
		if err := s.product.Store.RecordFeedback(t.Context(), sub, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.product.Store.Suppress(t.Context(), schedule.Suppression{Channel: sub.Channel, RecipientHash: sub.RecipientHash, Reason: "bounce", Why: "mailbox does not exist", Run: id, At: at}); err != nil {
		t.Fatal(err)
	}
	out, _ = s.run(Done, "show", id)
	has(t, out, "submitted", "bounced (permanent, mailbox does not exist), complained (another mail than the one recorded)")
	out, _ = s.run(Done, "get", "suppressions")
	has(t, out, "HASH", sub.RecipientHash, "bounce", "mailbox does not exist", id)
	if strings.Contains(out, sub.Recipient) {
		t.Errorf("the list shows an address: %s", out)
	}
	for _, why := range []string{"mailbox mended", "really"} {
		out, _ = s.run(Done, "unsuppress", strings.ToUpper(sub.Recipient), "--reason", why)
		has(t, out, "may be sent to since", "lifted by ada: mailbox mended")
	}
	out, _ = s.run(Done, "get", "suppressions", sub.RecipientHash)
	has(t, out, "by ada: mailbox mended")
	out, _ = s.run(Done, "get", "suppressions", sub.Recipient, "-o", "json")
	has(t, out, `"lifted"`, `"mailbox mended"`)
	_, err = s.run(Refused, "unsuppress", "nobody@example.com", "--reason", "x")
	has(t, err, "404", "never was")
	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "operator", "--password-stdin")
	_, err = s.run(Refused, "unsuppress", sub.Recipient, "--reason", "x")
	has(t, err, "403", "admin")
}
