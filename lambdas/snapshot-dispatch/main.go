// Command snapshot-dispatch claims months under their owners' caps and starts their attempt jobs: each minute, and when
// asked because a slot has become free.
package main

import (
	"context"

	"almanac/internal/boot"
	"almanac/internal/snapshot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvSnapshotsTable, boot.EnvAttemptMachine))
	d, err := f.SnapshotDispatcher()
	boot.Must(f, err)
	lambda.Start(func(ctx context.Context) (snapshot.DispatchTally, error) { return d.Tick(ctx) })
}
