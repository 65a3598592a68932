package awsrules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const apiQuery = dynamodbAPI + "API_Query.html"

// query asks for the rule's partition; change makes it another query.
func (c *check) query(change func(*dynamodb.QueryInput)) (*dynamodb.QueryOutput, error) {
	in := &dynamodb.QueryInput{TableName: &c.main, KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str(c.id)}, ConsistentRead: aws.Bool(true)}
	if change != nil {
		change(in)
	}
	return c.DynamoDB.Query(c.ctx, in)
}

func sorts(items []map[string]types.AttributeValue) string {
	var out []string
	for _, it := range items {
		out = append(out, strings.Trim(strings.TrimPrefix(show(it["sk"]), "S:"), `"`))
	}
	return strings.Join(out, " ")
}

// letters puts items a to e, with n from 1 to 5.
func (c *check) letters() {
	c.Helper()
	for i, sort := range []string{"a", "b", "c", "d", "e"} {
		c.given(sort, item{"n": num(fmt.Sprint(i + 1))})
	}
}

// ranged is a rule of queries: the sort keys that come, in their order.
func ranged(id, says, source, want string, change func(*dynamodb.QueryInput)) Rule {
	return Rule{"dynamodb/reads/" + id, says, source, func(c *check) {
		c.letters()
		out, err := c.query(change)
		if c.done("the query", err) && sorts(out.Items) != want {
			c.unlike("got %q; want %q", sorts(out.Items), want)
		}
	}}
}

// notAsked is a rule of queries: it is refused.
func notAsked(id, says, source string, changes ...func(*dynamodb.QueryInput)) Rule {
	return Rule{"dynamodb/reads/" + id, says, source, func(c *check) {
		c.letters()
		for i, change := range changes {
			_, err := c.query(change)
			c.refused(fmt.Sprintf("query %d", i+1), err, "ValidationException")
		}
	}}
}

func by(condition string, vs item) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) {
		in.KeyConditionExpression = aws.String(condition)
		for name, v := range vs {
			in.ExpressionAttributeValues[name] = v
		}
	}
}

