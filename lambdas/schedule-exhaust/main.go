// Command schedule-exhaust consumes the dead-letter queue: it offers runs again, settles them, or keeps what nobody can
// read.
package main

import (
	"context"

	"almanac/internal/boot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvQueryQueue, boot.EnvFilesBucket))
	lambda.Start(boot.DeadLetters{Handle: f.Exhauster().Handle, Log: f.Log}.Batch)
}
