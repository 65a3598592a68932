package memcloud

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// ServiceStates is the SDK's service id of Step Functions.
const ServiceStates = "SFN"

// States is an in-memory Step Functions with the methods of the SDK's client: executions of Standard workflows that run
// until they are stopped or a test finishes them. Names stay taken, as for 90 days on AWS. It is safe for concurrent use.
type States struct {
	Hooks

	// OnStart, if set, is called for each new execution, outside the lock: there a test walks the workflow.
	OnStart func(arn, input string)

	clock func() time.Time

	mu         sync.Mutex
	machines   map[string]bool
	executions map[string]*execution // by ARN
}

type execution struct {
	input, failure, cause string
	status                types.ExecutionStatus
	started, stopped      time.Time
}

// NewStates makes one with these state machines, by ARN.
func NewStates(clock func() time.Time, machines ...string) *States {
	s := &States{clock: clock, machines: map[string]bool{}, executions: map[string]*execution{}}
	for _, m := range machines {
		s.machines[m] = true
	}
	return s
}

// Rules of names: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
var (
	executionName = regexp.MustCompile("^[^\\s<>{}\\[\\]?*\"#%\\\\^|~`$&,;:/\\x00-\\x1f\\x7f-\\x9f\\x{fffe}\\x{ffff}]{1,80}$")
	executionARN  = regexp.MustCompile(`^arn:[a-z-]+:states:[a-z0-9-]+:\d{12}:execution:[^:]+:[^:]+$`)
)

const maxInput = 256 << 10 // https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html

// StartExecution is idempotent while an execution of this name and input runs.
func (s *States) StartExecution(ctx context.Context, in *sfn.StartExecutionInput, _ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	fresh := ""
	out, err := invoke(ctx, &s.Hooks, ServiceStates, "StartExecution", in, func(in *sfn.StartExecutionInput) (*sfn.StartExecutionOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		machine, name, input := aws.ToString(in.StateMachineArn), aws.ToString(in.Name), aws.ToString(in.Input)
		switch {
		case !s.machines[machine]:
			return nil, &types.StateMachineDoesNotExist{Message: aws.String("State Machine Does Not Exist: '" + machine + "'")}
		case !executionName.MatchString(name):
			return nil, &types.InvalidName{Message: aws.String("Invalid Name: '" + name + "'")}
		case !json.Valid([]byte(input)) || len(input) > maxInput:
			return nil, &types.InvalidExecutionInput{Message: aws.String("Invalid State Machine Execution Input")}
		}
		arn := strings.Replace(machine, ":stateMachine:", ":execution:", 1) + ":" + name
		if e := s.executions[arn]; e != nil {
			if e.status != types.ExecutionStatusRunning || e.input != input {
				return nil, &types.ExecutionAlreadyExists{Message: aws.String("Execution Already Exists: '" + arn + "'")}
			}
			return &sfn.StartExecutionOutput{ExecutionArn: &arn, StartDate: aws.Time(e.started)}, nil
		}
		e := &execution{input: input, status: types.ExecutionStatusRunning, started: s.clock()}
		s.executions[arn], fresh = e, arn
		return &sfn.StartExecutionOutput{ExecutionArn: &arn, StartDate: aws.Time(e.started)}, nil
	})
	if fresh != "" && s.OnStart != nil {
		s.OnStart(fresh, aws.ToString(in.Input))
	}
	return out, err
}

// DescribeExecution is consistent here; on AWS it is eventually so, which a Before hook can play.
func (s *States) DescribeExecution(ctx context.Context, in *sfn.DescribeExecutionInput, _ ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceStates, "DescribeExecution", in, func(in *sfn.DescribeExecutionInput) (*sfn.DescribeExecutionOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		e, err := s.find(in.ExecutionArn)
		if err != nil {
			return nil, err
		}
		out := &sfn.DescribeExecutionOutput{ExecutionArn: in.ExecutionArn, Status: e.status, StartDate: aws.Time(e.started), Input: aws.String(e.input)}
		if e.status != types.ExecutionStatusRunning {
			out.StopDate = aws.Time(e.stopped)
		}
		if e.failure != "" {
			out.Error, out.Cause = aws.String(e.failure), aws.String(e.cause)
		}
		return out, nil
	})
}

// StopExecution aborts an execution; one that has closed stays as it is.
func (s *States) StopExecution(ctx context.Context, in *sfn.StopExecutionInput, _ ...func(*sfn.Options)) (*sfn.StopExecutionOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceStates, "StopExecution", in, func(in *sfn.StopExecutionInput) (*sfn.StopExecutionOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		e, err := s.find(in.ExecutionArn)
		if err != nil {
			return nil, err
		}
		if e.status == types.ExecutionStatusRunning {
			e.status, e.failure, e.cause, e.stopped = types.ExecutionStatusAborted, aws.ToString(in.Error), aws.ToString(in.Cause), s.clock()
		}
		return &sfn.StopExecutionOutput{StopDate: aws.Time(e.stopped)}, nil
	})
}

// Finish closes a running execution as a test says; false: there is none that runs.
func (s *States) Finish(arn string, status types.ExecutionStatus, failure, cause string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.executions[arn]
	if e == nil || e.status != types.ExecutionStatusRunning {
		return false
	}
	e.status, e.failure, e.cause, e.stopped = status, failure, cause, s.clock()
	return true
}

// Runs reports whether an execution is there and has not closed.
func (s *States) Runs(arn string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.executions[arn]
	return e != nil && e.status == types.ExecutionStatusRunning
}

func (s *States) find(arn *string) (*execution, error) {
	if !executionARN.MatchString(aws.ToString(arn)) {
		return nil, &types.InvalidArn{Message: aws.String("Invalid Arn: '" + aws.ToString(arn) + "'")}
	}
	e := s.executions[aws.ToString(arn)]
	if e == nil {
		return nil, &types.ExecutionDoesNotExist{Message: aws.String("Execution Does Not Exist: '" + aws.ToString(arn) + "'")}
	}
	return e, nil
}
