// Command snapshot-reconcile is the tick that compares the ledger of snapshots with jobs and files, mends the difference
// and counts what is late.
package main

import (
	"context"

	"almanac/internal/boot"
	"almanac/internal/snapshot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvSnapshotsTable, boot.EnvSnapshotsBucket, boot.EnvAttemptMachine, boot.EnvSnapshotDispatch))
	r, err := f.Reconciler()
	boot.Must(f, err)
	lambda.Start(func(ctx context.Context) (snapshot.Findings, error) { return r.Tick(ctx) })
}
