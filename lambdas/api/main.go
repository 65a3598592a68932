// Command api serves the HTTP API.
package main

import (
	"context"

	"almanac/internal/api"
	"almanac/internal/boot"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvQueryQueue, boot.EnvFilesBucket))
	a := api.API{
		Editor: f.Editor(), Reader: f.Store, Links: f.LinkService(), Claims: api.AuthorizerClaims{},
		Log: f.Log, Now: f.Clocks.Wall, NewID: boot.Token, Version: boot.Version,
	}
	if f.Config.Local != "" {
		a.Clock = f.ClockControl()
	}
	lambda.Start(api.Lambda(a.Handler()))
}
