package awsrules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// padded is the rule's item "x" with a size in bytes as AWS counts it: names and values.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func (c *check) padded(size int) item {
	return c.with("x", item{"body": str(strings.Repeat("x", size-len("pk")-len(c.id)-len("sk")-len("x")-len("body")))})
}

func limits() []Rule {
	return []Rule{
		{"dynamodb/limits/item", "an item has up to 400 KB, names and values", pageQuotas, func(c *check) {
			c.done("409,600 bytes", c.put(c.padded(400<<10)))
		}},
		{"dynamodb/limits/item-above", "and not a byte more", pageQuotas, func(c *check) {
			c.refused("409,601 bytes", c.put(c.padded(400<<10+1)), "ValidationException")
			c.holds("the item", "x", nil)
		}},
		{"dynamodb/limits/item-update", "an update does not make it larger", pageQuotas, func(c *check) {
			c.ready(c.put(c.padded(399 << 10)))
			c.refused("2 KB more", c.update("x", "SET more = :v", "", nil, item{":v": str(strings.Repeat("x", 2<<10))}), "ValidationException")
		}},
		{"dynamodb/limits/partition-key", "a partition key has at most 2,048 bytes", pageQuotas, func(c *check) {
			long := func(n int) item { return item{"pk": str(strings.Repeat("p", n)), "sk": str("x")} }
			c.done("2,048 bytes", c.put(long(2048)))
			c.refused("2,049 bytes", c.put(long(2049)), "ValidationException")
			_, err := c.DynamoDB.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: &c.main, Key: long(2049)})
			c.refused("a read by 2,049 bytes", err, "ValidationException")
		}},
		{"dynamodb/limits/sort-key", "a sort key has at most 1,024 bytes, of UTF-8", pageQuotas, func(c *check) {
			c.done("1,024 bytes", c.put(c.key(strings.Repeat("é", 512))))
			c.refused("1,025 bytes", c.put(c.key(strings.Repeat("s", 1025))), "ValidationException")
		}},
		{"dynamodb/limits/index-key", "so have the keys of indexes", pageQuotas, func(c *check) {
			c.done("1,024 bytes", c.put(c.with("x", item{"slot": str(c.id), "due": str(strings.Repeat("d", 1024))})))
			c.refused("1,025 bytes", c.put(c.with("x", item{"slot": str(c.id), "due": str(strings.Repeat("d", 1025))})), "ValidationException")
		}},
		{"dynamodb/limits/depth", "documents nest up to 32 levels", pageQuotas, func(c *check) {
			nested := func(n int) value {
				v := str("x")
				for range n - 1 {
					v = list(v)
				}
				return v
			}
			c.done("a text in 31 lists", c.put(c.with("x", item{"l": nested(32)})))
			c.refused("a text in 32 lists", c.put(c.with("x", item{"l": nested(33)})), "ValidationException")
		}},
		{"dynamodb/limits/operators", "an update has at most 300 operators and functions", pageQuotas, func(c *check) {
			sums := func(n int) (text string) {
				for i := range n {
					text += fmt.Sprintf(",a%d=:v+:v", i)
				}
				return "SET " + text[1:]
			}
			c.done("150 sums", c.update("x", sums(150), "", nil, item{":v": num("1")}))
			c.refused("301 sums", c.update("x", sums(301), "", nil, item{":v": num("1")}), "ValidationException")
		}},
	}
}

