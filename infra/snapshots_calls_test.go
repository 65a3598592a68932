package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/boot"
	"almanac/internal/calendar"
	"almanac/internal/jobs"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"
	"almanac/internal/source/sqlite/databucket"
	"almanac/internal/store"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	_ "modernc.org/sqlite"
)

// months at work in one process: the product's own planner, dispatcher, steps and reconciler on an AWS in memory, with
// the adapters that the functions have. What each of them calls is noted as the right that it needs.
type acting struct {
	t      *testing.T
	mu     sync.Mutex
	now    time.Time
	used   map[string]map[string]bool // function → "place action"
	held   bool                       // attempt jobs do not run
	fault  func(who string, c memcloud.Call) error
	tokens int

	db     *memcloud.Dynamo
	s3     *memcloud.S3
	states *memcloud.States
	store  *store.Store
	ledger *store.Snapshots

	planner    *snapshot.Planner
	dispatcher *snapshot.Dispatcher
	steps      *snapshot.Steps
	reconciler *snapshot.Reconciler
}

type actorKey struct{}

const machineARN = "arn:aws:states:us-east-1:111122223333:stateMachine:almanac-test-attempts"

func newActing(t *testing.T) *acting {
	t.Helper()
	a := &acting{t: t, now: time.Date(2013, 4, 2, 12, 0, 0, 0, time.UTC), used: map[string]map[string]bool{}}
	wall := func() time.Time { a.mu.Lock(); defer a.mu.Unlock(); return a.now }
	a.db, a.s3, a.states = memcloud.NewDynamo(wall), memcloud.NewS3(wall), memcloud.NewStates(wall, machineARN)
	hooks := memcloud.Hooks{Before: a.note}
	a.db.Hooks, a.s3.Hooks, a.states.Hooks = hooks, hooks, hooks
	a.states.OnStart = a.run
	a.must(a.table("Schedules", [][3]string{{schema.IndexDue, schema.DueShard, schema.NextDueAt}, {schema.IndexOpen, schema.OpenShard, schema.WakeAt}, {schema.IndexDirectory, schema.DirKind, schema.DirName}}))
	a.must(a.table("Snapshots", schema.SnapshotsIndexes))
	for _, b := range []string{"data", "months"} {
		_, err := a.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b})
		a.must(err)
	}
	a.store = store.New(a.db, "Schedules", "test")
	a.ledger = store.NewSnapshots(a.db, "Snapshots", a.store)

	clocks := snapshot.Clocks{Wall: wall, Business: func(context.Context) (time.Time, error) { return wall(), nil }}
	timing, log, count := snapshot.DefaultTiming(), slog.New(slog.DiscardHandler), func(string, int, string, string) {}
	token := func() string { a.mu.Lock(); defer a.mu.Unlock(); a.tokens++; return fmt.Sprintf("%032x", a.tokens) }
	off := func(ctx context.Context) (bool, error) { c, err := a.store.Control(ctx); return c.DispatchOff, err }
	sources := &boot.Sources{Configs: a.store, SQLite: &sqlite.Fetcher{Bucket: &databucket.Bucket{API: a.s3, Name: "data"}, Dir: t.TempDir(), Defaults: source.Defaults, Now: time.Now}}
	objects := bucket.Objects{Store: &bucket.Store{API: a.s3, Bucket: "months"}, Listing: a.s3}
	attempts, err := jobs.New(a.states, machineARN)
	a.must(err)
	ask := jobs.Asker{API: asked{a}, Function: "dispatch"}
	a.planner = &snapshot.Planner{Ledger: a.ledger, Watermark: snapshot.ReadWatermark(sources), Jobs: attempts, Dispatch: ask, Clocks: clocks, Timing: timing, Token: token, Log: log, Count: count}
	a.dispatcher = &snapshot.Dispatcher{Ledger: a.ledger, Jobs: attempts, Off: off, Clocks: clocks, Timing: timing, Log: log, Count: count}
	a.steps = &snapshot.Steps{Ledger: a.ledger, Sources: sources, Objects: objects, Dispatch: ask, Clocks: clocks, Timing: timing, Token: token, Product: "test", Log: log, Count: count}
	a.reconciler = &snapshot.Reconciler{Ledger: a.ledger, Jobs: attempts, Dispatch: ask, Off: off, Clocks: clocks, Timing: timing, Log: log, Count: count,
		Objects: struct {
			bucket.Objects
			bucket.Remover
		}{objects, bucket.Remover{API: a.s3, Bucket: "months"}}}
	return a
}

