package memcloud

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestRefusedPuts(t *testing.T) {
	big := strings.Repeat("x", maxItem)
	deep := str("x")
	for range 40 {
		deep = lst(deep)
	}
	for name, c := range map[string]struct {
		item  attributes
		words string
	}{
		"no item":           {nil, "Missing the key pk in the item"},
		"sort key missing":  {attributes{"pk": str("a")}, "Missing the key sk in the item"},
		"key of wrong type": {attributes{"pk": num("1"), "sk": str("a")}, "Type mismatch for key pk expected: S actual: N"},
		"empty key":         {attributes{"pk": str(""), "sk": str("a")}, "cannot contain an empty string value. Key: pk"},
		"empty sort key":    {attributes{"pk": str("a"), "sk": str("")}, "cannot contain an empty string value. Key: sk"},
		"long key":          {attributes{"pk": str(strings.Repeat("k", 2049)), "sk": str("a")}, "maximum size limit of2048 bytes"},
		"long sort key":     {attributes{"pk": str("a"), "sk": str(strings.Repeat("k", 1025))}, "size limit of 1024 bytes"},
		"index key type":    {attributes{"pk": str("a"), "sk": str("b"), "gpk": num("1")}, "Type mismatch for Index Key gpk Expected: S Actual: N IndexName: due"},
		"index key null":    {attributes{"pk": str("a"), "sk": str("b"), "gsk": null()}, "Type mismatch for Index Key gsk Expected: N Actual: NULL"},
		"empty index key":   {attributes{"pk": str("a"), "sk": str("b"), "gpk": str("")}, "IndexName: due, IndexKey: gpk"},
		"long index key":    {attributes{"pk": str("a"), "sk": str("b"), "gpk": str(strings.Repeat("k", 2049))}, "index key gpk"},
		"empty set":         {attributes{"pk": str("a"), "sk": str("b"), "x": ss()}, "An string set  may not be empty"},
		"empty number set":  {attributes{"pk": str("a"), "sk": str("b"), "x": ns()}, "An number set  may not be empty"},
		"twice in a set":    {attributes{"pk": str("a"), "sk": str("b"), "x": ns("1", "1.0")}, "contains duplicates"},
		"no value":          {attributes{"pk": str("a"), "sk": str("b"), "x": nil}, "must contain exactly one of the supported datatypes"},
		"false null":        {attributes{"pk": str("a"), "sk": str("b"), "x": &types.AttributeValueMemberNULL{}}, "must have the value of true"},
		"39 digits":         {attributes{"pk": str("a"), "sk": str("b"), "x": num(strings.Repeat("1", 39))}, "more than 38 significant digits"},
		"no number":         {attributes{"pk": str("a"), "sk": str("b"), "x": lst(num("1.x"))}, "cannot be converted to a numeric value: 1.x"},
		"more than 400 KB":  {attributes{"pk": str("a"), "sk": str("b"), "x": str(big)}, "Item size has exceeded the maximum allowed size"},
		"nested too deep":   {attributes{"pk": str("a"), "sk": str("b"), "x": deep}, "Nesting Levels have exceeded supported limits"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDynamo(t, newClock())
			_, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("main"), Item: c.item})
			wantCode(t, err, "ValidationException", c.words)
			if len(d.Items("main")) != 0 || len(d.Units()) != 0 {
				t.Error("a refused request left something behind")
			}
		})
	}
	// Just below the limit it goes in: pk, sk and x with their names are 8 bytes.
	d := newTestDynamo(t, newClock())
	putT(t, d, "main", attributes{"pk": str("a"), "sk": str("b"), "x": str(big[:maxItem-7])})
}

func TestRefusedKeys(t *testing.T) {
	d := newTestDynamo(t, newClock())
	for name, key := range map[string]attributes{
		"none": nil, "half": {"pk": str("a")}, "too many": {"pk": str("a"), "sk": str("b"), "x": str("c")}, "other": {"pk": str("a"), "x": str("b")}, "type": {"pk": str("a"), "sk": num("1")},
	} {
		_, err := d.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("main"), Key: key})
		t.Log(name)
		wantCode(t, err, "ValidationException", "The provided key element does not match the schema")
	}
	_, err := d.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("main"), Key: attributes{"pk": str(""), "sk": str("x")}})
	wantCode(t, err, "ValidationException", "empty string value. Key: pk")
	_, err = d.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("gone"), Key: attributes{"pk": str("a")}})
	wantCode(t, err, "ResourceNotFoundException", "gone")
	_, err = d.GetItem(ctx, nil)
	wantCode(t, err, "ValidationException", "tableName")
	_, err = d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("main"), Expected: map[string]types.ExpectedAttributeValue{}})
	wantCode(t, err, "ValidationException", "legacy")
}

