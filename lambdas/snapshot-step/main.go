// Command snapshot-step runs the steps of attempt jobs: start, generate, validate, publish, settle.
package main

import (
	"context"

	"almanac/internal/boot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvSnapshotsTable, boot.EnvDataBucket, boot.EnvSnapshotsBucket, boot.EnvSnapshotDispatch))
	lambda.Start(f.Stepper().Step)
}
