package email

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"almanac/internal/channel"
)

// doc is a JSON object; with replaces what stands at a path ("mail.messageId"), nil takes it out.
type doc map[string]any

func (d doc) with(path string, v any) doc {
	c := maps.Clone(d)
	name, rest, deeper := strings.Cut(path, ".")
	switch {
	case deeper:
		c[name] = map[string]any(doc(d[name].(map[string]any)).with(rest, v))
	case v == nil:
		delete(c, name)
	default:
		c[name] = v
	}
	return c
}

func (d doc) text(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const eventKey = "s@2013-06-03T12:00:00Z/email#0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

func header(name, value string) any { return map[string]any{"name": name, "value": value} }

// The events, as https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-examples.html shows them.
func theMail() map[string]any {
	return map[string]any{"timestamp": "2026-11-30T08:00:00.123Z", "source": "almanac@example.com", "sourceArn": "arn:aws:ses:us-east-1:111122223333:identity/example.com",
		"sendingAccountId": "111122223333", "messageId": "010001765f2e0d22-11111111-2222-3333-4444-555555555555-000000", "destination": []any{"jane@example.com"}, "headersTruncated": false,
		"headers": []any{header("From", "Almanac <almanac@example.com>"), header("To", "jane@example.com"), header("X-Almanac-Delivery", eventKey)}, "commonHeaders": map[string]any{"subject": "x"},
		"tags": map[string]any{"ses:configuration-set": []any{"s"}}}
}

func aBounce() doc {
	return doc{"eventType": "Bounce", "mail": theMail(), "bounce": map[string]any{"bounceType": "Permanent", "bounceSubType": "General", "timestamp": "2026-11-30T08:00:05.500Z",
		"feedbackId": "0100", "reportingMTA": "dsn; a.example.com", "bouncedRecipients": []any{map[string]any{"emailAddress": "jane@example.com", "action": "failed", "status": "5.1.1",
			"diagnosticCode": "smtp; 550 5.1.1 <jane@example.com>... User unknown"}}}}
}

func aComplaint() doc {
	return doc{"eventType": "Complaint", "mail": theMail(), "complaint": map[string]any{"complainedRecipients": []any{map[string]any{"emailAddress": "jane@example.com"}}, "timestamp": "2026-11-30T08:00:05.500Z",
		"feedbackId": "0100", "userAgent": "x/1.0", "complaintFeedbackType": "abuse", "arrivalDate": "2026-11-30T08:00:04Z"}}
}

func aReject() doc {
	return doc{"eventType": "Reject", "mail": theMail(), "reject": map[string]any{"reason": "Bad content"}}
}

var at5 = time.Date(2026, 11, 30, 8, 0, 5, 500_000_000, time.UTC)

const mailID = "010001765f2e0d22-11111111-2222-3333-4444-555555555555-000000"

func parsed(t *testing.T, d doc) channel.MailEvent {
	t.Helper()
	e, err := ParseEvent(d.text(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEventsAsSESPublishesThem(t *testing.T) {
	about := channel.MailEvent{Key: eventKey, Account: "111122223333", Recipients: []string{"jane@example.com"}}
	for _, x := range []struct {
		name       string
		event      doc
		want       channel.Feedback
		suppresses bool
	}{
		{"bounce", aBounce(), channel.Feedback{Kind: channel.Bounced, At: at5, Type: channel.Permanent, Subtype: "General", Why: "mailbox does not exist", Detail: "5.1.1 smtp; 550 5.1.1 <…>... User unknown", Mail: mailID}, true},
		{"complaint", aComplaint(), channel.Feedback{Kind: channel.Complained, At: at5, Type: "abuse", Mail: mailID}, true},
		{"reject", aReject(), channel.Feedback{Kind: channel.Rejected, At: time.Date(2026, 11, 30, 8, 0, 0, 123_000_000, time.UTC), Why: "SES found its content bad and did not send it", Detail: "Bad content", Mail: mailID}, false},
		{"mailbox full", aBounce().with("bounce.bounceType", "Transient").with("bounce.bounceSubType", "MailboxFull").with("bounce.bouncedRecipients", []any{}),
			channel.Feedback{Kind: channel.Bounced, At: at5, Type: channel.Transient, Subtype: "MailboxFull", Why: "mailbox full", Mail: mailID}, false},
		{"undetermined", aBounce().with("bounce.bounceType", "Undetermined").with("bounce.bounceSubType", "Undetermined").with("bounce.bouncedRecipients", nil),
			channel.Feedback{Kind: channel.Bounced, At: at5, Type: channel.Undetermined, Subtype: "Undetermined", Mail: mailID}, false},
		{"on the account's list", aBounce().with("bounce.bounceSubType", "OnAccountSuppressionList").with("bounce.bouncedRecipients", nil),
			channel.Feedback{Kind: channel.Bounced, At: at5, Type: channel.Permanent, Subtype: "OnAccountSuppressionList", Why: subtypes["OnAccountSuppressionList"], Mail: mailID}, true},
		{"a subtype of tomorrow", aBounce().with("bounce.bounceSubType", "Tomorrow").with("bounce.bouncedRecipients", []any{map[string]any{"status": "5.9.9"}}),
			channel.Feedback{Kind: channel.Bounced, At: at5, Type: channel.Permanent, Subtype: "Tomorrow", Detail: "5.9.9", Mail: mailID}, true},
		{"complaint without a type", aComplaint().with("complaint.complaintFeedbackType", nil), channel.Feedback{Kind: channel.Complained, At: at5, Mail: mailID}, true},
		{"no spam after all", aComplaint().with("complaint.complaintFeedbackType", "Not-Spam"), channel.Feedback{Kind: channel.Complained, At: at5, Type: channel.NotSpam, Mail: mailID}, false},
		{"a server's report", aComplaint().with("complaint.complaintFeedbackType", "auth-failure"), channel.Feedback{Kind: channel.Complained, At: at5, Type: channel.AuthFailure, Mail: mailID}, false},
		{"complaint by the account's list", aComplaint().with("complaint.complaintSubType", "OnAccountSuppressionList").with("complaint.complaintFeedbackType", nil),
			channel.Feedback{Kind: channel.Complained, At: at5, Subtype: "OnAccountSuppressionList", Why: subtypes["OnAccountSuppressionList"], Mail: mailID}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			want := about
			want.Feedback = x.want
			if got := parsed(t, x.event); !reflect.DeepEqual(got, want) {
				t.Errorf("is   %+v\nwant %+v", got, want)
			}
			if x.want.Suppresses() != x.suppresses {
				t.Errorf("suppresses: %v", !x.suppresses)
			}
		})
	}
}

// What nobody asked for is no error: it would come again, and never be anything else.
func TestOtherEventsAreNotOurs(t *testing.T) {
	for _, kind := range []string{"Send", "Delivery", "Open", "Click", "Rendering Failure", "DeliveryDelay", "Subscription", "bounce"} {
		if e := parsed(t, aBounce().with("eventType", kind)); e.Kind != "" {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	for _, text := range []string{topicTest, topicTest + "\n"} {
		if e, err := ParseEvent(text); err != nil || e.Kind != "" {
			t.Errorf("SES's own test message: %+v, %v", e, err)
		}
	}
}

// TestUnreadableEvents: for each field absent, null, of a wrong type, out of range, hostile. The error names the field
// and what would be right, and holds nothing of the event.
func TestUnreadableEvents(t *testing.T) {
	const secret = "jane-secret@example.com"
	for _, x := range []struct {
		name string
		body string
		want string
	}{
		{"empty", "", "no JSON"},
		{"text", "hello " + secret, "no JSON"},
		{"cut off", aBounce().text(t)[:200], "no JSON"},
		{"a list", "[]", "the event is a JSON array"},
		{"SNS's envelope", doc{"Type": "Notification", "Message": aBounce().text(t)}.text(t), "eventType is missing"},
		{"eventType absent", aBounce().with("eventType", nil).text(t), "eventType is missing"},
		{"eventType a number", aBounce().with("eventType", 7).text(t), "eventType is a JSON number; want string"},
		{"mail absent", aBounce().with("mail", nil).text(t), "mail is missing"},
		{"mail text", aBounce().with("mail", secret).text(t), "mail is a JSON string"},
		{"messageId absent", aBounce().with("mail.messageId", nil).text(t), "mail.messageId is missing"},
		{"messageId hostile", aBounce().with("mail.messageId", "0100\r\n"+secret).text(t), "mail.messageId is missing, or none"},
		{"messageId too long", aBounce().with("mail.messageId", strings.Repeat("a", 129)).text(t), "mail.messageId"},
		{"destination text", aBounce().with("mail.destination", secret).text(t), "mail.destination is a JSON string"},
		{"headers an object", aBounce().with("mail.headers", map[string]any{"name": secret}).text(t), "mail.headers is a JSON object"},
		{"a header's value a list", aBounce().with("mail.headers", []any{map[string]any{"name": "To", "value": []any{secret}}}).text(t), "mail.headers.value is a JSON array"},
		{"bounce absent", aBounce().with("bounce", nil).text(t), "bounce is missing"},
		{"bounce of a complaint", aComplaint().with("eventType", "Bounce").text(t), "bounce is missing"},
		{"bounceType absent", aBounce().with("bounce.bounceType", nil).text(t), "bounce.bounceType is missing"},
		{"bounceType unknown", aBounce().with("bounce.bounceType", "permanent").text(t), "Permanent, Transient or Undetermined"},
		{"bounceType a list", aBounce().with("bounce.bounceType", []any{"Permanent"}).text(t), "bounce.bounceType is a JSON array"},
		{"timestamp absent", aBounce().with("bounce.timestamp", nil).text(t), "bounce.timestamp is missing"},
		{"timestamp hostile", aBounce().with("bounce.timestamp", "yesterday "+secret).text(t), "bounce.timestamp is missing, or no instant"},
		{"timestamp out of range", aBounce().with("bounce.timestamp", "0001-01-01T00:00:00Z").text(t), "bounce.timestamp"},
		{"timestamp a number", aBounce().with("bounce.timestamp", 1234567).text(t), "bounce.timestamp is a JSON number"},
		{"recipients text", aBounce().with("bounce.bouncedRecipients", secret).text(t), "bounce.bouncedRecipients is a JSON string"},
		{"complaint absent", aComplaint().with("complaint", nil).text(t), "complaint is missing"},
		{"complaint's timestamp absent", aComplaint().with("complaint.timestamp", nil).text(t), "complaint.timestamp"},
		{"complaint's type a number", aComplaint().with("complaint.complaintFeedbackType", 7).text(t), "complaint.complaintFeedbackType is a JSON number"},
		{"reject absent", aReject().with("reject", nil).text(t), "reject is missing"},
		{"mail's timestamp absent", aReject().with("mail.timestamp", nil).text(t), "mail.timestamp"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := ParseEvent(x.body)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("%v, want it to say %q", err, x.want)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "1234567") {
				t.Errorf("the error holds what the event holds: %v", err)
			}
		})
	}
}

// TestWhatAReceiverSaysIsCutAndHoldsNoAddress: diagnostics are shown to who may not see addresses.
func TestWhatAReceiverSaysIsCutAndHoldsNoAddress(t *testing.T) {
	says := func(status, diagnostic string) string {
		return parsed(t, aBounce().with("bounce.bouncedRecipients", []any{map[string]any{"status": status, "diagnosticCode": diagnostic}})).Detail
	}
	for diagnostic, want := range map[string]string{
		"550 <jane.doe+x@example.com> and JANE@EXAMPLE.COM, \"j d\"@example.com: no": "550 <…> and …, \"j d\"…: no",
		"550 rfc822;jane@example.com":            "550 rfc822;…",
		"550 jane%40example.com unknown":         "550 … unknown",
		"550 line\r\nBcc: x":                     "550 line Bcc: x",
		"550 \u202egnorw\u202c =?utf-8?B?eA==?=": "550 gnorw = ?utf-8?B?eA== ?=",
		"":                                       "",
	} {
		if got := says("", diagnostic); got != want {
			t.Errorf("%q is told as %q, want %q", diagnostic, got, want)
		}
	}
	for _, huge := range []string{strings.Repeat("x", 300_000), strings.Repeat("jane@example.com ", 20_000), strings.Repeat("a", 990) + " jane@example.com", "550 " + strings.Repeat("é", 100_000)} {
		if got := says("5.0.0", huge); len(got) > 200 || strings.Contains(got, "jane") {
			t.Errorf("%d bytes are told as %q", len(huge), got)
		}
	}
	if got := says("5.1.1\r\nx", "no"); got != "no" {
		t.Errorf("a hostile status is told as %q", got)
	}
	e := parsed(t, aBounce().with("bounce.bounceSubType", "x<script>").with("bounce.bouncedRecipients", nil))
	if e.Subtype != "" {
		t.Errorf("a hostile subtype is kept: %q", e.Subtype)
	}
	two := parsed(t, aBounce().with("bounce.bouncedRecipients", []any{map[string]any{"status": "4.2.2", "diagnosticCode": "full"}, map[string]any{"status": "5.1.1", "diagnosticCode": "unknown"}}))
	if two.Detail != "4.2.2 full" || two.Why != "mailbox full" {
		t.Errorf("of two recipients: %+v", two)
	}
}

// TestAMailIsKnownByItsOwnHeader: in whatever case, once; a mail that has it twice is none of ours.
func TestAMailIsKnownByItsOwnHeader(t *testing.T) {
	of := func(headers ...any) channel.MailEvent { return parsed(t, aBounce().with("mail.headers", headers)) }
	if e := of(header("x-almanac-delivery", " "+eventKey+" ")); e.Key != eventKey {
		t.Errorf("%+v", e)
	}
	if e := of(header("X-Almanac-Notice", "s@x#failed#email#0a")); e.Key != "" || e.Notice != "s@x#failed#email#0a" {
		t.Errorf("%+v", e)
	}
	if e := of(header("X-Almanac-Delivery", eventKey), header("X-ALMANAC-DELIVERY", eventKey)); e.Key != "" {
		t.Errorf("twice: %+v", e)
	}
	if e := of(header("X-Almanac-Delivery", strings.Repeat("x", maxText+1))); e.Key != "" {
		t.Errorf("too long: %+v", e)
	}
	// Truncated headers that lack ours, and none at all.
	for _, d := range []doc{aBounce().with("mail.headers", []any{header("To", "x")}).with("mail.headersTruncated", true), aBounce().with("mail.headers", nil)} {
		if e := parsed(t, d); e.Key != "" || e.Notice != "" || e.Kind != channel.Bounced {
			t.Errorf("%+v", e)
		}
	}
}

// TestOurHeadersAreNeverTruncated: SES repeats 10 KB of headers.
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html
func TestOurHeadersAreNeverTruncated(t *testing.T) {
	c, err := New(&outbox{}, Config{From: strings.Repeat("f", 64) + "@" + strings.Repeat("a.", 90) + "example", FromName: strings.Repeat("é", 300)})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é", 1000)
	d := channel.Delivery{Key: long, ScheduleID: long, ScheduleName: long, Workspace: long, RunID: long, Occurrence: long, Recipient: strings.Repeat("x", 254), Subject: long,
		Unsubscribe: "https://almanac.example/" + strings.Repeat("x", 876)}
	n := 0
	for _, h := range c.headers(d, channel.Frozen{}) {
		n += len(fold(h[0], h[1])) + 2
	}
	if n > 9_000 {
		t.Errorf("the longest headers have %d bytes; SES repeats 10 KB", n)
	}
	t.Logf("the longest headers have %d bytes", n)
}

func FuzzParseEvent(f *testing.F) {
	t := &testing.T{}
	for _, d := range []doc{aBounce(), aComplaint(), aReject()} {
		f.Add(d.text(t))
	}
	f.Fuzz(func(t *testing.T, body string) {
		e, err := ParseEvent(body)
		if err != nil && (!strings.Contains(err.Error(), "want") || !utf8.ValidString(err.Error())) {
			t.Errorf("%q: %v says not what would be right", body, err)
		}
		var plain struct {
			Mail struct {
				Account string                         `json:"sendingAccountId"`
				To      []string                       `json:"destination"`
				Headers []struct{ Name, Value string } `json:"headers"`
			} `json:"mail"`
		}
		if err == nil && e.Kind != "" {
			if json.Unmarshal([]byte(body), &plain) != nil || plain.Mail.Account != e.Account || !slices.Equal(plain.Mail.To, e.Recipients) {
				t.Errorf("%q was read as %+v", body, e)
			}
			if ours := func(h struct{ Name, Value string }) bool { return strings.TrimSpace(h.Value) == e.Key }; e.Key != "" && !slices.ContainsFunc(plain.Mail.Headers, ours) {
				t.Errorf("%q: the key %q is in no header", body, e.Key)
			}
		}
		if err == nil && e.Kind != "" && (e.At.IsZero() || e.Mail == "") {
			t.Errorf("%+v", e)
		}
		if strings.Contains(e.Detail, "@") || len(e.Detail) > 200 || strings.ContainsAny(e.Detail+e.Subtype+e.Mail, "\r\n") {
			t.Errorf("%q", e.Detail)
		}
	})
}
