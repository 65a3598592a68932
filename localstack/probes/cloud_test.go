//go:build cloud

// Package probes asks a running local cloud how it behaves. Each row of ../DIVERGENCES.md has its probe here, and a cell
// for each cloud: the probe fails where the cloud does otherwise than its cell says, also when a newer emulator has
// learnt to do as AWS does, so that the row can go. TestRules asks for all of internal/awsrules, whether they have a row or
// not.
//
// The tests need a cloud: scripts/test starts one and sets ALMANAC_ENDPOINT and ALMANAC_CLOUD. The build tag keeps them
// out of a plain "go test ./...".
package probes

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"almanac/internal/loopback"
	"almanac/localstack/internal/rawaws"
)

const (
	account = "000000000000"
	region  = "us-east-1"
)

// The cloud of this test run, and what the probes share on it.
var (
	endpoint string
	run      = strings.ToLower(rand.Text()[:8]) // part of every name, so that runs do not meet
	code     []byte                             // the probe function's zip
	client   = loopback.Client(2 * time.Minute)
)

func TestMain(m *testing.M) {
	endpoint = os.Getenv("ALMANAC_ENDPOINT")
	if endpoint == "" {
		fmt.Fprintln(os.Stderr, "ALMANAC_ENDPOINT is not set: the probes need a running local cloud. Run scripts/test, or: .local/bin/cloud start -instance test && eval \"$(.local/bin/cloud env -instance test)\"")
		os.Exit(1)
	}
	if !slices.Contains(columns, cloud) {
		fmt.Fprintf(os.Stderr, "ALMANAC_CLOUD is %q; right are %s\n", cloud, strings.Join(columns, ", "))
		os.Exit(1)
	}
	var err error
	if code, err = buildFunction(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Most of the probes' time is waiting, so that more of them than there are processors may run at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func buildFunction() ([]byte, error) {
	folder, err := os.MkdirTemp("", "probe-function")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	out := filepath.Join(folder, "bootstrap")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", out, "./function")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the probe function: %w\n%s", err, text)
	}
	binary, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	f, err := w.CreateHeader(header)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(binary); err != nil {
		return nil, err
	}
	err = w.Close() // writes the archive's directory
	return packed.Bytes(), err
}

func config() aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: aws.String(endpoint), HTTPClient: client,
		// One try: a probe sees each answer as it is.
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}

func raw() rawaws.Client {
	return rawaws.Client{
		Endpoint: endpoint, Region: region, HTTP: client, Now: time.Now,
		Credentials: aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"},
	}
}

func tables() *dynamodb.Client { return dynamodb.NewFromConfig(config()) }
func queues() *sqs.Client      { return sqs.NewFromConfig(config()) }
func functions() *lambda.Client {
	return lambda.NewFromConfig(config())
}
func objects() *s3.Client {
	return s3.NewFromConfig(config(), func(o *s3.Options) { o.UsePathStyle = true })
}

// name makes a name of this run and test.
func name(t *testing.T, suffix string) string {
	text := strings.ToLower(strings.NewReplacer("Test", "", "/", "-", "_", "-").Replace(t.Name()))
	if len(text) > 40 {
		text = text[:40]
	}
	return "probe-" + run + "-" + text + suffix
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// code of an error as AWS names it; empty for no error.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	var r *rawaws.Error
	if errors.As(err, &r) {
		return r.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// eventually waits until look is content, asking often; it fails with look's last word after the given time.
func eventually(t *testing.T, within time.Duration, look func() (ok bool, saw string)) {
	t.Helper()
	if ok, saw := happens(within, look); !ok {
		t.Fatalf("not within %s; last seen: %s", within, saw)
	}
}

// happens waits until look is content, and tells whether that came about within the given time.
func happens(within time.Duration, look func() (ok bool, saw string)) (bool, string) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, saw := look()
		if ok {
			return true, saw
		}
		select {
		case <-deadline.C:
			return false, saw
		case <-tick.C:
		}
	}
}

