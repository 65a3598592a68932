// Command function is the Lambda function of the probe tests: it does what its event tells it, and notes each delivery in
// a table, so that a probe can see what the cloud did.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// order is one instruction: an event of its own, or the body of a queued message.
type order struct {
	Do      string `json:"do"`
	Key     string `json:"key"`
	MS      int    `json:"ms"`
	Seconds int32  `json:"seconds"`
	Bytes   int    `json:"bytes"`
	Bucket  string `json:"bucket"`
	Table   string `json:"table"`
	Path    string `json:"path"`
	Text    string `json:"text"`
}

// answer tells a probe what the function saw.
type answer struct {
	PID       int               `json:"pid"`
	Folder    string            `json:"folder"`
	Temp      string            `json:"temp"`
	Env       map[string]string `json:"env"`
	Remaining int64             `json:"remaining_ms"`
	RequestID string            `json:"request_id"`
	Error     string            `json:"error"`
	Text      string            `json:"text"`
}

func main() { lambda.Start(handle) }

func handle(ctx context.Context, event json.RawMessage) (any, error) {
	var queued events.SQSEvent
	if err := json.Unmarshal(event, &queued); err == nil && len(queued.Records) > 0 && queued.Records[0].EventSource == "aws:sqs" {
		return batch(ctx, queued)
	}
	var http events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(event, &http); err == nil && http.Version == "2.0" {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(event)}, nil
	}
	var o order
	if err := json.Unmarshal(event, &o); err != nil {
		return nil, err
	}
	return obey(ctx, o, 0)
}

func obey(ctx context.Context, o order, received int) (any, error) {
	if o.Key != "" {
		if err := note(ctx, o.Key, received); err != nil {
			return nil, err
		}
	}
	switch o.Do {
	case "sleep":
		time.Sleep(time.Duration(o.MS) * time.Millisecond)
	case "fail":
		return nil, fmt.Errorf("told to fail")
	case "exit":
		os.Exit(7)
	case "allocate":
		block := make([]byte, o.Bytes)
		for i := range block {
			block[i] = byte(i)
		}
		return answer{PID: os.Getpid(), Text: strconv.Itoa(int(block[len(block)-1]))}, nil
	case "bytes":
		return answer{Text: string(make([]byte, o.Bytes))}, nil
	case "write":
		return answer{PID: os.Getpid()}, os.WriteFile(o.Path, []byte(o.Text), 0o600)
	case "read":
		text, err := os.ReadFile(o.Path)
		return answer{PID: os.Getpid(), Text: string(text), Error: textOf(err)}, nil
	case "get-object":
		_, err := s3.NewFromConfig(config(), func(s *s3.Options) { s.UsePathStyle = true }).GetObject(ctx, &s3.GetObjectInput{Bucket: &o.Bucket, Key: &o.Path})
		return answer{Error: textOf(err)}, nil
	case "get-item":
		_, err := dynamodb.NewFromConfig(config()).GetItem(ctx, &dynamodb.GetItemInput{TableName: &o.Table, Key: map[string]ddb.AttributeValue{
			"id": &ddb.AttributeValueMemberS{Value: o.Path}, "at": &ddb.AttributeValueMemberS{Value: "0"},
		}})
		return answer{Error: textOf(err)}, nil
	}
	return identity(ctx), nil
}

func identity(ctx context.Context) answer {
	a := answer{PID: os.Getpid(), Temp: os.TempDir(), Env: map[string]string{}}
	a.Folder, _ = os.Getwd()
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "NOTES", "STATE_DIR", "AUTH", "PATH", "_X_AMZN_TRACE_ID"} {
		a.Env[name] = os.Getenv(name)
	}
	if deadline, ok := ctx.Deadline(); ok {
		a.Remaining = time.Until(deadline).Milliseconds()
	}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		a.RequestID = lc.AwsRequestID
	}
	return a
}

// batch obeys each message; what fails is reported as a partial failure.
func batch(ctx context.Context, e events.SQSEvent) (any, error) {
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}} // null is another answer, see "null-list"
	for _, m := range e.Records {
		var o order
		if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
			return nil, err
		}
		received, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		if o.Do == "empty-id" { // names no message
			if err := note(ctx, o.Key, received); err != nil {
				return nil, err
			}
			return events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{ItemIdentifier: ""}}}, nil
		}
		if o.Do == "null-list" { // as a Go program answers that never touched the list
			if err := note(ctx, o.Key, received); err != nil {
				return nil, err
			}
			return events.SQSEventResponse{}, nil
		}
		if o.Do == "visibility" {
			if err := note(ctx, o.Key, received); err != nil {
				return nil, err
			}
			_, err := sqs.NewFromConfig(config()).ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
				QueueUrl: aws.String(o.Path), ReceiptHandle: aws.String(m.ReceiptHandle), VisibilityTimeout: o.Seconds,
			})
			if err != nil {
				return nil, err
			}
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			continue
		}
		if _, err := obey(ctx, o, received); err != nil {
			if o.Text == "whole" { // the invocation itself fails
				return nil, err
			}
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return response, nil
}

// note keeps that an order arrived: when, how often it had been received, in which process.
func note(ctx context.Context, key string, received int) error {
	_, err := dynamodb.NewFromConfig(config()).PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(os.Getenv("NOTES")),
		Item: map[string]ddb.AttributeValue{
			"id":       &ddb.AttributeValueMemberS{Value: key},
			"at":       &ddb.AttributeValueMemberS{Value: fmt.Sprintf("%020d", time.Now().UnixNano())},
			"received": &ddb.AttributeValueMemberN{Value: strconv.Itoa(received)},
			"pid":      &ddb.AttributeValueMemberN{Value: strconv.Itoa(os.Getpid())},
		},
	})
	return err
}

func config() aws.Config {
	return aws.Config{
		Region: os.Getenv("AWS_REGION"), BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL")),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
			}, nil
		}),
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
