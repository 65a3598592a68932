package memcloud

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// full is a table with 10,000 items, to show that calls do not grow with it.
func full(b *testing.B) *Dynamo {
	d := newTestDynamo(b, newClock())
	for i := range 10_000 {
		putT(b, d, "main", attributes{"pk": str(fmt.Sprint("SCHED#", i)), "sk": str("STATE"), "version": num("1"), "gpk": str(fmt.Sprint("due#", i%16)), "gsk": num(fmt.Sprint(i))})
	}
	return d
}

func BenchmarkConditionalPut(b *testing.B) {
	d := full(b)
	in := &dynamodb.PutItemInput{TableName: aws.String("main"), Item: attributes{"pk": str("SCHED#77"), "sk": str("STATE"), "version": num("1"), "note": str("x")}, ConditionExpression: aws.String("attribute_exists(pk) AND #v = :v"), ExpressionAttributeNames: map[string]string{"#v": "version"}, ExpressionAttributeValues: attributes{":v": num("1")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.PutItem(ctx, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTransactionOfThree(b *testing.B) {
	d := full(b)
	key := attributes{"pk": str("SCHED#77"), "sk": str("STATE")}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		_, err := d.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(fmt.Sprint(i)), TransactItems: []types.TransactWriteItem{
			{Update: &types.Update{TableName: aws.String("main"), Key: key, UpdateExpression: aws.String("SET gsk = gsk + :one, last_run = :r ADD version :one"), ConditionExpression: aws.String("attribute_exists(pk) AND gsk >= :zero"), ExpressionAttributeValues: attributes{":one": num("1"), ":zero": num("0"), ":r": str("r")}}},
			{Put: &types.Put{TableName: aws.String("main"), Item: attributes{"pk": str(fmt.Sprint("RUN#", i)), "sk": str("RUN"), "state": str("queued")}, ConditionExpression: aws.String("attribute_not_exists(pk)")}},
			{ConditionCheck: &types.ConditionCheck{TableName: aws.String("main"), Key: attributes{"pk": str("SCHED#1"), "sk": str("STATE")}, ConditionExpression: aws.String("attribute_exists(pk)")}},
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
}
