package snapshot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/snapshot"
)

// The rendered workflow is whole: every state that is named exists, ids alone pass, and each Task outwaits its function.
func TestWorkflowInStatesLanguage(t *testing.T) {
	const function = "arn:aws:lambda:us-east-1:000000000000:function:snapshot-step"
	text, err := snapshot.States(snapshot.Workflow(14*time.Minute), function)
	if err != nil {
		t.Fatal(err)
	}
	var machine struct {
		StartAt string
		States  map[string]struct {
			Type, Next, Default, Resource, ResultPath, Error string
			End                                              bool
			TimeoutSeconds                                   int
			Parameters                                       map[string]string
			Retry                                            []struct {
				ErrorEquals                                   []string
				IntervalSeconds, MaxAttempts, MaxDelaySeconds int
			}
			Catch []struct {
				ErrorEquals      []string
				ResultPath, Next string
			}
			Choices []struct {
				Variable, Next string
				BooleanEquals  *bool
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &machine); err != nil {
		t.Fatal(err)
	}
	exists := func(from, to string) {
		t.Helper()
		if _, ok := machine.States[to]; !ok {
			t.Errorf("%s leads to %q, which is no state", from, to)
		}
	}
	exists("the start", machine.StartAt)
	tasks := 0
	for name, s := range machine.States {
		switch s.Type {
		case "Task":
			tasks++
			if s.Resource != function || s.TimeoutSeconds <= 14*60 || s.ResultPath != "$.said" || s.End == (s.Next != "") {
				t.Errorf("%s: %+v", name, s)
			}
			if s.Parameters["run.$"] != "$.run" || s.Parameters["job.$"] != "$.job" || s.Parameters["step"] == "" || len(s.Parameters) > 4 {
				t.Errorf("%s is given %v", name, s.Parameters)
			}
			if s.Next != "" {
				exists(name, s.Next)
			}
			retried := fmt.Sprint(s.Retry)
			for _, e := range []string{"Lambda.Unknown", "Sandbox.Timedout", "Lambda.TooManyRequestsException", "Lambda.ServiceException", "States.Timeout", "Disturbed"} {
				if !strings.Contains(retried, e) {
					t.Errorf("%s does not retry %s", name, e)
				}
			}
			for _, e := range []string{"Passing", "Refused"} {
				if strings.Contains(retried, e) {
					t.Errorf("%s retries %s: that is the run's affair", name, e)
				}
			}
			if name != snapshot.StateSettle && (len(s.Catch) != 1 || s.Catch[0].Next != snapshot.StateSettle || s.Catch[0].ErrorEquals[0] != "States.ALL" || s.Catch[0].ResultPath != "$.error") {
				t.Errorf("%s catches %+v", name, s.Catch)
			}
		case "Choice":
			exists(name, s.Default)
			exists(name, s.Choices[0].Next)
			if s.Choices[0].Variable != "$.said.done" || s.Choices[0].BooleanEquals == nil || *s.Choices[0].BooleanEquals {
				t.Errorf("%s: %+v", name, s.Choices)
			}
		case "Fail":
			if s.Error == "" {
				t.Errorf("%s: no error", name)
			}
		default:
			t.Errorf("%s is a %q", name, s.Type)
		}
	}
	if tasks != 5 || machine.States[snapshot.StateSettle].Parameters["error.$"] != "$.error" || machine.States[snapshot.StateStart].Parameters["execution.$"] != "$$.Execution.Id" {
		t.Errorf("%d tasks: %s", tasks, text)
	}
	w := snapshot.Workflow(time.Minute)
	if _, err := snapshot.States(append(w, w[0]), function); err == nil {
		t.Error("a state that is there twice was rendered")
	}
}

// What a Catch hands on gives the failure back; a wrapped error, which no retrier knows, is told as a step that died.
func TestCaughtErrors(t *testing.T) {
	for name, row := range map[string]struct {
		caught snapshot.Caught
		code   failure.Code
		text   string
	}{
		"passing":     {snapshot.Caught{Error: "Passing", Cause: `{"errorMessage":"source_unavailable: no answer: dial tcp","errorType":"Passing"}`}, failure.SourceUnavailable, "no answer: dial tcp"},
		"refused":     {snapshot.Caught{Error: "Refused", Cause: `{"errorMessage":"query_invalid: near \"x\"","errorType":"Refused"}`}, failure.QueryInvalid, `near "x"`},
		"disturbed":   {snapshot.Caught{Error: "Disturbed", Cause: `{"errorMessage":"store_throttled: slow","errorType":"Disturbed"}`}, failure.StoreThrottled, "slow"},
		"killed":      {snapshot.Caught{Error: "Runtime.ExitError", Cause: `{"errorMessage":"RequestId: 1 Error: Runtime exited with error: signal: killed","errorType":"Runtime.ExitError"}`}, failure.StepDied, "the step ended as Runtime.ExitError: RequestId: 1 Error: Runtime exited with error: signal: killed"},
		"timed out":   {snapshot.Caught{Error: "States.Timeout"}, failure.StepDied, "the step ended as States.Timeout: "},
		"no JSON":     {snapshot.Caught{Error: "Passing", Cause: "gone"}, failure.StepDied, "the step ended as Passing: gone"},
		"wrapped":     {snapshot.Caught{Error: "wrapError", Cause: `{"errorMessage":"while: query_invalid: x"}`}, failure.StepDied, "the step ended as wrapError: while: query_invalid: x"},
		"unknown one": {snapshot.Caught{Error: "Refused", Cause: `{"errorMessage":"dance_needed: x"}`}, failure.StepDied, "the step ended as Refused: dance_needed: x"},
	} {
		if f := row.caught.Failure(); f.Code != row.code || f.Message != row.text {
			t.Errorf("%s: %s %q, want %s %q", name, f.Code, f.Message, row.code, row.text)
		}
	}
	var f *failure.Failure
	if !errors.As(snapshot.Refused{Failure: failure.New(failure.QueryInvalid, "x")}, &f) || f.Code != failure.QueryInvalid {
		t.Error("a step's error is no failure")
	}
}