func batches() []Rule {
	write, get := dynamodbAPI+"API_BatchWriteItem.html", dynamodbAPI+"API_BatchGetItem.html"
	return []Rule{
		{"dynamodb/batches/write", "a batch writes up to 25 items, puts and deletes", write, func(c *check) {
			c.given("gone", nil)
			requests := append(c.puts(24), types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: c.key("gone")}})
			out, err := c.batch(requests)
			if c.done("25 requests", err) && len(out.UnprocessedItems) == 0 {
				c.holds("the last put", "23", c.key("23"))
				c.holds("the deleted", "gone", nil)
			}
		}},
		{"dynamodb/batches/write-above", "and not more", write, func(c *check) {
			_, err := c.batch(c.puts(26))
			c.refused("26 puts", err, "ValidationException")
		}},
		{"dynamodb/batches/write-twice", "nor one item twice", write, func(c *check) {
			_, err := c.batch(append(c.puts(2), c.puts(1)...))
			c.refused("one item twice", err, "ValidationException")
		}},
		{"dynamodb/batches/get", "a batch reads up to 100 items; what is not there is left out", get, func(c *check) {
			_, err := c.batch(c.puts(2))
			c.ready(err)
			out, err := c.batchGet(100)
			if c.done("100 keys", err) && len(out.Responses[c.main])+len(out.UnprocessedKeys[c.main].Keys) < 2 {
				c.unlike("%d answers; want the 2 that are there", len(out.Responses[c.main]))
			}
			if err == nil && len(out.Responses[c.main]) > 2 {
				c.unlike("%d answers of 2 items", len(out.Responses[c.main]))
			}
		}},
		{"dynamodb/batches/get-above", "and not more", get, func(c *check) {
			_, err := c.batchGet(101)
			c.refused("101 keys", err, "ValidationException")
		}},
		{"dynamodb/batches/get-bytes", "an answer has at most 16 MB, the rest comes back as unprocessed", get, func(c *check) {
			for i := range 44 {
				c.given(fmt.Sprint(i), item{"body": str(strings.Repeat("x", 399_000))})
			}
			out, err := c.batchGet(44)
			if !c.done("44 items of 399 KB", err) {
				return
			}
			if n := len(out.Responses[c.main]); n > 42 || n+len(out.UnprocessedKeys[c.main].Keys) != 44 {
				c.unlike("%d answers and %d unprocessed keys of 44 items of 399 KB", n, len(out.UnprocessedKeys[c.main].Keys))
			}
		}},
	}
}

func (c *check) puts(n int) (out []types.WriteRequest) {
	for i := range n {
		out = append(out, types.WriteRequest{PutRequest: &types.PutRequest{Item: c.key(fmt.Sprint(i))}})
	}
	return out
}

func (c *check) batch(requests []types.WriteRequest) (*dynamodb.BatchWriteItemOutput, error) {
	return c.DynamoDB.BatchWriteItem(c.ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{c.main: requests}})
}

func (c *check) batchGet(n int) (*dynamodb.BatchGetItemOutput, error) {
	var ks []map[string]types.AttributeValue
	for i := range n {
		ks = append(ks, c.key(fmt.Sprint(i)))
	}
	return c.DynamoDB.BatchGetItem(c.ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{c.main: {Keys: slices.Clip(ks), ConsistentRead: aws.Bool(true)}}})
}

func capacity() []Rule {
	body := item{"body": str(strings.Repeat("x", 2500))}
	return []Rule{
		{"dynamodb/capacity/write", "a write costs a unit for each KB begun", pageCapacity, func(c *check) {
			out, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: c.with("x", body), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
			if c.done("a put of 2.5 KB", err) && (out.ConsumedCapacity == nil || aws.ToFloat64(out.ConsumedCapacity.CapacityUnits) != 3) {
				c.unlike("a put of 2.5 KB costs %v; want 3 units", units(out.ConsumedCapacity))
			}
		}},
		{"dynamodb/capacity/transaction", "in a transaction twice as much", pageCapacity, func(c *check) {
			out, err := c.DynamoDB.TransactWriteItems(c.ctx, &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal, TransactItems: []types.TransactWriteItem{c.putAction("x", body, "", false)}})
			if !c.done("a put of 2.5 KB in a transaction", err) {
				return
			}
			if len(out.ConsumedCapacity) != 1 {
				c.unlike("a transaction on one table tells the cost of %d", len(out.ConsumedCapacity))
			} else if got := units(&out.ConsumedCapacity[0]); got[0] != 6 {
				c.unlike("a put of 2.5 KB in a transaction costs %v; want 6 units", got)
			}
		}},
		{"dynamodb/capacity/read", "a consistent read costs a unit for each 4 KB begun, any other half of it", pageCapacity, func(c *check) {
			c.given("x", item{"body": str(strings.Repeat("x", 5000))})
			for _, consistent := range []bool{true, false} {
				want := map[bool]float64{true: 2, false: 1}[consistent]
				out, err := c.DynamoDB.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: &c.main, Key: c.key("x"), ConsistentRead: &consistent, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
				if c.done("a read of 5 KB", err) && (out.ConsumedCapacity == nil || aws.ToFloat64(out.ConsumedCapacity.CapacityUnits) != want) {
					c.unlike("a read of 5 KB, consistent %t, costs %v; want %g units", consistent, units(out.ConsumedCapacity), want)
				}
			}
		}},
	}
}

// units are what a request says that it cost; none: it says nothing.
func units(all ...*types.ConsumedCapacity) (numbers []float64) {
	for _, c := range all {
		if c != nil {
			numbers = append(numbers, aws.ToFloat64(c.CapacityUnits))
		}
	}
	return numbers
}
