package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/store"
	"almanac/internal/transition"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Client is what a runner hands in: the store's DynamoDB, and tables to be made and removed.
type Client interface {
	store.DynamoDB
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
}

// Facts are what Advance compares with and vouches for: the store's facts, by the same names.
type Facts struct {
	Owner    string
	Earlier  string
	Now      time.Time
	Wake     time.Time
	Yields   int
	Schedule *schedule.Schedule
	Run      snapshot.Run
	Before   time.Time
	Current  int
	Query    string
	Decided  []transition.Guard
}

// Step is one transition asked of the store's only writer of states.
type Step struct {
	Table, From, Event string
	Key                schema.Key
	Facts              Facts
	Put                Item // what a new item holds besides key and state
}

// Harness is what a runner needs to offer.
type Harness struct {
	DB Client
	// Advance reaches the store's writer of states past its operations: rows whose operation a later version brings are
	// walked through it, and guards that only a caller can decide.
	Advance func(ctx context.Context, s *store.Store, step Step) error
}

// Run is the whole suite.
func Run(t *testing.T, h Harness) {
	b := newBench(t, h)
	t.Run("table A", func(t *testing.T) { walk(t, b, runs(b)) })
	t.Run("table B", func(t *testing.T) { walk(t, b, submissions(b)) })
	t.Run("table C", func(t *testing.T) { walk(t, b, schedules(b)) })
	t.Run("faults", func(t *testing.T) { faults(t, b) })
	t.Run("admission", func(t *testing.T) { admission(t, b) })
	t.Run("settle", func(t *testing.T) { settle(t, b) })
	t.Run("outbox", func(t *testing.T) { outbox(t, b) })
	t.Run("begun", func(t *testing.T) { begun(t, b) })
	t.Run("audits", func(t *testing.T) { audits(t, b) })
	t.Run("lists", func(t *testing.T) { lists(t, b) })
	t.Run("apart", func(t *testing.T) { apart(t, b) })
	t.Run("settings", func(t *testing.T) { settings(t, b) })
	t.Run("groups", func(t *testing.T) { groups(t, b) })
	t.Run("send times", func(t *testing.T) { sendTimes(t, b) })
	t.Run("by hand", func(t *testing.T) { byHand(t, b) })
	t.Run("snapshots", func(t *testing.T) { snapshots(t, b, newSnapshotsBench(t, h)) })
	t.Run("feedback", func(t *testing.T) { feedback(t, b) })
	t.Run("parts", func(t *testing.T) { parts(t, b) })
	if n := b.tap.eventual.Load(); n > 0 {
		t.Errorf("%d reads of the table's own rows may have been behind, want consistent reads", n)
	}
}

// bench is a store over a table of its own, behind a tap.
type bench struct {
	*store.Store
	tap     *tap
	advance func(ctx context.Context, s *store.Store, step Step) error
	ids     *atomic.Int64
	pauses  *pauses
	// snapshots: the table is the one of monthly snapshots, and places have its partitions.
	snapshots bool
}

// pauses notes how long the store would have waited; nothing waits in a test.
type pauses struct{ asked []time.Duration }

func newBench(t testing.TB, h Harness) *bench {
	t.Helper()
	return benchOver(t, h, TableInput)
}

func newSnapshotsBench(t testing.TB, h Harness) *bench {
	t.Helper()
	b := benchOver(t, h, SnapshotsTableInput)
	b.snapshots = true
	return b
}

func benchOver(t testing.TB, h Harness, input func(string) *dynamodb.CreateTableInput) *bench {
	t.Helper()
	b := &bench{tap: &tap{DynamoDB: h.DB}, advance: h.Advance, ids: new(atomic.Int64), pauses: &pauses{}}
	b.Store = newStore(t, h.DB, b.tap, input)
	b.Pause = func(ctx context.Context, d time.Duration) error {
		b.pauses.asked = append(b.pauses.asked, d)
		return ctx.Err()
	}
	return b
}

// newStore makes a table and a store over it.
func newStore(t testing.TB, db Client, through store.DynamoDB, input func(string) *dynamodb.CreateTableInput) *store.Store {
	t.Helper()
	table := fmt.Sprintf("storetest-%016x", rand.Uint64())
	if _, err := db.CreateTable(t.Context(), input(table)); err != nil {
		t.Fatalf("make table %s: %v", table, err)
	}
	return store.New(through, table, "test")
}

// TableInput is the table of the store as infra/storage.go defines it: text keys, and three sparse indexes that hold
// keys only.
func TableInput(name string) *dynamodb.CreateTableInput {
	return tableInput(name, [][3]string{
		{schema.IndexDue, schema.DueShard, schema.NextDueAt},
		{schema.IndexOpen, schema.OpenShard, schema.WakeAt},
		{schema.IndexDirectory, schema.DirKind, schema.DirName},
	})
}

// SnapshotsTableInput is the table of monthly snapshots as infra/storage.go defines it.
func SnapshotsTableInput(name string) *dynamodb.CreateTableInput {
	return tableInput(name, schema.SnapshotsIndexes)
}

func tableInput(name string, indexes [][3]string) *dynamodb.CreateTableInput {
	keys := func(partition, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: aws.String(partition), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(sort), KeyType: types.KeyTypeRange}}
	}
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keys(schema.PK, schema.SK)}
	attributes := []string{schema.PK, schema.SK}
	for _, x := range indexes {
		attributes = append(attributes, x[1], x[2])
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: aws.String(x[0]),
			KeySchema: keys(x[1], x[2]), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}})
	}
	for _, a := range attributes {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(a), AttributeType: types.ScalarAttributeTypeS})
	}
	return in
}

// place is where one case plays: a schedule's id of its own, so that no case meets another's rows.
type place struct {
	schedule   string
	occurrence string
}

func (b *bench) place() place {
	return place{fmt.Sprintf("s%05d", b.ids.Add(1)), "2013-06-03T12:00:00Z"}
}

func (p place) run() string             { return schema.RunID(p.schedule, p.occurrence) }
func (p place) runKey() schema.Key      { return schema.RunKey(p.schedule, p.occurrence) }
func (p place) scheduleKey() schema.Key { return schema.ScheduleKey(p.schedule) }
func (p place) partitions() []schema.Partition {
	return []schema.Partition{p.scheduleKey().PK, schema.SubmissionPartition(p.run()), auditsOf(p.schedule), auditsOf(p.run())}
}

// The instants of the suite. Wall time lies years after business time, so that none can stand in for the other.
var (
	nominal = at("2013-06-03T12:00:00.000Z")
	nextDue = at("2013-06-04T12:00:00.000Z")
	wall    = at("2026-11-30T08:00:00.000Z")
	expires = at("2027-02-28T08:00:00.000Z")
)

func at(text string) time.Time {
	v, err := schema.ParseTime(text)
	if err != nil {
		panic(err) // a literal of this package
	}
	return v
}
