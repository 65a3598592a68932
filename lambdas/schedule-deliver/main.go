// Command schedule-deliver consumes a delivery queue: one run becomes one file and one request per recipient.
package main

import (
	"context"

	"almanac/internal/boot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvQueryQueue, boot.EnvDataBucket, boot.EnvFilesBucket, boot.EnvMailFrom, boot.EnvMailRate, boot.EnvPublicURL, boot.EnvSecretPrefix))
	d, err := f.Deliverer()
	boot.Must(f, err)
	lambda.Start(f.Consumer(d).Batch)
}
