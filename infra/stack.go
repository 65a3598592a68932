package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Deployment is everything a stack is made from.
type Deployment struct {
	Profile  Profile
	Settings Settings
	Code     string // folder that bundle.Build returned: <name>/bootstrap for each function

	functions map[string]awslambda.Function // by folder, as newFunction makes them: alarms watch them all
}

// functionFolders are the folders under lambdas that the stack deploys.
var functionFolders = []string{"api", "delivery-events", "schedule-deliver", "schedule-dispatch", "schedule-exhaust",
	"snapshot-dispatch", "snapshot-plan", "snapshot-reconcile", "snapshot-step"}

// removal keeps or deletes what holds data, by the profile.
func (d Deployment) removal() awscdk.RemovalPolicy {
	if d.Profile.Retain {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}

// check refuses what would only come out at deployment.
func (d Deployment) check() error {
	for _, n := range functionFolders {
		if _, err := os.Stat(filepath.Join(d.Code, n, "bootstrap")); err != nil {
			return fmt.Errorf("function %s is not built: %w; run scripts/build", n, err)
		}
	}
	return d.Profile.Validate()
}

// NewStack makes the stack of one stage, a construct per concern.
func NewStack(scope constructs.Construct, d Deployment) (awscdk.Stack, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	d.functions = map[string]awslambda.Function{}
	stack := awscdk.NewStack(scope, jsii.String("Almanac-"+d.Profile.Stage), &awscdk.StackProps{
		Description:           jsii.String("Almanac: scheduled delivery and monthly snapshots, stage " + d.Profile.Stage),
		Env:                   d.environment(),
		Synthesizer:           d.synthesizer(),
		TerminationProtection: jsii.Bool(d.Profile.Retain),
		Tags:                  &map[string]*string{"application": jsii.String("almanac"), "stage": jsii.String(d.Profile.Stage)},
	})
	newEndpoints(stack, d.Settings.Network)
	storage := newStorage(stack, d)
	storage.lake = newLake(stack, d, storage.files)
	delivery, err := newDelivery(stack, d)
	if err != nil {
		return nil, err
	}
	mail, err := newMailEvents(stack, d)
	if err != nil {
		return nil, err
	}
	months, err := newSnapshots(stack, d, storage)
	if err != nil {
		return nil, err
	}
	// The API's function sends to delivery's queue, and delivery's functions write the API's address into links.
	address, err := newAPI(stack, d, storage, delivery, months)
	if err != nil {
		return nil, err
	}
	delivery.work(stack, d, storage, address, mail.set)
	mail.work(stack, d, storage)
	newAlarms(stack, d, map[string]lane{"QueryRuns": delivery.query, "MailEvents": mail.lane})
	output(stack, "SecretPrefix", d.secretPrefix())
	output(stack, "MailFrom", d.Settings.MailFrom)
	return stack, nil
}

func (d Deployment) environment() *awscdk.Environment {
	e := &awscdk.Environment{}
	if d.Settings.Account != "" {
		e.Account = jsii.String(d.Settings.Account)
	}
	if d.Settings.Region != "" {
		e.Region = jsii.String(d.Settings.Region)
	}
	return e
}

func (d Deployment) synthesizer() awscdk.IStackSynthesizer {
	if d.Profile.Cloud.BootstrapRoles {
		return awscdk.NewDefaultStackSynthesizer(nil)
	}
	return awscdk.NewCliCredentialsStackSynthesizer(nil)
}

// secretPrefix is how names of webhook secrets begin; whoever configures a webhook puts its secrets under it.
func (d Deployment) secretPrefix() string { return "almanac/" + d.Profile.Stage + "/webhook/" }

// output names a value for people and scripts. The construct lives in the stack itself, so that its key is its name.
func output(stack awscdk.Stack, name, value string) {
	awscdk.NewCfnOutput(stack, jsii.String(name), &awscdk.CfnOutputProps{Value: jsii.String(value)})
}

func duration(d interface{ Seconds() float64 }) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(d.Seconds()))
}
