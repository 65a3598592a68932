//go:build cloud

package probes

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }

func key(id string) map[string]ddb.AttributeValue {
	return map[string]ddb.AttributeValue{"id": text(id), "at": text("0")}
}

func TestDynamoDBDoesNotThrottle(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, func(in *dynamodb.CreateTableInput) {
		in.BillingMode = ddb.BillingModeProvisioned
		in.ProvisionedThroughput = &ddb.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}
	})
	// 60 writes of 10 KB are 600 units; one unit a second with at most 300 s saved up allows 300:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
	for i := range 60 {
		item := key(fmt.Sprint(i))
		item["body"] = text(strings.Repeat("x", 10_000))
		if _, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			like(t, "write %d: %v", i, err)
		}
	}
}

func TestDynamoDBHasNoTransactionConflicts(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling:
	// transactions at once on one item cancel each other with TransactionConflict.
	var all sync.WaitGroup
	failed := make(chan error, 200)
	for range 10 {
		all.Go(func() {
			for range 20 {
				_, err := tables().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
					{Update: &ddb.Update{TableName: &table, Key: key("one"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": &ddb.AttributeValueMemberN{Value: "1"}}}},
					{Update: &ddb.Update{TableName: &table, Key: key("two"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": &ddb.AttributeValueMemberN{Value: "1"}}}},
				}})
				if err != nil {
					failed <- err
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		like(t, "transactions at once: %v", err)
	}
}

// A single write that meets a transaction is refused with TransactionConflictException on AWS. It cannot be provoked
// where transactions are done one after the other; what such rivals leave behind is a rule (dynamodb/transactions/serial).
func TestDynamoDBSingleWritesMeetNoConflicts(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	one := map[string]ddb.AttributeValue{":one": &ddb.AttributeValueMemberN{Value: "1"}}
	var all sync.WaitGroup
	failed := make(chan error, 200)
	for i := range 10 {
		all.Go(func() {
			for range 20 {
				var err error
				if i%2 == 0 {
					_, err = tables().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
						{Update: &ddb.Update{TableName: &table, Key: key("one"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: one}},
						{Update: &ddb.Update{TableName: &table, Key: key("two"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: one}},
					}})
				} else {
					_, err = tables().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key("one"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: one})
				}
				if err != nil {
					failed <- err
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		if codeOf(err) != "TransactionConflictException" && codeOf(err) != "TransactionCanceledException" {
			t.Errorf("a rival: %v", err)
		}
		if codeOf(err) == "TransactionConflictException" {
			like(t, "a single write beside transactions: %v", err)
		}
	}
}

func TestDynamoDBIndexesAreConsistentAtOnce(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{AttributeName: aws.String("due"), AttributeType: ddb.ScalarAttributeTypeS})
		in.GlobalSecondaryIndexes = []ddb.GlobalSecondaryIndex{{
			IndexName: aws.String("due"), Projection: &ddb.Projection{ProjectionType: ddb.ProjectionTypeKeysOnly},
			KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("due"), KeyType: ddb.KeyTypeHash}},
		}}
	})
	for i := range 100 {
		item := key(fmt.Sprint(i))
		item["due"] = text(fmt.Sprint(i))
		if _, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
		out, err := tables().Query(t.Context(), &dynamodb.QueryInput{
			TableName: &table, IndexName: aws.String("due"), KeyConditionExpression: aws.String("due = :d"),
			ExpressionAttributeValues: map[string]ddb.AttributeValue{":d": text(fmt.Sprint(i))},
		})
		if err != nil {
			t.Fatal(err)
		}
		if out.Count != 1 {
			like(t, "item %d is not in the index at once", i)
		}
	}
}

func TestDynamoDBExpiresWithinMinutes(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	if _, err := tables().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &table, TimeToLiveSpecification: &ddb.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	item := key("x")
	item["ttl"] = &ddb.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Unix() - 10)}
	if _, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html: within a few days.
	if gone, saw := happens(100*time.Second, func() (bool, string) {
		out, err := tables().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key("x")})
		return err == nil && out.Item == nil, fmt.Sprint("the item is still there; ", err)
	}); !gone {
		like(t, "after some minutes %s", saw)
	}
}

func TestDynamoDBEncryptionKeyIsNotUsed(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	table := name(t, "")
	// On AWS a table cannot be made with a key that does not exist:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
	makeTable(t, table, func(in *dynamodb.CreateTableInput) {
		in.SSESpecification = &ddb.SSESpecification{Enabled: aws.Bool(true), SSEType: ddb.SSETypeKms, KMSMasterKeyId: aws.String("arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000")}
	})
	if _, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: key("x")}); err != nil {
		like(t, "a write with a missing key: %v", err)
	}
}
