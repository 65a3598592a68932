//go:build cloud

package probes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	sestypes "github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// verify lets an address send; the whole of its domain gets mail in the sandbox then.
func verify(t *testing.T, address string) {
	t.Helper()
	_, domain, _ := strings.Cut(address, "@")
	if _, err := ses.NewFromConfig(config()).VerifyDomainIdentity(t.Context(), &ses.VerifyDomainIdentityInput{Domain: &domain}); err != nil {
		t.Fatal(err)
	}
}

// sandbox puts the account where AWS puts new ones: https://docs.aws.amazon.com/ses/latest/dg/request-production-access.html
// LocalStack's account is always there: localstack/executor.
func sandbox(t *testing.T) {
	t.Helper()
	if cloud == "localstack" {
		return
	}
	err := raw().REST(t.Context(), "ses", http.MethodPost, "/v2/email/account/details", map[string]any{
		"MailType": "TRANSACTIONAL", "WebsiteURL": "https://example.com", "ProductionAccessEnabled": false,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

const boundary = "probe-boundary"

// mime is a mail with a text and an attachment.
func mime(from, to, mark string) string {
	return strings.Join([]string{
		"From: " + from, "To: " + to, "Subject: " + mark, "MIME-Version: 1.0", `Content-Type: multipart/mixed; boundary="` + boundary + `"`, "",
		"--" + boundary, "Content-Type: text/plain; charset=utf-8", "", "text of " + mark,
		"--" + boundary, "Content-Type: text/csv", `Content-Disposition: attachment; filename="probe.csv"`, "Content-Transfer-Encoding: base64", "",
		base64.StdEncoding.EncodeToString([]byte("a,b\r\n1,2\r\n")), "--" + boundary + "--", "",
	}, "\r\n")
}

func rawMail(from, to, mark string) map[string]string {
	return map[string]string{
		"Source": from, "Destinations.member.1": to, "RawMessage.Data": base64.StdEncoding.EncodeToString([]byte(mime(from, to, mark))),
	}
}

// received asks the mail receiver, which scripts/test runs beside the cloud, for the mails to an address.
func received(t *testing.T, to string) []map[string]any {
	t.Helper()
	var mails []map[string]any
	receiver(t, http.MethodGet, "/_mails?to="+url.QueryEscape(to), nil, &mails)
	return mails
}

func receiver(t *testing.T, method, path string, in, out any) {
	t.Helper()
	base := os.Getenv("ALMANAC_WEBHOOK_RECEIVER")
	if base == "" {
		t.Fatal("ALMANAC_WEBHOOK_RECEIVER is not set: this probe needs the receivers that scripts/test starts")
	}
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s of the receivers: %s", method, path, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		t.Fatal(err)
	}
}

func sendRaw(t *testing.T, from, to, mark string) error {
	t.Helper()
	_, err := ses.NewFromConfig(config()).SendRawEmail(t.Context(), &ses.SendRawEmailInput{
		Source: &from, Destinations: []string{to}, RawMessage: &sestypes.RawMessage{Data: []byte(mime(from, to, mark))},
	})
	return err
}

func attachments(mail map[string]any) string { return fmt.Sprint(mail["attachments"]) }

func TestSESRawKeepsAttachments(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	from, to := "sender@"+run+".example.com", "raw-v1@"+run+".example.com"
	verify(t, from)
	if err := sendRaw(t, from, to, "probe"); err != nil {
		t.Fatal(err)
	}
	var mails []map[string]any
	eventually(t, 20*time.Second, func() (bool, string) {
		mails = received(t, to)
		return len(mails) == 1, fmt.Sprint(len(mails), " mails")
	})
	if !strings.Contains(attachments(mails[0]), "probe.csv") {
		unlike(t, "the mail that arrived has attachments %s", attachments(mails[0]))
	}
}

func TestSESVersion2LosesAttachments(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	from, to := "sender@"+run+".example.com", "raw-v2@"+run+".example.com"
	verify(t, from)
	err := raw().REST(t.Context(), "ses", http.MethodPost, "/v2/email/outbound-emails", map[string]any{
		"FromEmailAddress": from, "Destination": map[string]any{"ToAddresses": []string{to}},
		"Content": map[string]any{"Raw": map[string]any{"Data": []byte(mime(from, to, "probe"))}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mails []map[string]any
	eventually(t, 20*time.Second, func() (bool, string) {
		mails = received(t, to)
		return len(mails) == 1, fmt.Sprint(len(mails), " mails")
	})
	// https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_RawMessage.html: sent as it is.
	if strings.Contains(attachments(mails[0]), "probe.csv") {
		like(t, "the mail that arrived has attachments %s", attachments(mails[0]))
	}
}

func TestSESRefusalBySandbox(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	from := "sender@" + run + ".example.com"
	verify(t, from)
	sandbox(t)
	err := sendRaw(t, from, "somebody@unverified-"+run+".example.org", "probe")
	if codeOf(err) != "MessageRejected" || !strings.Contains(err.Error(), "not verified") {
		unlike(t, "mail to an address that is not verified, in the sandbox: %v, want MessageRejected", err)
	}
	if err := sendRaw(t, from, "somebody@"+run+".example.com", "probe"); err != nil {
		unlike(t, "mail to an address of a verified domain: %v", err)
	}
}

func TestSESUnverifiedSenderIsRefused(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	to := "somebody@" + run + ".example.com"
	verify(t, to)
	if err := sendRaw(t, "unknown@nobody-"+run+".example.org", to, "probe"); codeOf(err) != "MessageRejected" {
		unlike(t, "mail from an address that is not verified: %v, want MessageRejected", err)
	}
}

func TestSESReceiversRefusalIsNeverTold(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	from, to := "sender@"+run+".example.com", "refused@"+run+".example.com"
	verify(t, from)
	var answer any
	receiver(t, http.MethodPut, "/_mails/refuse", map[string]any{"recipients": []string{to}}, &answer)
	topic, queue := bounceTopic(t, "sender@"+run+".example.com")
	t.Logf("bounces go to %s", topic)
	if err := sendRaw(t, from, to, "probe"); err != nil {
		t.Fatalf("the call: %v; AWS and the emulator both take the mail before they deliver it", err)
	}
	// On AWS the notification is a bounce: https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html
	var body string
	notified, _ := happens(15*time.Second, func() (bool, string) {
		out, err := queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			return false, ""
		}
		body = aws.ToString(out.Messages[0].Body)
		return true, body
	})
	if t.Logf("notified %t: %s", notified, body); strings.Contains(body, "Bounce") {
		like(t, "the notification: %s", body)
	}
}

// bounceTopic has the sender's notifications arrive in a queue.
func bounceTopic(t *testing.T, identity string) (topic, queueURL string) {
	t.Helper()
	queueURL, queueARN := makeQueue(t, name(t, "-notes"), map[string]string{
		"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}]}`,
	})
	answer, err := raw().Query(t.Context(), "sns", "2010-03-31", "CreateTopic", map[string]string{"Name": name(t, "")})
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(answer, "<TopicArn>")
	topic, _, _ = strings.Cut(rest, "</TopicArn>")
	if _, err := raw().Query(t.Context(), "sns", "2010-03-31", "Subscribe", map[string]string{"TopicArn": topic, "Protocol": "sqs", "Endpoint": queueARN}); err != nil {
		t.Fatal(err)
	}
	client := ses.NewFromConfig(config())
	_, domain, _ := strings.Cut(identity, "@")
	for _, kind := range []sestypes.NotificationType{sestypes.NotificationTypeBounce, sestypes.NotificationTypeDelivery} {
		if _, err := client.SetIdentityNotificationTopic(t.Context(), &ses.SetIdentityNotificationTopicInput{Identity: &domain, NotificationType: kind, SnsTopic: &topic}); err != nil {
			t.Fatal(err)
		}
	}
	return topic, queueURL
}

// large is a mark with which a mail has about the given size; it is in the subject and in the text.
func large(bytes int) string { return strings.Repeat("x", bytes/2) }

func TestSESMessageAboveTenMegabytes(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	from := "sender@" + run + ".example.com"
	verify(t, from)
	// https://docs.aws.amazon.com/ses/latest/dg/quotas.html: 10 MB with v1, after encoding.
	if err := sendRaw(t, from, from, large(9<<20)); err != nil {
		t.Errorf("a mail of 9 MB: %v", err)
	}
	if err := sendRaw(t, from, from, large(11<<20)); strings.HasPrefix(codeOf(err), "InvalidParameter") {
		like(t, "a mail of 11 MB: %v", err)
	} else if err != nil {
		t.Errorf("a mail of 11 MB: %v, want that it is taken, or refused as SES does", err)
	}
}

func TestSESSendRateIsNotLimited(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	from := "sender@" + run + ".example.com"
	verify(t, from)
	// https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas-errors.html: one a second in the sandbox.
	sandbox(t)
	for i := range 20 {
		if err := sendRaw(t, from, fmt.Sprintf("rate-%d@%s.example.com", i, run), "probe"); err != nil {
			like(t, "mail %d: %v", i, err)
		}
	}
}