func (a *acting) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *acting) table(name string, indexes [][3]string) error {
	keys := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keys(schema.PK, schema.SK)}
	attributes := []string{schema.PK, schema.SK}
	for _, x := range indexes {
		attributes = append(attributes, x[1], x[2])
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: &x[0], KeySchema: keys(x[1], x[2]), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}})
	}
	for _, n := range attributes {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &n, AttributeType: types.ScalarAttributeTypeS})
	}
	_, err := a.db.CreateTable(a.t.Context(), in)
	return err
}

// as calls in a function's name.
func (a *acting) as(who string) context.Context {
	return context.WithValue(context.Background(), actorKey{}, who)
}

func (a *acting) needs(ctx context.Context, place, action string) string {
	who, _ := ctx.Value(actorKey{}).(string)
	if who == "" {
		return "" // the test's own call
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used[who] == nil {
		a.used[who] = map[string]bool{}
	}
	a.used[who][place+" "+action] = true
	return who
}

type asked struct{ a *acting }

func (x asked) Invoke(ctx context.Context, _ *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	x.a.needs(ctx, "SnapshotsDispatch", "InvokeFunction")
	return &lambda.InvokeOutput{StatusCode: 202}, nil
}

// note translates a request into the rights that AWS wants for it.
func (a *acting) note(ctx context.Context, c memcloud.Call) error {
	var who string
	table := func(name *string, action string) { who = a.needs(ctx, "Storage"+awssdk.ToString(name), action) }
	object := func(bucket, key *string, action string) {
		place := map[string]string{"data": "StorageData/*", "months": "StorageMonths/snapshots/*"}[awssdk.ToString(bucket)]
		if awssdk.ToString(bucket) == "months" && !strings.HasPrefix(awssdk.ToString(key), "snapshots/") {
			place = "StorageMonths/" + awssdk.ToString(key)
		}
		who = a.needs(ctx, place, action)
	}
	switch in := c.Input.(type) {
	case *dynamodb.QueryInput:
		place := "Storage" + *in.TableName
		if in.IndexName != nil {
			place += "/index/" + *in.IndexName
		}
		who = a.needs(ctx, place, "Query")
	case *dynamodb.GetItemInput:
		table(in.TableName, c.Operation)
	case *dynamodb.PutItemInput:
		table(in.TableName, c.Operation)
	case *dynamodb.UpdateItemInput:
		table(in.TableName, c.Operation)
	case *dynamodb.BatchGetItemInput:
		for name := range in.RequestItems {
			table(&name, c.Operation)
		}
	case *dynamodb.TransactGetItemsInput:
		for _, it := range in.TransactItems {
			table(it.Get.TableName, "GetItem")
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, it := range in.TransactItems {
			switch {
			case it.Put != nil:
				table(it.Put.TableName, "PutItem")
			case it.Update != nil:
				table(it.Update.TableName, "UpdateItem")
			case it.ConditionCheck != nil:
				table(it.ConditionCheck.TableName, "ConditionCheckItem")
			default:
				table(it.Delete.TableName, "DeleteItem")
			}
		}
	case *s3.HeadObjectInput:
		object(in.Bucket, in.Key, "GetObject")
	case *s3.GetObjectInput:
		object(in.Bucket, in.Key, "GetObject")
	case *s3.PutObjectInput:
		object(in.Bucket, in.Key, "PutObject")
	case *s3.DeleteObjectsInput:
		for _, o := range in.Delete.Objects {
			object(in.Bucket, o.Key, "DeleteObject")
		}
	case *s3.ListObjectsV2Input:
		who = a.needs(ctx, map[string]string{"data": "StorageData", "months": "StorageMonths"}[*in.Bucket], "ListBucket")
	default:
		switch c.Operation {
		case "StartExecution":
			who = a.needs(ctx, "attempts", c.Operation)
		case "DescribeExecution", "StopExecution":
			who = a.needs(ctx, "attempts' executions", c.Operation)
		default:
			if who, _ = ctx.Value(actorKey{}).(string); who != "" {
				a.t.Errorf("%s calls %s %s, of which this test does not know the right", who, c.Service, c.Operation)
			}
		}
	}
	if who != "" && a.fault != nil {
		return a.fault(who, c)
	}
	return nil
}

// run is a job's execution: the deployed workflow's data, walked with the real steps.
func (a *acting) run(arn, input string) {
	if a.held {
		return
	}
	var j snapshot.Job
	a.must(json.Unmarshal([]byte(input), &j))
	w, err := workflowtest.Walk(a.as("SnapshotsStep"), snapshot.Workflow(10*time.Minute), j, arn, a.steps.Run)
	a.must(err)
	status := sfntypes.ExecutionStatusSucceeded
	if w.Failed {
		status = sfntypes.ExecutionStatusFailed
	}
	a.states.Finish(arn, status, "", "")
}

func (a *acting) pass(d time.Duration) { a.mu.Lock(); defer a.mu.Unlock(); a.now = a.now.Add(d) }

func (a *acting) plan() snapshot.PlanTally {
	a.t.Helper()
	tally, err := a.planner.Tick(a.as("SnapshotsPlan"))
	a.must(err)
	return tally
}

func (a *acting) dispatch() snapshot.DispatchTally {
	a.t.Helper()
	tally, err := a.dispatcher.Tick(a.as("SnapshotsDispatch"))
	a.must(err)
	return tally
}

func (a *acting) reconcile() snapshot.Findings {
	a.t.Helper()
	found, err := a.reconciler.Tick(a.as("SnapshotsReconcile"))
	a.must(err)
	return found
}

// month is the run of a month's first version.
func (a *acting) month(workspace string, m time.Month) snapshot.Run {
	a.t.Helper()
	p := snapshot.Period{Series: snapshot.Series{Workspace: workspace, Type: "trips"}, Month: calendar.Month{Year: 2013, Month: m}}
	r, err := a.ledger.Run(context.Background(), snapshot.Run{Period: p, Version: 1}.ID())
	a.must(err)
	return r
}

func (a *acting) workspace(w schedule.Workspace) {
	a.t.Helper()
	a.tokens++
	a.must(a.store.PutWorkspace(context.Background(), w, schedule.Audit{ID: fmt.Sprint("w", a.tokens), Who: "ann", At: a.now}))
}

// configure has two workspaces, a source of trips, and a definition for each of them, in chunks and in one pass.
func (a *acting) configure() {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), "trips.sqlite")
	db, err := sql.Open("sqlite", path)
	a.must(err)
	_, err = db.Exec(`create table trips (id integer primary key, at text); insert into trips values (1, '2013-01-05T00:00:00Z'), (2, '2013-02-05T00:00:00Z'), (3, '2013-03-05T00:00:00Z'), (4, '2013-04-01T20:00:00Z')`)
	a.must(errors.Join(err, db.Close()))
	body, err := os.ReadFile(path)
	a.must(err)
	ctx := context.Background()
	_, err = a.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: awssdk.String("data"), Key: awssdk.String("trips.sqlite"), Body: bytes.NewReader(body)})
	a.must(err)
	a.must(a.store.PutSource(ctx, schedule.SourceConfig{Name: "trips", Engine: "sqlite", Object: "trips.sqlite", Workspaces: []string{"*"}}, schedule.Audit{ID: "source", Who: "ann", At: a.now}))
	for i, mode := range []snapshot.Mode{snapshot.Chunked, snapshot.Single} {
		w := []string{"EWR", "JFK"}[i]
		a.workspace(schedule.Workspace{ID: w, Name: w, Zone: "UTC"})
		d := snapshot.Definition{Scope: snapshot.Scope{Workspace: w}, Type: "trips", Name: "Trips", Source: "trips", Start: calendar.Month{Year: 2013, Month: time.January}, Key: "id", Mode: mode,
			ChunkRows: 1, Query: "select id from trips where at >= :period_start and at < :period_end",
			Control: "select count(*) as rows from trips where at >= :period_start and at < :period_end", Watermark: "select max(at) from trips"}
		a.must(a.ledger.SaveDefinition(ctx, snapshot.Version{Definition: d, Number: 1, Hash: w, CreatedBy: "ann", CreatedAt: a.now}, 0, snapshot.Audit{ID: w, Who: "ann", What: "save", At: a.now}))
	}
}