func reads() []Rule {
	v := func(s string) item { return item{":v": str(s)} }
	return []Rule{
		{"dynamodb/reads/own-write", "a consistent read sees the write before it", guide + "HowItWorks.ReadConsistency.html", func(c *check) {
			for i := range 10 {
				want := c.given("x", item{"n": num(fmt.Sprint(i))})
				c.holds("the write before", "x", want)
			}
		}},
		{"dynamodb/reads/projection", "a projection gives what it names, and nothing where that is not there", guide + "Expressions.ProjectionExpressions.html", func(c *check) {
			c.given("x", item{"m": mapped(item{"k": num("1"), "j": num("2")}), "l": list(num("1"), num("2")), "o": num("9")})
			out, err := c.DynamoDB.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: &c.main, Key: c.key("x"), ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("m.k, l[1], gone")})
			if c.done("the read", err) {
				c.equal("the projection", out.Item, item{"m": mapped(item{"k": num("1")}), "l": list(num("2"))})
			}
		}},
		{"dynamodb/reads/absent", "an item that is not there is an answer without one", dynamodbAPI + "API_GetItem.html", func(c *check) { c.holds("no item", "gone", nil) }},
		ranged("order", "a query answers in the order of the sort key", apiQuery, "a b c d e", nil),
		ranged("backwards", "or backwards", apiQuery, "e d c b a", func(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }),
		ranged("between", "BETWEEN includes both ends", pageQuery, "b c d", by("pk = :p AND sk BETWEEN :v AND :w", item{":v": str("b"), ":w": str("d")})),
		ranged("less", "< and > do not include their end", pageQuery, "a b", by("pk = :p AND sk < :v", v("c"))),
		ranged("at-least", ">= and <= do", pageQuery, "c d e", by("pk = :p AND sk >= :v", v("c"))),
		ranged("begins-with", "begins_with asks for a prefix", pageQuery, "b", by("pk = :p AND begins_with(sk, :v)", v("b"))),
		ranged("filter", "a filter leaves out what was read", pageFilter, "d e", func(in *dynamodb.QueryInput) {
			in.FilterExpression = aws.String("n > :n")
			in.ExpressionAttributeValues[":n"] = num("3")
		}),
		notAsked("partition-needs-equals", "a query is about one partition", pageQuery, by("pk > :p", nil), by("pk > :p AND sk = :v", v("a"))),
		notAsked("no-such-condition", "a condition on keys knows =, <, <=, >, >=, BETWEEN, begins_with and AND", pageQuery, by("pk = :p AND sk <> :v", v("a")), by("pk = :p OR sk = :v", v("a")), by("pk = :p AND contains(sk, :v)", v("a"))),
		notAsked("no-other-attribute", "and only the attributes of the key", pageQuery, by("pk = :p AND n = :v", item{":v": num("1")})),
		notAsked("filter-of-a-key", "a filter is not about the key", pageFilter, func(in *dynamodb.QueryInput) {
			in.FilterExpression = aws.String("sk = :v")
			in.ExpressionAttributeValues[":v"] = str("a")
		}),
		{"dynamodb/reads/count", "COUNT gives counts and no items", apiQuery, func(c *check) {
			c.letters()
			out, err := c.query(func(in *dynamodb.QueryInput) {
				in.Select, in.FilterExpression = types.SelectCount, aws.String("n > :n")
				in.ExpressionAttributeValues[":n"] = num("3")
			})
			if c.done("the query", err) && (out.Count != 2 || out.ScannedCount != 5 || len(out.Items) != 0) {
				c.unlike("count %d of %d scanned, %d items; want 2 of 5 and none", out.Count, out.ScannedCount, len(out.Items))
			}
		}},
		{"dynamodb/reads/scan-segments", "the segments of a scan hold each item once", dynamodbAPI + "API_Scan.html", func(c *check) {
			for i := range 20 {
				c.ready(c.put(item{"pk": str(fmt.Sprint(c.id, "-", i)), "sk": str("x"), "mine": str(c.id)}))
			}
			seen := map[string]int{}
			for segment := range int32(3) {
				in := &dynamodb.ScanInput{TableName: &c.main, ConsistentRead: aws.Bool(true), Segment: &segment, TotalSegments: aws.Int32(3), FilterExpression: aws.String("mine = :v"), ExpressionAttributeValues: item{":v": str(c.id)}}
				for {
					out, err := c.DynamoDB.Scan(c.ctx, in)
					if !c.done("a scan", err) {
						return
					}
					for _, it := range out.Items {
						seen[show(it["pk"])]++
					}
					if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
						break
					}
				}
			}
			if len(seen) != 20 {
				c.unlike("%d items; want 20", len(seen))
			}
			for pk, n := range seen {
				if n != 1 {
					c.unlike("%s came %d times", pk, n)
				}
			}
		}},
	}
}

