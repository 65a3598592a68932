package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/boot"
	"almanac/internal/schema"
)

// tokens says whose tokens are accepted.
type tokens struct {
	issuer   string
	audience []string
}

// newAPI makes the API's function and what stands in front of it, and returns its address without a trailing slash.
func newAPI(stack awscdk.Stack, d Deployment, s storage, made delivery, m months) (string, error) {
	scope := constructs.NewConstruct(stack, jsii.String("Api"))
	accepted := newTokens(stack, scope, d)
	f := newAPIFunction(stack, scope, d, s, made, m, accepted)
	output(stack, "ApiFunction", *f.FunctionName())
	address, err := "", error(nil)
	if d.Profile.Cloud.HTTPAPI {
		address = newGateway(scope, d, accepted, f)
	} else {
		address, err = newFunctionURL(d, f)
	}
	output(stack, "ApiUrl", address)
	return address, err
}

// newTokens are those of the configured issuer, or of a user pool of the stack.
func newTokens(stack awscdk.Stack, scope constructs.Construct, d Deployment) tokens {
	t := tokens{d.Settings.Issuer, d.Settings.Audience}
	switch {
	case t.issuer == "":
		pool := newSignIn(stack, scope, d)
		t = tokens{pool.issuer, []string{pool.client}}
	case !d.Profile.Cloud.UserPools:
		output(stack, "SignInUrl", t.issuer) // the local issuer has its sign-in page at its own address
	}
	output(stack, "Issuer", t.issuer)
	output(stack, "Audience", strings.Join(t.audience, ","))
	return t
}

func newAPIFunction(stack awscdk.Stack, scope constructs.Construct, d Deployment, s storage, made delivery, m months, accepted tokens) awslambda.Function {
	plan, dispatch := d.functions["snapshot-plan"], d.functions["snapshot-dispatch"]
	environment := m.environment(map[string]string{
		boot.EnvFilesBucket:      *s.files.BucketName(),
		boot.EnvAthenaOutput:     s.lake.place(), // tests of sources
		boot.EnvQueryQueue:       *made.query.queue.QueueUrl(),
		boot.EnvDataBucket:       *s.data.BucketName(), // watermarks of months that people ask for
		boot.EnvSnapshotsBucket:  *s.months.BucketName(),
		boot.EnvAttemptMachine:   m.machine,
		boot.EnvSnapshotPlan:     *plan.FunctionName(),
		boot.EnvSnapshotDispatch: *dispatch.FunctionName(),
	})
	if !d.Profile.Cloud.HTTPAPI {
		environment[boot.EnvIssuer], environment[boot.EnvAudience] = accepted.issuer, strings.Join(accepted.audience, ",")
	}
	return newFunction(scope, d, functionSpec{
		ID: "Function", Folder: "api", Description: "The HTTP API, downloads and unsubscriptions",
		Size:        d.Profile.API,
		Reads:       true, // watermarks, and tests of sources
		Environment: environment,
		Rights: append(s.lake.toQuery(stack, d, s),
			onTable(s.schedules, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"),
			onIndexes(s.schedules, schema.IndexDirectory),
			toSend(d, made.query.queue),
			onObjects(s.files, "files/", "s3:GetObject"), // whose signature a link carries for a minute
			toTellMissing(s.files, s.data, s.months),
			onObjects(s.files, schema.ListPrefix, "s3:PutObject", "s3:GetObject"),
			onTable(s.snapshots, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"),
			onIndexes(s.snapshots, schema.IndexDirectory, schema.IndexWork), // definitions and owners; who waits for a slot
			onObjects(s.months, snapshotPrefix, "s3:GetObject"),             // manifests and files; a link to one for a minute
			onObjects(s.data, "", "s3:GetObject"),
			allow([]string{m.jobs}, "states:StopExecution"), // of what is cancelled
			toAsk(plan), toAsk(dispatch),
		),
	})
}
