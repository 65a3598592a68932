// Command infra is the CDK app: one stack per stage, the same code for AWS and for the local clouds.
//
//	cdk deploy -c stage=dev -c mailFrom=reports@example.com -c recipients=example.com
//	cdk deploy -c stage=local -c cloud=localstack -c issuer=http://127.0.0.1:4569   (with AWS_ENDPOINT_URL)
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"almanac/infra/bundle"
)

func main() {
	defer jsii.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run refuses bad input before it compiles anything.
func run(ctx context.Context) error {
	app := newApp()
	fromContext := func(key string) any { return app.Node().TryGetContext(jsii.String(key)) }
	stage, err := StageOf(fromContext, os.Getenv)
	if err != nil {
		return err
	}
	cloud, err := CloudOf(fromContext, os.Getenv)
	if err != nil {
		return err
	}
	profile, err := ProfileOf(stage, cloud)
	if err != nil {
		return err
	}
	settings, err := SettingsOf(profile, fromContext, os.Getenv)
	if err != nil {
		return err
	}
	fmt.Fprint(os.Stderr, settings.Network.Cost())
	code, err := bundle.Build(ctx, bundle.Request{Root: ".", Architecture: profile.Architecture, Names: functionFolders, Progress: os.Stderr})
	if err != nil {
		return err
	}
	if _, err := NewStack(app, Deployment{Profile: profile, Settings: settings, Code: code}); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}

func newApp() awscdk.App {
	return awscdk.NewApp(&awscdk.AppProps{
		AnalyticsReporting: jsii.Bool(false),
		Context: &map[string]any{
			// One statement per set of actions and resources, so that a role reads as it was written.
			"@aws-cdk/aws-iam:minimizePolicies": true,
		},
	})
}
