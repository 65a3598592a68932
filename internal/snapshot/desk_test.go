package snapshot_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/input"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/store"
	"almanac/internal/storetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var ctx = context.Background()

// opening is where both clocks begin: 5 March 2040, noon UTC. February is the last closed month.
var opening = time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC)

// desk is planner, dispatcher, reconciler and editor in one process: the real store over two tables in memory, a real
// bucket, attempt jobs that the test starts and closes, and two clocks that it holds.
type desk struct {
	t testing.TB

	mu     sync.Mutex
	now    time.Time
	shift  time.Duration // business time less wall time
	tokens int
	step   time.Duration // that each token takes
	counts map[string]int
	asked  int
	off    bool
	marks  map[string]time.Time // the source's watermark by workspace
	broken error                // of the watermark
	read   int                  // watermarks read
	denied map[string]bool      // sources

	db       *memcloud.Dynamo
	s3       *memcloud.S3
	store    *store.Snapshots
	jobs     *jobs
	log      *bytes.Buffer
	timing   snapshot.Timing
	planner  *snapshot.Planner
	dispatch *snapshot.Dispatcher
	mender   *snapshot.Reconciler
	editor   *snapshot.Editor
	leavings leavings
}

type leavings struct {
	bucket.Objects
	bucket.Remover
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, now: opening, counts: map[string]int{}, marks: map[string]time.Time{}, denied: map[string]bool{}, log: &bytes.Buffer{}, timing: snapshot.DefaultTiming()}
	d.timing.Parallel = 1
	d.db, d.s3 = memcloud.NewDynamo(d.wall), memcloud.NewS3(d.wall)
	for _, in := range []*dynamodb.CreateTableInput{storetest.TableInput("Schedules"), storetest.SnapshotsTableInput("Snapshots")} {
		_, err := d.db.CreateTable(ctx, in)
		d.must(err)
	}
	_, err := d.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("files")})
	d.must(err)
	schedules := store.New(d.db, "Schedules", "test")
	d.store = store.NewSnapshots(d.db, "Snapshots", schedules)
	wait := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	schedules.Pause, d.store.Store.Pause = wait, wait
	files := &bucket.Store{API: d.s3, Bucket: "files", Pause: wait}
	d.leavings = leavings{bucket.Objects{Store: files, Listing: d.s3}, bucket.Remover{API: d.s3, Bucket: "files"}}
	d.jobs = &jobs{kept: map[string]*job{}}
	d.wire()
	d.workspace("EWR", func(*schedule.Workspace) {})
	return d
}

func (d *desk) wire() {
	clocks := snapshot.Clocks{Wall: d.wall, Business: d.business}
	log := slog.New(slog.NewJSONHandler(&locked{w: d.log}, nil))
	off := func(context.Context) (bool, error) { d.mu.Lock(); defer d.mu.Unlock(); return d.off, nil }
	d.planner = &snapshot.Planner{Ledger: d.store, Watermark: d.watermark, Jobs: d.jobs, Dispatch: d, Clocks: clocks, Timing: d.timing, Token: d.token, Log: log, Count: d.count}
	d.dispatch = &snapshot.Dispatcher{Ledger: d.store, Jobs: d.jobs, Off: off, Clocks: clocks, Timing: d.timing, Log: log, Count: d.count}
	d.mender = &snapshot.Reconciler{Ledger: d.store, Jobs: d.jobs, Objects: d.leavings, Dispatch: d, Off: off, Clocks: clocks, Timing: d.timing, Log: log, Count: d.count}
	d.editor = &snapshot.Editor{Ledger: d.store, Watermark: d.watermark, Jobs: d.jobs, Dispatch: d, Clocks: clocks, Timing: d.timing, Token: d.token, Log: log,
		Serves: func(_ context.Context, def snapshot.Definition, _ string) (bool, error) {
			return !d.denied[def.Source], d.broken
		}}
}

// locked lets several goroutines write.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) wall() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.now }

func (d *desk) business(context.Context) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.Add(d.shift), nil
}

