package main

import (
	"path/filepath"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/infra/bundle"
	"almanac/internal/boot"
)

// functionSpec says what one function is. Everything else is the same for all of them.
type functionSpec struct {
	ID          string // construct id, and the function in the metrics' and logs' names
	Folder      string // under lambdas; several functions may share one
	Description string
	Size        Size
	Environment map[string]string // beside what every function gets
	Rights      []awsiam.PolicyStatement
	Reads       bool // sources: it signs in to databases, and stands where they are
}

// eventAge is how long an asynchronous event may wait (the least that Lambda allows): together with no retries a stall
// replays nothing.
const eventAge = time.Minute

// newFunction makes a function with a role and a log group of its own.
func newFunction(scope constructs.Construct, d Deployment, f functionSpec) awslambda.Function {
	logs := newLogs(scope, f.ID+"Logs", d)
	role := awsiam.NewRole(scope, jsii.String(f.ID+"Role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description: jsii.String("Almanac " + d.Profile.Stage + ": " + f.Folder),
	})
	// The managed basic execution role may write to every log group of the account; this one to its own.
	role.AddToPolicy(allow([]string{*logs.LogGroupArn()}, "logs:CreateLogStream", "logs:PutLogEvents"))
	for _, r := range f.Rights {
		role.AddToPolicy(r)
	}
	if f.Reads {
		for _, r := range d.readRights(awscdk.Stack_Of(scope)) {
			role.AddToPolicy(r)
		}
	}
	tracing := awslambda.Tracing_DISABLED
	if d.Profile.Tracing {
		tracing = awslambda.Tracing_ACTIVE
	}
	made := awslambda.NewFunction(scope, jsii.String(f.ID), &awslambda.FunctionProps{
		Description:  jsii.String(f.Description),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: architecture(d.Profile.Architecture),
		Handler:      jsii.String("bootstrap"),
		Code:         awslambda.Code_FromAsset(jsii.String(filepath.Join(d.Code, f.Folder)), &awss3assets.AssetOptions{}),
		MemorySize:   jsii.Number(float64(f.Size.MemoryMB)),
		Timeout:      duration(f.Size.Timeout),
		Environment:  d.variables(f.Environment),
		Role:         role,
		LogGroup:     logs,
		// The functions write JSON themselves; with JSON here the platform's own lines are JSON too.
		LoggingFormat: awslambda.LoggingFormat_JSON,
		Tracing:       tracing,
		RetryAttempts: jsii.Number(0),
		MaxEventAge:   duration(eventAge),
	})
	if f.Reads {
		d.Settings.Network.place(made)
	}
	d.functions[f.Folder] = made
	return made
}

// every has a function called at a rate. A tick that could not be delivered within its minute is dropped: the next one
// does its work.
func every(scope constructs.Construct, id string, rate time.Duration, f awslambda.Function, description string) {
	awsevents.NewRule(scope, jsii.String(id), &awsevents.RuleProps{
		Description: jsii.String(description),
		Schedule:    awsevents.Schedule_Rate(duration(rate)),
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(f, &awseventstargets.LambdaFunctionProps{
			RetryAttempts: jsii.Number(0), MaxEventAge: duration(eventAge),
		})},
	})
}

// variables adds what every function gets.
func (d Deployment) variables(own map[string]string) *map[string]*string {
	all := map[string]*string{
		boot.EnvStage:   jsii.String(d.Profile.Stage),
		boot.EnvTiming:  jsii.String(d.timing()),
		boot.EnvMetrics: jsii.String(namespace),
	}
	if d.Profile.Cloud.Local() {
		all[boot.EnvLocal] = jsii.String(d.Profile.Cloud.Name)
	}
	for k, v := range own {
		if v != "" { // an absent variable is an empty one
			all[k] = jsii.String(v)
		}
	}
	return &all
}

func architecture(a bundle.Architecture) awslambda.Architecture {
	if a == bundle.ARM64 {
		return awslambda.Architecture_ARM_64()
	}
	return awslambda.Architecture_X86_64()
}

// retentions are the retention times in days that CloudWatch Logs offers and that make sense here.
var retentions = map[int]awslogs.RetentionDays{
	1: awslogs.RetentionDays_ONE_DAY, 7: awslogs.RetentionDays_ONE_WEEK, 14: awslogs.RetentionDays_TWO_WEEKS,
	30: awslogs.RetentionDays_ONE_MONTH, 90: awslogs.RetentionDays_THREE_MONTHS, 180: awslogs.RetentionDays_SIX_MONTHS,
	365: awslogs.RetentionDays_ONE_YEAR, 731: awslogs.RetentionDays_TWO_YEARS,
}

func newLogs(scope constructs.Construct, id string, d Deployment) awslogs.LogGroup {
	return awslogs.NewLogGroup(scope, jsii.String(id), &awslogs.LogGroupProps{
		Retention:     retentions[d.Profile.LogDays],
		RemovalPolicy: d.removal(),
	})
}