// TestFunctionsOfSnapshotsHaveTheRightsThatTheyUse walks months through all that can become of them, and holds each call
// against the rights that the stack gives: nothing is missing, and what is never used is there for a reason.
func TestFunctionsOfSnapshotsHaveTheRightsThatTheyUse(t *testing.T) {
	a := newActing(t)
	a.configure()
	if got := a.plan(); got.Planned != 6 || got.Errors != 0 {
		t.Fatalf("planned %+v", got)
	}
	for range 3 {
		a.dispatch()
	}
	for _, w := range []string{"EWR", "JFK"} {
		for m := time.January; m <= time.March; m++ {
			if r := a.month(w, m); r.State != snapshot.Published {
				t.Fatalf("%s is %s: %s %s", r.ID(), r.State, r.ErrorCode, r.ErrorText)
			}
		}
	}
	a.lostAndCancelled()
	a.drift()

	p, err := ProfileOf("production", "")
	if err != nil {
		t.Fatal(err)
	}
	// Rights that only an accident needs: an upload in parts that broke off, and 404 instead of 403 for what is not there.
	inNeed := map[string][]string{
		"SnapshotsPlan": {"StorageData ListBucket"},
		"SnapshotsStep": {"StorageData ListBucket", "StorageMonths/snapshots/* AbortMultipartUpload"},
	}
	for who, rights := range allowed(p) {
		if !strings.HasPrefix(who, "Snapshots") {
			continue
		}
		given := map[string]bool{}
		for place, actions := range rights {
			for _, action := range strings.Fields(actions)[1:] {
				if place != "*" && place != "its log group" {
					given[place+" "+action] = true
				}
			}
		}
		for right := range a.used[who] {
			if !given[right] {
				t.Errorf("%s needs %s and may not", who, right)
			}
		}
		for right := range given {
			if !a.used[who][right] && !slices.Contains(inNeed[who], right) {
				t.Errorf("%s may %s and never does", who, right)
			}
		}
	}
}