func (d *desk) advance(by time.Duration) { d.mu.Lock(); defer d.mu.Unlock(); d.now = d.now.Add(by) }

func (d *desk) token() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens++
	d.now = d.now.Add(d.step)
	return fmt.Sprintf("token-%06d", d.tokens)
}

func (d *desk) count(name string, n int, outcome, _ string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[strings.TrimRight(name+" "+outcome, " ")] += n
}

// Ask notes that a dispatch was asked for.
func (d *desk) Ask(context.Context) error { d.mu.Lock(); defer d.mu.Unlock(); d.asked++; return nil }

func (d *desk) watermark(_ context.Context, v snapshot.Version, w snapshot.Workspace) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read++
	if v.Watermark == "" {
		d.t.Error("a watermark was asked for that the definition does not have")
	}
	return d.marks[w.ID], d.broken
}

func (d *desk) audit() schedule.Audit {
	return schedule.Audit{ID: d.token(), Subject: "test", At: d.wall(), Who: "ann", What: "save"}
}

func (d *desk) workspace(id string, change func(*schedule.Workspace)) {
	d.t.Helper()
	w := schedule.Workspace{ID: id, Name: id, Zone: "America/New_York"}
	change(&w)
	d.must(d.store.Schedules.PutWorkspace(ctx, w, d.audit()))
}

func (d *desk) owner(id string, total, backfill int) {
	d.t.Helper()
	d.must(d.editor.SaveOwner(ctx, snapshot.Owner{ID: id, Name: id, Cap: total, Backfill: backfill}, "ann"))
}

// define saves a definition of type "delays" for workspace EWR from a month on, changed as the test needs it.
func (d *desk) define(start string, change func(*snapshot.Definition)) snapshot.Change {
	d.t.Helper()
	def := delays(start)
	change(&def)
	c, err := d.editor.SaveDefinition(ctx, def, "ann", 0)
	d.must(err)
	return c
}

func delays(start string) snapshot.Definition {
	return snapshot.Definition{Scope: snapshot.Scope{Workspace: "EWR"}, Type: "delays", Name: "Delays", Source: "flights", Start: month(start), Key: "id",
		Query:   "SELECT id, delay FROM flights WHERE origin = :workspace AND at >= :period_start AND at < :period_end",
		Control: "SELECT count(*) AS rows FROM flights WHERE origin = :workspace AND at >= :period_start AND at < :period_end"}
}

func unchanged(*snapshot.Definition) {}

func loading(def *snapshot.Definition) { def.Watermark = "SELECT max(at) FROM flights" }

func month(s string) calendar.Month {
	m, err := calendar.ParseMonth(s)
	if err != nil {
		panic(err)
	}
	return m
}

var ewr = snapshot.Series{Workspace: "EWR", Type: "delays"}

func period(m string) snapshot.Period { return snapshot.Period{Series: ewr, Month: month(m)} }

func id(m string, version int) string { return schema.SnapshotID("EWR", "delays", m, version) }

func (d *desk) plan() snapshot.PlanTally {
	d.t.Helper()
	t, err := d.planner.Tick(ctx)
	d.must(err)
	return t
}

func (d *desk) claim() snapshot.DispatchTally {
	d.t.Helper()
	t, err := d.dispatch.Tick(ctx)
	d.must(err)
	return t
}

func (d *desk) mend() snapshot.Findings {
	d.t.Helper()
	f, err := d.mender.Tick(ctx)
	d.must(err)
	return f
}

func (d *desk) run(id string) snapshot.Run {
	d.t.Helper()
	r, err := d.store.Run(ctx, id)
	d.must(err)
	return r
}

func (d *desk) head(m string) snapshot.Head {
	d.t.Helper()
	h, err := d.store.Head(ctx, period(m))
	d.must(err)
	return h
}

func (d *desk) series() snapshot.SeriesRow {
	d.t.Helper()
	s, err := d.store.Series(ctx, ewr)
	d.must(err)
	return s
}

func (d *desk) caps(owner string) snapshot.Caps {
	d.t.Helper()
	c, err := d.store.Caps(ctx, owner)
	d.must(err)
	return c
}

