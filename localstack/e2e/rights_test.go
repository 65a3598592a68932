//go:build cloud

package e2e

import (
	"context"
	"errors"
	"testing"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	sestypes "github.com/aws/aws-sdk-go-v2/service/ses/types"
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
	eventually(t, "a process of each function", func() (bool, string) {
		for _, f := range []string{"DispatchFunction", "DeliverFunction", "ExhaustFunction", "ApiFunction", "DeliveryEventsFunction"} {
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
	}
	cases := map[string][]string{
		"DispatchFunction":       {"delete a row", "scan the table", "send mail", "write a file", "write source data", "read a webhook's secret", "read source data"},
		"DeliverFunction":        {"scan the table", "write source data", "feed the delivery queue"},
		"ExhaustFunction":        {"delete a row", "scan the table", "send mail", "write a file", "read a webhook's secret", "read source data"},
		"DeliveryEventsFunction": {"delete a row", "scan the table", "send mail", "write a file", "write source data", "feed the delivery queue", "read a webhook's secret", "read source data"},
		"ApiFunction":            {"delete a row", "scan the table", "send mail", "write a file", "write source data", "read a webhook's secret", "read source data"},
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
	for _, act := range []string{"read a webhook's secret", "read source data"} {
		if err := forbidden[act](t.Context(), cloud.aws); err != nil {
			t.Errorf("%s fails for everybody: %v", act, err)
		}
	}
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