func TestUpdateItemRules(t *testing.T) {
	d := newTestDynamo(t, newClock())
	update := func(text string, values attributes) error {
		_, err := d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("main"), Key: attributes{"pk": str("a"), "sk": str("b")}, UpdateExpression: aws.String(text), ExpressionAttributeValues: values})
		return err
	}
	wantCode(t, update("SET pk = :x", attributes{":x": str("c")}), "ValidationException", "Cannot update attribute pk. This attribute is part of the key")
	wantCode(t, update("REMOVE sk", nil), "ValidationException", "Cannot update attribute sk")
	wantCode(t, update("SET gpk = :x", attributes{":x": str("")}), "ValidationException", "IndexKey: gpk")
	wantCode(t, update("SET gsk = :x", attributes{":x": str("1")}), "ValidationException", "Type mismatch for Index Key gsk")
	wantCode(t, update("SET x = :x", attributes{":x": str(strings.Repeat("x", maxItem))}), "ValidationException", "Item size to update has exceeded")
	if len(d.Items("main")) != 0 {
		t.Fatal("a refused update made an item")
	}
	must(t, update("SET x = :x", attributes{":x": str("1")}))
	wantItem(t, d.Items("main")[0], attributes{"pk": str("a"), "sk": str("b"), "x": str("1")})

	// Without an expression an update makes the item; with a condition it needs it.
	_, err := d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: attributes{"pk": str("bare")}})
	must(t, err)
	wantItem(t, getU(t, d, "bare"), attributes{"pk": str("bare")})
	for _, text := range []string{"REMOVE x", "DELETE x :x"} { // only takes away: makes nothing
		in := &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: attributes{"pk": str("none")}, UpdateExpression: aws.String(text), ReturnValues: types.ReturnValueAllNew}
		if text != "REMOVE x" {
			in.ExpressionAttributeValues = attributes{":x": ss("x")}
		}
		out, err := d.UpdateItem(ctx, in)
		must(t, err)
		if out.Attributes != nil || getU(t, d, "none") != nil {
			t.Errorf("%s made an item", text)
		}
	}
	_, err = d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: attributes{"pk": str("none")}, UpdateExpression: aws.String("SET x = :x"), ConditionExpression: aws.String("attribute_exists(pk)"), ExpressionAttributeValues: attributes{":x": num("1")}})
	wantCode(t, err, "ConditionalCheckFailedException", "The conditional request failed")
	if getU(t, d, "none") != nil {
		t.Error("a refused update made an item")
	}
}

func TestRefusedConditionGivesTheOldItem(t *testing.T) {
	d := newTestDynamo(t, newClock())
	item := attributes{"pk": str("a"), "lease": str("mine")}
	putT(t, d, "plain", item)
	for _, mode := range []types.ReturnValuesOnConditionCheckFailure{"", types.ReturnValuesOnConditionCheckFailureNone, types.ReturnValuesOnConditionCheckFailureAllOld} {
		_, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: attributes{"pk": str("a")}, ConditionExpression: aws.String("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure: mode})
		var refused *types.ConditionalCheckFailedException
		if !errors.As(err, &refused) {
			t.Fatalf("got %v", err)
		}
		var want attributes
		if mode == types.ReturnValuesOnConditionCheckFailureAllOld {
			want = item
		}
		wantItem(t, refused.Item, want)
	}
	_, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: item, ReturnValuesOnConditionCheckFailure: "SOME"})
	wantCode(t, err, "ValidationException", "returnValuesOnConditionCheckFailure")
}

// What the caller does with his values before and after changes nothing here.
func TestItemsAreCopied(t *testing.T) {
	d := newTestDynamo(t, newClock())
	inner := attributes{"x": str("1")}
	item := attributes{"pk": str("a"), "m": mp(inner), "b": bin("abc")}
	putT(t, d, "plain", item)
	inner["x"] = str("changed")
	got := getU(t, d, "a")
	got["b"].(*types.AttributeValueMemberB).Value[0] = 'X'
	got["m"].(*types.AttributeValueMemberM).Value["x"] = str("changed")
	wantItem(t, getU(t, d, "a"), attributes{"pk": str("a"), "m": mp(attributes{"x": str("1")}), "b": bin("abc")})
}

