package snapshot_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/calendar"
	"almanac/internal/memcloud"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"
	"almanac/internal/source/sqlite/databucket"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	_ "modernc.org/sqlite"
)

// attempts is the world of attempt jobs in one process: the real steps, store and bucket over an AWS in memory, real rows
// in an SQLite file, a clock that the test holds, and faults at any outside call.
type attempts struct {
	t     testing.TB
	mu    sync.Mutex
	now   time.Time
	step  time.Duration // that each outside call takes
	token int

	db     *memcloud.Dynamo
	s3     *memcloud.S3
	ledger *store.Snapshots
	steps  *snapshot.Steps
	reader snapshot.Reader
	log    bytes.Buffer
	counts map[string]int
	asked  int // dispatches

	def    snapshot.Definition
	fault  func(n int, c memcloud.Call, after bool) bool // kill the process at this call
	calls  int
	names  []string  // of the calls, in order
	called time.Time // when the latest step was called
}

// process is one call of the function. A dead one reaches nothing outside any more.
type process struct {
	mu   sync.Mutex
	dead bool
}

type processKey struct{}

var errKilled = errors.New("the process was killed")

var (
	jan       = calendar.Month{Year: 2013, Month: time.January}
	newark    = snapshot.Period{Series: snapshot.Series{Workspace: "EWR", Type: "trips"}, Month: jan}
	newYork   = func() *time.Location { z, _ := calendar.LoadZone("America/New_York"); return z }()
	beginning = time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC)
	bg        = context.Background()
)

const functionTime = 5 * time.Minute

// trips is the definition that most tests use: chunks of 100 rows.
func trips() snapshot.Definition {
	return snapshot.Definition{
		Scope: snapshot.Scope{Workspace: "EWR"}, Type: "trips", Name: "Trips", Source: "trips", Start: jan, Key: "id", Mode: snapshot.Chunked, Format: snapshot.Parquet,
		Query:     "select id, carrier, delay, fare, km from trips where workspace = :workspace and at >= :period_start and at < :period_end",
		Control:   "select count(*) as rows, sum(delay) as delay, sum(km) as km from trips where workspace = :workspace and at >= :period_start and at < :period_end",
		ChunkRows: 100, SingleRows: 1000,
	}
}

func newAttempts(t testing.TB, def snapshot.Definition) *attempts {
	t.Helper()
	a := &attempts{t: t, now: beginning, step: time.Millisecond, counts: map[string]int{}, def: def}
	wall := func() time.Time { a.mu.Lock(); defer a.mu.Unlock(); return a.now }
	a.db, a.s3 = memcloud.NewDynamo(wall), memcloud.NewS3(wall)
	hooks := memcloud.Hooks{Before: func(ctx context.Context, c memcloud.Call) error { return a.hook(ctx, c, false) },
		After: func(ctx context.Context, c memcloud.Call) error { return a.hook(ctx, c, true) }}
	a.db.Hooks, a.s3.Hooks = hooks, hooks
	_, err := a.db.CreateTable(bg, snapshotsTable())
	a.must(err)
	for _, b := range []string{"data", "files"} {
		_, err := a.s3.CreateBucket(bg, &s3.CreateBucketInput{Bucket: aws.String(b)})
		a.must(err)
	}
	schedules := store.New(a.db, "Schedules", "test")
	a.ledger = store.NewSnapshots(a.db, "Snapshots", schedules)
	pause := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	a.ledger.Store.Pause, schedules.Pause = pause, pause
	objects := bucket.Objects{Store: &bucket.Store{API: a.s3, Bucket: "files", Pause: pause}, Listing: a.s3}
	a.steps = &snapshot.Steps{
		Ledger: a.ledger, Objects: objects, Dispatch: asking{a}, Clocks: snapshot.Clocks{Wall: wall, Business: func(context.Context) (time.Time, error) { return wall(), nil }},
		Timing: snapshot.DefaultTiming(), Product: "test", Log: slog.New(slog.NewTextHandler(&a.log, nil)),
		Token: func() string { a.mu.Lock(); defer a.mu.Unlock(); a.token++; return fmt.Sprintf("%032x", a.token) },
		Count: func(name string, n int, outcome, _ string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.counts[strings.TrimSpace(name+" "+outcome)] += n
		},
	}
	a.reader = snapshot.Reader{Ledger: a.ledger, Objects: objects}
	a.sandbox()
	a.save(def, 1)
	return a
}

