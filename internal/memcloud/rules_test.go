package memcloud_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/awsrules"
	"almanac/internal/memcloud"

	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// TestRules holds this package to every one of AWS's rules: what the local clouds may break (localstack/DIVERGENCES.md),
// the services that the unit tests and the simulation run on may not.
func TestRules(t *testing.T) {
	w := rulesWorld()
	w.Prepare(t)
	for _, r := range awsrules.All() {
		t.Run(r.ID, func(t *testing.T) {
			for _, why := range w.Check(t, r) {
				t.Errorf("%s\n%s\n%s", r.AWS, r.Source, why)
			}
		})
	}
}

// rulesWorld has every service, and a clock that moves when a rule lets time pass.
func rulesWorld() *awsrules.World {
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	machine := func(name string) string { return "arn:aws:states:us-east-1:000000000000:stateMachine:" + name }
	w := &awsrules.World{
		Run: "rules", DynamoDB: memcloud.NewDynamo(clock), SQS: memcloud.NewSQS(clock), S3: memcloud.NewS3(clock), Now: clock,
		Machines: awsrules.Machines{Waits: machine("waits"), Passes: machine("passes"), Fails: machine("fails")},
		Pass: func(ctx context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(100 * time.Millisecond)
			return ctx.Err()
		},
	}
	states := memcloud.NewStates(clock, w.Machines.Waits, w.Machines.Passes, w.Machines.Fails)
	states.OnStart = func(arn, _ string) {
		switch {
		case strings.Contains(arn, ":passes:"):
			states.Finish(arn, types.ExecutionStatusSucceeded, "", "")
		case strings.Contains(arn, ":fails:"):
			states.Finish(arn, types.ExecutionStatusFailed, awsrules.FailureName, awsrules.FailureCause)
		}
	}
	w.States = states
	return w
}
