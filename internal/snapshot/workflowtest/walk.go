// Package workflowtest goes through the workflow of an attempt job as Step Functions would, for tests and the fault
// simulation: what is deployed is snapshot.States of the same data.
package workflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"almanac/internal/snapshot"
)

// Walked is what a walk of the workflow came to.
type Walked struct {
	State       string // the last state
	Failed      bool   // the execution failed
	Calls       int    // of the function
	Transitions int    // billed ones: each state entered, and each repetition (https://aws.amazon.com/step-functions/pricing/)
	Events      int    // of the execution's history
}

// Events of a Standard execution's history, as they are listed in
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_HistoryEvent.html
const (
	eventsOfExecution = 2 // started, ended
	eventsOfState     = 2 // entered, exited
	eventsOfCall      = 3 // function scheduled, started, and succeeded or failed
)

// Died is the error of a call whose process was killed, under the name that Step Functions gives it.
type Died struct{ Name string }

func (d Died) Error() string { return d.Name + ": the process was killed" }

// Walk goes through a workflow as Step Functions would, without its waits, calling call for each try of each Task.
func Walk(ctx context.Context, workflow []snapshot.MachineState, j snapshot.Job, execution string, call func(context.Context, snapshot.StepInput) (snapshot.Result, error)) (Walked, error) {
	return WalkWaiting(ctx, workflow, j, execution, call, func(time.Duration) {})
}

// WalkWaiting is Walk with its waits: wait is called before each repetition with the retrier's interval, without jitter.
// It ends between two calls when the context does.
func WalkWaiting(ctx context.Context, workflow []snapshot.MachineState, j snapshot.Job, execution string, call func(context.Context, snapshot.StepInput) (snapshot.Result, error), wait func(time.Duration)) (Walked, error) {
	w := Walked{Events: eventsOfExecution}
	var said snapshot.Result
	var caught snapshot.Caught
	for name := workflow[0].Name; name != ""; {
		s, err := stateOf(workflow, name)
		if err != nil {
			return w, err
		}
		w.State = name
		w.Transitions++
		w.Events += eventsOfState
		switch {
		case s.Failure != "":
			w.Failed = true
			return w, nil
		case s.Again != "":
			if name = s.Next; !said.Done {
				name = s.Again
			}
			continue
		}
		in := snapshot.StepInput{Step: s.Step, Job: j}
		if s.Step == snapshot.StepStart {
			in.Execution = execution
		}
		if s.Step == snapshot.StepSettle {
			in.Error = caught
		}
		result, err := w.task(ctx, s, in, call, wait)
		if err == nil {
			said, name = result, s.Next
			continue
		}
		if ctx.Err() != nil {
			return w, ctx.Err()
		}
		if caught, err = asCaught(err); err != nil {
			return w, err
		}
		if name = s.Catch; name == "" {
			w.Failed = true
		}
	}
	return w, nil
}

// task calls until the call succeeds or its retriers are used up.
func (w *Walked) task(ctx context.Context, s snapshot.MachineState, in snapshot.StepInput, call func(context.Context, snapshot.StepInput) (snapshot.Result, error), wait func(time.Duration)) (snapshot.Result, error) {
	used := make([]int, len(s.Retry))
	for {
		if err := ctx.Err(); err != nil {
			return snapshot.Result{}, err
		}
		w.Calls++
		w.Events += eventsOfCall
		result, err := call(ctx, in)
		if err == nil {
			return result, nil
		}
		i := retrier(s, errorName(err))
		if i < 0 || used[i] == s.Retry[i].Attempts {
			return snapshot.Result{}, err
		}
		r := s.Retry[i]
		wait(min(r.Interval<<used[i], r.Most))
		used[i]++
		w.Transitions++
	}
}

func stateOf(workflow []snapshot.MachineState, name string) (snapshot.MachineState, error) {
	for _, s := range workflow {
		if s.Name == name {
			return s, nil
		}
	}
	return snapshot.MachineState{}, fmt.Errorf("the workflow has no state %q", name)
}

// errorName is an error's name as Lambda reports it: the bare name of its type, so that a wrapped one loses its own.
func errorName(err error) string {
	if d, ok := err.(Died); ok {
		return d.Name
	}
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// asCaught is the error output that Step Functions makes of a function's error.
func asCaught(err error) (snapshot.Caught, error) {
	cause, failed := json.Marshal(map[string]string{"errorMessage": err.Error(), "errorType": errorName(err)})
	return snapshot.Caught{Error: errorName(err), Cause: string(cause)}, errors.Join(failed)
}

// retrier finds the retrier of an error's name.
func retrier(s snapshot.MachineState, name string) int {
	return slices.IndexFunc(s.Retry, func(r snapshot.Retrier) bool { return slices.Contains(r.Errors, name) })
}
