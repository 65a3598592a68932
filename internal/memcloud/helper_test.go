package memcloud

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

var ctx = context.Background()

type value = types.AttributeValue

func str(s string) value    { return &types.AttributeValueMemberS{Value: s} }
func num(s string) value    { return &types.AttributeValueMemberN{Value: s} }
func bin(s string) value    { return &types.AttributeValueMemberB{Value: []byte(s)} }
func truth(b bool) value    { return &types.AttributeValueMemberBOOL{Value: b} }
func null() value           { return &types.AttributeValueMemberNULL{Value: true} }
func lst(v ...value) value  { return &types.AttributeValueMemberL{Value: v} }
func mp(m attributes) value { return &types.AttributeValueMemberM{Value: m} }
func ss(s ...string) value  { return &types.AttributeValueMemberSS{Value: s} }
func ns(s ...string) value  { return &types.AttributeValueMemberNS{Value: s} }
func bs(s ...string) value {
	out := &types.AttributeValueMemberBS{}
	for _, b := range s {
		out.Value = append(out.Value, []byte(b))
	}
	return out
}

// clock is a clock that the test moves.
type clock struct{ now time.Time }

func newClock() *clock                   { return &clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }
func (c *clock) read() time.Time         { return c.now }
func (c *clock) forward(d time.Duration) { c.now = c.now.Add(d) }

// newTestDynamo has a table T (pk S, sk S) with three indexes: due (gpk S,
// gsk N; KEYS_ONLY), wide (gpk S; ALL) and some (gsk N; INCLUDE note); and a
// table U (pk S).
func newTestDynamo(t testing.TB, c *clock) *Dynamo {
	t.Helper()
	d := NewDynamo(c.read)
	hash := func(n string) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(n), KeyType: types.KeyTypeHash}
	}
	rng := func(n string) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(n), KeyType: types.KeyTypeRange}
	}
	attr := func(n string, k types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(n), AttributeType: k}
	}
	_, err := d.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("main"),
		AttributeDefinitions: []types.AttributeDefinition{attr("pk", "S"), attr("sk", "S"), attr("gpk", "S"), attr("gsk", "N")},
		KeySchema:            []types.KeySchemaElement{hash("pk"), rng("sk")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			{IndexName: aws.String("due"), KeySchema: []types.KeySchemaElement{hash("gpk"), rng("gsk")}, Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
			{IndexName: aws.String("wide"), KeySchema: []types.KeySchemaElement{hash("gpk")}, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}},
			{IndexName: aws.String("some"), KeySchema: []types.KeySchemaElement{hash("gsk")}, Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"note"}}},
		},
	})
	must(t, err)
	_, err = d.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("plain"),
		AttributeDefinitions: []types.AttributeDefinition{attr("pk", "S")},
		KeySchema:            []types.KeySchemaElement{hash("pk")},
	})
	must(t, err)
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode fails unless the error carries the code and the words.
func wantCode(t testing.TB, err error, code, words string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("got %v, want an API error %s", err, code)
	}
	if api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), words) {
		t.Fatalf("got %s: %s\nwant %s: ...%s...", api.ErrorCode(), api.ErrorMessage(), code, words)
	}
}

func putT(t testing.TB, d *Dynamo, table string, item attributes) {
	t.Helper()
	_, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
	must(t, err)
}

func getU(t testing.TB, d *Dynamo, pk string) attributes {
	t.Helper()
	out, err := d.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("plain"), Key: attributes{"pk": str(pk)}, ConsistentRead: aws.Bool(true)})
	must(t, err)
	return out.Item
}

func wantItem(t testing.TB, got, want attributes) {
	t.Helper()
	if string(encodeItem(nil, got)) != string(encodeItem(nil, want)) {
		t.Fatalf("got  %s\nwant %s", encodeItem(nil, got), encodeItem(nil, want))
	}
}

// Every method that the SDK's client has too must have its very signature.
func TestSignaturesAreTheClients(t *testing.T) {
	for _, pair := range []struct{ ours, client any }{
		{&Dynamo{}, &dynamodb.Client{}}, {&S3{}, &s3.Client{}}, {&SQS{}, &sqs.Client{}},
	} {
		ours, client := reflect.TypeOf(pair.ours), reflect.TypeOf(pair.client)
		shared := 0
		for i := range ours.NumMethod() {
			m := ours.Method(i)
			c, ok := client.MethodByName(m.Name)
			if !ok {
				continue
			}
			shared++
			for j := 1; j < m.Type.NumIn(); j++ {
				if m.Type.NumIn() != c.Type.NumIn() || m.Type.In(j) != c.Type.In(j) {
					t.Errorf("%s.%s has %s, the client %s", ours, m.Name, m.Type, c.Type)
				}
			}
			for j := range m.Type.NumOut() {
				if m.Type.NumOut() != c.Type.NumOut() || m.Type.Out(j) != c.Type.Out(j) {
					t.Errorf("%s.%s has %s, the client %s", ours, m.Name, m.Type, c.Type)
				}
			}
		}
		if shared < 8 {
			t.Errorf("%s shares only %d methods with the client", ours, shared)
		}
	}
}
