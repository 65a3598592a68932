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

// Reads as the store makes them: one item whole, and a page of a partition by a projection.
func BenchmarkGetItem(b *testing.B) {
	d := full(b)
	in := &dynamodb.GetItemInput{TableName: aws.String("main"), Key: attributes{"pk": str("SCHED#77"), "sk": str("STATE")}, ConsistentRead: aws.Bool(true)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.GetItem(ctx, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQueryOfAPage(b *testing.B) {
	d := newTestDynamo(b, newClock())
	for i := range 200 {
		putT(b, d, "main", attributes{"pk": str("RUN#1"), "sk": str(fmt.Sprintf("SUB#%05d", i)), "state": str("submitted"), "body": str("x"), "tries": num("1"), "owner": str("token")})
	}
	in := &dynamodb.QueryInput{TableName: aws.String("main"), KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :sub)"),
		ProjectionExpression: aws.String("#s, sk, tries, #o"), ExpressionAttributeNames: map[string]string{"#s": "state", "#o": "owner"},
		ExpressionAttributeValues: attributes{":pk": str("RUN#1"), ":sub": str("SUB#")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Query(ctx, in); err != nil {
			b.Fatal(err)
		}
	}
}
