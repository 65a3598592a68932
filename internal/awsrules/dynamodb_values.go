package awsrules

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// comesBack puts numbers, and notes those that come back otherwise than they are wanted.
func (c *check) comesBack(pairs ...string) {
	c.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if c.done(pairs[i], c.put(c.with("x", item{"n": num(pairs[i])}))) {
			c.holds(pairs[i], "x", c.with("x", item{"n": num(pairs[i+1])}))
		}
	}
}

func (c *check) noNumbers(all ...string) {
	c.Helper()
	for _, n := range all {
		c.refused(fmt.Sprintf("the number %q", n), c.put(c.with("none", item{"n": num(n)})), "ValidationException")
	}
}

func numbers() []Rule {
	const digits = "12345678901234567890123456789012345678" // 38
	return []Rule{
		{"dynamodb/numbers/precision", "a number keeps 38 digits", pageTypes, func(c *check) {
			c.comesBack(digits, digits, "-"+digits, "-"+digits, "0."+digits, "0."+digits, "9007199254740993", "9007199254740993")
		}},
		{"dynamodb/numbers/precision-above", "and is refused with more", pageTypes, func(c *check) { c.noNumbers(digits+"9", "0."+digits+"9", "1"+strings.Repeat("0", 38)+"1") }},
		{"dynamodb/numbers/range", "its magnitude is from 1E-130 to 9.9…E+125", pageTypes, func(c *check) {
			c.comesBack("1E-130", "0."+strings.Repeat("0", 129)+"1", "9.9E+125", "99"+strings.Repeat("0", 124), "-9.9E+125", "-99"+strings.Repeat("0", 124))
		}},
		{"dynamodb/numbers/range-above", "and is refused beyond", pageTypes, func(c *check) { c.noNumbers("1E126", "-1E126", "1E-131") }},
		{"dynamodb/numbers/canonical", "leading and trailing zeroes are trimmed", pageTypes, func(c *check) {
			c.comesBack("007", "7", "1.50", "1.5", "1.0", "1", "0.0", "0", "100", "100", "-0.50", "-0.5")
		}},
		{"dynamodb/numbers/exponent", "a number with an exponent comes back as the same number without", pageTypes, func(c *check) { c.comesBack("1e2", "100", "1E-2", "0.01") }},
		{"dynamodb/numbers/form", "what is no number is refused", pageTypes, func(c *check) { c.noNumbers("", "x", "NaN", "Infinity", "0x10", "1_000", "1,5", "1.2.3", "--1", "1e") }},
		{"dynamodb/numbers/exact-sum", "sums are exact", pageTypes, func(c *check) {
			c.given("x", item{"n": num("9007199254740992"), "m": num("0.1")})
			if c.done("the sums", c.update("x", "SET n = n + :v, m = m + :w", "", nil, item{":v": num("1"), ":w": num("0.2")})) {
				c.holds("the sums", "x", c.with("x", item{"n": num("9007199254740993"), "m": num("0.3")}))
			}
		}},
		{"dynamodb/numbers/overflow", "a sum beyond the range is refused", pageTypes, func(c *check) {
			want := c.given("x", item{"n": num("99" + strings.Repeat("0", 124))})
			c.refused("twice 9.9E125", c.update("x", "ADD n :v", "", nil, item{":v": num("9.9E125")}), "ValidationException")
			c.holds("the item", "x", want)
		}},
		{"dynamodb/numbers/sort-key", "a sort key that is a number sorts by value", pageQuery, func(c *check) {
			for _, n := range []string{"10", "9", "-1", "0.5", "-20"} {
				_, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.numbered, Item: item{"pk": str(c.id), "n": num(n)}})
				c.ready(err)
			}
			out, err := c.DynamoDB.Query(c.ctx, &dynamodb.QueryInput{TableName: &c.numbered, KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str(c.id)}, ConsistentRead: aws.Bool(true)})
			if !c.done("a query", err) {
				return
			}
			var got []string
			for _, it := range out.Items {
				got = append(got, show(it["n"]))
			}
			if want := "N:-20 N:-1 N:0.5 N:9 N:10"; strings.Join(got, " ") != want {
				c.unlike("the order is %v; want %s", got, want)
			}
		}},
		{"dynamodb/numbers/one-key", "numbers of one value are one key", pageTypes, func(c *check) {
			for _, n := range []string{"5", "5.0", "05", "0.5e1"} {
				_, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.numbered, Item: item{"pk": str(c.id), "n": num(n), "as": str(n)}})
				c.done(n, err)
			}
			out, err := c.DynamoDB.Query(c.ctx, &dynamodb.QueryInput{TableName: &c.numbered, KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str(c.id)}, ConsistentRead: aws.Bool(true)})
			c.ready(err)
			if len(out.Items) != 1 {
				c.unlike("%d items; want 1", len(out.Items))
			}
		}},
	}
}

