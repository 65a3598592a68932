// Command api serves the HTTP API.
package main

import (
	"context"
	"time"

	"almanac/internal/api"
	"almanac/internal/api/token"
	"almanac/internal/boot"
	"almanac/internal/loopback"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	f := boot.Must(boot.Start(context.Background(), boot.EnvQueryQueue, boot.EnvFilesBucket, boot.EnvDataBucket, boot.EnvSnapshotsTable, boot.EnvSnapshotsBucket,
		boot.EnvAttemptMachine, boot.EnvSnapshotDispatch, boot.EnvSnapshotPlan))
	months, err := f.Months()
	boot.Must(f, err)
	a := api.API{
		Editor: f.Editor(), Reader: f.Store, Links: f.LinkService(), Sources: f.SourceTester(), Claims: claims(f.Config),
		Months: api.Months{Editor: months.Editor, Reader: months.Ledger, Board: months.Board, Files: months.Files, Planner: months.Planner, Sign: months.Sign},
		Log:    f.Log, Now: f.Clocks.Wall, NewID: boot.Token, Version: boot.Version,
	}
	if f.Config.Local != "" {
		a.Clock = f.ClockControl()
	}
	lambda.Start(api.Lambda(a.Handler()))
}

// claims are those that the HTTP API's authorizer verified, unless the stack says that there is none.
func claims(c boot.Config) api.Claims {
	if c.Issuer == "" {
		return api.AuthorizerClaims{}
	}
	return token.Verifier{Issuer: c.Issuer, Audience: c.Audience, Keys: token.Of(c.Issuer, loopback.Client(0), time.Now), Now: time.Now}
}