// lostAndCancelled: jobs that do not begin are offered again by dispatcher and reconciler, one that closed has lost its
// attempt, what settled runs left over is removed, and runs of a workspace that is removed are cancelled and stopped.
func (a *acting) lostAndCancelled() {
	a.t.Helper()
	a.held = true
	a.pass(29 * 24 * time.Hour) // April has ended, and its source is complete
	for _, w := range []string{"EWR", "JFK"} {
		d, err := a.ledger.Present(context.Background(), snapshot.Scope{Workspace: w}, "trips")
		a.must(err)
		d.Watermark, d.Number = "select '2013-05-31T00:00:00Z'", 2
		a.must(a.ledger.SaveDefinition(context.Background(), d, 1, snapshot.Audit{ID: w + "2", Who: "ann", What: "save", At: a.now}))
	}
	a.plan()
	attach := errors.New("cut")
	a.fault = func(who string, c memcloud.Call) error {
		if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(fmt.Sprint(in.ExpressionAttributeNames), schema.Execution) {
			return attach
		}
		return nil
	}
	a.store.Pause, a.ledger.Store.Pause = over, over
	if got := a.dispatch(); got.Claimed != 2 || got.Errors != 2 {
		a.t.Fatalf("claimed %+v", got)
	}
	a.fault = nil
	a.pass(6 * time.Minute)
	first := a.month("EWR", time.April)
	a.states.Finish(strings.Replace(machineARN, "stateMachine", "execution", 1)+":"+first.JobName(), sfntypes.ExecutionStatusAborted, "", "")
	if got := a.dispatch(); got.Lost != 1 || got.Started != 1 { // EWR's has closed, JFK's runs
		a.t.Fatalf("offered again %+v", got)
	}
	a.pass(6 * time.Minute)
	a.fault = func(who string, c memcloud.Call) error {
		if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(fmt.Sprint(in.ExpressionAttributeNames), schema.Execution) {
			return attach
		}
		return nil
	}
	a.dispatch() // EWR's second attempt
	a.fault = nil
	a.pass(6 * time.Minute)
	left := snapshot.RunPrefix(a.month("EWR", time.January).Period, 1) + "left"
	_, err := a.s3.PutObject(context.Background(), &s3.PutObjectInput{Bucket: awssdk.String("months"), Key: &left, Body: strings.NewReader("x")})
	a.must(err)
	if got := a.reconcile(); got.Reoffered != 1 || got.Cleaned != 6 || got.Removed != 1 {
		a.t.Fatalf("reconciled %+v", got)
	}
	second := a.month("EWR", time.April)
	a.states.Finish(strings.Replace(machineARN, "stateMachine", "execution", 1)+":"+second.JobName(), sfntypes.ExecutionStatusTimedOut, "", "")
	if got := a.reconcile(); got.Lost != 1 {
		a.t.Fatalf("reconciled %+v", got)
	}
	a.workspace(schedule.Workspace{ID: "JFK", Name: "JFK", Zone: "UTC", Removed: a.now.Format(time.RFC3339)})
	if got := a.plan(); got.Cancelled != 1 || a.month("JFK", time.April).State != snapshot.Cancelled {
		a.t.Fatalf("removed %+v", got)
	}
}

func over(context.Context, time.Duration) error { return errors.New("no time is left") }

// drift: a slot whose run is not admitted is freed.
func (a *acting) drift() {
	a.t.Helper()
	ctx, settled := context.Background(), a.month("EWR", time.January)
	caps := schema.CapsKey(snapshot.DefaultOwner)
	_, err := a.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: awssdk.String("Snapshots"),
		Key:              map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: string(caps.PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(caps.SK)}},
		UpdateExpression: awssdk.String("SET #s.#r = :t"), ExpressionAttributeNames: map[string]string{"#s": schema.Slots, "#r": settled.ID()},
		ExpressionAttributeValues: map[string]types.AttributeValue{":t": &types.AttributeValueMemberBOOL{Value: true}}})
	a.must(err)
	a.pass(8 * 24 * time.Hour)
	if got := a.reconcile(); got.Drift != 1 || got.Late != 1 {
		a.t.Fatalf("reconciled %+v", got)
	}
}
