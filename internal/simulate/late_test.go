package simulate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
)

// in runs a test in a world.
func in(t *testing.T, f func(*World)) {
	t.Helper()
	if err := Run(t, f); err != nil {
		t.Fatal(err)
	}
}

// An index that lags knows nothing of what was written just now, and all of it soon after.
func TestIndexesLag(t *testing.T) {
	in(t, func(w *World) {
		w.Company()
		w.Lag = func(young int) int { return young }
		w.Apply(Once("s", "b"))
		due := func() (ids []string) {
			k := w.Act("reader", func(ctx context.Context, t Kit) error {
				list, _, err := t.Store().Schedules(ctx, "EWR", "", 10)
				for _, s := range list {
					ids = append(ids, s.ID)
				}
				return err
			})
			w.For(time.Second)
			if err, _ := k.result.(error); err != nil {
				w.Failf("%v", err)
			}
			return ids
		}
		if ids := due(); len(ids) != 0 {
			w.Failf("at once the index knows %q", ids)
		}
		w.For(soonKnown)
		if ids := due(); !slices.Equal(ids, []string{"s"}) {
			w.Failf("%s later the index knows %q", soonKnown, ids)
		}
	})
}

// An answer about an execution may be that of before its start, or of before its end.
func TestAnswersAreBehind(t *testing.T) {
	in(t, func(w *World) {
		w.Steps.OnStart = nil
		status := func() string {
			job, err := w.Kit(nil).jobs().Describe(background, "j")
			w.must(err)
			return string(job.State)
		}
		_, err := w.Steps.StartExecution(background, &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN), Name: aws.String("j"), Input: aws.String("{}")})
		w.must(err)
		got := []string{status()}
		w.Behind = func() bool { return true }
		got = append(got, status())
		w.For(soonKnown)
		got = append(got, status())
		_, err = w.Steps.StopExecution(background, &sfn.StopExecutionInput{ExecutionArn: aws.String(executionOf("j"))})
		w.must(err)
		got = append(got, status())
		w.For(soonKnown)
		got = append(got, status())
		if want := []string{"running", "absent", "running", "running", "closed"}; !slices.Equal(got, want) {
			w.Failf("%q, want %q", got, want)
		}
	})
}

// What a rule or a function asks for comes as often as it does: twice, or not at all until the next time.
func TestInvocationsArrive(t *testing.T) {
	for times := range 3 {
		in(t, func(w *World) { // a rule
			w.Company()
			w.Workers = 3
			w.Apply(Definition("s", "b"))
			w.For(FirstDue.Sub(w.Now()) - time.Second)
			w.Arrives = func() int { return times }
			w.Pass(FirstDue)
			if w.Step(); len(w.live) != times || w.ticked[ruleDispatch] != FirstDue {
				w.Failf("%d invocations at %s, want %d", len(w.live), w.ticked[ruleDispatch], times)
			}
		})
		in(t, func(w *World) { // a function
			w.Company()
			w.Workers = 3
			w.Arrives = func() int { return times }
			w.must(w.Kit(nil).asker().Ask(background))
			if w.Step(); len(w.live) != times || w.asked != 0 {
				w.Failf("%d invocations, want %d; %d are asked for", len(w.live), times, w.asked)
			}
		})
	}
}
