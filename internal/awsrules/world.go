package awsrules

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// DynamoDB is what the rules ask of DynamoDB's client. It must not try again by itself: a rule sees each answer.
type DynamoDB interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// SQS is what the rules ask of SQS's client.
type SQS interface {
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// S3 is what the rules ask of S3's client.
type S3 interface {
	CreateBucket(context.Context, *s3.CreateBucketInput, ...func(*s3.Options)) (*s3.CreateBucketOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	CreateMultipartUpload(context.Context, *s3.CreateMultipartUploadInput, ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error)
	UploadPart(context.Context, *s3.UploadPartInput, ...func(*s3.Options)) (*s3.UploadPartOutput, error)
	CompleteMultipartUpload(context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error)
	ListMultipartUploads(context.Context, *s3.ListMultipartUploadsInput, ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error)
}

// States is what the rules ask of Step Functions' client.
type States interface {
	StartExecution(context.Context, *sfn.StartExecutionInput, ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
	DescribeExecution(context.Context, *sfn.DescribeExecutionInput, ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error)
	StopExecution(context.Context, *sfn.StopExecutionInput, ...func(*sfn.Options)) (*sfn.StopExecutionOutput, error)
}

// Machines are the state machines, by ARN, whose executions the rules start: of Standard workflows.
type Machines struct {
	Waits  string // runs until it is stopped
	Passes string // succeeds at once with its input
	Fails  string // fails at once, with the error FailureName and the cause FailureCause
}

// How an execution of Machines.Fails ends.
const (
	FailureName  = "Told.ToFail"
	FailureCause = "it was told to"
)

// World is a cloud that the rules are asked of. A service that it does not have is nil, and none of its rules may be
// asked.
type World struct {
	Run      string // begins the names of what is made, so that runs do not meet: lower case letters, digits and hyphens
	DynamoDB DynamoDB
	SQS      SQS
	S3       S3
	States   States
	Machines Machines

	Now  func() time.Time
	Pass func(context.Context) error // lets about a tenth of a second pass

	main, numbered, bucket string
}

// Prepare makes the tables and the bucket that rules share. Each rule has partitions and keys of its own in them.
func (w *World) Prepare(t testing.TB) {
	t.Helper()
	if w.DynamoDB != nil {
		w.main, w.numbered = w.Run+"-main", w.Run+"-numbered"
		for _, in := range []*dynamodb.CreateTableInput{mainTable(w.main), numberedTable(w.numbered)} {
			if _, err := w.DynamoDB.CreateTable(t.Context(), in); err != nil {
				t.Fatalf("make table %s: %v", *in.TableName, err)
			}
		}
	}
	if w.S3 != nil {
		w.bucket = w.Run + "-rules"
		if _, err := w.S3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &w.bucket}); err != nil {
			t.Fatalf("make bucket %s: %v", w.bucket, err)
		}
	}
}

// Tables are those that Prepare has made, for who removes them.
func (w *World) Tables() []string {
	if w.DynamoDB == nil {
		return nil
	}
	return []string{w.main, w.numbered}
}

// Bucket is the one that Prepare has made, for who empties it.
func (w *World) Bucket() string { return w.bucket }

// Has tells whether the world has a service.
func (w *World) Has(service string) bool {
	return map[string]bool{ServiceDynamoDB: w.DynamoDB != nil, ServiceSQS: w.SQS != nil, ServiceS3: w.S3 != nil, ServiceStates: w.States != nil}[service]
}