// wantState fails the test unless the run stands so; a code is noted as provoked.
func (d *desk) wantState(id string, state snapshot.State, code failure.Code) snapshot.Run {
	d.t.Helper()
	r := d.run(id)
	if r.State != state || r.ErrorCode != string(code) {
		d.t.Fatalf("%s is %s %q, want %s %q", id, r.State, r.ErrorCode, state, code)
	}
	if code != "" {
		failuretest.Saw(code)
	}
	return r
}

// ledger lists all versions of EWR's months, as month:version:state:reason.
func (d *desk) ledger() (list []string) {
	d.t.Helper()
	heads, err := d.store.Months(ctx, ewr)
	d.must(err)
	for _, h := range heads {
		runs, err := d.store.Versions(ctx, h.Period)
		d.must(err)
		slices.Reverse(runs)
		for _, r := range runs {
			list = append(list, strings.TrimRight(fmt.Sprintf("%s v%d %s %s", r.Month, r.Version, r.State, r.Reason), " "))
		}
	}
	return list
}

func (d *desk) wantLedger(want ...string) {
	d.t.Helper()
	if got := d.ledger(); !slices.Equal(got, want) {
		d.t.Fatalf("ledger:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// begin starts the attempt of a queued run, as the job's first step does.
func (d *desk) begin(id string) snapshot.Run {
	d.t.Helper()
	r, err := d.store.Begin(ctx, d.run(id), snapshot.Beginning{Mode: snapshot.Chunked, Generation: 1, Execution: arn(d.run(id).JobName()),
		Basis: snapshot.Basis{Definition: 1}, Now: d.wall()})
	d.must(err)
	return r
}

// validating brings a queued run to its validation, with one chunk.
func (d *desk) validating(id string) snapshot.Run {
	d.t.Helper()
	r := d.begin(id)
	object := snapshot.GenerationPrefix(r.Period, r.Version, r.Generation) + "chunk-00000000-" + d.token() + ".csv.gz"
	d.put(object, "rows")
	d.must(d.store.Commit(ctx, r, snapshot.Chunk{Number: 0, Object: object, Rows: 1, Increasing: true}, snapshot.Cursor{Chunk: 1, Rows: 1, Done: true}, d.wall()))
	r, err := d.store.BeginValidation(ctx, d.run(id), d.wall())
	d.must(err)
	return r
}

// validating2 brings a queued run whose generation is complete to its validation again.
func (d *desk) validating2(id string) {
	d.t.Helper()
	r := d.run(id)
	r, err := d.store.Begin(ctx, r, snapshot.Beginning{Mode: r.Mode, Generation: r.Generation, Cursor: r.Cursor, Basis: r.Basis, Now: d.wall()})
	d.must(err)
	_, err = d.store.BeginValidation(ctx, r, d.wall())
	d.must(err)
}

// verdict records what validation found against the current version.
func (d *desk) verdict(id string, checks ...snapshot.Check) snapshot.Run {
	d.t.Helper()
	r := d.run(id)
	pointer, err := d.store.Pointer(ctx, r.Period)
	d.must(err)
	passed := !slices.ContainsFunc(checks, func(c snapshot.Check) bool { return !c.Passed })
	chunks, err := d.store.Chunks(ctx, id, r.Generation, 0, 10)
	d.must(err)
	m := snapshot.Manifest{Format: snapshot.ManifestFormat, Run: id, Workspace: r.Workspace, Type: r.Type, Month: r.Month, Version: r.Version, Generation: r.Generation, Checks: checks}
	for _, c := range chunks {
		m.Chunks = append(m.Chunks, snapshot.ManifestChunk{Object: c.Object, Rows: c.Rows})
	}
	body, hash, err := m.Encode()
	d.must(err)
	d.put(snapshot.ManifestKey(r.Period, r.Version, hash), string(body))
	d.must(d.store.RecordVerdict(ctx, r, snapshot.Verdict{Passed: passed, Manifest: hash, Current: pointer.Version, Checks: checks}, d.wall()))
	return d.run(id)
}

// publish brings a queued run to its publication, and closes its job.
func (d *desk) publish(id string) {
	d.t.Helper()
	d.validating(id)
	r := d.verdict(id)
	pointer, err := d.store.Pointer(ctx, r.Period)
	d.must(err)
	d.must(d.store.Publish(ctx, r, pointer, d.wall()))
	d.jobs.close(r.JobName(), "SUCCEEDED")
	d.wantState(id, snapshot.Published, "")
}

// fail settles the attempt of an admitted run, as a step that catches an error does.
func (d *desk) fail(id string, code failure.Code) snapshot.Run {
	d.t.Helper()
	r := d.run(id)
	d.must(d.store.Fail(ctx, r, d.timing.Settle(r, failure.New(code, "a test's failure"), d.wall()), d.wall()))
	d.jobs.close(r.JobName(), "FAILED")
	return d.run(id)
}

func (d *desk) put(key, body string) {
	d.t.Helper()
	_, err := d.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("files"), Key: &key, Body: strings.NewReader(body)})
	d.must(err)
}

func (d *desk) objects(prefix string) (keys []string) {
	d.t.Helper()
	d.must(d.leavings.List(ctx, prefix, func(key string, _ int64) error { keys = append(keys, key); return nil }))
	return keys
}

// set writes one attribute of a row behind the product's back.
func (d *desk) set(k schema.Key, expression string, names map[string]string, values map[string]dynamotypes.AttributeValue) {
	d.t.Helper()
	_, err := d.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("Snapshots"), UpdateExpression: &expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		Key: map[string]dynamotypes.AttributeValue{schema.PK: &dynamotypes.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &dynamotypes.AttributeValueMemberS{Value: string(k.SK)}}})
	d.must(err)
}

