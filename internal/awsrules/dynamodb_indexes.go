package awsrules

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// lagging is how long an index may take to follow its table.
const lagging = 5 * time.Second

// inIndex asks an index of the main table for the rule's own part until the answer is as wanted.
func (c *check) inIndex(index, want string) (items []map[string]types.AttributeValue) {
	c.Helper()
	var err error
	if !c.eventually(lagging, func() bool {
		var out *dynamodb.QueryOutput
		if out, err = c.fromIndex(index, nil); err != nil {
			return true
		}
		items = out.Items
		return sorts(items) == want
	}) {
		c.unlike("the index %s has %q; want %q", index, sorts(items), want)
	}
	c.done("a query of index "+index, err)
	return items
}

func (c *check) fromIndex(index string, change func(*dynamodb.QueryInput)) (*dynamodb.QueryOutput, error) {
	return c.query(func(in *dynamodb.QueryInput) {
		in.IndexName, in.ConsistentRead, in.KeyConditionExpression = &index, nil, aws.String("slot = :p")
		if change != nil {
			change(in)
		}
	})
}

func indexes() []Rule {
	return []Rule{
		{"dynamodb/indexes/sparse", "an index holds the items that have its whole key", pageIndexes, func(c *check) {
			c.given("a", item{"slot": str(c.id), "due": str("2")})
			c.given("b", item{"slot": str(c.id), "due": str("1")})
			c.given("c", item{"slot": str(c.id)})
			c.given("d", nil)
			c.inIndex("due", "b a")
		}},
		{"dynamodb/indexes/follows", "an item leaves an index with the attribute, and moves with its value", pageIndexes, func(c *check) {
			c.given("a", item{"slot": str(c.id), "due": str("1")})
			c.given("b", item{"slot": str(c.id), "due": str("2")})
			c.inIndex("due", "a b")
			c.ready(c.update("a", "SET due = :v", "", nil, item{":v": str("3")}))
			c.inIndex("due", "b a")
			c.ready(c.update("b", "REMOVE due", "", nil, nil))
			c.inIndex("due", "a")
			_, err := c.DynamoDB.DeleteItem(c.ctx, &dynamodb.DeleteItemInput{TableName: &c.main, Key: c.key("a")})
			c.ready(err)
			c.inIndex("due", "")
		}},
		{"dynamodb/indexes/keys-only", "an index of keys has the keys of index and table, and nothing else", pageIndexes, func(c *check) {
			c.given("a", item{"slot": str(c.id), "due": str("1"), "more": str("x")})
			if items := c.inIndex("due", "a"); len(items) == 1 {
				c.equal("the entry", items[0], c.with("a", item{"slot": str(c.id), "due": str("1")}))
			}
		}},
		{"dynamodb/indexes/all", "an index of all attributes has them all", pageIndexes, func(c *check) {
			want := c.given("a", item{"slot": str(c.id), "more": str("x")})
			if items := c.inIndex("wide", "a"); len(items) == 1 {
				c.equal("the entry", items[0], want)
			}
		}},
		{"dynamodb/indexes/no-consistent-read", "a global index is not read consistently", guide + "HowItWorks.ReadConsistency.html", func(c *check) {
			_, err := c.fromIndex("due", func(in *dynamodb.QueryInput) { in.ConsistentRead = aws.Bool(true) })
			c.refused("a consistent read", err, "ValidationException")
		}},
		{"dynamodb/indexes/repeated-keys", "items may have one key of an index; a page goes on among them", pageIndexes, func(c *check) {
			for _, sort := range []string{"a", "b", "c"} {
				c.given(sort, item{"slot": str(c.id), "due": str("1")})
			}
			seen := map[string]int{}
			if !c.eventually(lagging, func() bool {
				clear(seen)
				var start item
				for range 5 {
					out, err := c.fromIndex("due", func(in *dynamodb.QueryInput) { in.Limit, in.ExclusiveStartKey = aws.Int32(1), start })
					if err != nil {
						return false
					}
					for _, it := range out.Items {
						seen[sorts([]map[string]types.AttributeValue{it})]++
					}
					if start = out.LastEvaluatedKey; start == nil {
						break
					}
				}
				return seen["a"] == 1 && seen["b"] == 1 && seen["c"] == 1
			}) {
				c.unlike("pages of one have %v; want a, b and c, each once", seen)
			}
		}},
		{"dynamodb/indexes/last-key", "the last key of an index has the table's key too", pageIndexes, func(c *check) {
			c.given("a", item{"slot": str(c.id), "due": str("1")})
			c.given("b", item{"slot": str(c.id), "due": str("2")})
			c.inIndex("due", "a b")
			out, err := c.fromIndex("due", func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(1) })
			if c.done("the query", err) {
				c.equal("the last key", out.LastEvaluatedKey, c.with("a", item{"slot": str(c.id), "due": str("1")}))
			}
		}},
		{"dynamodb/indexes/no-other-attributes", "what a global index does not hold cannot be asked of it", pageIndexes, func(c *check) {
			_, err := c.fromIndex("due", func(in *dynamodb.QueryInput) { in.Select = types.SelectAllAttributes })
			c.refused("all attributes of an index of keys", err, "ValidationException")
		}},
		{"dynamodb/indexes/unknown", "an index that is not there is refused", apiQuery, func(c *check) {
			_, err := c.fromIndex("gone", nil)
			c.refused("a query of no index", err, "ValidationException", "ResourceNotFoundException")
		}},
	}
}