// snapshotsTable is the table as infrastructure makes it.
func snapshotsTable() *dynamodb.CreateTableInput {
	keys := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	in := &dynamodb.CreateTableInput{TableName: aws.String("Snapshots"), BillingMode: types.BillingModePayPerRequest, KeySchema: keys(schema.PK, schema.SK)}
	names := []string{schema.PK, schema.SK}
	for _, x := range schema.SnapshotsIndexes {
		names = append(names, x[1], x[2])
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: aws.String(x[0]), KeySchema: keys(x[1], x[2]),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}})
	}
	for _, n := range names {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(n), AttributeType: types.ScalarAttributeTypeS})
	}
	return in
}

func (a *attempts) tokens() int { a.mu.Lock(); defer a.mu.Unlock(); return a.token }

type asking struct{ a *attempts }

func (x asking) Ask(context.Context) error { x.a.asked++; return nil }

func (a *attempts) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// sandbox gives the calls to come a folder of data files of their own.
func (a *attempts) sandbox() {
	a.steps.Sources = files{&sqlite.Fetcher{Bucket: &databucket.Bucket{API: a.s3, Name: "data"}, Dir: filepath.Join(a.t.TempDir(), "sources"), Defaults: source.Defaults, Now: time.Now}}
}

// files finds a source by its object's name.
type files struct{ *sqlite.Fetcher }

func (f files) View(ctx context.Context, name, _ string) (source.View, error) {
	return f.Source(name + ".sqlite").View(ctx)
}

// hook passes time, counts the calls of processes, and kills.
func (a *attempts) hook(ctx context.Context, c memcloud.Call, after bool) error {
	p, _ := ctx.Value(processKey{}).(*process)
	if p == nil {
		return nil // the test's own call
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errKilled
	}
	a.mu.Lock()
	if !after {
		a.calls++
		a.now = a.now.Add(a.step)
		a.names = append(a.names, c.Service+" "+c.Operation)
	}
	n, fault := a.calls, a.fault
	a.mu.Unlock()
	if fault != nil && fault(n, c, after) {
		p.dead = true
		return errKilled
	}
	return nil
}

// call runs a step as its function does: with a deadline, in a process of its own.
func (a *attempts) call(ctx context.Context, in snapshot.StepInput) (snapshot.Result, error) {
	p := &process{}
	a.called = a.steps.Clocks.Wall()
	ctx = context.WithValue(deadlined{ctx, a.steps.Clocks.Wall().Add(functionTime)}, processKey{}, p)
	result, err := a.steps.Run(ctx, in)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return snapshot.Result{}, workflowtest.Died{Name: "Runtime.ExitError"}
	}
	return result, err
}

// deadlined has a deadline on the held clock; it never fires by itself.
type deadlined struct {
	context.Context
	at time.Time
}

func (d deadlined) Deadline() (time.Time, bool) { return d.at, true }

// save records a definition's version.
func (a *attempts) save(d snapshot.Definition, version int) {
	a.t.Helper()
	a.def = d
	a.must(a.ledger.SaveDefinition(bg, snapshot.Version{Definition: d, Number: version, Hash: d.Hash(), CreatedBy: "test", CreatedAt: a.now}, version-1,
		snapshot.Audit{ID: fmt.Sprint("save", version), Subject: "snapshot", Who: "test", What: "save", At: a.now}))
}

// plan records the period's next version.
func (a *attempts) plan(p snapshot.Period, change ...func(*snapshot.Run)) snapshot.Run {
	a.t.Helper()
	head, err := a.ledger.Head(bg, p)
	a.must(err)
	start, end := p.Month.Bounds(newYork)
	r := snapshot.Run{Period: p, Version: head.Latest + 1, Owner: snapshot.DefaultOwner, Scope: a.def.Scope, Definition: 1, Start: start, End: end,
		Zone: "America/New_York", CreatedAt: a.now, State: snapshot.Planned}
	for _, c := range change {
		c(&r)
	}
	event := snapshot.Plan
	if r.Version > 1 {
		event, r.RequestedBy, r.RequestWhy = snapshot.Request, "ann", "asked"
	}
	a.must(a.ledger.Plan(bg, snapshot.Planning{Event: event, Run: r, Head: head, Token: fmt.Sprint("plan", r.ID())}))
	return a.run(r.ID())
}

func (a *attempts) run(id string) snapshot.Run {
	a.t.Helper()
	r, err := a.ledger.Run(bg, id)
	a.must(err)
	return r
}

