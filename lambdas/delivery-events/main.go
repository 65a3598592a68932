// Command delivery-events consumes what the mail service says of mails that it has accepted: bounces, complaints and
// rejections are recorded beside the outcome of their submission.
package main

import (
	"context"

	"almanac/internal/boot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvAccount))
	lambda.Start(boot.MailEvents{Handle: f.FeedbackTaker().Handle, Log: f.Log}.Batch)
}