func pages() []Rule {
	limit := func(n int32) func(*dynamodb.QueryInput) {
		return func(in *dynamodb.QueryInput) { in.Limit = &n }
	}
	return []Rule{
		{"dynamodb/pages/limit", "a limited page has as many items and the key of its last", pagePaging, func(c *check) {
			c.letters()
			out, err := c.query(limit(2))
			if c.done("the query", err) {
				if sorts(out.Items) != "a b" {
					c.unlike("got %q; want a b", sorts(out.Items))
				}
				c.equal("the last key", out.LastEvaluatedKey, c.key("b"))
			}
		}},
		{"dynamodb/pages/all-once", "by the last keys come all items, each once, in either direction", pagePaging, func(c *check) {
			c.letters()
			for _, forward := range []bool{true, false} {
				want := []string{"a", "b", "c", "d", "e"}
				if !forward {
					slices.Reverse(want)
				}
				var got []string
				var start item
				for range 10 {
					out, err := c.query(func(in *dynamodb.QueryInput) {
						in.Limit, in.ScanIndexForward, in.ExclusiveStartKey = aws.Int32(2), &forward, start
					})
					if !c.done("a page", err) {
						return
					}
					got = append(got, strings.Fields(sorts(out.Items))...)
					if start = out.LastEvaluatedKey; start == nil {
						break
					}
				}
				if start != nil || !slices.Equal(got, want) {
					c.unlike("forward %t: got %v, and the last page has the key %v; want %v and none", forward, got, plain(start), want)
				}
			}
		}},
		{"dynamodb/pages/limit-before-filter", "the limit counts what is read, before the filter", pageFilter, func(c *check) {
			c.letters()
			out, err := c.query(func(in *dynamodb.QueryInput) {
				in.Limit, in.FilterExpression = aws.Int32(2), aws.String("n > :n")
				in.ExpressionAttributeValues[":n"] = num("4")
			})
			if c.done("the query", err) && (len(out.Items) != 0 || out.ScannedCount != 2 || out.LastEvaluatedKey == nil) {
				c.unlike("%d items of %d scanned, last key %v; want none of 2 and a last key", len(out.Items), out.ScannedCount, plain(out.LastEvaluatedKey))
			}
		}},
		{"dynamodb/pages/megabyte", "a page ends at 1 MB, and the next goes on", pagePaging, func(c *check) {
			c.large()
			first, err := c.query(nil)
			if !c.done("the first page", err) {
				return
			}
			if n := len(first.Items); n < 2 || n > 4 || first.LastEvaluatedKey == nil {
				c.unlike("a page has %d items of 300 KB, and the last key %v", n, plain(first.LastEvaluatedKey))
				return
			}
			rest, err := c.query(func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = first.LastEvaluatedKey })
			if c.done("the next page", err) && len(first.Items)+len(rest.Items) != 5 {
				c.unlike("two pages have %d and %d items; want 5 in all", len(first.Items), len(rest.Items))
			}
		}},
		{"dynamodb/pages/megabyte-before-filter", "the 1 MB are counted before filter and projection", pageFilter, func(c *check) {
			c.large()
			out, err := c.query(func(in *dynamodb.QueryInput) {
				in.FilterExpression, in.ProjectionExpression = aws.String("attribute_exists(gone)"), aws.String("sk")
			})
			if c.done("the query", err) && (len(out.Items) != 0 || out.ScannedCount > 4 || out.LastEvaluatedKey == nil) {
				c.unlike("%d items of %d scanned, last key %v; want none, at most 4, and a last key", len(out.Items), out.ScannedCount, plain(out.LastEvaluatedKey))
			}
		}},
		{"dynamodb/pages/start-need-not-exist", "a page begins behind a key, whether its item is there or not", pagePaging, func(c *check) {
			c.letters()
			out, err := c.query(func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = c.key("bb") })
			if c.done("the query", err) && sorts(out.Items) != "c d e" {
				c.unlike("got %q; want c d e", sorts(out.Items))
			}
		}},
		{"dynamodb/pages/start-elsewhere", "a key of another partition is refused", pagePaging, func(c *check) {
			c.letters()
			_, err := c.query(func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = item{"pk": str("other"), "sk": str("a")} })
			c.refused("a start in another partition", err, "ValidationException")
		}},
		{"dynamodb/pages/limit-zero", "a limit is at least 1", apiQuery, func(c *check) {
			_, err := c.query(limit(0))
			c.refused("a limit of 0", err, "ValidationException")
		}},
	}
}

// large puts five items of 300 KB.
func (c *check) large() {
	c.Helper()
	for _, sort := range []string{"a", "b", "c", "d", "e"} {
		c.given(sort, item{"body": str(strings.Repeat("x", 300_000))})
	}
}
