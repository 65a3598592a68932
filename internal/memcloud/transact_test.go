package memcloud

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func putAction(pk string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("plain"), Item: attributes{"pk": str(pk)}, ConditionExpression: aws.String("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}}
}

func addAction(pk string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{TableName: aws.String("plain"), Key: attributes{"pk": str(pk)}, UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: attributes{":one": num("1")}}}
}

func checkAction(pk string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("plain"), Key: attributes{"pk": str(pk)}, ConditionExpression: aws.String("attribute_exists(pk)")}}
}

func deleteAction(pk string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("plain"), Key: attributes{"pk": str(pk)}}}
}

func transact(d *Dynamo, token string, items ...types.TransactWriteItem) error {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: items}
	if token != "" {
		in.ClientRequestToken = aws.String(token)
	}
	_, err := d.TransactWriteItems(ctx, in)
	return err
}

func TestTransactionIsAllOrNothing(t *testing.T) {
	d := newTestDynamo(t, newClock())
	putT(t, d, "plain", attributes{"pk": str("old"), "n": num("7")})
	putT(t, d, "plain", attributes{"pk": str("doomed")})
	if err := transact(d, "", putAction("new"), addAction("old"), checkAction("gone"), deleteAction("doomed")); err == nil {
		t.Fatal("a check of an item that is not there held")
	}
	if getU(t, d, "new") != nil || getU(t, d, "doomed") == nil {
		t.Error("a part was done")
	}
	putT(t, d, "plain", attributes{"pk": str("gone")})
	must(t, transact(d, "", putAction("new"), addAction("old"), checkAction("gone"), deleteAction("doomed")))
	if getU(t, d, "new") == nil || getU(t, d, "doomed") != nil {
		t.Error("a part was not done")
	}
	wantItem(t, getU(t, d, "old"), attributes{"pk": str("old"), "n": num("8")})
	wantItem(t, getU(t, d, "gone"), attributes{"pk": str("gone")})
}

func TestCancellationReasons(t *testing.T) {
	d := newTestDynamo(t, newClock())
	taken := attributes{"pk": str("taken"), "n": num("7")}
	putT(t, d, "plain", taken)
	putT(t, d, "plain", attributes{"pk": str("text"), "n": str("seven")})
	before := fmt.Sprintf("%s", encodeItems(d.Items("plain")))
	err := transact(d, "", putAction("new"), putAction("taken"), checkAction("gone"), addAction("text"), deleteAction("other"))
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(*cancelled.Message, "[None, ConditionalCheckFailed, ConditionalCheckFailed, ValidationError, None]") {
		t.Error(*cancelled.Message)
	}
	for i, want := range []struct {
		code string
		item attributes
	}{{"None", nil}, {"ConditionalCheckFailed", taken}, {"ConditionalCheckFailed", nil}, {"ValidationError", nil}, {"None", nil}} {
		r := cancelled.CancellationReasons[i]
		if *r.Code != want.code || (r.Message == nil) != (want.code == "None") {
			t.Errorf("reason %d is %s: %v", i, *r.Code, r.Message)
		}
		wantItem(t, r.Item, want.item)
	}
	if after := fmt.Sprintf("%s", encodeItems(d.Items("plain"))); after != before {
		t.Errorf("a cancelled transaction wrote: %s", after)
	}
}

func encodeItems(items []map[string]value) []byte {
	var out []byte
	for _, item := range items {
		out = append(encodeItem(out, item), '\n')
	}
	return out
}

