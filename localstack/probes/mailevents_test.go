//go:build cloud

package probes

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	sestypes "github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// rawTopic makes a topic whose messages arrive in a queue, raw.
func rawTopic(t *testing.T) (topic, queueURL string) {
	t.Helper()
	queueURL, queueARN := makeQueue(t, name(t, "-raw"), map[string]string{
		"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}]}`,
	})
	answer, err := raw().Query(t.Context(), "sns", "2010-03-31", "CreateTopic", map[string]string{"Name": name(t, "")})
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(answer, "<TopicArn>")
	topic, _, _ = strings.Cut(rest, "</TopicArn>")
	_, err = raw().Query(t.Context(), "sns", "2010-03-31", "Subscribe", map[string]string{"TopicArn": topic, "Protocol": "sqs", "Endpoint": queueARN,
		"Attributes.entry.1.key": "RawMessageDelivery", "Attributes.entry.1.value": "true"})
	if err != nil {
		t.Fatal(err)
	}
	return topic, queueURL
}

// arrives waits for a message with a text in it; what else comes is told.
func arrives(t *testing.T, queueURL, text string, within time.Duration) (body string, seen []string) {
	t.Helper()
	happens(within, func() (bool, string) {
		out, err := queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queueURL, WaitTimeSeconds: 1})
		if err != nil {
			return false, err.Error()
		}
		for _, m := range out.Messages {
			if seen = append(seen, aws.ToString(m.Body)); strings.Contains(aws.ToString(m.Body), text) {
				body = aws.ToString(m.Body)
			}
		}
		return body != "", fmt.Sprint(len(seen))
	})
	return body, seen
}

// https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html
func TestSNSDeliversRawToAQueue(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	topic, queueURL := rawTopic(t)
	const message = `{"eventType":"Bounce","mail":{"messageId":"probe"}}`
	if _, err := raw().Query(t.Context(), "sns", "2010-03-31", "Publish", map[string]string{"TopicArn": topic, "Message": message}); err != nil {
		t.Fatal(err)
	}
	if body, seen := arrives(t, queueURL, "probe", 20*time.Second); body != message {
		unlike(t, "the queue got %q", seen)
	}
}

// eventSet makes a configuration set whose bounces go to a topic, by whichever version of the API the cloud has.
func eventSet(t *testing.T, topic string) string {
	t.Helper()
	set := name(t, "")
	if _, err := ses.NewFromConfig(config()).CreateConfigurationSet(t.Context(), &ses.CreateConfigurationSetInput{ConfigurationSet: &sestypes.ConfigurationSet{Name: &set}}); err != nil {
		t.Fatal(err)
	}
	_, err := ses.NewFromConfig(config()).CreateConfigurationSetEventDestination(t.Context(), &ses.CreateConfigurationSetEventDestinationInput{ConfigurationSetName: &set,
		EventDestination: &sestypes.EventDestination{Name: &set, Enabled: true, SNSDestination: &sestypes.SNSDestination{TopicARN: &topic},
			MatchingEventTypes: []sestypes.EventType{sestypes.EventTypeBounce, sestypes.EventTypeSend}}})
	if err == nil {
		return set
	}
	t.Logf("version 1: %v", err)
	v2 := raw()
	if err := v2.REST(t.Context(), "ses", http.MethodPost, "/v2/email/configuration-sets", map[string]any{"ConfigurationSetName": set}, nil); err != nil && codeOf(err) != "AlreadyExistsException" {
		t.Fatal(err)
	}
	err = v2.REST(t.Context(), "ses", http.MethodPost, "/v2/email/configuration-sets/"+set+"/event-destinations", map[string]any{"EventDestinationName": set,
		"EventDestination": map[string]any{"Enabled": true, "MatchingEventTypes": []string{"BOUNCE", "SEND"}, "SnsDestination": map[string]string{"TopicArn": topic}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func sendWith(t *testing.T, from, to, set string) error {
	t.Helper()
	_, err := ses.NewFromConfig(config()).SendRawEmail(t.Context(), &ses.SendRawEmailInput{Source: &from, Destinations: []string{to}, ConfigurationSetName: &set,
		RawMessage: &sestypes.RawMessage{Data: []byte(mime(from, to, "probe"))}})
	return err
}

// https://docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html: mail to the simulator's bounce@ bounces.
func TestSESBouncesAreNotPublished(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	from, to := "sender@"+run+".example.com", "bounce@simulator.amazonses.com"
	verify(t, from)
	verify(t, to)
	topic, queueURL := rawTopic(t)
	if err := sendWith(t, from, to, eventSet(t, topic)); codeOf(err) == "InternalError" {
		t.Logf("the mail fails: %v", err)
		return
	} else if err != nil {
		t.Fatal(err)
	}
	body, seen := arrives(t, queueURL, `"Bounce"`, 10*time.Second)
	if t.Logf("the queue got %q", seen); body != "" {
		like(t, "a bounce was published: %s", body)
	}
}

// https://docs.aws.amazon.com/ses/latest/APIReference/API_SendRawEmail.html, ConfigurationSetDoesNotExist
func TestSESUnknownConfigurationSetIsRefused(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	from := "sender@" + run + ".example.com"
	verify(t, from)
	if err := sendWith(t, from, from, "missing-"+run); !strings.HasPrefix(codeOf(err), "ConfigurationSetDoesNotExist") {
		unlike(t, "a mail with a configuration set that does not exist: %v", err)
	}
}

// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ses-configurationset.html
func TestCloudFormationMakesConfigurationSets(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	stack := name(t, "")
	template := `{"Resources":{"Set":{"Type":"AWS::SES::ConfigurationSet","Properties":{"Name":"` + stack + `"}}}}`
	if _, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "CreateStack", map[string]string{"StackName": stack, "TemplateBody": template}); err != nil {
		t.Fatal(err)
	}
	var status string
	happens(30*time.Second, func() (bool, string) {
		answer, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "DescribeStacks", map[string]string{"StackName": stack})
		if err != nil {
			return false, err.Error()
		}
		_, rest, _ := strings.Cut(answer, "<StackStatus>")
		status, _, _ = strings.Cut(rest, "</StackStatus>")
		return strings.HasSuffix(status, "_COMPLETE") || strings.HasSuffix(status, "_FAILED"), status
	})
	_, err := ses.NewFromConfig(config()).DescribeConfigurationSet(t.Context(), &ses.DescribeConfigurationSetInput{ConfigurationSetName: &stack})
	if t.Logf("%s; the set: %v", status, err); status != "CREATE_COMPLETE" || err != nil {
		unlike(t, "the stack is %s, the configuration set: %v", status, err)
	}
}