// arn is the execution of a job's name.
func arn(name string) string {
	return "arn:aws:states:us-east-1:000000000000:execution:attempts:" + name
}

// job is one execution.
type job struct {
	input   snapshot.Job
	state   snapshot.JobState
	detail  string
	stopped string
}

// jobs keeps names as Step Functions does: the same name and input while it runs is the same job, afterwards, or with
// another input, an error.
type jobs struct {
	mu     sync.Mutex
	kept   map[string]*job
	starts int
	// before is called before a start takes effect, after when it has; what they return is what the caller gets.
	before, after func(name string) error
	describing    error
	stopping      error
}

func (j *jobs) Start(_ context.Context, name string, input snapshot.Job) (string, error) {
	if j.before != nil {
		if err := j.before(name); err != nil {
			return "", err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if k, ok := j.kept[name]; !ok {
		j.kept[name] = &job{input: input, state: snapshot.JobRunning}
		j.starts++
	} else if k.state != snapshot.JobRunning || k.input != input {
		return "", snapshot.ErrJobExists
	}
	if j.after != nil {
		if err := j.after(name); err != nil {
			return "", err
		}
	}
	return arn(name), nil
}

func (j *jobs) Describe(_ context.Context, name string) (snapshot.JobStatus, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.describing != nil {
		return snapshot.JobStatus{}, j.describing
	}
	k, ok := j.kept[name]
	if !ok {
		return snapshot.JobStatus{State: snapshot.JobAbsent}, nil
	}
	return snapshot.JobStatus{State: k.state, Execution: arn(name), Detail: k.detail}, nil
}

func (j *jobs) Stop(_ context.Context, name, why string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if k, ok := j.kept[name]; ok && k.state == snapshot.JobRunning {
		k.state, k.detail, k.stopped = snapshot.JobClosed, "ABORTED", why
	}
	return j.stopping
}

func (j *jobs) close(name, detail string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if k, ok := j.kept[name]; ok {
		k.state, k.detail = snapshot.JobClosed, detail
	}
}

func (j *jobs) forget(name string) { j.mu.Lock(); defer j.mu.Unlock(); delete(j.kept, name) }

func (j *jobs) running() (names []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, k := range j.kept {
		if k.state == snapshot.JobRunning {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func hours(n int) input.Duration { return input.Duration(time.Duration(n) * time.Hour) }
