// Command snapshot-plan is the tick that plans closed months.
package main

import (
	"context"

	"almanac/internal/boot"
	"almanac/internal/snapshot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvSnapshotsTable, boot.EnvDataBucket, boot.EnvAttemptMachine, boot.EnvSnapshotDispatch))
	p, err := f.Planner()
	boot.Must(f, err)
	lambda.Start(func(ctx context.Context) (snapshot.PlanTally, error) { return p.Tick(ctx) })
}
