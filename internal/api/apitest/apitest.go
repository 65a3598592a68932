// Package apitest makes the API over the real editor, links and store, on the in-memory DynamoDB: for the tests of the
// API and of its clients.
package apitest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/artifact/bucket"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/snapshottest"
	"almanac/internal/source"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Product is the API with what stands behind it. Both clocks are held.
type Product struct {
	Store *store.Store
	DB    *memcloud.Dynamo
	Files *memcloud.S3 // the bucket "files"
	API   api.API

	Months *snapshottest.World // monthly snapshots behind the API

	Report source.Report // what a test of any source finds
	Tested []string      // name and query of each

	mu       sync.Mutex
	now      time.Time
	business time.Time
	frozen   bool
	offered  []string
	ids      int
}

// New makes an empty product at noon, UTC, of 1 July 2013.
func New(t testing.TB) *Product {
	t.Helper()
	p := &Product{now: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), business: time.Date(2013, 7, 1, 12, 0, 0, 0, time.UTC), frozen: true}
	p.DB = memcloud.NewDynamo(p.Wall)
	if _, err := p.DB.CreateTable(context.Background(), table()); err != nil {
		t.Fatal(err)
	}
	p.Store = store.New(p.DB, "Schedules", "test")
	p.Files = memcloud.NewS3(p.Wall)
	if _, err := p.Files.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: aws.String("files")}); err != nil {
		t.Fatal(err)
	}
	p.Store.Lists = bucket.Lists{API: p.Files, Bucket: "files"}
	p.Store.Pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	timing := schedule.DefaultTiming()
	p.Months = snapshottest.New(t, p.DB, p.Store, snapshot.Clocks{Wall: p.Wall, Business: p.Business})
	p.API = api.API{
		Months: api.Months{Editor: p.Months.Editor, Reader: p.Months.Ledger, Board: p.Months.Board, Files: p.Months.Files, Planner: p.Months,
			Sign: func(_ context.Context, object, name string, life time.Duration) (string, error) {
				return fmt.Sprintf("https://months.example/%s?name=%s&life=%s&signature=%s", object, name, life, p.ID()), nil
			}},
		Editor: &schedule.Editor{Ledger: p.Store, Queue: p, Clocks: schedule.Clocks{Wall: p.Wall, Business: p.Business}, Timing: timing, Token: p.ID, Log: log},
		Reader: p.Store,
		Links: &schedule.Links{Ledger: p.Store, Wall: p.Wall, Token: p.ID, Timing: timing, Sign: func(_ context.Context, f schedule.RecordedFile, life time.Duration) (string, error) {
			return fmt.Sprintf("https://files.example/%s?life=%s&signature=%s", f.Key, life, p.ID()), nil
		}},
		Sources: p, Clock: p, Claims: api.AuthorizerClaims{}, Log: log, Now: p.Wall, NewID: p.ID, Version: "test",
	}
	return p
}

// Test notes what is asked, as a tester of sources.
func (p *Product) Test(_ context.Context, name, sql string) (source.Report, error) {
	p.Tested = append(p.Tested, name+": "+sql)
	return p.Report, nil
}

// table is the table Schedules as the infrastructure makes it.
func table() *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: aws.String("Schedules"), BillingMode: types.BillingModePayPerRequest, KeySchema: key(schema.PK, schema.SK)}
	names := []string{schema.PK, schema.SK}
	for _, x := range [][3]string{{schema.IndexDue, schema.DueShard, schema.NextDueAt}, {schema.IndexOpen, schema.OpenShard, schema.WakeAt}, {schema.IndexDirectory, schema.DirKind, schema.DirName}} {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x[0]), KeySchema: key(x[1], x[2]), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}})
		names = append(names, x[1], x[2])
	}
	for _, n := range names {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(n), AttributeType: types.ScalarAttributeTypeS})
	}
	return in
}

func key(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(sort), KeyType: types.KeyTypeRange}}
}

// Wall is wall time, held.
func (p *Product) Wall() time.Time { p.mu.Lock(); defer p.mu.Unlock(); return p.now }

// Business is business time, held.
func (p *Product) Business(context.Context) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.business, nil
}

// Pass lets time go by on both clocks.
func (p *Product) Pass(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.business = p.now.Add(d), p.business.Add(d)
}

// Clock and SetClock are the local profile's business clock.
func (p *Product) Clock(context.Context) (time.Time, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.business, p.frozen, nil
}

func (p *Product) SetClock(_ context.Context, at time.Time, frozen bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.business, p.frozen = at, frozen
	return nil
}

// ID makes ids that differ.
func (p *Product) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids++
	return fmt.Sprintf("id-%04d", p.ids)
}

// Send and Backlog are the queue: it takes every run.
func (p *Product) Send(_ context.Context, runs []string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered = append(p.offered, runs...)
	return nil, nil
}

// SendResends takes every resend.
func (p *Product) SendResends(_ context.Context, ids []string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered = append(p.offered, ids...)
	return nil, nil
}

func (p *Product) Backlog(context.Context) (int, error) { return 0, nil }

// Offered are the runs that were sent to the queue.
func (p *Product) Offered() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.offered...)
}
