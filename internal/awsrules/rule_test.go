package awsrules_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"almanac/internal/awsrules"
	"almanac/internal/memcloud"

	"github.com/aws/smithy-go"
)

var (
	idForm     = regexp.MustCompile(`^(dynamodb|sqs|s3|states)(/[a-z0-9]+(-[a-z0-9]+)*){2}$`)
	sourceForm = regexp.MustCompile(`^https://docs\.aws\.amazon\.com/\S+\.html(#\S+)?$`)
)

func TestEachRuleHasAnIDOfItsOwnAndAPageOfAWS(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range awsrules.All() {
		if !idForm.MatchString(r.ID) {
			t.Errorf("the id %q; want service/group/what, of lower case letters, digits and hyphens", r.ID)
		}
		if seen[r.ID] {
			t.Errorf("%s is there twice", r.ID)
		}
		seen[r.ID] = true
		if !sourceForm.MatchString(r.Source) {
			t.Errorf("%s: the source %q; want a page of docs.aws.amazon.com", r.ID, r.Source)
		}
		if strings.TrimSpace(r.AWS) == "" {
			t.Errorf("%s does not say what AWS does", r.ID)
		}
	}
	of := 0
	for _, service := range []string{awsrules.ServiceDynamoDB, awsrules.ServiceSQS, awsrules.ServiceS3, awsrules.ServiceStates} {
		n := len(awsrules.Of(service))
		if n < 10 {
			t.Errorf("%s has %d rules", service, n)
		}
		of += n
	}
	if of != len(seen) {
		t.Errorf("the services have %d rules, and there are %d", of, len(seen))
	}
}

// A cloud that answers every request with a fault keeps no rule: a rule that does not notice asks for nothing.
func TestEachRuleNoticesACloudThatIsDown(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	d, q, b, s := memcloud.NewDynamo(clock), memcloud.NewSQS(clock), memcloud.NewS3(clock), memcloud.NewStates(clock)
	w := &awsrules.World{
		Run: "down", DynamoDB: d, SQS: q, S3: b, States: s, Now: clock,
		Pass: func(context.Context) error { now = now.Add(time.Second); return nil },
	}
	w.Prepare(t)
	down := func(context.Context, memcloud.Call) error {
		return &smithy.GenericAPIError{Code: "InternalError", Message: "the cloud is down"}
	}
	d.Before, q.Before, b.Before, s.Before = down, down, down, down
	for _, r := range awsrules.All() {
		if noticed := watched(t, w, r); !noticed {
			t.Errorf("%s does not notice", r.ID)
		}
	}
}

// watched checks a rule, and tells whether it noted something or gave up.
func watched(t *testing.T, w *awsrules.World, r awsrules.Rule) (noticed bool) {
	t.Helper()
	done := make(chan bool)
	tb := &fatal{TB: t}
	go func() {
		noted := true // unless the check comes to its end
		defer func() { done <- noted }()
		noted = len(w.Check(tb, r)) > 0
	}()
	return <-done
}

// fatal is a test that may give up without failing the one that watches it.
type fatal struct{ testing.TB }

func (f *fatal) Fatal(...any)          { runtime.Goexit() }
func (f *fatal) Fatalf(string, ...any) { runtime.Goexit() }
