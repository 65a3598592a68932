// Package store keeps the records of scheduled delivery and of monthly snapshots in DynamoDB, a table each. Only advance
// writes a state, and its condition is built from the tables in states.go of internal/schedule and internal/snapshot; no
// other place decides whether a transition is legal.
//
// Every refused write asks for the old item (ReturnValuesOnConditionCheckFailure): already there with our token is
// success, anything else is a *schedule.Conflict or a *snapshot.Conflict. A reply that was lost is settled by reading the row.
package store

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// DynamoDB is what the store asks of DynamoDB. The SDK's client has it, and so has the in-memory one of internal/memcloud.
type DynamoDB interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Store reads and writes one table.
type Store struct {
	DB    DynamoDB
	Table string
	Stage string
	// Lists keeps what does not fit a row. Nil in functions that neither save definitions nor need to know recipients:
	// there Outline serves, and a list that stands apart is an error.
	Lists Lists
	// Pause waits between tries after a transaction conflict or a throttle. Tests replace it.
	Pause func(ctx context.Context, d time.Duration) error
}

// New makes a store that waits for real.
func New(db DynamoDB, table, stage string) *Store {
	return &Store{DB: db, Table: table, Stage: stage, Pause: sleep}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxTries is how often a write is sent when DynamoDB answers with a conflict or a throttle: these are no failed attempts
// of a run.
const maxTries = 6

// jitter is a pause before try n, spread evenly, so that rivals do not meet again.
func jitter(n int) time.Duration {
	return time.Duration(rand.Int64N(int64(25*time.Millisecond) << n))
}