// Of 400 rivals for a counter with a cap of 10, exactly 10 win.
func TestRivalsOnOneCounter(t *testing.T) {
	d := newTestDynamo(t, newClock())
	putT(t, d, "plain", attributes{"pk": str("cap"), "used": num("0")})
	take := &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: attributes{"pk": str("cap")}, UpdateExpression: aws.String("ADD used :one"), ConditionExpression: aws.String("used < :cap"), ExpressionAttributeValues: attributes{":one": num("1"), ":cap": num("10")}}
	inTransaction := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Update: &types.Update{TableName: take.TableName, Key: take.Key, UpdateExpression: take.UpdateExpression, ConditionExpression: take.ConditionExpression, ExpressionAttributeValues: take.ExpressionAttributeValues}}}}
	var won, lost atomic.Int32
	var group sync.WaitGroup
	for i := range 400 {
		group.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = d.UpdateItem(ctx, take)
			} else {
				_, err = d.TransactWriteItems(ctx, inTransaction)
			}
			var refused *types.ConditionalCheckFailedException
			var cancelled *types.TransactionCanceledException
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &refused) || errors.As(err, &cancelled):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 10 || lost.Load() != 390 {
		t.Errorf("%d won and %d lost, want 10 and 390", won.Load(), lost.Load())
	}
	wantItem(t, getU(t, d, "cap"), attributes{"pk": str("cap"), "used": num("10")})
}

func TestBatchWrite(t *testing.T) {
	d := newTestDynamo(t, newClock())
	put := func(pk string) types.WriteRequest {
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: attributes{"pk": str(pk)}}}
	}
	putT(t, d, "plain", attributes{"pk": str("old")})
	d.Unprocessed = func(call Call, n int) bool { return call.Operation == "BatchWriteItem" && n == 1 }
	out, err := d.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"plain": {put("a"), put("b"), {DeleteRequest: &types.DeleteRequest{Key: attributes{"pk": str("old")}}}}}})
	must(t, err)
	if len(out.UnprocessedItems["plain"]) != 1 || len(d.Items("plain")) != 1 {
		t.Fatalf("%d unprocessed, %d items", len(out.UnprocessedItems["plain"]), len(d.Items("plain")))
	}
	wantItem(t, out.UnprocessedItems["plain"][0].PutRequest.Item, attributes{"pk": str("b")})
	d.Unprocessed = nil

	refuse := func(words string, requests ...types.WriteRequest) {
		t.Helper()
		_, err := d.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"plain": requests}})
		wantCode(t, err, "ValidationException", words)
	}
	refuse("duplicates", put("x"), put("x"))
	refuse("length between 1 and 25, is 0")
	var many []types.WriteRequest
	for i := range 26 {
		many = append(many, put(string(rune('A'+i))))
	}
	refuse("length between 1 and 25, is 26", many...)
	refuse("neither exactly a put nor exactly a delete", types.WriteRequest{})
	refuse("Missing the key", put("y"), types.WriteRequest{PutRequest: &types.PutRequest{Item: attributes{}}})
	if len(d.Items("plain")) != 1 {
		t.Error("a refused batch wrote something")
	}
}

func TestBatchGet(t *testing.T) {
	d := newTestDynamo(t, newClock())
	key := func(pk string) attributes { return attributes{"pk": str(pk)} }
	putT(t, d, "plain", attributes{"pk": str("a"), "x": num("1"), "y": num("2")})
	putT(t, d, "plain", key("b"))
	d.Unprocessed = func(call Call, n int) bool { return n == 1 }
	out, err := d.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"plain": {Keys: []map[string]value{key("a"), key("b"), key("gone")}, ProjectionExpression: aws.String("pk, x"), ConsistentRead: aws.Bool(true)}}})
	must(t, err)
	if len(out.Responses["plain"]) != 1 || len(out.UnprocessedKeys["plain"].Keys) != 1 || out.UnprocessedKeys["plain"].ProjectionExpression == nil {
		t.Fatalf("%+v", out)
	}
	wantItem(t, out.Responses["plain"][0], attributes{"pk": str("a"), "x": num("1")})
	wantItem(t, out.UnprocessedKeys["plain"].Keys[0], key("b"))
	_, err = d.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"plain": {Keys: []map[string]value{key("a"), key("a")}}}})
	wantCode(t, err, "ValidationException", "duplicates")
	_, err = d.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{})
	wantCode(t, err, "ValidationException", "Too many items")
}
