//go:build cloud

package e2e

import (
	"encoding/json"
	"fmt"
	netmail "net/mail"
	"os"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/localstack/internal/rawaws"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// publish hands a message to the topic of the mail service's events, as SES does; the local clouds' SES has none to tell.
func publish(t *testing.T, message string) {
	t.Helper()
	keys, err := cloud.aws.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sns := rawaws.Client{Endpoint: aws.ToString(cloud.aws.BaseEndpoint), Region: cloud.aws.Region, Credentials: keys, HTTP: cloud.http, Now: time.Now}
	if _, err := sns.Query(t.Context(), "sns", "2010-03-31", "Publish", map[string]string{"TopicArn": cloud.outputs["MailEventsTopicArn"], "Message": message}); err != nil {
		t.Fatal(err)
	}
}

// bounceOf is what SES publishes when a mail that was really sent bounces for good: with that mail's own headers.
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-examples.html
func bounceOf(t *testing.T, m mail, id string, at time.Time) string {
	t.Helper()
	f, err := os.Open(m.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sent, err := netmail.ReadMessage(f)
	if err != nil {
		t.Fatal(err)
	}
	var headers []map[string]string
	for name, values := range sent.Header {
		for _, v := range values {
			headers = append(headers, map[string]string{"name": name, "value": v})
		}
	}
	_, rest, _ := strings.Cut(cloud.outputs["MailEventsTopicArn"], ":sns:")
	stamp := at.UTC().Format("2006-01-02T15:04:05.000Z")
	b, err := json.Marshal(map[string]any{
		"eventType": "Bounce",
		"bounce": map[string]any{"bounceType": "Permanent", "bounceSubType": "General", "timestamp": stamp, "feedbackId": "0100-feedback", "reportingMTA": "dsn; a8-70.smtp-out.amazonses.com",
			"bouncedRecipients": []any{map[string]string{"emailAddress": m.To[0], "action": "failed", "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 <" + m.To[0] + ">: user unknown"}}},
		"mail": map[string]any{"timestamp": stamp, "source": cloud.outputs["MailFrom"], "sendingAccountId": strings.Split(rest, ":")[1], "messageId": id, "destination": m.To,
			"headersTruncated": false, "headers": headers, "commonHeaders": map[string]any{"to": m.To}, "tags": map[string]any{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestABounceIsRecordedBesideTheOutcomeAndSuppressesTheAddress(t *testing.T) {
	scene(t)
	d := save(t, nil)
	run := due(t, d)
	want(t, settled(t, run), schedule.Succeeded, "")
	m := mailed(t, run, 1)[0]
	sub := outcomes(t, run)[d.Recipients[0].Email]
	event := bounceOf(t, m, sub.ProviderID, time.Now())
	publish(t, event)
	publish(t, event) // SNS delivers at least once
	var detail api.RunDetail
	eventually(t, "the bounce", func() (bool, string) {
		status, b := call(t, "viewer", "GET", "/runs/"+run, nil)
		if err := json.Unmarshal(b, &detail); err != nil || status != 200 {
			return false, fmt.Sprintf("%d %s", status, b)
		}
		return len(detail.Recipients[0].Feedback) > 0, string(b)
	})
	r := detail.Recipients[0]
	if f := r.Feedback; r.Outcome != "submitted" || len(f) != 1 || f[0].Kind != "bounce" || f[0].Type != "permanent" || f[0].Why != "mailbox does not exist" || f[0].Other {
		t.Fatalf("%+v", r)
	}
	if strings.Contains(r.Feedback[0].Detail, "@") || !strings.Contains(r.Feedback[0].Detail, "user unknown") {
		t.Fatalf("a viewer is shown %q", r.Feedback[0].Detail)
	}
	if detail.State != string(schedule.Succeeded) || detail.Submitted != 1 || detail.Skipped != 0 {
		t.Fatalf("the run is %s with %d submitted", detail.State, detail.Submitted)
	}

	// The next day the address is passed over.
	next := nextDay(t, d, 1)
	if next.Submitted != 0 || next.SkippedN != 1 || len(mails(t, next.ID())) != 0 {
		t.Fatalf("submitted %d, skipped %d, %d mails after the bounce", next.Submitted, next.SkippedN, len(mails(t, next.ID())))
	}
	if s := outcomes(t, next.ID())[d.Recipients[0].Email]; s.State != schedule.NotDelivered || s.Reason != channel.ReasonSuppressed {
		t.Fatalf("%s %s, want skipped as suppressed", s.State, s.Reason)
	}

	// A person lifts it; the same event once more does not put it back.
	at := "/suppressions/email/" + sub.RecipientHash
	if status, b := call(t, "operator", "POST", at+"/lift", map[string]string{"reason": "x"}); status != 403 {
		t.Fatalf("an operator lifts it: %d %s", status, b)
	}
	must(t, "POST", at+"/lift", map[string]string{"reason": "mailbox mended"})
	send(t, "MailEventsQueueUrl", event)
	emptied(t, "MailEventsQueueUrl")
	last := nextDay(t, d, 2)
	if last.Submitted != 1 {
		t.Fatalf("submitted %d after the suppression was lifted, outcomes %+v", last.Submitted, outcomes(t, last.ID()))
	}
	mailed(t, last.ID(), 1)
}

// nextDay has the occurrence of so many days later delivered.
func nextDay(t *testing.T, d schedule.Definition, days int) schedule.Run {
	t.Helper()
	at := monday.Add(time.Duration(days)*24*time.Hour + 30*time.Minute)
	setClock(t, at)
	tick(t)
	r := settled(t, d.ID+"@"+schedule.OccurrenceKey(at))
	want(t, r, schedule.Succeeded, "")
	return r
}

// What nobody can read ends among the dead letters, after some tries; what SES says when the destination is made does not.
func TestAMailEventThatNobodyCanReadIsADeadLetter(t *testing.T) {
	scene(t)
	mark := fmt.Sprintf("no event %d", time.Now().UnixNano())
	publish(t, "Successfully validated SNS topic for Amazon SES event publishing.")
	publish(t, mark)
	client, dead := sqs.NewFromConfig(cloud.aws), aws.String(cloud.outputs["MailEventsDlqUrl"])
	eventually(t, "the dead letter", func() (bool, string) {
		out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: dead, WaitTimeSeconds: 1, MaxNumberOfMessages: 10})
		if err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, m := range out.Messages {
			seen = append(seen, aws.ToString(m.Body))
			if aws.ToString(m.Body) == mark {
				if _, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: dead, ReceiptHandle: m.ReceiptHandle}); err != nil {
					t.Fatal(err)
				}
				return true, mark
			}
		}
		return false, fmt.Sprintf("%q", seen)
	})
	emptied(t, "MailEventsQueueUrl")
}
