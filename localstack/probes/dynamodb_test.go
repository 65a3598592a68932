//go:build cloud

package probes

import (
	"errors"
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

func TestDynamoDBItemLimit(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	put := func(n int) error {
		item := key("x")
		item["body"] = text(strings.Repeat("x", n))
		_, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
		return err
	}
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html: 400 KB with names and values.
	if err := put(390 << 10); err != nil {
		unlike(t, "390 KB: %v", err)
	}
	if err := put(401 << 10); codeOf(err) != "ValidationException" {
		unlike(t, "401 KB: %v, want ValidationException", err)
	}
}

func TestDynamoDBConditionReturnsTheOldItem(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	item := key("x")
	item["state"] = text("queued")
	if _, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
	_, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: &table, Item: item, ConditionExpression: aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var refused *ddb.ConditionalCheckFailedException
	if !errors.As(err, &refused) || refused.Item["state"] == nil {
		unlike(t, "a refused condition: %v, %+v, want the old item", err, refused)
	}
}

func TestDynamoDBTransactions(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	counter := func() *dynamodb.TransactWriteItemsInput {
		return &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String(run),
			TransactItems: []ddb.TransactWriteItem{{Update: &ddb.Update{
				TableName: &table, Key: key("counter"), UpdateExpression: aws.String("ADD n :one"),
				ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": &ddb.AttributeValueMemberN{Value: "1"}},
			}}},
		}
	}
	t.Run("the same token again changes nothing", func(t *testing.T) {
		for range 2 {
			if _, err := tables().TransactWriteItems(t.Context(), counter()); err != nil {
				t.Fatal(err)
			}
		}
		out, err := tables().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key("counter"), ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		if n := out.Item["n"].(*ddb.AttributeValueMemberN).Value; n != "1" {
			unlike(t, "counted %s times, want 1", n)
		}
	})
	t.Run("the same token with another request is refused", func(t *testing.T) {
		other := counter()
		other.TransactItems[0].Update.Key = key("another")
		if _, err := tables().TransactWriteItems(t.Context(), other); codeOf(err) != "IdempotentParameterMismatchException" {
			unlike(t, "%v, want IdempotentParameterMismatchException", err)
		}
	})
	t.Run("cancellation reasons come one per action with the old item", func(t *testing.T) {
		_, err := tables().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
			{Put: &ddb.Put{TableName: &table, Item: key("fresh")}},
			{Put: &ddb.Put{
				TableName: &table, Item: key("counter"), ConditionExpression: aws.String("attribute_not_exists(id)"),
				ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
			}},
		}})
		var cancelled *ddb.TransactionCanceledException
		if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 2 {
			t.Fatalf("%v, want TransactionCanceledException with two reasons", err)
		}
		if first, second := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]; aws.ToString(first.Code) != "None" || aws.ToString(second.Code) != "ConditionalCheckFailed" || second.Item["n"] == nil {
			unlike(t, "reasons %+v and %+v", first, second)
		}
	})
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
	if _, err := tables().Query(t.Context(), &dynamodb.QueryInput{
		TableName: &table, IndexName: aws.String("due"), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("due = :d"),
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":d": text("1")},
	}); codeOf(err) != "ValidationException" {
		t.Errorf("a consistent read of an index: %v, want ValidationException", err)
	}
}

func units(all []ddb.ConsumedCapacity) []float64 {
	var numbers []float64
	for _, c := range all {
		numbers = append(numbers, aws.ToFloat64(c.CapacityUnits))
	}
	return numbers
}

func TestDynamoDBTellsConsumedCapacity(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	item := key("x")
	item["body"] = text(strings.Repeat("x", 2500))
	put, err := tables().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item, ReturnConsumedCapacity: ddb.ReturnConsumedCapacityIndexes})
	if err != nil {
		t.Fatal(err)
	}
	if put.ConsumedCapacity == nil || aws.ToFloat64(put.ConsumedCapacity.CapacityUnits) != 3 {
		unlike(t, "a put of 2.5 KB: %+v, want 3 units", put.ConsumedCapacity)
	}
	transaction, err := tables().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal, TransactItems: []ddb.TransactWriteItem{{Put: &ddb.Put{TableName: &table, Item: item}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(transaction.ConsumedCapacity) != 1 || aws.ToFloat64(transaction.ConsumedCapacity[0].CapacityUnits) != 6 {
		unlike(t, "the same in a transaction: %d tables, %v units, want 6 of one", len(transaction.ConsumedCapacity), units(transaction.ConsumedCapacity))
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
