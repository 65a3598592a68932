package awsrules

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Pages of AWS about DynamoDB.
const (
	guide          = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
	dynamodbAPI    = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
	pageOperators  = guide + "Expressions.OperatorsAndFunctions.html"
	pageConditions = guide + "Expressions.ConditionExpressions.html"
	pageUpdates    = guide + "Expressions.UpdateExpressions.html"
	pageNames      = guide + "Expressions.ExpressionAttributeNames.html"
	pageValues     = guide + "Expressions.ExpressionAttributeValues.html"
	pageReserved   = guide + "ReservedWords.html"
	pageTypes      = guide + "HowItWorks.NamingRulesDataTypes.html"
	pageQuotas     = guide + "Constraints.html"
	pageTransact   = guide + "transaction-apis.html"
	pagePaging     = guide + "Query.Pagination.html"
	pageQuery      = guide + "Query.KeyConditionExpressions.html"
	pageFilter     = guide + "Query.FilterExpression.html"
	pageIndexes    = guide + "GSI.html"
	pageCapacity   = guide + "read-write-operations.html"
)

type (
	value = types.AttributeValue
	item  = map[string]types.AttributeValue
)

func str(s string) value { return &types.AttributeValueMemberS{Value: s} }
func num(s string) value { return &types.AttributeValueMemberN{Value: s} }
func bin(s string) value { return &types.AttributeValueMemberB{Value: []byte(s)} }
func truth(b bool) value { return &types.AttributeValueMemberBOOL{Value: b} }
func null() value        { return &types.AttributeValueMemberNULL{Value: true} }
func list(v ...value) value {
	return &types.AttributeValueMemberL{Value: slices.Concat([]value{}, v)}
}
func mapped(m item) value { return &types.AttributeValueMemberM{Value: m} }
func texts(s ...string) value {
	return &types.AttributeValueMemberSS{Value: slices.Sorted(slices.Values(s))}
}
func nums(s ...string) value {
	return &types.AttributeValueMemberNS{Value: slices.Sorted(slices.Values(s))}
}

// mainTable has text keys, a sparse index due that holds keys only, and an index wide that holds all.
func mainTable(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: schema("pk", "sk"),
		AttributeDefinitions: attributes("S", "pk", "sk", "slot", "due"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			{IndexName: aws.String("due"), KeySchema: schema("slot", "due"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
			{IndexName: aws.String("wide"), KeySchema: schema("slot"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}},
		},
	}
}

// numberedTable has a sort key that is a number.
func numberedTable(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: schema("pk", "n"),
		AttributeDefinitions: append(attributes("S", "pk"), attributes("N", "n")...),
	}
}

func schema(names ...string) []types.KeySchemaElement {
	out := []types.KeySchemaElement{{AttributeName: &names[0], KeyType: types.KeyTypeHash}}
	for _, n := range names[1:] {
		out = append(out, types.KeySchemaElement{AttributeName: &n, KeyType: types.KeyTypeRange})
	}
	return out
}

func attributes(kind types.ScalarAttributeType, names ...string) (out []types.AttributeDefinition) {
	for _, n := range names {
		out = append(out, types.AttributeDefinition{AttributeName: &n, AttributeType: kind})
	}
	return out
}

// key is one of the rule's own.
func (c *check) key(sort string) item { return item{"pk": str(c.id), "sk": str(sort)} }

// with is the key with more attributes.
func (c *check) with(sort string, more item) item {
	out := c.key(sort)
	for name, v := range more {
		out[name] = v
	}
	return out
}

// put writes an item without a condition.
func (c *check) put(it item) error {
	_, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: it})
	return err
}

// given puts what a rule needs.
func (c *check) given(sort string, more item) item {
	c.Helper()
	it := c.with(sort, more)
	c.ready(c.put(it))
	return it
}

// get reads an item consistently; nil: there is none.
func (c *check) get(sort string) item {
	c.Helper()
	out, err := c.DynamoDB.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: &c.main, Key: c.key(sort), ConsistentRead: aws.Bool(true)})
	c.ready(err)
	return out.Item
}

// holds notes an item other than the wanted one.
func (c *check) holds(what, sort string, want item) {
	c.Helper()
	c.equal(what, c.get(sort), want)
}

// equal notes two items that differ; sets have no order.
func (c *check) equal(what string, got, want item) {
	c.Helper()
	if !reflect.DeepEqual(plain(got), plain(want)) {
		c.unlike("%s: %v; want %v", what, plain(got), plain(want))
	}
}

// plain is an item in a form that can be compared and shown.
func plain(it item) map[string]string {
	out := map[string]string{}
	for name, v := range it {
		out[name] = show(v)
	}
	return out
}

func show(v value) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return fmt.Sprintf("S:%.60q", v.Value)
	case *types.AttributeValueMemberN:
		return "N:" + v.Value
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("B:%x", v.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberM:
		return fmt.Sprint("M:", plain(v.Value))
	case *types.AttributeValueMemberL:
		out := "L:"
		for _, e := range v.Value {
			out += show(e) + ","
		}
		return out
	case *types.AttributeValueMemberSS:
		return fmt.Sprintf("SS:%q", slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberNS:
		return fmt.Sprint("NS:", slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberBS:
		return fmt.Sprintf("BS:%x", v.Value)
	}
	return fmt.Sprintf("%T", v)
}

// update changes one of the rule's items.
func (c *check) update(sort, expression, condition string, names map[string]string, vs item) error {
	_, err := c.DynamoDB.UpdateItem(c.ctx, &dynamodb.UpdateItemInput{
		TableName: &c.main, Key: c.key(sort), UpdateExpression: optional(expression), ConditionExpression: optional(condition), ExpressionAttributeNames: names, ExpressionAttributeValues: vs,
	})
	return err
}

// optional is a parameter that is left out when it is empty.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
