//go:build cloud

package probes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"almanac/internal/awsrules"
)

// TestRules asks the cloud for every one of AWS's rules (internal/awsrules). A rule that has no row in the register, or
// whose cell says "the same", has to be kept. Where the cell says otherwise the rule has to be broken still: once the
// cloud has learnt it, the cell is wrong.
func TestRules(t *testing.T) {
	t.Parallel()
	w := rulesWorld(t)
	cells := map[string]string{}
	for _, r := range rows(t) {
		cells[r.probe] = r.cells[cloud]
	}
	var mu sync.Mutex
	kept, broken := map[string]int{}, map[string][]string{}
	t.Run("each", func(t *testing.T) {
		for _, r := range awsrules.All() {
			t.Run(r.ID, func(t *testing.T) {
				t.Parallel()
				cell, known := cells[rulesTest+r.ID]
				if !known {
					cell = theSame
				}
				if !w.Has(r.Service()) {
					t.Logf("%s has no %s", cloud, r.Service())
					return
				}
				seen := w.Check(t, r)
				mu.Lock()
				defer mu.Unlock()
				if len(seen) == 0 {
					kept[r.Service()]++
				} else {
					broken[r.Service()] = append(broken[r.Service()], r.ID)
				}
				switch kindOf(cell) {
				case theSame:
					if len(seen) > 0 {
						t.Errorf("%s does otherwise than AWS: %s\n%s\n%s\nif that is how it is, the rule needs a row in localstack/DIVERGENCES.md", cloud, r.AWS, r.Source, strings.Join(seen, "\n"))
					}
				case differs:
					t.Logf("%s: %s", cell, strings.Join(seen, "\n"))
					if len(seen) == 0 {
						t.Errorf("%s does as AWS does: %s\nits cell in localstack/DIVERGENCES.md says: %s\nlook at the row, and at what was done because of it", cloud, r.AWS, cell)
					}
				default:
					t.Errorf("the cell in localstack/DIVERGENCES.md says %q of a service that %s has", cell, cloud)
				}
			})
		}
	})
	t.Log(rulesTable(kept, broken))
}

// rulesTable says for each service how many rules this cloud keeps, and which it breaks.
func rulesTable(kept map[string]int, broken map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rules of AWS on %s:\n", cloud)
	for _, service := range []string{awsrules.ServiceDynamoDB, awsrules.ServiceSQS, awsrules.ServiceS3, awsrules.ServiceStates} {
		all := len(awsrules.Of(service))
		if kept[service]+len(broken[service]) == 0 {
			fmt.Fprintf(&b, "%-9s %3d rules, does not apply\n", service, all)
			continue
		}
		fmt.Fprintf(&b, "%-9s %3d rules, %3d kept, %2d broken as registered: %s\n", service, all, kept[service], len(broken[service]), strings.Join(broken[service], ", "))
	}
	return b.String()
}

// rulesWorld is the cloud as the rules ask it.
func rulesWorld(t *testing.T) *awsrules.World {
	t.Helper()
	w := &awsrules.World{Run: "rules-" + run, DynamoDB: tables(), Now: time.Now, Pass: pass}
	if cloud != "dynamodb-local" {
		w.SQS, w.S3, w.States = queues(), objects(), sfn.NewFromConfig(config())
		w.Machines = awsrules.Machines{
			Waits:  makeNamedMachine(t, w.Run+"-waits", `{"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":600,"End":true}}}`),
			Passes: makeNamedMachine(t, w.Run+"-passes", `{"StartAt":"P","States":{"P":{"Type":"Pass","End":true}}}`),
			Fails:  makeNamedMachine(t, w.Run+"-fails", fmt.Sprintf(`{"StartAt":"F","States":{"F":{"Type":"Fail","Error":%q,"Cause":%q}}}`, awsrules.FailureName, awsrules.FailureCause)),
		}
	}
	oneTable.Lock()
	defer oneTable.Unlock()
	t.Cleanup(func() { removeRules(t, w) })
	w.Prepare(t)
	return w
}

// removeRules removes the tables and the bytes of the rules. The cloud is thrown away with the rest.
func removeRules(t *testing.T, w *awsrules.World) {
	oneTable.Lock()
	defer oneTable.Unlock()
	for _, table := range w.Tables() {
		if _, err := tables().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Errorf("delete table %s: %v", table, err)
		}
	}
	if w.S3 == nil {
		return
	}
	pages := s3.NewListObjectsV2Paginator(objects(), &s3.ListObjectsV2Input{Bucket: aws.String(w.Bucket())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			t.Errorf("list bucket %s: %v", w.Bucket(), err)
			return
		}
		for _, o := range page.Contents {
			if _, err := objects().DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: aws.String(w.Bucket()), Key: o.Key}); err != nil {
				t.Errorf("delete object %.80s: %v", *o.Key, err)
			}
		}
	}
	open, err := objects().ListMultipartUploads(context.Background(), &s3.ListMultipartUploadsInput{Bucket: aws.String(w.Bucket())})
	if err != nil {
		t.Errorf("list uploads of bucket %s: %v", w.Bucket(), err)
		return
	}
	for _, u := range open.Uploads {
		abort(t, w.Bucket(), u)
	}
}

func abort(t *testing.T, bucket string, u types.MultipartUpload) {
	if _, err := objects().AbortMultipartUpload(context.Background(), &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: u.Key, UploadId: u.UploadId}); err != nil {
		t.Errorf("abort an upload of %s: %v", *u.Key, err)
	}
}

// pass waits for a tenth of a second, or for the end of the context.
func pass(ctx context.Context) error {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
