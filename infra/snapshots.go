package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/boot"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
)

// How often each tick comes (design.md §1).
const (
	planRate      = 15 * time.Minute
	dispatchRate  = time.Minute
	reconcileRate = 5 * time.Minute
)

// snapshotPrefix begins the key of every object of snapshots (snapshot.RunPrefix).
const snapshotPrefix = "snapshots/"

// months is the way from a closed month to a published version: ticks, the workflow of an attempt job, its steps.
//
// The dispatcher starts the workflow, that calls the steps, and these ask for a dispatch: a ring, which CloudFormation can
// not make. So the workflow has a name of its own, by which the functions know it before it is there.
type months struct {
	stack   awscdk.Stack
	scope   constructs.Construct
	d       Deployment
	s       storage
	machine string // ARN
	jobs    string // ARN of its executions, as a pattern
}

func newSnapshots(stack awscdk.Stack, d Deployment, s storage) (months, error) {
	name := "almanac-" + d.Profile.Stage + "-attempts"
	arn := func(kind, name string) string {
		return *stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("states"), Resource: jsii.String(kind),
			ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME, ResourceName: jsii.String(name)})
	}
	m := months{stack, constructs.NewConstruct(stack, jsii.String("Snapshots")), d, s, arn("stateMachine", name), arn("execution", name+":*")}
	dispatch := m.dispatch()
	step := m.step(dispatch)
	if err := m.workflow(name, step); err != nil {
		return m, err
	}
	output(stack, "SnapshotPlanFunction", *m.plan(dispatch).FunctionName())
	output(stack, "SnapshotDispatchFunction", *dispatch.FunctionName())
	output(stack, "SnapshotStepFunction", *step.FunctionName())
	output(stack, "SnapshotReconcileFunction", *m.reconcile(dispatch).FunctionName())
	output(stack, "AttemptMachineArn", m.machine)
	return m, nil
}

// environment is what these functions have in common, and what one has besides.
func (m months) environment(own map[string]string) map[string]string {
	own[boot.EnvSchedulesTable] = *m.s.schedules.TableName()
	own[boot.EnvSnapshotsTable] = *m.s.snapshots.TableName()
	own[boot.EnvSnapshotTiming] = m.d.snapshotTiming()
	return own
}

// configured reads what people configure for the whole product: workspaces, sources, the switches.
func (m months) configured() awsiam.PolicyStatement {
	return onTable(m.s.schedules, "dynamodb:GetItem")
}

