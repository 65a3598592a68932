package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"almanac/internal/jobs"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

const (
	machine = "arn:aws:states:eu-central-1:111122223333:stateMachine:almanac-test-snapshots"
	job     = "ewr_carrier-performance_2013-04_v1-j2"
	arn     = "arn:aws:states:eu-central-1:111122223333:execution:almanac-test-snapshots:" + job
)

var input = snapshot.Job{Run: "ewr_carrier-performance_2013-04_v1", Job: 2}

func made(t *testing.T) (jobs.Jobs, *memcloud.States) {
	t.Helper()
	fake := memcloud.NewStates(func() time.Time { return time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC) }, machine)
	j, err := jobs.New(fake, machine)
	if err != nil {
		t.Fatal(err)
	}
	return j, fake
}

func TestN7TheSameNameAndInputIsOneJob(t *testing.T) {
	j, fake := made(t)
	var inputs []string
	fake.OnStart = func(_, input string) { inputs = append(inputs, input) }
	for range 3 {
		if got, err := j.Start(t.Context(), job, input); err != nil || got != arn {
			t.Fatalf("%q, %v; want %q", got, err, arn)
		}
	}
	if len(inputs) != 1 || inputs[0] != `{"run":"ewr_carrier-performance_2013-04_v1","job":2}` {
		t.Errorf("started with %q; want ids alone, once", inputs)
	}
}

func TestN7ANameThatIsTakenIsAJobThatExists(t *testing.T) {
	j, fake := made(t)
	if _, err := j.Start(t.Context(), job, input); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Start(t.Context(), job, snapshot.Job{Run: input.Run, Job: 3}); !errors.Is(err, snapshot.ErrJobExists) || !strings.Contains(err.Error(), job) {
		t.Errorf("while it runs with another input: %v", err)
	}
	if !fake.Finish(arn, types.ExecutionStatusSucceeded, "", "") {
		t.Fatal("it did not run")
	}
	if _, err := j.Start(t.Context(), job, input); !errors.Is(err, snapshot.ErrJobExists) {
		t.Errorf("after its end: %v", err)
	}
}

