package simulate

import (
	"context"
	"fmt"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/storetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Names of what the stack deploys.
const (
	Schedules  = "Schedules"
	Snapshots  = "Snapshots"
	FileBucket = "files"
	MonthFiles = "months"
	machineARN = "arn:aws:states:us-east-1:000000000000:stateMachine:attempts"
)

// The figures of the deployed functions and queues (design.md §7).
const (
	DeliverTime  = 5 * time.Minute
	TickTime     = time.Minute
	StepTime     = 5 * time.Minute
	ActTime      = 10 * time.Second
	visibility   = 30 * time.Minute
	maxReceive   = 20
	deadBatch    = 10
	sourceKept   = "345600"
	letterKept   = "1209600"
	deadLetters  = "dead"
	queryRuns    = "query-runs"
	tickEvery    = time.Minute
	planEvery    = 15 * time.Minute
	mendEvery    = 5 * time.Minute
	pauseOfWalks = 2 * time.Second
)

var background = context.Background()

// cloud makes tables, buckets, queues and the state machine, as the stack does.
func (w *World) cloud() {
	w.DB, w.S3, w.SQS, w.Steps = memcloud.NewDynamo(w.Now), memcloud.NewS3(w.Now), memcloud.NewSQS(w.Now), memcloud.NewStates(w.Now, machineARN)
	w.Athena = memcloud.NewAthena(w.Now, w.S3)
	w.DB.Hooks, w.S3.Hooks, w.SQS.Hooks, w.Steps.Hooks, w.Athena.Hooks = w.hooks(), w.hooks(), w.hooks(), w.hooks(), w.hooks()
	for _, in := range []*dynamodb.CreateTableInput{storetest.TableInput(Schedules), storetest.SnapshotsTableInput(Snapshots)} {
		_, err := w.DB.CreateTable(background, in)
		w.must(err)
	}
	for _, b := range []string{FileBucket, MonthFiles, lakeBucket} {
		_, err := w.S3.CreateBucket(background, &s3.CreateBucketInput{Bucket: aws.String(b)})
		w.must(err)
	}
	w.dlq = w.queue(deadLetters, map[string]string{"MessageRetentionPeriod": letterKept})
	w.runs = w.queue(queryRuns, map[string]string{"VisibilityTimeout": fmt.Sprint(int(visibility.Seconds())), "MessageRetentionPeriod": sourceKept,
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:%s","maxReceiveCount":%d}`, deadLetters, maxReceive)})
	w.DB.Changed, w.S3.Changed = w.rowChanged, w.objectChanged
}

func (w *World) queue(name string, attributes map[string]string) string {
	out, err := w.SQS.CreateQueue(background, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	w.must(err)
	return *out.QueueUrl
}
