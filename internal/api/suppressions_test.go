package api

import (
	"strings"
	"testing"

	"almanac/internal/channel"
	"almanac/internal/schedule"
)

// TestBadInputOfSuppressions: for each field absent, null, wrong type, out of range, hostile text, an unknown neighbour.
func TestBadInputOfSuppressions(t *testing.T) {
	at := "/suppressions/email/" + suppressedHash
	for _, x := range []struct {
		name, method, target, body, field string
	}{
		{"channel of others", "GET", "/suppressions/fax/" + suppressedHash, "", "channel"},
		{"channel in capitals", "GET", "/suppressions/Email/" + suppressedHash, "", "channel"},
		{"hostile channel", "POST", "/suppressions/email%23x/" + suppressedHash + "/lift", `{"reason":"x"}`, "channel"},
		{"an address", "GET", "/suppressions/email/ada@example.com", "", "recipient"},
		{"hash too short", "GET", at[:len(at)-1], "", "recipient"},
		{"hash too long", "GET", at + "0", "", "recipient"},
		{"hash in capitals", "GET", "/suppressions/email/" + strings.ToUpper(suppressedHash), "", "recipient"},
		{"hostile hash", "GET", "/suppressions/email/" + suppressedHash[:30] + "%23x", "", "recipient"},
		{"lift of nobody's hash", "POST", "/suppressions/email/x/lift", `{"reason":"x"}`, "recipient"},
		{"audits of nobody's hash", "GET", "/suppressions/email/x/audits", "", "recipient"},
		{"lift without reason", "POST", at + "/lift", `{}`, "reason"},
		{"lift, reason null", "POST", at + "/lift", `{"reason":null}`, "reason"},
		{"lift, reason blank", "POST", at + "/lift", `{"reason":" "}`, "reason"},
		{"lift, reason wrong type", "POST", at + "/lift", `{"reason":7}`, "reason"},
		{"lift, reason too long", "POST", at + "/lift", `{"reason":"` + strings.Repeat("x", 201) + `"}`, "reason"},
		{"lift, hostile reason", "POST", at + "/lift", `{"reason":"x\r\ny"}`, "reason"},
		{"lift with an unknown field", "POST", at + "/lift", `{"reason":"x","all":true}`, "all"},
		{"list, cursor garbage", "GET", "/suppressions?cursor=x", "", "cursor"},
		{"list, limit zero", "GET", "/suppressions?limit=0", "", "limit"},
		{"list, parameter unknown", "GET", "/suppressions?channel=email", "", "channel"},
		{"audits, cursor garbage", "GET", at + "/audits?cursor=x", "", "cursor"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, c := peopled(t)
			c.as("admin", x.method, x.target, x.body).problem(422, x.field)
			if len(w.writes) > 0 {
				t.Errorf("refused, and yet it wrote %v", w.writes)
			}
		})
	}
}

func TestARecipientWhoNeverWasSuppressed(t *testing.T) {
	w, c := peopled(t)
	other := strings.Repeat("0f", 16)
	c.as("admin", "GET", "/suppressions/email/"+other, "").problem(404, "")
	c.as("admin", "GET", "/suppressions/webhook/"+suppressedHash, "").problem(404, "")
	c.as("admin", "POST", "/suppressions/email/"+other+"/lift", `{"reason":"x"}`).problem(404, "")
	if len(w.writes) > 0 {
		t.Fatal(w.writes)
	}
}

// TestFeedbackIsShownBesideTheOutcome: a mail whose id is another's than the recorded one is said to be.
func TestFeedbackIsShownBesideTheOutcome(t *testing.T) {
	w, c := peopled(t)
	const run = "ewr-delays@2013-07-01T13:00:00Z"
	w.submissions[run] = []schedule.Submission{
		{Run: run, Channel: "email", RecipientHash: someHash, Recipient: "ada@example.com", State: schedule.Submitted, ProviderID: "0100-a", Feedback: []channel.Feedback{
			{Kind: channel.Bounced, At: w.at, Type: channel.Permanent, Subtype: "General", Why: "mailbox does not exist", Detail: "5.1.1 no such user", Mail: "0100-a"},
			{Kind: channel.Complained, At: w.at, Type: "abuse", Mail: "0100-b"}}},
		{Run: run, Channel: "email", RecipientHash: suppressedHash, Recipient: "bob@example.com", State: schedule.Submitted, ProviderID: "0100-c"},
	}
	var d RunDetail
	c.as("viewer", "GET", "/runs/"+run, "").want(200).into(&d)
	if r := d.Recipients[0]; r.Outcome != "submitted" || len(r.Feedback) != 2 || r.Feedback[0] != (FeedbackView{"bounce", "permanent", "General", "mailbox does not exist", "5.1.1 no such user", r.Feedback[0].At, false}) ||
		!r.Feedback[0].At.Equal(w.at) || r.Feedback[1].Kind != "complaint" || r.Feedback[1].Type != "abuse" || !r.Feedback[1].Other {
		t.Errorf("%+v", r)
	}
	if r := d.Recipients[1]; r.Feedback != nil {
		t.Errorf("%+v", r)
	}
}
