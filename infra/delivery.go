package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/boot"
	"almanac/internal/schema"
)

// delivery is the way from a due schedule to a settled run: tick, queues, consumers, and what takes up the dead letters.
// Its queues are made first: the API sends to them, and the functions need the API's address.
type delivery struct {
	scope constructs.Construct
	query lane
}

// lane is one kind of runs with a queue, a dead-letter queue and a consumer of its own, so that slow runs (reports) never
// starve quick ones. A report lane is a second call of newQueues and consume.
type lane struct {
	queue awssqs.Queue
	dead  awssqs.Queue
}

func newDelivery(stack awscdk.Stack, d Deployment) (delivery, error) {
	scope := constructs.NewConstruct(stack, jsii.String("Delivery"))
	q, err := newQueues(scope, d, "QueryRuns", d.Profile.Deliver.Timeout, d.Profile.MaxReceiveCount)
	if err != nil {
		return delivery{}, err
	}
	output(stack, "QueryRunsQueueUrl", *q.queue.QueueUrl())
	output(stack, "QueryRunsDlqUrl", *q.dead.QueueUrl())
	return delivery{scope: scope, query: q}, nil
}

// work makes the functions.
func (made delivery) work(stack awscdk.Stack, d Deployment, s storage, publicURL, mailSet string) {
	output(stack, "DispatchFunction", *newDispatch(made.scope, d, s, made).FunctionName())
	output(stack, "DeliverFunction", *newDeliver(stack, made.scope, d, s, made, publicURL, mailSet).FunctionName())
	output(stack, "ExhaustFunction", *newExhaust(made.scope, d, s, made).FunctionName())
}

const (
	// A run that waits longer than this has long been offered again by the sweep.
	queueRetention = 4 * 24 * time.Hour
	// SQS's longest; a dead letter keeps the clock of its first queue, so this must be the longer one.
	deadRetention = 14 * 24 * time.Hour
	// AWS: "set the source queue's visibility timeout to at least six times the configuration timeout on your function"
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
	visibilityFactor = 6
)

// newQueues makes a lane for a consumer with this time-out. A message that comes so often goes to the dead letters.
func newQueues(scope constructs.Construct, d Deployment, id string, timeout time.Duration, receives int) (lane, error) {
	visibility, deadVisibility := visibilityFactor*timeout, visibilityFactor*d.Profile.Exhaust.Timeout
	if err := checkVisibility(id, visibility, timeout); err != nil {
		return lane{}, err
	}
	if err := checkVisibility(id+"Dead", deadVisibility, d.Profile.Exhaust.Timeout); err != nil {
		return lane{}, err
	}
	dead := awssqs.NewQueue(scope, jsii.String(id+"Dead"), &awssqs.QueueProps{
		Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(d.Profile.Cloud.TLS),
		RetentionPeriod: duration(deadRetention), VisibilityTimeout: duration(deadVisibility), RemovalPolicy: d.removal(),
	})
	queue := awssqs.NewQueue(scope, jsii.String(id), &awssqs.QueueProps{
		Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(d.Profile.Cloud.TLS),
		RetentionPeriod: duration(queueRetention), VisibilityTimeout: duration(visibility), RemovalPolicy: d.removal(),
		DeadLetterQueue: &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(float64(receives))},
	})
	return lane{queue, dead}, nil
}

// checkVisibility refuses a queue whose message would be seen again while its function still works on it.
func checkVisibility(queue string, visibility, timeout time.Duration) error {
	if visibility < visibilityFactor*timeout {
		return fmt.Errorf("queue %s: visibility is %s; want at least %s, six times its function's time-out of %s",
			queue, visibility, visibilityFactor*timeout, timeout)
	}
	if limit := 12 * time.Hour; visibility > limit { // AWS: SQS quotas
		return fmt.Errorf("queue %s: visibility is %s; SQS allows at most %s", queue, visibility, limit)
	}
	return nil
}

// consume lets a queue call a function, so many at once. Only the messages that the function names come back.
func consume(id string, f awslambda.Function, q awssqs.Queue, batch, concurrency int) {
	awslambda.NewEventSourceMapping(f, jsii.String(id), &awslambda.EventSourceMappingProps{
		Target: f, EventSourceArn: q.QueueArn(),
		BatchSize: jsii.Number(float64(batch)), MaxConcurrency: jsii.Number(float64(concurrency)),
		ReportBatchItemFailures: jsii.Bool(true),
	})
}

