package workflowtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
)

// The walk takes what Step Functions would: loops, repetitions up to their number, and the catch.
func TestWalk(t *testing.T) {
	j := snapshot.Job{Run: "r", Job: 3}
	type answer struct {
		done bool
		err  error
	}
	passing := snapshot.Passing{Failure: failure.New(failure.SourceUnavailable, "down")}
	disturbed := snapshot.Disturbed{Failure: failure.New(failure.StoreThrottled, "slow")}
	for name, row := range map[string]struct {
		answers map[string][]answer // by step; done where there is none
		path    string
		walked  workflowtest.Walked
	}{
		"straight": {nil, "start generate validate publish", workflowtest.Walked{State: "Publish", Calls: 4, Transitions: 6, Events: 2 + 6*2 + 4*3}},
		"loop": {map[string][]answer{"generate": {{}, {}, {done: true}}}, "start generate generate generate validate publish",
			workflowtest.Walked{State: "Publish", Calls: 6, Transitions: 10, Events: 2 + 10*2 + 6*3}},
		"died twice": {map[string][]answer{"generate": {{err: workflowtest.Died{Name: "Runtime.ExitError"}}, {err: workflowtest.Died{Name: "Lambda.Unknown"}}, {done: true}}},
			"start generate generate generate validate publish", workflowtest.Walked{State: "Publish", Calls: 6, Transitions: 8, Events: 2 + 6*2 + 6*3}},
		"passing": {map[string][]answer{"validate": {{err: passing}}}, "start generate validate settle", workflowtest.Walked{State: "AttemptFailed", Failed: true, Calls: 4, Transitions: 6, Events: 2 + 6*2 + 4*3}},
		"disturbed for good": {map[string][]answer{"start": {{err: disturbed}, {err: disturbed}, {err: disturbed}, {err: disturbed}, {err: disturbed}, {err: disturbed}, {err: disturbed}}},
			"start start start start start start start settle", workflowtest.Walked{State: "AttemptFailed", Failed: true, Calls: 8, Transitions: 9, Events: 2 + 3*2 + 8*3}},
		"settle fails": {map[string][]answer{"start": {{err: passing}}, "settle": {{err: passing}}}, "start settle", workflowtest.Walked{State: "Settle", Failed: true, Calls: 2, Transitions: 2, Events: 2 + 2*2 + 2*3}},
	} {
		t.Run(name, func(t *testing.T) {
			var path []string
			got, err := workflowtest.Walk(t.Context(), snapshot.Workflow(time.Minute), j, "arn", func(_ context.Context, in snapshot.StepInput) (snapshot.Result, error) {
				path = append(path, in.Step)
				if in.Job != j || (in.Execution != "") != (in.Step == "start") || (in.Error.Error != "") != (in.Step == "settle") {
					t.Errorf("given %+v", in)
				}
				list := row.answers[in.Step]
				if len(list) == 0 {
					return snapshot.Result{Done: true}, nil
				}
				row.answers[in.Step] = list[1:]
				return snapshot.Result{Done: list[0].done}, list[0].err
			})
			if err != nil || strings.Join(path, " ") != row.path || got != row.walked {
				t.Fatalf("%v\n%+v, want\n%+v, by %s", err, got, row.walked, strings.Join(path, " "))
			}
		})
	}
	if _, err := workflowtest.Walk(t.Context(), []snapshot.MachineState{{Name: "a", Step: "start", Next: "b"}}, j, "", func(context.Context, snapshot.StepInput) (snapshot.Result, error) { return snapshot.Result{}, nil }); err == nil {
		t.Error("a state that is not there was entered")
	}
}
