// Package snapshottest is monthly snapshots in one process, for the tests of what stands on them: the real editor, planner,
// dispatcher, steps, store and bucket over an AWS in memory, and a source whose rows the test chooses.
package snapshottest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/calendar"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
	"almanac/internal/store"
	"almanac/internal/storetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// World is the parts, and what they asked of the outside.
type World struct {
	Ledger   *store.Snapshots
	S3       *memcloud.S3 // the bucket "months"
	Editor   *snapshot.Editor
	Planner  *snapshot.Planner
	Dispatch *snapshot.Dispatcher
	Steps    *snapshot.Steps
	Files    snapshot.Reader
	Board    snapshot.Board
	Source   *Source

	t      testing.TB
	clocks snapshot.Clocks

	mu      sync.Mutex
	tokens  int
	asked   int
	stopped []string
	started []string
}

// New makes the table Snapshots beside a store's, on the clocks of the test.
func New(t testing.TB, db *memcloud.Dynamo, schedules *store.Store, clocks snapshot.Clocks) *World {
	t.Helper()
	w := &World{t: t, clocks: clocks, S3: memcloud.NewS3(clocks.Wall), Source: &Source{}}
	_, err := db.CreateTable(context.Background(), storetest.SnapshotsTableInput("Snapshots"))
	w.must(err)
	_, err = w.S3.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: aws.String("months")})
	w.must(err)
	wait := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	w.Ledger = store.NewSnapshots(db, "Snapshots", schedules)
	w.Ledger.Store.Pause = wait
	objects := bucket.Objects{Store: &bucket.Store{API: w.S3, Bucket: "months", Pause: wait}, Listing: w.S3}
	log, timing := slog.New(slog.NewTextHandler(io.Discard, nil)), snapshot.DefaultTiming()
	count := func(string, int, string, string) {}
	mark := func(context.Context, snapshot.Version, snapshot.Workspace) (time.Time, error) {
		return w.Source.Complete, w.Source.Broken
	}
	w.Editor = &snapshot.Editor{Ledger: w.Ledger, Watermark: mark, Jobs: jobs{w}, Dispatch: w, Clocks: clocks, Timing: timing, Token: w.token, Log: log,
		Serves: func(_ context.Context, d snapshot.Definition, _ string) (bool, error) {
			return d.Source == "flights", nil
		}}
	w.Planner = &snapshot.Planner{Ledger: w.Ledger, Watermark: mark, Jobs: jobs{w}, Dispatch: w, Clocks: clocks, Timing: timing, Token: w.token, Log: log, Count: count}
	w.Dispatch = &snapshot.Dispatcher{Ledger: w.Ledger, Jobs: jobs{w}, Off: func(context.Context) (bool, error) { return false, nil }, Clocks: clocks, Timing: timing, Log: log, Count: count}
	w.Steps = &snapshot.Steps{Ledger: w.Ledger, Sources: w.Source, Objects: objects, Dispatch: w, Clocks: clocks, Timing: timing, Product: "test", Log: log, Count: count,
		Token: func() string { return fmt.Sprintf("%032x", w.number()) }}
	w.Files = snapshot.Reader{Ledger: w.Ledger, Objects: objects}
	w.Board = snapshot.Board{Ledger: w.Ledger, Clocks: clocks}
	return w
}

func (w *World) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *World) number() int { w.mu.Lock(); defer w.mu.Unlock(); w.tokens++; return w.tokens }

func (w *World) token() string { return fmt.Sprintf("token-%06d", w.number()) }

// Ask notes that a dispatch, or the planner, was asked for.
func (w *World) Ask(context.Context) error { w.mu.Lock(); defer w.mu.Unlock(); w.asked++; return nil }

// Asked is how often it was.
func (w *World) Asked() int { w.mu.Lock(); defer w.mu.Unlock(); return w.asked }

// Stopped are the jobs that were stopped.
func (w *World) Stopped() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.stopped...)
}

// jobs notes what is started and stopped; nothing runs by itself.
type jobs struct{ w *World }

func (j jobs) Start(_ context.Context, name string, _ snapshot.Job) (string, error) {
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	j.w.started = append(j.w.started, name)
	return "arn:execution:" + name, nil
}

func (j jobs) Stop(_ context.Context, name, _ string) error {
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	j.w.stopped = append(j.w.stopped, name)
	return nil
}

func (j jobs) Describe(_ context.Context, name string) (snapshot.JobStatus, error) {
	return snapshot.JobStatus{State: snapshot.JobRunning, Execution: "arn:execution:" + name}, nil
}

// Define saves a definition.
func (w *World) Define(d snapshot.Definition) {
	w.t.Helper()
	_, err := w.Editor.SaveDefinition(context.Background(), d, "ann", 0)
	w.must(err)
}

// Delays is a definition of type delays for one workspace from a month on.
func Delays(workspace, start string) snapshot.Definition {
	m, err := calendar.ParseMonth(start)
	if err != nil {
		panic(err)
	}
	return snapshot.Definition{Scope: snapshot.Scope{Workspace: workspace}, Type: "delays", Name: "Delays", Source: "flights", Start: m, Key: "id", Mode: snapshot.Chunked, ChunkRows: 2,
		Query:   "select id, delay from flights where origin = :workspace and at >= :period_start and at < :period_end",
		Control: "select count(*) as rows, sum(delay) as delay from flights where origin = :workspace and at >= :period_start and at < :period_end"}
}

// Period names a month of the type delays.
func Period(workspace, month string) snapshot.Period {
	return snapshot.Period{Series: snapshot.Series{Workspace: workspace, Type: "delays"}, Month: Delays(workspace, month).Start}
}

// Plan runs the planner once.
func (w *World) Plan() {
	w.t.Helper()
	_, err := w.Planner.Tick(context.Background())
	w.must(err)
}

// Claim queues a planned run under its next job.
func (w *World) Claim(id string) snapshot.Run {
	w.t.Helper()
	r := w.Run(id)
	caps, err := w.Ledger.Caps(context.Background(), r.Owner)
	w.must(err)
	r, err = w.Ledger.Claim(context.Background(), r, caps.Owner, w.clocks.Wall())
	w.must(err)
	return r
}

// Walk runs a queued run's job to its end: it is published, or has failed.
func (w *World) Walk(r snapshot.Run) snapshot.Run {
	w.t.Helper()
	ctx := deadlined{context.Background(), w.clocks}
	_, err := workflowtest.Walk(ctx, snapshot.Workflow(5*time.Minute), snapshot.Job{Run: r.ID(), Job: r.Job}, "arn:execution:"+r.JobName(), w.Steps.Run)
	w.must(err)
	return w.Run(r.ID())
}

// Publish claims a planned run and runs its job, and demands that it is published.
func (w *World) Publish(id string) snapshot.Run {
	w.t.Helper()
	r := w.Walk(w.Claim(id))
	if r.State != snapshot.Published {
		w.t.Fatalf("%s is %s: %s %s", id, r.State, r.ErrorCode, r.ErrorText)
	}
	return r
}

// Run reads a run.
func (w *World) Run(id string) snapshot.Run {
	w.t.Helper()
	r, err := w.Ledger.Run(context.Background(), id)
	w.must(err)
	return r
}

// deadlined ends five minutes from now on the held clock; it never fires by itself.
type deadlined struct {
	context.Context
	clocks snapshot.Clocks
}

func (d deadlined) Deadline() (time.Time, bool) { return d.clocks.Wall().Add(5 * time.Minute), true }
