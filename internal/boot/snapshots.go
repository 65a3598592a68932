package boot

import (
	"context"
	"encoding/hex"

	"almanac/internal/artifact/bucket"
	"almanac/internal/jobs"
	"almanac/internal/snapshot"
	"almanac/internal/store"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
)

// Planner wires the tick that plans closed months.
func (f *Function) Planner() (*snapshot.Planner, error) {
	j, err := f.jobs()
	if err != nil {
		return nil, err
	}
	sources := f.sources(f.objects())
	return &snapshot.Planner{Ledger: f.snapshots(), Watermark: snapshot.ReadWatermark(sources), Queries: sources, Jobs: j, Dispatch: f.asker(),
		Clocks: f.snapshotClocks(), Timing: f.Config.SnapshotTiming, Token: Token, Log: f.Log, Count: snapshot.Counter(f.Count)}, nil
}

// SnapshotDispatcher wires the tick that claims months and starts their attempt jobs.
func (f *Function) SnapshotDispatcher() (*snapshot.Dispatcher, error) {
	j, err := f.jobs()
	if err != nil {
		return nil, err
	}
	return &snapshot.Dispatcher{Ledger: f.snapshots(), Jobs: j, Off: f.dispatchOff, Clocks: f.snapshotClocks(), Timing: f.Config.SnapshotTiming,
		Log: f.Log, Count: snapshot.Counter(f.Count)}, nil
}

// Reconciler wires the tick that mends what no one told of.
func (f *Function) Reconciler() (*snapshot.Reconciler, error) {
	j, err := f.jobs()
	if err != nil {
		return nil, err
	}
	return &snapshot.Reconciler{Ledger: f.snapshots(), Jobs: j, Objects: f.leavings(), Dispatch: f.asker(), Off: f.dispatchOff,
		Clocks: f.snapshotClocks(), Timing: f.Config.SnapshotTiming, Log: f.Log, Count: snapshot.Counter(f.Count)}, nil
}

// Stepper wires the function that runs the steps of attempt jobs.
func (f *Function) Stepper() Stepper {
	sources := f.sources(f.objects())
	steps := &snapshot.Steps{Ledger: f.snapshots(), Sources: sources, Objects: f.snapshotObjects(), Dispatch: f.asker(), Clocks: f.snapshotClocks(),
		Timing: f.Config.SnapshotTiming, Token: objectToken, Product: Version, Log: f.Log, Count: snapshot.Counter(f.Count)}
	return Stepper{Run: steps.Run, Busy: sources.Busy}
}

// Stepper is the handler of the state machine's calls.
type Stepper struct {
	Run  func(context.Context, snapshot.StepInput) (snapshot.Result, error)
	Busy func() bool // whether an earlier step's engine does not stop
}

// Step runs one step. Its errors are bare, so that the workflow knows them by their types' names. In a process whose
// engine does not stop nothing is begun: the process ends, and the workflow tries the step again on a fresh one, as after
// any disturbance.
func (s Stepper) Step(ctx context.Context, in snapshot.StepInput) (snapshot.Result, error) {
	if s.Busy() {
		return snapshot.Result{}, messages.InvokeResponse_Error{Type: snapshot.NameDisturbed, Message: "the engine of an earlier query does not stop: the process ends", ShouldExit: true}
	}
	return s.Run(ctx, in)
}

// objectToken is a token in names of objects.
func objectToken() string { return hex.EncodeToString(Entropy()) }

func (f *Function) snapshots() *store.Snapshots {
	return store.NewSnapshots(f.dynamo(), f.Config.SnapshotsTable, f.Store)
}

func (f *Function) snapshotClocks() snapshot.Clocks {
	return snapshot.Clocks{Wall: f.Clocks.Wall, Business: f.Clocks.Business}
}

func (f *Function) snapshotObjects() bucket.Objects {
	api := f.objects()
	return bucket.Objects{Store: &bucket.Store{API: api, Bucket: f.Config.SnapshotsBucket}, Listing: api}
}

// leavings are the files of snapshots for the one function that removes some.
func (f *Function) leavings() snapshot.Leavings {
	return struct {
		bucket.Objects
		bucket.Remover
	}{f.snapshotObjects(), bucket.Remover{API: f.objects(), Bucket: f.Config.SnapshotsBucket}}
}

func (f *Function) jobs() (jobs.Jobs, error) {
	return jobs.New(sfn.NewFromConfig(f.AWS), f.Config.AttemptMachine)
}

func (f *Function) asker() jobs.Asker {
	return jobs.Asker{API: lambda.NewFromConfig(f.AWS), Function: f.Config.SnapshotDispatch}
}

// dispatchOff: the switch that holds the dispatch of schedules holds that of snapshots too.
func (f *Function) dispatchOff(ctx context.Context) (bool, error) {
	c, err := f.Store.Control(ctx)
	return c.DispatchOff, err
}
