package main

import (
	"strings"
	"testing"
)

// setOf is the logical id of the configuration set; empty where the cloud has none.
func setOf(t *testing.T, p Profile, tpl template) string {
	t.Helper()
	if !p.Cloud.ConfigurationSets {
		for id, r := range tpl.Resources {
			if strings.HasPrefix(r.Type, "AWS::SES::") {
				t.Errorf("%s is a %s, which this cloud does not make", id, r.Type)
			}
		}
		return ""
	}
	id, _ := tpl.one(t, "AWS::SES::ConfigurationSet", "MailEventsSet")
	return id
}

func TestMailsAreSentWithTheSetWhoseEventsAreTaken(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		set := setOf(t, p, tpl)
		_, deliver := tpl.one(t, "AWS::Lambda::Function", "DeliveryDeliverQuery")
		var given any
		if set != "" {
			given = map[string]string{"Ref": set}
		}
		want(t, "the consumer's configuration set", get(deliver.Properties, "Environment", "Variables", "MAIL_SET"), given)
		_, feedback := tpl.one(t, "AWS::Lambda::Function", "MailEventsFeedback")
		if get(feedback.Properties, "Environment", "Variables", "ACCOUNT") == nil {
			t.Error("the function does not know whose mails are ours")
		}
		if set == "" {
			return
		}
		topic, _ := tpl.one(t, "AWS::SNS::Topic", "MailEventsTopic")
		_, d := tpl.one(t, "AWS::SES::ConfigurationSetEventDestination", "MailEventsDestination")
		want(t, "set", d.Properties["ConfigurationSetName"], map[string]string{"Ref": set})
		want(t, "destination", get(d.Properties, "EventDestination"), map[string]any{
			"Enabled": true, "MatchingEventTypes": []string{"bounce", "complaint", "reject"},
			"SnsDestination": map[string]any{"TopicARN": map[string]string{"Ref": topic}}})
		// SES publishes a test message to the topic when the destination is made: it must be allowed before.
		policy, _ := tpl.one(t, "AWS::SNS::TopicPolicy", "MailEventsTopicPolicy")
		if !mentions(d.DependsOn, policy) {
			t.Errorf("the destination is made after %s, want after the topic's policy too", text(d.DependsOn))
		}
	})
}

func TestOnlySESOfThisAccountPublishesEvents(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		set := setOf(t, p, tpl)
		topic, _ := tpl.one(t, "AWS::SNS::Topic", "MailEventsTopic")
		_, policy := tpl.one(t, "AWS::SNS::TopicPolicy", "MailEventsTopicPolicy")
		want(t, "topics", policy.Properties["Topics"], []any{map[string]string{"Ref": topic}})
		allows, denies := 0, 0
		for _, s := range get(policy.Properties, "PolicyDocument", "Statement").([]any) {
			want(t, "action", get(s, "Action"), "sns:Publish")
			want(t, "resource", get(s, "Resource"), map[string]string{"Ref": topic})
			if get(s, "Effect") == "Deny" {
				denies++
				want(t, "who is denied", get(s, "Principal"), "*")
				want(t, "denied", get(s, "Condition", "Bool", "aws:SecureTransport"), "false")
				continue
			}
			allows++
			want(t, "who publishes", get(s, "Principal"), map[string]string{"Service": "ses.amazonaws.com"})
			only := get(s, "Condition", "StringEquals").(map[string]any)
			if only["aws:SourceAccount"] == nil || len(get(s, "Condition").(map[string]any)) != 1 {
				t.Errorf("the condition is %s; want this account", text(get(s, "Condition")))
			}
			if set != "" && !mentions(only["aws:SourceArn"], set) {
				t.Errorf("the condition is %s; want mails sent with %s", text(only), set)
			}
		}
		if allows != 1 || (denies == 1) != p.Cloud.TLS {
			t.Errorf("%d statements allow, %d deny plain HTTP", allows, denies)
		}
	})
}

func TestTheTopicsEventsReachTheQueueRaw(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		topic, _ := tpl.one(t, "AWS::SNS::Topic", "MailEventsTopic")
		_, s := tpl.one(t, "AWS::SNS::Subscription", "MailEvents")
		want(t, "protocol", s.Properties["Protocol"], "sqs")
		want(t, "raw delivery", s.Properties["RawMessageDelivery"], true)
		want(t, "topic", s.Properties["TopicArn"], map[string]string{"Ref": topic})
		queue, _ := get(s.Properties, "Endpoint", "Fn::GetAtt", 0).(string)
		if !strings.HasPrefix(queue, "MailEventsQueue") || strings.HasPrefix(queue, "MailEventsQueueDead") {
			t.Errorf("events go to %s", queue)
		}
		found := false
		for id, r := range tpl.of(t, "AWS::SQS::QueuePolicy") {
			if !mentions(r.Properties["Queues"], queue) {
				continue
			}
			for _, s := range get(r.Properties, "PolicyDocument", "Statement").([]any) {
				if get(s, "Effect") != "Allow" {
					continue
				}
				found = true
				want(t, id+" allows", get(s, "Action"), "sqs:SendMessage")
				want(t, id+" lets in", get(s, "Principal"), map[string]string{"Service": "sns.amazonaws.com"})
				want(t, id+" only from", get(s, "Condition", "ArnEquals", "aws:SourceArn"), map[string]string{"Ref": topic})
			}
		}
		if !found {
			t.Error("the topic may not send to the queue")
		}
	})
}
