//go:build cloud

package e2e

import (
	"context"
	"errors"
	"testing"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	sestypes "github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// Each function has done its own work in the other tests; here its own credentials are denied what it must not do.
func TestEachFunctionIsDeniedWhatItMustNotDo(t *testing.T) {
	scene(t)
	// One delivery warms all functions, so that each has a process whose credentials can be read.
	d := save(t, nil)
	settled(t, due(t, d))
	send(t, "QueryRunsDlqUrl", schedule.EncodeMessage(d.ID+"@2013-05-06T10:30:00Z"))
	publish(t, "Successfully validated SNS topic for Amazon SES event publishing.")
	s := shelved(t, 2, 1, 1) // and one month those of snapshots
	s.define(t, s.workspaces[0], "rights", nil)
	planTick(t)
	month := s.settled(t, s.workspaces[0]+"_rights_2013-12_v1", snapshot.Published)
	claimTick(t)
	reconcileTick(t)
	eventually(t, "a process of each function", func() (bool, string) {
		for _, f := range []string{"DispatchFunction", "DeliverFunction", "ExhaustFunction", "ApiFunction", "DeliveryEventsFunction",
			"SnapshotPlanFunction", "SnapshotDispatchFunction", "SnapshotStepFunction", "SnapshotReconcileFunction"} {
			if len(processes(t, f)) == 0 {
				return false, "none of " + f
			}
		}
		return true, ""
	})
	table, key := aws.String(cloud.outputs["SchedulesTable"]), map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: "x"}, "sk": &ddb.AttributeValueMemberS{Value: "x"}}
	forbidden := map[string]func(context.Context, aws.Config) error{
		"delete a row": func(ctx context.Context, c aws.Config) error {
			_, err := dynamodb.NewFromConfig(c).DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: key})
			return err
		},
		"scan the table": func(ctx context.Context, c aws.Config) error {
			_, err := dynamodb.NewFromConfig(c).Scan(ctx, &dynamodb.ScanInput{TableName: table})
			return err
		},
		"send mail": func(ctx context.Context, c aws.Config) error {
			_, err := ses.NewFromConfig(c).SendRawEmail(ctx, &ses.SendRawEmailInput{RawMessage: &sestypes.RawMessage{Data: []byte("From: reports@example.com\r\nTo: a@example.com\r\n\r\nx")}})
			return err
		},
		"write a file": func(ctx context.Context, c aws.Config) error {
			_, err := pathStyle(c).PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(cloud.outputs["FilesBucket"]), Key: aws.String("files/1d/x")})
			return err
		},
		"write source data": func(ctx context.Context, c aws.Config) error {
			_, err := pathStyle(c).PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(cloud.outputs["DataBucket"]), Key: aws.String("flights.sqlite")})
			return err
		},
		"feed the delivery queue": func(ctx context.Context, c aws.Config) error {
			_, err := sqs.NewFromConfig(c).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(cloud.outputs["QueryRunsQueueUrl"]), MessageBody: aws.String("x")})
			return err
		},
		"read a webhook's secret": func(ctx context.Context, c aws.Config) error {
			_, err := secretsmanager.NewFromConfig(c).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(cloud.outputs["SecretPrefix"] + "demo")})
			return err
		},
		"read source data": func(ctx context.Context, c aws.Config) error {
			_, err := pathStyle(c).HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(cloud.outputs["DataBucket"]), Key: aws.String("flights.sqlite")})
			return err
		},
		"write a row of a month": func(ctx context.Context, c aws.Config) error {
			_, err := dynamodb.NewFromConfig(c).PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(cloud.outputs["SnapshotsTable"]), Item: key})
			return err
		},
		"write a month's file": func(ctx context.Context, c aws.Config) error {
			_, err := pathStyle(c).PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(cloud.outputs["SnapshotsBucket"]), Key: aws.String("snapshots/x")})
			return err
		},
		"remove a month's file": func(ctx context.Context, c aws.Config) error {
			_, err := pathStyle(c).DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(cloud.outputs["SnapshotsBucket"]), Key: aws.String("snapshots/x")})
			return err
		},
		"read a month's file": func(ctx context.Context, c aws.Config) error {
			_, err := pathStyle(c).HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(cloud.outputs["SnapshotsBucket"]), Key: aws.String(manifestOf(month))})
			return err
		},
		"start a job": func(ctx context.Context, c aws.Config) error {
			_, err := sfn.NewFromConfig(c).StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String(cloud.outputs["AttemptMachineArn"]), Name: aws.String("nobody"), Input: aws.String("{}")})
			return err
		},
		"stop a job": func(ctx context.Context, c aws.Config) error {
			_, err := sfn.NewFromConfig(c).StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: &month.Execution})
			return err
		},
	}
	cases := map[string][]string{
		"DispatchFunction":       {"delete a row", "scan the table", "send mail", "write a file", "write source data", "read a webhook's secret", "read source data", "write a row of a month", "start a job"},
		"DeliverFunction":        {"scan the table", "write source data", "feed the delivery queue", "write a row of a month", "read a month's file"},
		"ExhaustFunction":        {"delete a row", "scan the table", "send mail", "write a file", "read a webhook's secret", "read source data"},
		"DeliveryEventsFunction": {"delete a row", "scan the table", "send mail", "write a file", "write source data", "feed the delivery queue", "read a webhook's secret", "read source data"},
		// It reads source data: a watermark decides whether a month may be asked for.
		"ApiFunction":               {"delete a row", "scan the table", "send mail", "write a file", "write source data", "read a webhook's secret", "write a month's file", "remove a month's file", "start a job"},
		"SnapshotPlanFunction":      {"scan the table", "write source data", "write a month's file", "remove a month's file", "start a job"},
		"SnapshotDispatchFunction":  {"scan the table", "read source data", "read a month's file", "write a month's file", "stop a job"},
		"SnapshotStepFunction":      {"scan the table", "write source data", "remove a month's file", "start a job", "stop a job", "send mail"},
		"SnapshotReconcileFunction": {"scan the table", "read source data", "write a month's file", "stop a job"},
	}
	for function, acts := range cases {
		for _, act := range acts {
			t.Run(function+" may not "+act, func(t *testing.T) {
				err := forbidden[act](t.Context(), credentialsOf(t, function))
				if !denied(err) {
					t.Fatalf("got %v, want that access is denied", err)
				}
			})
		}
	}
	// The same acts are possible at all: what is denied is denied by the role.
	for _, act := range []string{"read a webhook's secret", "read source data", "read a month's file"} {
		if err := forbidden[act](t.Context(), cloud.aws); err != nil {
			t.Errorf("%s fails for everybody: %v", act, err)
		}
	}
}

