package snapshot

import (
	"encoding/json"
	"fmt"
	"time"
)

// The attempt job as data: infrastructure renders it for Step Functions, package workflowtest walks it in process with the same steps.

// StepInput is what each step's function is given. Execution comes with start, Error with settle.
type StepInput struct {
	Step string `json:"step"`
	Job
	Execution string `json:"execution,omitempty"`
	Error     Caught `json:"error,omitzero"`
}

// Names of the states and of the steps that they run.
const (
	StateStart     = "Start"
	StateGenerate  = "Generate"
	StateGenerated = "Generated"
	StateValidate  = "Validate"
	StateValidated = "Validated"
	StatePublish   = "Publish"
	StateSettle    = "Settle"
	StateFailed    = "AttemptFailed"

	StepStart    = "start"
	StepGenerate = "generate"
	StepValidate = "validate"
	StepPublish  = "publish"
	StepSettle   = "settle"
)

// MachineState is one state of the workflow: a Task where Step is set, a Choice where Again is, otherwise a Fail.
type MachineState struct {
	Name string
	Step string // of a Task: the step that it runs
	Next string // of a Task; of a Choice: where done leads. Empty: the end
	// Again is where a Choice leads while the step before it is not done.
	Again   string
	Retry   []Retrier
	Catch   string // the state that every other error leads to; empty: none
	Timeout time.Duration
	Failure string // of a Fail: its error's name
}

// Retrier repeats a Task whose error is one of Errors.
type Retrier struct {
	Errors   []string
	Interval time.Duration // before the first repetition; doubled before each further one
	Most     time.Duration
	Attempts int
}

// died are the names under which Step Functions reports a function that was not reached, whose process died or that did
// not answer. Sources: https://docs.aws.amazon.com/step-functions/latest/dg/bp-lambda-serviceexception.html and
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-retries.html
var died = []string{
	"Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Lambda.TooManyRequestsException", "Lambda.ClientExecutionTimeoutException",
	"Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException", "States.Timeout",
}

// timeoutMargin is how much longer a state waits than its function may run.
const timeoutMargin = 30 * time.Second

// Workflow is the attempt job; function is the time-out of the function that runs the steps. A step that failed with
// Passing or Refused is settled at once: the next attempt is another job's, after a delay that stands on the run. Deaths
// and disturbances are tried again first, since such a step resumes where it was and is no attempt of its own.
func Workflow(function time.Duration) []MachineState {
	retry := []Retrier{
		{Errors: died, Interval: 2 * time.Second, Most: time.Minute, Attempts: 6},
		{Errors: []string{NameDisturbed}, Interval: time.Second, Most: 30 * time.Second, Attempts: 6},
	}
	task := func(name, step, next string) MachineState {
		return MachineState{Name: name, Step: step, Next: next, Retry: retry, Catch: StateSettle, Timeout: function + timeoutMargin}
	}
	settle := task(StateSettle, StepSettle, StateFailed)
	settle.Catch = "" // then the reconciler settles what the closed execution left
	return []MachineState{
		task(StateStart, StepStart, StateGenerate),
		task(StateGenerate, StepGenerate, StateGenerated),
		{Name: StateGenerated, Again: StateGenerate, Next: StateValidate},
		task(StateValidate, StepValidate, StateValidated),
		{Name: StateValidated, Again: StateValidate, Next: StatePublish},
		task(StatePublish, StepPublish, ""),
		settle,
		{Name: StateFailed, Failure: StateFailed},
	}
}

// object is one JSON object of the Amazon States Language.
type object = map[string]any

// States renders the workflow in the Amazon States Language; function is the ARN of the function that runs the steps.
// A state's data are the job's ids, what the last step said, and a caught error. Source: https://states-language.net/spec.html
func States(workflow []MachineState, function string) (string, error) {
	states := object{}
	for _, s := range workflow {
		if _, twice := states[s.Name]; twice {
			return "", fmt.Errorf("the workflow has two states %q", s.Name)
		}
		switch {
		case s.Step != "":
			states[s.Name] = s.task(function)
		case s.Again != "":
			states[s.Name] = object{"Type": "Choice", "Default": s.Next,
				"Choices": []object{{"Variable": "$.said.done", "BooleanEquals": false, "Next": s.Again}}}
		default:
			states[s.Name] = object{"Type": "Fail", "Error": s.Failure, "Cause": "the attempt failed and was settled; the run's row says why and what comes next"}
		}
	}
	b, err := json.MarshalIndent(object{"Comment": "One attempt at one month's snapshot", "StartAt": workflow[0].Name, "States": states}, "", "  ")
	return string(b), err
}

func (s MachineState) task(function string) object {
	input := object{"step": s.Step, "run.$": "$.run", "job.$": "$.job"}
	if s.Step == StepStart {
		input["execution.$"] = "$$.Execution.Id"
	}
	if s.Step == StepSettle {
		input["error.$"] = "$.error"
	}
	out := object{"Type": "Task", "Resource": function, "Parameters": input, "ResultPath": "$.said", "TimeoutSeconds": int(s.Timeout.Seconds())}
	if s.Next == "" {
		out["End"] = true
	} else {
		out["Next"] = s.Next
	}
	var retry []object
	for _, r := range s.Retry {
		retry = append(retry, object{"ErrorEquals": r.Errors, "IntervalSeconds": int(r.Interval.Seconds()), "BackoffRate": 2,
			"MaxDelaySeconds": int(r.Most.Seconds()), "MaxAttempts": r.Attempts, "JitterStrategy": "FULL"})
	}
	out["Retry"] = retry
	if s.Catch != "" {
		out["Catch"] = []object{{"ErrorEquals": []string{"States.ALL"}, "ResultPath": "$.error", "Next": s.Catch}}
	}
	return out
}