func (m months) plan(dispatch awslambda.Function) awslambda.Function {
	f := newFunction(m.scope, m.d, functionSpec{
		ID: "Plan", Folder: "snapshot-plan", Description: "Plans closed months", Size: m.d.Profile.SnapshotPlan, Reads: true,
		Environment: m.environment(map[string]string{
			boot.EnvDataBucket: *m.s.data.BucketName(), boot.EnvAttemptMachine: m.machine, boot.EnvSnapshotDispatch: *dispatch.FunctionName(),
			boot.EnvAthenaOutput: m.s.lake.place(),
		}),
		Rights: append(m.s.lake.toQuery(m.stack, m.d, m.s), // watermarks, and queries of what is cancelled
			onTable(m.s.schedules, "dynamodb:GetItem", "dynamodb:BatchGetItem"),
			onIndexes(m.s.schedules, schema.IndexDirectory), // workspaces
			onTable(m.s.snapshots, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"),
			onIndexes(m.s.snapshots, schema.IndexPlan, schema.IndexDirectory),
			toTellMissing(m.s.data),
			onObjects(m.s.data, "", "s3:GetObject"), // watermarks
			allow([]string{m.jobs}, "states:StopExecution"),
			toAsk(dispatch),
		),
	})
	every(m.scope, "PlanTick", planRate, f, "Looks for closed months")
	return f
}

// dispatch makes the function that is called each minute and asked at once when a slot has become free. Any number of
// them at once keeps within the caps.
func (m months) dispatch() awslambda.Function {
	f := newFunction(m.scope, m.d, functionSpec{
		ID: "Dispatch", Folder: "snapshot-dispatch", Description: "Claims months under the owners' caps and starts their jobs",
		Size:        m.d.Profile.SnapshotDispatch,
		Environment: m.environment(map[string]string{boot.EnvAttemptMachine: m.machine}),
		Rights: []awsiam.PolicyStatement{
			m.configured(),
			onTable(m.s.snapshots, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"),
			onIndexes(m.s.snapshots, schema.IndexWork, schema.IndexDirectory),
			allow([]string{m.machine}, "states:StartExecution"),
			allow([]string{m.jobs}, "states:DescribeExecution"),
		},
	})
	every(m.scope, "DispatchTick", dispatchRate, f, "Looks for months to generate")
	return f
}

func (m months) step(dispatch awslambda.Function) awslambda.Function {
	return newFunction(m.scope, m.d, functionSpec{
		ID: "Step", Folder: "snapshot-step", Description: "Generates, validates and publishes a month, step by step",
		Size: m.d.Profile.SnapshotStep, Reads: true,
		Environment: m.environment(map[string]string{
			boot.EnvDataBucket: *m.s.data.BucketName(), boot.EnvSnapshotsBucket: *m.s.months.BucketName(),
			boot.EnvSnapshotDispatch: *dispatch.FunctionName(), boot.EnvAthenaOutput: m.s.lake.place(),
		}),
		Rights: append(m.s.lake.toQuery(m.stack, m.d, m.s),
			m.configured(),
			onTable(m.s.snapshots, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"),
			toTellMissing(m.s.data, m.s.months), // and to list a generation's objects
			onObjects(m.s.data, "", "s3:GetObject"),
			onObjects(m.s.months, snapshotPrefix, "s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"),
			toAsk(dispatch),
		),
	})
}

func (m months) reconcile(dispatch awslambda.Function) awslambda.Function {
	f := newFunction(m.scope, m.d, functionSpec{
		ID: "Reconcile", Folder: "snapshot-reconcile", Description: "Mends what jobs left behind and counts what is late",
		Size: m.d.Profile.SnapshotReconcile,
		Environment: m.environment(map[string]string{
			boot.EnvSnapshotsBucket: *m.s.months.BucketName(), boot.EnvAttemptMachine: m.machine, boot.EnvSnapshotDispatch: *dispatch.FunctionName(),
		}),
		Rights: []awsiam.PolicyStatement{
			m.configured(),
			onTable(m.s.snapshots, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"),
			onIndexes(m.s.snapshots, schema.IndexWork, schema.IndexLate, schema.IndexSettled, schema.IndexDirectory),
			toTellMissing(m.s.months), // and to list what a run left
			onObjects(m.s.months, snapshotPrefix, "s3:GetObject", "s3:DeleteObject"),
			allow([]string{m.machine}, "states:StartExecution"),
			allow([]string{m.jobs}, "states:DescribeExecution"),
			toAsk(dispatch),
		},
	})
	every(m.scope, "ReconcileTick", reconcileRate, f, "Compares the ledger with jobs and files")
	return f
}

// workflow makes the state machine of attempt jobs from its one definition (snapshot.Workflow). It writes no log: an
// execution's history is kept for 90 days, each step logs what it did, and a log would want rights on every log delivery
// of the account. https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
func (m months) workflow(name string, step awslambda.Function) error {
	const function = "StepFunction"
	definition, err := snapshot.States(snapshot.Workflow(m.d.Profile.SnapshotStep.Timeout), "${"+function+"}")
	if err != nil {
		return fmt.Errorf("the workflow of attempt jobs: %w", err)
	}
	role := awsiam.NewRole(m.scope, jsii.String("AttemptsRole"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("states.amazonaws.com"), nil),
		Description: jsii.String("Almanac " + m.d.Profile.Stage + ": attempt jobs"),
	})
	role.AddToPolicy(toAsk(step))
	awsstepfunctions.NewStateMachine(m.scope, jsii.String("Attempts"), &awsstepfunctions.StateMachineProps{
		StateMachineName: jsii.String(name), StateMachineType: awsstepfunctions.StateMachineType_STANDARD, Role: role,
		DefinitionBody:          awsstepfunctions.DefinitionBody_FromString(jsii.String(definition)),
		DefinitionSubstitutions: &map[string]*string{function: step.FunctionArn()},
		TracingEnabled:          jsii.Bool(m.d.Profile.Tracing),
	})
	return nil
}

// snapshotTiming is snapshot.Timing as the functions read it.
func (d Deployment) snapshotTiming() string {
	b, err := json.Marshal(d.Settings.SnapshotTiming)
	if err != nil {
		panic(err) // durations and numbers only
	}
	return string(b)
}
