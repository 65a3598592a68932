// Package jobs keeps the attempt jobs of snapshots as Standard executions of one Step Functions state machine, and asks
// for a dispatch by invoking its function.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// Executions is the part of Step Functions that the package uses.
type Executions interface {
	StartExecution(context.Context, *sfn.StartExecutionInput, ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
	DescribeExecution(context.Context, *sfn.DescribeExecutionInput, ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error)
	StopExecution(context.Context, *sfn.StopExecutionInput, ...func(*sfn.Options)) (*sfn.StopExecutionOutput, error)
}

// Jobs are the executions of one state machine. The SDK's client may try a start again: under one name that never makes a
// second execution.
type Jobs struct {
	API     Executions
	Machine string // ARN
}

var _ snapshot.Jobs = Jobs{}

var machineForm = regexp.MustCompile(`^arn:[a-z-]+:states:[a-z0-9-]+:[0-9]{12}:stateMachine:[A-Za-z0-9_-]{1,80}$`)

// New checks the state machine's ARN.
func New(api Executions, machine string) (Jobs, error) {
	if !machineForm.MatchString(machine) {
		return Jobs{}, fmt.Errorf("the state machine is %q; want its ARN, arn:aws:states:<region>:<account>:stateMachine:<name>", machine)
	}
	return Jobs{api, machine}, nil
}

// execution is the ARN of a job's execution.
func (j Jobs) execution(name string) *string {
	return aws.String(strings.Replace(j.Machine, ":stateMachine:", ":execution:", 1) + ":" + name)
}

// nameForm is what a name holds so that it is taken and can be logged.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("the job's name is %q; want 1 to 80 letters, digits, \"-\" and \"_\"", failure.Cut(name, 120))
	}
	return nil
}

// Start starts a job. A name that is taken is snapshot.ErrJobExists, except while an execution with this very input runs:
// AWS then answers with that one.
func (j Jobs) Start(ctx context.Context, name string, input snapshot.Job) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	body, err := json.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("start job %s: %w", name, err)
	}
	out, err := j.API.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &j.Machine, Name: &name, Input: aws.String(string(body))})
	if exists := (*types.ExecutionAlreadyExists)(nil); errors.As(err, &exists) {
		return "", fmt.Errorf("start job %s: %w", name, snapshot.ErrJobExists)
	}
	if err != nil {
		return "", fmt.Errorf("start job %s: %w", name, err)
	}
	return aws.ToString(out.ExecutionArn), nil
}

// Describe says what a job does. Right after its start it may be absent still: the answer is eventually consistent.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html
func (j Jobs) Describe(ctx context.Context, name string) (snapshot.JobStatus, error) {
	if err := checkName(name); err != nil {
		return snapshot.JobStatus{}, err
	}
	out, err := j.API.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: j.execution(name)})
	if absent := (*types.ExecutionDoesNotExist)(nil); errors.As(err, &absent) {
		return snapshot.JobStatus{State: snapshot.JobAbsent}, nil
	}
	if err != nil {
		return snapshot.JobStatus{}, fmt.Errorf("look at job %s: %w", name, err)
	}
	status := snapshot.JobStatus{Execution: aws.ToString(out.ExecutionArn), Detail: detail(out)}
	switch out.Status {
	case types.ExecutionStatusRunning:
		status.State = snapshot.JobRunning
	case types.ExecutionStatusSucceeded, types.ExecutionStatusFailed, types.ExecutionStatusTimedOut, types.ExecutionStatusAborted:
		status.State = snapshot.JobClosed
	default: // a closed job settles its attempt, so that nothing is taken for closed that may not be
		return snapshot.JobStatus{}, fmt.Errorf("look at job %s: its status is %q; want RUNNING, SUCCEEDED, FAILED, TIMED_OUT or ABORTED", name, out.Status)
	}
	return status, nil
}

// detail is the status with the error's name and what it said.
func detail(out *sfn.DescribeExecutionOutput) string {
	s := string(out.Status)
	if name := aws.ToString(out.Error); name != "" {
		s += ": " + name
	}
	if cause := aws.ToString(out.Cause); cause != "" {
		s += " (" + failure.Cut(cause, 200) + ")"
	}
	return s
}

// stopped is the error's name of executions that were stopped.
const stopped = "Stopped"

// Stop stops a job. One that has closed or that there is none of is no error, by whatever answer Step Functions tells it.
func (j Jobs) Stop(ctx context.Context, name, why string) error {
	if err := checkName(name); err != nil {
		return err
	}
	_, err := j.API.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: j.execution(name), Error: aws.String(stopped), Cause: aws.String(failure.Cut(why, 1000))})
	absent, closed := (*types.ExecutionDoesNotExist)(nil), (*types.ValidationException)(nil)
	if errors.As(err, &absent) || errors.As(err, &closed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop job %s: %w", name, err)
	}
	return nil
}