func TestRefusedTransactions(t *testing.T) {
	d := newTestDynamo(t, newClock())
	var many, heavy []types.TransactWriteItem
	for i := range 101 {
		many = append(many, putAction(fmt.Sprint(i)))
	}
	for i := range 11 {
		a := putAction(fmt.Sprint(i))
		a.Put.Item["x"] = str(strings.Repeat("x", 390*1024))
		heavy = append(heavy, a)
	}
	bare := addAction("a")
	bare.Update.UpdateExpression, bare.Update.ExpressionAttributeValues = nil, nil
	unchecked := checkAction("a")
	unchecked.ConditionCheck.ConditionExpression = nil
	unused := addAction("a")
	unused.Update.ExpressionAttributeValues = attributes{":one": num("1"), ":two": num("2")}
	both := putAction("a")
	both.Delete = deleteAction("b").Delete
	for name, c := range map[string]struct {
		items []types.TransactWriteItem
		words string
	}{
		"none":                  {nil, "length between 1 and 100, is 0"},
		"101":                   {many, "length between 1 and 100, is 101"},
		"more than 4 MB":        {heavy, "exceeds 4 MB"},
		"one item twice":        {[]types.TransactWriteItem{addAction("a"), checkAction("a")}, "cannot include multiple operations on one item"},
		"empty action":          {[]types.TransactWriteItem{{}}, "can only contain one of Check, Put, Update or Delete"},
		"two in one":            {[]types.TransactWriteItem{both}, "can only contain one of Check, Put, Update or Delete"},
		"update without change": {[]types.TransactWriteItem{bare}, "updateExpression"},
		"check of nothing":      {[]types.TransactWriteItem{unchecked}, "conditionExpression"},
		"unused value":          {[]types.TransactWriteItem{putAction("b"), unused}, "unused in expressions: keys: {:two}"},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, transact(d, "", c.items...), "ValidationException", c.words)
			if len(d.Items("plain")) != 0 {
				t.Error("something was written")
			}
		})
	}
	must(t, transact(d, "", many[:100]...))
	if len(d.Items("plain")) != 100 {
		t.Errorf("%d items", len(d.Items("plain")))
	}
}

func TestClientRequestToken(t *testing.T) {
	c := newClock()
	d := newTestDynamo(t, c)
	must(t, transact(d, "token", addAction("a")))
	must(t, transact(d, "token", addAction("a")))
	must(t, transact(d, "token", addAction("a")))
	wantItem(t, getU(t, d, "a"), attributes{"pk": str("a"), "n": num("1")})
	wantCode(t, transact(d, "token", addAction("b")), "IdempotentParameterMismatchException", "token")
	wantCode(t, transact(d, "token", addAction("a"), addAction("b")), "IdempotentParameterMismatchException", "token")
	wantCode(t, transact(d, strings.Repeat("x", 37), addAction("a")), "ValidationException", "36")

	c.forward(10*time.Minute + time.Second)
	must(t, transact(d, "token", addAction("b"))) // forgotten
	wantItem(t, getU(t, d, "b"), attributes{"pk": str("b"), "n": num("1")})

	// A cancelled transaction is not remembered: its repetition is tried afresh.
	if err := transact(d, "fresh", checkAction("late")); err == nil {
		t.Fatal("the check held")
	}
	putT(t, d, "plain", attributes{"pk": str("late")})
	must(t, transact(d, "fresh", checkAction("late")))
}

func TestTransactGet(t *testing.T) {
	d := newTestDynamo(t, newClock())
	putT(t, d, "plain", attributes{"pk": str("a"), "x": num("1"), "y": num("2")})
	get := func(pk string) types.TransactGetItem {
		return types.TransactGetItem{Get: &types.Get{TableName: aws.String("plain"), Key: attributes{"pk": str(pk)}, ProjectionExpression: aws.String("x")}}
	}
	out, err := d.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get("gone"), get("a")}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
	must(t, err)
	if len(out.Responses) != 2 || out.Responses[0].Item != nil || *out.ConsumedCapacity[0].CapacityUnits != 4 {
		t.Fatalf("%+v", out)
	}
	wantItem(t, out.Responses[1].Item, attributes{"x": num("1")})
	_, err = d.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get("a"), get("a")}})
	wantCode(t, err, "ValidationException", "multiple operations on one item")
	_, err = d.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{})
	wantCode(t, err, "ValidationException", "between 1 and 100")
}