// makeTable makes a table with keys id and at, on demand.
//
// One table is made or removed at a time: DynamoDB Local now and then answers 500 to two at once, and no probe is about
// that.
func makeTable(t *testing.T, table string, change func(*dynamodb.CreateTableInput)) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: ddb.ScalarAttributeTypeS}, {AttributeName: aws.String("at"), AttributeType: ddb.ScalarAttributeTypeS},
		},
		KeySchema: []ddb.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: ddb.KeyTypeHash}, {AttributeName: aws.String("at"), KeyType: ddb.KeyTypeRange},
		},
	}
	if change != nil {
		change(in)
	}
	oneTable.Lock()
	_, err := tables().CreateTable(t.Context(), in)
	oneTable.Unlock()
	if err != nil {
		t.Fatalf("create table %s: %v", table, err)
	}
	t.Cleanup(func() {
		oneTable.Lock()
		defer oneTable.Unlock()
		if _, err := tables().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Errorf("delete table %s: %v", table, err)
		}
	})
}

var oneTable sync.Mutex

func makeBucket(t *testing.T, bucket string) {
	t.Helper()
	if _, err := objects().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatalf("create bucket %s: %v", bucket, err)
	}
}

// makeQueue makes a queue and gives its URL and ARN.
func makeQueue(t *testing.T, queue string, attributes map[string]string) (url, arn string) {
	t.Helper()
	out, err := queues().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &queue, Attributes: attributes})
	if err != nil {
		t.Fatalf("create queue %s: %v", queue, err)
	}
	t.Cleanup(func() { queues().DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl}) }) //nolint:errcheck // the cloud is thrown away
	return *out.QueueUrl, fmt.Sprintf("arn:aws:sqs:%s:%s:%s", region, account, queue)
}

// makeRole makes a role that a service may take, with one policy, and gives its ARN.
func makeRole(t *testing.T, role string, trust any, statements ...map[string]any) string {
	t.Helper()
	if trust == nil {
		trust = map[string]any{"Service": []string{"lambda.amazonaws.com", "states.amazonaws.com", "scheduler.amazonaws.com"}}
	}
	document := func(s ...map[string]any) string {
		text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": s})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, err := raw().Query(t.Context(), "iam", "2010-05-08", "CreateRole", map[string]string{
		"RoleName": role, "AssumeRolePolicyDocument": document(map[string]any{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": trust}),
	})
	if err != nil {
		t.Fatalf("create role %s: %v", role, err)
	}
	if len(statements) > 0 {
		_, err := raw().Query(t.Context(), "iam", "2010-05-08", "PutRolePolicy", map[string]string{
			"RoleName": role, "PolicyName": "probe", "PolicyDocument": document(statements...),
		})
		if err != nil {
			t.Fatalf("put policy of role %s: %v", role, err)
		}
	}
	return "arn:aws:iam::" + account + ":role/" + role
}

func allow(actions []string, resource string) map[string]any {
	return map[string]any{"Effect": "Allow", "Action": actions, "Resource": resource}
}

var logsToo = allow([]string{"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"}, "*")

// notes is the table in which the probe function notes what reached it.
var notes = sync.OnceValues(func() (string, error) {
	table := "probe-" + run + "-notes"
	oneTable.Lock()
	defer oneTable.Unlock()
	_, err := tables().CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: ddb.ScalarAttributeTypeS}, {AttributeName: aws.String("at"), AttributeType: ddb.ScalarAttributeTypeS},
		},
		KeySchema: []ddb.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: ddb.KeyTypeHash}, {AttributeName: aws.String("at"), KeyType: ddb.KeyTypeRange},
		},
	})
	return table, err
})

// makeFunction makes a probe function whose role may write notes and what the statements allow.
func makeFunction(t *testing.T, function string, change func(*lambda.CreateFunctionInput), statements ...map[string]any) {
	t.Helper()
	table := must(notes())(t)
	statements = append(statements, logsToo, allow([]string{"dynamodb:PutItem"}, fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", region, account, table)),
		allow([]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}, fmt.Sprintf("arn:aws:sqs:%s:%s:probe-%s-*", region, account, run)))
	in := &lambda.CreateFunctionInput{
		FunctionName: &function, Role: aws.String(makeRole(t, function, nil, statements...)), Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"),
		Code: &lambdatypes.FunctionCode{ZipFile: code}, Timeout: aws.Int32(30), MemorySize: aws.Int32(128),
		Environment: &lambdatypes.Environment{Variables: map[string]string{"NOTES": table}},
	}
	if change != nil {
		change(in)
	}
	if _, err := functions().CreateFunction(t.Context(), in); err != nil {
		t.Fatalf("create function %s: %v", function, err)
	}
	// https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html: it cannot be invoked before it is active.
	eventually(t, 30*time.Second, func() (bool, string) {
		out, err := functions().GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &function})
		if err != nil {
			return false, err.Error()
		}
		return out.State == lambdatypes.StateActive, string(out.State) + " " + aws.ToString(out.StateReason)
	})
	t.Cleanup(func() {
		functions().DeleteFunction(context.Background(), &lambda.DeleteFunctionInput{FunctionName: &function}) //nolint:errcheck // the cloud is thrown away
	})
}