// newDispatch makes the tick. Two of them at once are safe, so its concurrency is not reserved.
func newDispatch(scope constructs.Construct, d Deployment, s storage, made delivery) awslambda.Function {
	f := newFunction(scope, d, functionSpec{
		ID: "Dispatch", Folder: "schedule-dispatch", Description: "Admits due occurrences and offers stuck runs again",
		Size: d.Profile.Dispatch,
		Environment: map[string]string{
			boot.EnvSchedulesTable: *s.schedules.TableName(),
			boot.EnvQueryQueue:     *made.query.queue.QueueUrl(),
		},
		Rights: []awsiam.PolicyStatement{
			onTable(s.schedules, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"), // BatchGetItem: heads of groups; Query: the outbox
			onIndexes(s.schedules, schema.IndexDue, schema.IndexOpen),
			toSend(d, made.query.queue),
			onQueue(made.query.queue, "sqs:GetQueueAttributes"), // the backlog
		},
	})
	every(scope, "Tick", time.Minute, f, "Looks for due schedules")
	return f
}

func newDeliver(stack awscdk.Stack, scope constructs.Construct, d Deployment, s storage, made delivery, publicURL, mailSet string) awslambda.Function {
	f := newFunction(scope, d, functionSpec{
		ID: "DeliverQuery", Folder: "schedule-deliver", Description: "Makes the file of a query run and sends it",
		Size: d.Profile.Deliver, Reads: true,
		Environment: map[string]string{
			boot.EnvSchedulesTable: *s.schedules.TableName(),
			boot.EnvDataBucket:     *s.data.BucketName(),
			boot.EnvFilesBucket:    *s.files.BucketName(),
			boot.EnvAthenaOutput:   s.lake.place(),
			boot.EnvQueryQueue:     *made.query.queue.QueueUrl(),
			boot.EnvMailFrom:       d.Settings.MailFrom,
			boot.EnvMailName:       d.Settings.MailName,
			boot.EnvMailSet:        mailSet,
			boot.EnvMailRate:       strconv.Itoa(d.Settings.MailRate),
			boot.EnvPublicURL:      publicURL,
			boot.EnvPrivateNets:    d.privateNetworks(),
			boot.EnvAllowList:      strings.Join(d.Settings.Recipients, ","),
			boot.EnvSecretPrefix:   d.secretPrefix(),
		},
		Rights: append(append(toSendMail(stack, d, mailSet), s.lake.toQuery(stack, d, s)...),
			onTable(s.schedules, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"),
			toRemoveNotices(s.schedules),
			toTellMissing(s.data, s.files),
			onObjects(s.data, "", "s3:GetObject"),
			onObjects(s.files, "files/", "s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"),
			onObjects(s.files, schema.ListPrefix, "s3:GetObject"),
			toReadSecrets(stack, d),
			toConsume(made.query.queue),
		),
	})
	consume("QueryRuns", f, made.query.queue, 1, d.Profile.DeliverConcurrency)
	return f
}

// newExhaust makes the function that takes up dead letters. What it cannot settle stays in the queue and comes back.
func newExhaust(scope constructs.Construct, d Deployment, s storage, made delivery) awslambda.Function {
	f := newFunction(scope, d, functionSpec{
		ID: "Exhaust", Folder: "schedule-exhaust", Description: "Settles or re-offers runs whose messages died",
		Size: d.Profile.Exhaust,
		Environment: map[string]string{
			boot.EnvSchedulesTable: *s.schedules.TableName(),
			boot.EnvFilesBucket:    *s.files.BucketName(),
			boot.EnvQueryQueue:     *made.query.queue.QueueUrl(),
		},
		Rights: []awsiam.PolicyStatement{
			onTable(s.schedules, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"),
			toTellMissing(s.files),
			onObjects(s.files, schema.ListPrefix, "s3:GetObject"), // whom a run that it settles would have asked
			toSend(d, made.query.queue),
			toConsume(made.query.dead),
		},
	})
	consume("QueryRunsDead", f, made.query.dead, 10, d.Profile.ExhaustConcurrency)
	return f
}

func (d Deployment) privateNetworks() string {
	var parts []string
	for _, n := range d.Settings.PrivateNetworks {
		parts = append(parts, n.String())
	}
	return strings.Join(parts, ",")
}

// timing is schedule.Timing as the functions read it.
func (d Deployment) timing() string {
	b, err := json.Marshal(d.Settings.Timing)
	if err != nil {
		panic(err) // durations and numbers only
	}
	return string(b)
}
