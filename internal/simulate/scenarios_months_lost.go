package simulate

import (
	"slices"
	"strings"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// claimedOnly claims February with no job started.
func (w *World) claimedOnly() snapshot.Run {
	t := w.Kit(nil)
	r := w.Month(february1)
	caps, err := t.Ledger().Caps(background, r.Owner)
	w.must(err)
	r, err = t.Ledger().Claim(background, r, caps.Owner, w.Now())
	w.must(err)
	return r
}

// executionOf is the ARN of a job's execution.
func executionOf(job string) string {
	return strings.Replace(machineARN, ":stateMachine:", ":execution:", 1) + ":" + job
}

// leave puts an object below a run's prefix that no record names.
func (w *World) leave(run, what string) {
	p, version := periodOfRun(run)
	_, err := w.S3.PutObject(background, &s3.PutObjectInput{Bucket: aws.String(MonthFiles), Key: aws.String(snapshot.RunPrefix(p, version) + what), Body: strings.NewReader(what)})
	w.must(err)
}

// left lists the kinds of the objects below a run's prefix.
func (w *World) left(run string) string {
	p, version := periodOfRun(run)
	out, err := w.S3.ListObjectsV2(background, &s3.ListObjectsV2Input{Bucket: aws.String(MonthFiles), Prefix: aws.String(snapshot.RunPrefix(p, version))})
	w.must(err)
	var kinds []string
	for _, o := range out.Contents {
		name, _, _ := strings.Cut((*o.Key)[strings.LastIndexByte(*o.Key, '/')+1:], "-")
		kinds = append(kinds, name)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

// befalling puts a scenario's own faults before those of the driver.
func (w *World) befalling(f func(*Call) Form) {
	driven := w.Fault
	w.Fault = func(c *Call) Form {
		if form := f(c); form != AsAsked {
			return form
		}
		if driven == nil {
			return AsAsked
		}
		return driven(c)
	}
}

// mended lets the reconciler find what was lost, with nobody else looking; then all goes on.
func (w *World) mended(is func(Row) bool) {
	w.held(func() {
		w.Reach("that it is mended", func() bool { return settledRow(w.months.runs[february1]) || is(w.months.runs[february1]) })
	}, ruleMonths)
}

func isFailed(it Row) bool { return stateOf(it) == snapshot.Failed }

func lossScenarios() []Scenario {
	return []Scenario{
		{Name: "a start is lost, the dispatcher offers it again", Want: "2040-02 v1 published g1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.claimedOnly()
			w.held(func() { w.Reach("the offer", w.inState(february1, snapshot.Running, nil)) }, ruleReconcile)
		}},
		{Name: "a start is lost, the reconciler offers it again", Want: "2040-02 v1 published g1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.claimedOnly()
			w.mended(func(it Row) bool { return Text(it, schema.Execution) != "" })
		}},
		{Name: "a job has closed before it began", Want: "2040-02 v1 published g1 f1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			r := w.claimedOnly()
			w.closed(r)
			w.held(func() { w.Reach("that it is settled", w.inState(february1, snapshot.Failed, nil)) }, ruleReconcile)
		}},
		{Name: "an execution is aborted by hand", Want: "2040-02 v1 published g1 f1", Drive: func(w *World) {
			w.defined(Delays("EWR", "2040-02"))
			w.Reach("the first chunk", w.inState(february1, snapshot.Running, func(it Row) bool { return figure(it, schema.Cursor) == 1 }))
			_, err := w.Steps.StopExecution(background, &sfn.StopExecutionInput{ExecutionArn: aws.String(executionOf(february1 + "-j1"))})
			w.must(err)
			w.mended(isFailed)
		}},
		// A try whose process died has used up the source's refusal.
		{Name: "a settlement is lost", Want: "2040-02 v1 published g1 f1", Or: []string{"2040-02 v1 published g1"}, Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.refuse("Source.View", failure.SourceUnavailable, 1)
			tries := 0
			w.befalling(func(c *Call) Form {
				if tries < 7 && strings.HasSuffix(c.Worker.Name, snapshot.StepSettle) && c.Of == 1 {
					tries++
					return DieBefore
				}
				return AsAsked
			})
			w.Reach("the execution's end", func() bool { return w.months.started[executionOf(february1+"-j1")] && len(w.machines) == 0 })
			w.mended(isFailed)
		}},
		{Name: "an execution is gone", Want: "2040-02 v1 published g1 f1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.must(w.Kit(nil).Ledger().Attach(background, w.claimedOnly(), executionOf(february1+"-j1")))
			w.mended(isFailed)
		}},
		{Name: "a slot has drifted", Want: "2040-02 v1 published g1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.attempted(february1)
			gone := schema.SnapshotID("EWR", "delays", "2039-01", 7)
			w.months.strange[february1], w.months.strange[gone] = true, true
			slots := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{february1: &types.AttributeValueMemberBOOL{Value: true}, gone: &types.AttributeValueMemberBOOL{Value: true}}}
			w.put(schema.CapsKey(snapshot.DefaultOwner), map[string]types.AttributeValue{schema.Slots: slots, schema.Backfill: slots})
			w.tickUntil(ruleReconcile, func() bool { return len(ids(w.months.caps[snapshot.DefaultOwner], schema.Slots)) == 0 })
		}},
		{Name: "dispatch is off for a while", Want: "2040-02 v1 published g1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.claimedOnly()
			w.switchDispatch(false)
			w.For(6 * time.Minute) // in which an offer is due
			w.switchDispatch(true)
		}},
	}
}

// closed gives a job an execution that has ended and done nothing.
func (w *World) closed(r snapshot.Run) {
	walk := w.Steps.OnStart
	w.Steps.OnStart = nil
	_, err := w.Steps.StartExecution(background, &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN), Name: aws.String(r.JobName()), Input: aws.String("{}")})
	w.must(err)
	w.Steps.Finish(executionOf(r.JobName()), sfntypes.ExecutionStatusFailed, "States.Runtime", "the input is not an object of ours")
	w.Steps.OnStart = walk
}

// switchSend turns the switch of sending.
func (w *World) switchSend(on bool) {
	_, err := w.Kit(nil).Editor().Switch(background, schedule.Switches{Send: &on}, "a drill", "ann")
	w.must(err)
}

// switchDispatch turns the switch of dispatch.
func (w *World) switchDispatch(on bool) {
	_, err := w.Kit(nil).Editor().Switch(background, schedule.Switches{Dispatch: &on}, "a drill", "ann")
	w.must(err)
}