// manifestOf is where the manifest of a published version lies.
func manifestOf(r snapshot.Run) string {
	return snapshot.ManifestKey(r.Period, r.Version, r.Manifest())
}

func pathStyle(c aws.Config) *s3.Client {
	return s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true })
}

// credentialsOf are those of the function's own role, out of one of its processes.
func credentialsOf(t *testing.T, function string) aws.Config {
	t.Helper()
	for _, env := range processes(t, function) {
		c := cloud.aws.Copy()
		c.Credentials = credentials.NewStaticCredentialsProvider(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_SESSION_TOKEN"])
		return c
	}
	t.Fatalf("no process of %s runs", function)
	return aws.Config{}
}

func denied(err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "AccessDenied", "AccessDeniedException", "Forbidden": // a HEAD request has no body: only its status speaks
			return true
		}
	}
	return false
}

// Every route but the public ones wants a token: at the gateway, or of the function where there is none.
func TestOnlyThePublicRoutesAnswerWithoutAToken(t *testing.T) {
	scene(t)
	for _, r := range routes.Table {
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			status, body := call(t, "", r.Method, concrete(r.Path), nil)
			if r.Right == routes.Public {
				if status != 404 {
					t.Fatalf("%d %.100s; want 404: the token is the right, and this one is none", status, body)
				}
				return
			}
			if status != 401 {
				t.Fatalf("%d %.100s; want 401", status, body)
			}
		})
	}
}

func concrete(pattern string) string {
	out := ""
	for _, part := range splitPath(pattern) {
		if part[0] == '{' {
			part = "x"
		}
		out += "/" + part
	}
	return out
}

func splitPath(p string) (parts []string) {
	start := 1
	for i := 1; i <= len(p); i++ {
		if i == len(p) || p[i] == '/' {
			parts = append(parts, p[start:i])
			start = i + 1
		}
	}
	return parts
}