// TestALostReplyIsNotAJobThatExists: the caller must not take an unknown start for one that closed.
func TestALostReplyIsNotAJobThatExists(t *testing.T) {
	j, fake := made(t)
	lost := errors.New("connection reset")
	fake.After = func(context.Context, memcloud.Call) error { return lost }
	if _, err := j.Start(t.Context(), job, input); !errors.Is(err, lost) || errors.Is(err, snapshot.ErrJobExists) {
		t.Errorf("%v", err)
	}
	fake.After = nil
	if s, err := j.Describe(t.Context(), job); err != nil || s.State != snapshot.JobRunning || s.Execution != arn {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDescribeTellsRunningClosedAndAbsent(t *testing.T) {
	j, fake := made(t)
	if s, err := j.Describe(t.Context(), job); err != nil || s.State != snapshot.JobAbsent || s.Execution != "" {
		t.Errorf("before its start: %+v, %v", s, err)
	}
	for status, want := range map[types.ExecutionStatus]snapshot.JobStatus{
		types.ExecutionStatusSucceeded: {State: snapshot.JobClosed, Detail: "SUCCEEDED"},
		types.ExecutionStatusFailed:    {State: snapshot.JobClosed, Detail: "FAILED: AttemptFailed (settled)"},
		types.ExecutionStatusTimedOut:  {State: snapshot.JobClosed, Detail: "TIMED_OUT: States.Timeout (settled)"},
		types.ExecutionStatusAborted:   {State: snapshot.JobClosed, Detail: "ABORTED: Stopped (settled)"},
	} {
		name := strings.ToLower(string(status))
		if _, err := j.Start(t.Context(), name, input); err != nil {
			t.Fatal(err)
		}
		if s, err := j.Describe(t.Context(), name); err != nil || s.State != snapshot.JobRunning || s.Detail != "RUNNING" {
			t.Errorf("%s, while it runs: %+v, %v", name, s, err)
		}
		_, errorName, _ := strings.Cut(want.Detail, ": ")
		errorName, _, _ = strings.Cut(errorName, " ")
		want.Execution = strings.TrimSuffix(arn, job) + name
		fake.Finish(want.Execution, status, errorName, "settled")
		if s, err := j.Describe(t.Context(), name); err != nil || s != want {
			t.Errorf("%+v, %v; want %+v", s, err, want)
		}
	}
}

func TestAStatusThatIsNotKnownIsNotTakenForClosed(t *testing.T) {
	j, fake := made(t)
	if _, err := j.Start(t.Context(), job, input); err != nil {
		t.Fatal(err)
	}
	fake.Finish(arn, types.ExecutionStatusPendingRedrive, "", "")
	if s, err := j.Describe(t.Context(), job); err == nil || s.State != "" || !strings.Contains(err.Error(), "PENDING_REDRIVE") {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestStopEndsAJobAndLeavesAClosedOneAlone(t *testing.T) {
	j, fake := made(t)
	if err := j.Stop(t.Context(), job, "cancelled"); err != nil {
		t.Errorf("a job that there is none of: %v", err)
	}
	if _, err := j.Start(t.Context(), job, input); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Stop(t.Context(), job, "cancelled by ann"); err != nil {
			t.Fatal(err)
		}
		if s, err := j.Describe(t.Context(), job); err != nil || s.State != snapshot.JobClosed || s.Detail != "ABORTED: Stopped (cancelled by ann)" {
			t.Errorf("%+v, %v", s, err)
		}
	}
	for _, answer := range []error{&types.ValidationException{Message: aws.String("Execution is not running")}, &types.ExecutionDoesNotExist{}} {
		fake.Before = func(context.Context, memcloud.Call) error { return answer }
		if err := j.Stop(t.Context(), job, "cancelled by ann"); err != nil {
			t.Errorf("told that there is nothing to stop: %v", err)
		}
	}
}

func TestFailuresOfStepFunctionsAreErrors(t *testing.T) {
	j, fake := made(t)
	refused := errors.New("throttled")
	fake.Before = func(context.Context, memcloud.Call) error { return refused }
	_, startErr := j.Start(t.Context(), job, input)
	_, describeErr := j.Describe(t.Context(), job)
	for what, err := range map[string]error{"start": startErr, "look at": describeErr, "stop": j.Stop(t.Context(), job, "x")} {
		if !errors.Is(err, refused) || !strings.Contains(err.Error(), what+" job "+job) {
			t.Errorf("%s: %v", what, err)
		}
	}
	fake.Before = nil
	elsewhere, err := jobs.New(fake, strings.Replace(machine, "almanac-test", "almanac-other", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Start(t.Context(), job, input); err == nil || errors.Is(err, snapshot.ErrJobExists) {
		t.Errorf("a state machine that is not there: %v", err)
	}
}

func TestNamesThatStepFunctionsWouldNotTakeOrLogAreRefused(t *testing.T) {
	j, fake := made(t)
	asked := 0
	fake.Before = func(context.Context, memcloud.Call) error { asked++; return nil }
	for _, name := range []string{"", strings.Repeat("x", 81), "a b", "a:b", "a/b", "ä", "a\nb", "../x"} {
		_, startErr := j.Start(t.Context(), name, input)
		_, describeErr := j.Describe(t.Context(), name)
		for what, err := range map[string]error{"start": startErr, "describe": describeErr, "stop": j.Stop(t.Context(), name, "x")} {
			if err == nil || !strings.Contains(err.Error(), "want 1 to 80 letters") {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	if asked != 0 {
		t.Errorf("Step Functions was asked %d times", asked)
	}
	if _, err := j.Start(t.Context(), strings.Repeat("x", 80), input); err != nil {
		t.Errorf("80 letters: %v", err)
	}
}

func TestAStateMachineThatIsNoneIsRefused(t *testing.T) {
	for _, bad := range []string{"", "almanac", arn, machine + ":1", machine + "*", "arn:aws:lambda:eu-central-1:111122223333:function:f", strings.Replace(machine, "111122223333", "1", 1)} {
		if _, err := jobs.New(nil, bad); err == nil || !strings.Contains(err.Error(), "want its ARN") || bad != "" && !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := jobs.New(nil, strings.Replace(machine, "arn:aws:", "arn:aws-cn:", 1)); err != nil {
		t.Errorf("another partition: %v", err)
	}
}

// invoked is a Lambda that answers so.
type invoked struct {
	in  []*lambda.InvokeInput
	out lambda.InvokeOutput
	err error
}

func (i *invoked) Invoke(_ context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	i.in = append(i.in, in)
	return &i.out, i.err
}

func TestAskQueuesOneInvocationThatCarriesNothing(t *testing.T) {
	f := &invoked{out: lambda.InvokeOutput{StatusCode: 202}}
	a := jobs.Asker{API: f, Function: "dispatch"}
	if err := a.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(f.in) != 1 || aws.ToString(f.in[0].FunctionName) != "dispatch" || f.in[0].InvocationType != lambdatypes.InvocationTypeEvent || string(f.in[0].Payload) != "{}" {
		t.Errorf("%+v", f.in)
	}
	f.err = errors.New("throttled")
	if err := a.Ask(t.Context()); !errors.Is(err, f.err) || !strings.Contains(err.Error(), "dispatch") {
		t.Errorf("%v", err)
	}
	f.err, f.out = nil, lambda.InvokeOutput{StatusCode: 200, FunctionError: aws.String("Unhandled")}
	if err := a.Ask(t.Context()); err == nil || !strings.Contains(err.Error(), "200 Unhandled") {
		t.Errorf("%v", err)
	}
}

var _ jobs.Executions = (*sfn.Client)(nil)