// kept is a rule of values: they are taken and come back as they are.
func kept(id, says string, all ...value) Rule {
	return Rule{"dynamodb/values/" + id, says, pageTypes, func(c *check) {
		for i, v := range all {
			sort := fmt.Sprint(i)
			if c.done(show(v), c.put(c.with(sort, item{"v": v}))) {
				c.holds(show(v), sort, c.with(sort, item{"v": v}))
			}
		}
	}}
}

// notKept is a rule of values: they are refused.
func notKept(id, says string, all ...value) Rule {
	return Rule{"dynamodb/values/" + id, says, pageTypes, func(c *check) {
		for _, v := range all {
			c.refused(show(v), c.put(c.with("x", item{"v": v})), "ValidationException")
		}
	}}
}

func values() []Rule {
	return []Rule{
		kept("empty-text", "an empty text or binary is a value", str(""), bin("")),
		kept("empty-list-and-map", "so are an empty list and an empty map", list(), mapped(item{}), mapped(item{"l": list(), "s": str("")})),
		kept("empty-member", "a set may have an empty text in it", texts("", "a")),
		notKept("empty-set", "an empty set is refused", &types.AttributeValueMemberSS{Value: []string{}}, &types.AttributeValueMemberNS{Value: []string{}}, &types.AttributeValueMemberBS{Value: [][]byte{}}),
		notKept("twice-in-a-set", "a set has each member once", &types.AttributeValueMemberSS{Value: []string{"a", "a"}}, &types.AttributeValueMemberBS{Value: [][]byte{[]byte("a"), []byte("a")}}),
		notKept("one-number-twice-in-a-set", "numbers of one value are one member", &types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}),
		kept("null-and-truth", "NULL, true and false are values", null(), truth(true), truth(false)),
		kept("text-as-it-is", "text is kept byte for byte", str("  é\u0301 \U0001F600 \x00\x01\n "), bin("\x00\xff")),
		kept("documents", "documents nest as they are", list(num("1"), str("1"), list(null()), mapped(item{"a.b": texts("x"), " ": bin("y")}))),
		{"dynamodb/values/empty-name", "an attribute has a name", pageTypes, func(c *check) {
			c.refused("an empty name", c.put(c.with("x", item{"": num("1")})), "ValidationException")
		}},
		{"dynamodb/values/empty-in-update", "an update keeps no empty set either", pageTypes, func(c *check) {
			c.refused("SET s to an empty set", c.update("x", "SET s = :v", "", nil, item{":v": &types.AttributeValueMemberSS{Value: []string{}}}), "ValidationException")
		}},
	}
}

func keys() []Rule {
	return []Rule{
		{"dynamodb/keys/empty", "a key is not empty", pageTypes, func(c *check) {
			c.refused("an empty partition key", c.put(item{"pk": str(""), "sk": str("x")}), "ValidationException")
			c.refused("an empty sort key", c.put(c.key("")), "ValidationException")
			_, err := c.DynamoDB.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: &c.main, Key: c.key("")})
			c.refused("a read by an empty sort key", err, "ValidationException")
		}},
		{"dynamodb/keys/empty-of-an-index", "nor is a key of an index", pageIndexes, func(c *check) {
			c.refused("an empty key of an index", c.put(c.with("x", item{"slot": str("")})), "ValidationException")
		}},
		{"dynamodb/keys/missing", "an item has its whole key", dynamodbAPI + "API_PutItem.html", func(c *check) {
			c.refused("an item without its sort key", c.put(item{"pk": str(c.id)}), "ValidationException")
			_, err := c.DynamoDB.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: &c.main, Key: item{"pk": str(c.id)}})
			c.refused("a read by half a key", err, "ValidationException")
		}},
		{"dynamodb/keys/more", "a key is nothing else", dynamodbAPI + "API_GetItem.html", func(c *check) {
			_, err := c.DynamoDB.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: &c.main, Key: c.with("x", item{"a": num("1")})})
			c.refused("a read by more than the key", err, "ValidationException")
		}},
		{"dynamodb/keys/type", "a key has its type", dynamodbAPI + "API_PutItem.html", func(c *check) {
			c.refused("a number for a text", c.put(item{"pk": num("1"), "sk": str("x")}), "ValidationException")
		}},
		{"dynamodb/keys/type-of-an-index", "so has a key of an index", pageIndexes, func(c *check) {
			c.refused("a number for a text", c.put(c.with("x", item{"slot": num("1")})), "ValidationException")
		}},
		{"dynamodb/keys/update-type-of-an-index", "also after an update", apiCancelled, func(c *check) {
			c.given("x", nil)
			c.refused("an update to a number", c.update("x", "SET slot = :v", "", nil, item{":v": num("1")}), "ValidationException")
		}},
		{"dynamodb/keys/exact", "keys that differ by a byte are two", pageTypes, func(c *check) {
			for _, sort := range []string{"a", "A", "a ", "\u00e9", "e\u0301"} {
				c.given(sort, item{"v": str(sort)})
			}
			for _, sort := range []string{"a", "A", "a ", "\u00e9", "e\u0301"} {
				c.holds(fmt.Sprintf("%+q", sort), sort, c.with(sort, item{"v": str(sort)}))
			}
		}},
	}
}