// seen is what the probe function tells about itself.
type seen struct {
	PID       int               `json:"pid"`
	Folder    string            `json:"folder"`
	Temp      string            `json:"temp"`
	Env       map[string]string `json:"env"`
	Remaining int64             `json:"remaining_ms"`
	Error     string            `json:"error"`
	Text      string            `json:"text"`
	ErrorType string            `json:"errorType"`
	Message   string            `json:"errorMessage"`
}

// invoke calls the function and waits; functionError is Lambda's header, empty for success.
func invoke(t *testing.T, function string, order map[string]any) (answer seen, functionError string, err error) {
	t.Helper()
	payload, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	out, err := functions().Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &function, Payload: payload})
	if err != nil {
		return answer, "", err
	}
	if err := json.Unmarshal(out.Payload, &answer); err != nil {
		t.Fatalf("answer of %s: %v: %.200s", function, err, out.Payload)
	}
	return answer, aws.ToString(out.FunctionError), nil
}

// delivery is one note of the probe function.
type delivery struct {
	At       time.Time
	Received int
	PID      int
}

func deliveries(t *testing.T, key string) []delivery {
	t.Helper()
	table := must(notes())(t)
	out, err := tables().Query(t.Context(), &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("id = :id"),
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":id": &ddb.AttributeValueMemberS{Value: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []delivery
	for _, item := range out.Items {
		var d delivery
		nanos, err := strconv.ParseInt(item["at"].(*ddb.AttributeValueMemberS).Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		d.At = time.Unix(0, nanos)
		if d.Received, err = strconv.Atoi(item["received"].(*ddb.AttributeValueMemberN).Value); err != nil {
			t.Fatal(err)
		}
		if d.PID, err = strconv.Atoi(item["pid"].(*ddb.AttributeValueMemberN).Value); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// waitDeliveries waits for at least n notes of a key.
func waitDeliveries(t *testing.T, key string, n int, within time.Duration) []delivery {
	t.Helper()
	var all []delivery
	eventually(t, within, func() (bool, string) {
		all = deliveries(t, key)
		return len(all) >= n, fmt.Sprintf("%d of %d deliveries of %s", len(all), n, key)
	})
	return all
}

// delivered tells whether a key is noted n times within the given time.
func delivered(t *testing.T, key string, n int, within time.Duration) bool {
	t.Helper()
	ok, _ := happens(within, func() (bool, string) { return len(deliveries(t, key)) >= n, "" })
	return ok
}

func connect(t *testing.T, queueARN, function string, change func(*lambda.CreateEventSourceMappingInput)) {
	t.Helper()
	in := &lambda.CreateEventSourceMappingInput{
		EventSourceArn: &queueARN, FunctionName: &function, BatchSize: aws.Int32(10),
		FunctionResponseTypes: []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures},
	}
	if change != nil {
		change(in)
	}
	out, err := functions().CreateEventSourceMapping(t.Context(), in)
	if err != nil {
		t.Fatalf("connect %s to %s: %v", queueARN, function, err)
	}
	t.Cleanup(func() {
		functions().DeleteEventSourceMapping(context.Background(), &lambda.DeleteEventSourceMappingInput{UUID: out.UUID}) //nolint:errcheck // the cloud is thrown away
	})
}

func send(t *testing.T, queueURL string, order map[string]any) {
	t.Helper()
	body, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queues().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: aws.String(string(body))}); err != nil {
		t.Fatal(err)
	}
}
