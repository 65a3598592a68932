// Command schedule-dispatch is the tick: it admits due occurrences and offers forgotten runs again.
package main

import (
	"context"

	"almanac/internal/boot"
	"almanac/internal/schedule"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvQueryQueue))
	d := f.Dispatcher()
	// The event is not looked at: a tick carries nothing that matters.
	lambda.Start(func(ctx context.Context) (schedule.Tally, error) { return d.Tick(ctx) })
}
