//go:build cloud

// Package lake asks the local cloud's Athena through the source that the product reads it by: what MiniStack and the DuckDB
// behind it can show of it. What they do otherwise than AWS has its rows in ../../DIVERGENCES.md; LocalStack has no Athena.
package lake

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"almanac/internal/boot"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/loopback"
	"almanac/internal/source"
	"almanac/internal/source/athena"
	"almanac/internal/source/sourcetest"
)

func open(t *testing.T) *athena.Source {
	endpoint := os.Getenv("ALMANAC_ENDPOINT")
	if endpoint == "" {
		t.Fatal("ALMANAC_ENDPOINT is not set: scripts/test starts a local cloud and sets it")
	}
	c := aws.Config{Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: loopback.Client(time.Minute),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		})}
	objects := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true })
	bucket := "lake-" + strings.ToLower(rand.Text()[:12])
	if _, err := objects.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	return &athena.Source{API: sdk.NewFromConfig(c), Results: boot.QueryResults(objects, true), Workgroup: "primary", Catalog: "AwsDataCatalog", Database: "default",
		Output: "s3://" + bucket + "/queries/", Now: time.Now, Pause: func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
			return ctx.Err()
		}}
}

func TestTheSourceReadsTheLocalCloudsAthena(t *testing.T) {
	src := open(t)
	if os.Getenv("ALMANAC_CLOUD") != "ministack" {
		_, err := src.Open(t.Context(), source.Query{SQL: "SELECT 1 AS n"})
		failuretest.Want(t, err, failure.SourceUnavailable)
		return
	}
	ticket := &source.Ticket{Token: source.TokenOf(t.Name(), rand.Text()), Record: func(context.Context, string) error { return nil }}
	out, err := sourcetest.Read(t.Context(), src, source.Query{Ticket: ticket, SQL: `SELECT n, CAST(n AS BIGINT) * 9007199254740993 AS big, CAST('0.10' AS DECIMAL(38, 2)) AS d, CAST(0.1 AS DOUBLE) AS r,
		DATE '2013-06-01' AS day, TIMESTAMP '2013-06-01 13:00:00' AS at, 'two
lines, "quoted"' AS t FROM (VALUES (2), (1)) AS v(n) ORDER BY n`})
	if err != nil {
		t.Fatal(err)
	}
	types := []source.Type{source.Integer, source.Integer, source.Decimal, source.Real, source.Date, source.Timestamp, source.Text}
	for i, c := range out.Columns {
		if c.Type != types[i] {
			t.Errorf("column %s is %d, want %d", c.Name, c.Type, types[i])
		}
	}
	if len(out.Rows) != 2 || out.Rows[0][0].Int != 1 || out.Rows[1][1].Int != 2*9007199254740993 || string(out.Rows[0][2].Text) != "0.10" || out.Rows[0][3].Float != 0.1 ||
		!out.Rows[0][5].Time.Equal(time.Date(2013, 6, 1, 13, 0, 0, 0, time.UTC)) || string(out.Rows[0][6].Text) != "two\nlines, \"quoted\"" {
		t.Errorf("%+v", out.Rows)
	}
	if !ticket.Ended || ticket.Over || ticket.Cost.Micros == 0 || ticket.ID == "" {
		t.Errorf("%+v", ticket)
	}
	if again, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT 1", Ticket: ticket}); err != nil || len(again.Rows) != 2 {
		t.Errorf("by its id: %d rows, %v", len(again.Rows), err)
	}
	if cost, err := src.Stop(t.Context(), ticket.ID); err != nil || cost.Micros == 0 {
		t.Errorf("stop: %+v %v", cost, err)
	}
	_, err = sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT n FROM no_such_table"})
	if f := failuretest.Want(t, err, failure.QueryFailed); !strings.Contains(f.Message, "no_such_table") {
		t.Error(f.Message)
	}
	_, err = sourcetest.Read(t.Context(), src, source.Query{SQL: "CREATE TABLE other AS SELECT 1 AS n"})
	failuretest.Want(t, err, failure.QueryNotReadOnly)
}
