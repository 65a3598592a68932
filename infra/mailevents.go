package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsses"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/boot"
)

// mailEvents is the way from what SES says of a mail, after it has accepted it, to the submission that the mail was for:
// configuration set, topic, queue, consumer.
type mailEvents struct {
	scope constructs.Construct
	lane  lane
	set   string // name of the configuration set that mails are sent with; empty where the cloud has none
}

// eventReceives is how often an event is tried. It says the same each time, so that one that cannot be read reaches the
// dead letters soon; DynamoDB has the queue's visibility in between to come back.
const eventReceives = 5

// eventTypes are what SES is asked to tell. A delay is left out: it ends in a delivery, of which nobody wants a write per
// mail, or in a bounce; told alone it would stand on the submission for ever.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-ses-configurationseteventdestination-eventdestination.html
var eventTypes = []string{"bounce", "complaint", "reject"}

func newMailEvents(stack awscdk.Stack, d Deployment) (mailEvents, error) {
	scope := constructs.NewConstruct(stack, jsii.String("MailEvents"))
	q, err := newQueues(scope, d, "Queue", d.Profile.Events.Timeout, eventReceives)
	if err != nil {
		return mailEvents{}, err
	}
	// Not encrypted by a key of KMS: SES may not use the account's own one for SNS, and one made for this costs more than
	// the topic; it holds no message, and the queue behind it is encrypted.
	// https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
	topic := awssns.NewTopic(scope, jsii.String("Topic"), &awssns.TopicProps{EnforceSSL: jsii.Bool(d.Profile.Cloud.TLS)})
	// Raw: the queue gets the event itself, not the envelope of SNS around it.
	// https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html
	topic.AddSubscription(awssnssubscriptions.NewSqsSubscription(q.queue, &awssnssubscriptions.SqsSubscriptionProps{RawMessageDelivery: jsii.Bool(true)}))
	made := mailEvents{scope: scope, lane: q}
	equal := map[string]any{"aws:SourceAccount": *stack.Account()}
	if d.Profile.Cloud.ConfigurationSets {
		set := awsses.NewCfnConfigurationSet(scope, jsii.String("Set"), nil)
		made.set = *set.Ref()
		equal["aws:SourceArn"] = setARN(stack, made.set)
		destination := awsses.NewCfnConfigurationSetEventDestination(scope, jsii.String("Destination"), &awsses.CfnConfigurationSetEventDestinationProps{
			ConfigurationSetName: set.Ref(),
			EventDestination: awsses.CfnConfigurationSetEventDestination_EventDestinationProperty{
				Enabled: jsii.Bool(true), MatchingEventTypes: jsii.Strings(eventTypes...),
				SnsDestination: awsses.CfnConfigurationSetEventDestination_SnsDestinationProperty{TopicArn: topic.TopicArn()},
			},
		})
		// SES publishes a test message when the destination is made.
		destination.Node().AddDependency(topic)
	}
	// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-add-event-destination-sns.html
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("ses.amazonaws.com"), nil)},
		Actions:    jsii.Strings("sns:Publish"), Resources: &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": equal},
	}))
	output(stack, "MailEventsTopicArn", *topic.TopicArn())
	output(stack, "MailEventsQueueUrl", *q.queue.QueueUrl())
	output(stack, "MailEventsDlqUrl", *q.dead.QueueUrl())
	return made, nil
}

// setARN names a configuration set where rights are given.
func setARN(stack awscdk.Stack, name string) string {
	return *stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("ses"), Resource: jsii.String("configuration-set"), ResourceName: jsii.String(name)})
}

// work makes the function.
func (made mailEvents) work(stack awscdk.Stack, d Deployment, s storage) {
	f := newFunction(made.scope, d, functionSpec{
		ID: "Feedback", Folder: "delivery-events", Description: "Records bounces and complaints beside the outcome",
		Size: d.Profile.Events,
		Environment: map[string]string{
			boot.EnvSchedulesTable: *s.schedules.TableName(),
			boot.EnvAccount:        *stack.Account(),
		},
		Rights: []awsiam.PolicyStatement{
			onTable(s.schedules, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"),
			toConsume(made.lane.queue),
		},
	})
	consume("Queue", f, made.lane.queue, 10, d.Profile.EventsConcurrency)
	output(stack, "DeliveryEventsFunction", *f.FunctionName())
}