// claim queues a run under its next job, once its retry is due.
func (a *attempts) claim(id string) snapshot.Job {
	a.t.Helper()
	r := a.run(id)
	if r.NextAt.After(a.now) {
		a.now = r.NextAt
	}
	caps, err := a.ledger.Caps(bg, r.Owner)
	a.must(err)
	r, err = a.ledger.Claim(bg, r, caps.Owner, a.now)
	a.must(err)
	return snapshot.Job{Run: id, Job: r.Job}
}

// walk runs a job to its end.
func (a *attempts) walk(j snapshot.Job) workflowtest.Walked {
	a.t.Helper()
	w, err := workflowtest.Walk(bg, snapshot.Workflow(functionTime), j, "arn:execution:"+j.Run, a.call)
	a.must(err)
	return w
}

// publish plans, claims and walks, and demands a published version.
func (a *attempts) publish(p snapshot.Period, change ...func(*snapshot.Run)) snapshot.Run {
	a.t.Helper()
	r := a.plan(p, change...)
	a.walk(a.claim(r.ID()))
	return a.published(r.ID())
}

func (a *attempts) published(id string) snapshot.Run {
	a.t.Helper()
	r := a.run(id)
	if r.State != snapshot.Published {
		a.t.Fatalf("%s is %s: %s %s\n%s", id, r.State, r.ErrorCode, r.ErrorText, a.log.String())
	}
	p, err := a.ledger.Pointer(bg, r.Period)
	a.must(err)
	if p.Version != r.Version || p.Manifest != r.Manifest() || p.Manifest == "" {
		a.t.Fatalf("%s is published, and the pointer says %+v", id, p)
	}
	caps, err := a.ledger.Caps(bg, r.Owner)
	a.must(err)
	if slices.Contains(caps.Slots, id) {
		a.t.Fatalf("%s is published and holds a slot", id)
	}
	return r
}

// load makes the source's file anew.
func (a *attempts) load(statements ...string) { a.put("trips.sqlite", statements...) }

func (a *attempts) put(name string, statements ...string) {
	a.t.Helper()
	a.putFile(name, makeFile(a.t, statements...))
}

func (a *attempts) putFile(name string, body []byte) {
	a.t.Helper()
	_, err := a.s3.PutObject(bg, &s3.PutObjectInput{Bucket: aws.String("data"), Key: &name, Body: bytes.NewReader(body)})
	a.must(err)
}

func makeFile(t testing.TB, statements ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	db.Close()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

const tripsTable = "create table trips (id integer primary key, workspace text, at text, carrier text, delay integer, fare decimal text, km real)"

// rowsFrom are n trips of January 2013 with ids from first on, in steps of 10.
func rowsFrom(first, n int) string {
	return fmt.Sprintf(`insert into trips with recursive c(i) as (select 0 union all select i + 1 from c where i + 1 < %d)
		select %d + 10 * i, 'EWR', '2013-01-10T00:00:00Z', case i %% 3 when 0 then null when 1 then '' else '=UA "x", '||i end,
		i %% 7 - 3, printf('%%d.%%02d', i, i %% 100), i * 0.1 from c`, n, first)
}

// rows reads a version back as text, NULL spelled ∅.
func (a *attempts) rows(m snapshot.Manifest) (out []string) {
	a.t.Helper()
	rows := a.reader.Rows(m)
	defer rows.Close()
	for {
		row, err := rows.Next(bg)
		if errors.Is(err, io.EOF) {
			return out
		}
		a.must(err)
		var cells []string
		for _, c := range row {
			if c.Null {
				cells = append(cells, "∅")
			} else {
				cells = append(cells, string(c.Text))
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
}

func (a *attempts) current(p snapshot.Period) snapshot.Manifest {
	a.t.Helper()
	m, err := a.reader.Current(bg, p)
	a.must(err)
	return m
}

// expected are the rows that rowsFrom makes.
func expected(first, n int) (out []string) {
	for i := range n {
		carrier := []string{"∅", "", fmt.Sprintf("=UA \"x\", %d", i)}[i%3]
		km := fmt.Sprint(float64(i) * 0.1)
		out = append(out, fmt.Sprintf("%d|%s|%d|%d.%02d|%s", first+10*i, carrier, i%7-3, i, i%100, km))
	}
	return out
}

// objects lists the bucket below a run.
func (a *attempts) objects(r snapshot.Run) (keys []string) {
	a.t.Helper()
	a.must(a.steps.Objects.List(bg, snapshot.RunPrefix(r.Period, r.Version), func(key string, _ int64) error { keys = append(keys, key); return nil }))
	return keys
}
