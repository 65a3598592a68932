package awsrules

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// changed is a rule of updates: an update of an item, and what it must be then.
func changed(id, says, source string, before item, expression string, vs, after item) Rule {
	return Rule{"dynamodb/updates/" + id, says, source, func(c *check) {
		if before != nil {
			c.given("x", before)
		}
		if c.done(expression, c.update("x", expression, "", nil, vs)) {
			c.holds(expression, "x", c.with("x", after))
		}
	}}
}

// unchanged is a rule of updates: each one is refused and leaves the item as it is.
func unchanged(id, says, source string, before item, vs item, expressions ...string) Rule {
	return Rule{"dynamodb/updates/" + id, says, source, func(c *check) {
		want := c.given("x", before)
		for _, expression := range expressions {
			c.refused(expression, c.update("x", expression, "", nil, vs), "ValidationException")
		}
		c.holds("the item after the refusals", "x", want)
	}}
}

func updates() []Rule {
	one := item{":v": num("1")}
	return []Rule{
		changed("upsert", "an update of an item that is not there makes it", dynamodbAPI+"API_UpdateItem.html", nil, "SET a = :v", one, item{"a": num("1")}),
		changed("upsert-add", "ADD to what is not there begins at nothing", pageUpdates, nil, "ADD n :v, tags :w", item{":v": num("5"), ":w": texts("a")}, item{"n": num("5"), "tags": texts("a")}),
		changed("keeps-the-rest", "an update leaves other attributes as they are", dynamodbAPI+"API_UpdateItem.html", item{"a": num("1"), "b": str("x")}, "SET a = :v", item{":v": num("2")}, item{"a": num("2"), "b": str("x")}),
		changed("reads-the-old", "every right-hand side reads the item as it was", pageUpdates, item{"a": num("1"), "b": num("2")}, "SET a = b, b = a", nil, item{"a": num("2"), "b": num("1")}),
		changed("arithmetic", "SET adds and subtracts", pageUpdates, item{"a": num("10"), "b": num("3")}, "SET a = a - :v, b = a + b", one, item{"a": num("9"), "b": num("13")}),
		changed("if-not-exists", "if_not_exists keeps what is there", pageUpdates, item{"a": num("1")}, "SET a = if_not_exists(a, :v), b = if_not_exists(b, :v)", item{":v": num("9")}, item{"a": num("1"), "b": num("9")}),
		changed("count", "if_not_exists counts from nothing", pageUpdates, item{}, "SET n = if_not_exists(n, :z) + :v", item{":z": num("0"), ":v": num("1")}, item{"n": num("1")}),
		changed("list-append", "list_append joins two lists in their order", pageUpdates, item{"l": list(num("1"))}, "SET l = list_append(l, :v)", item{":v": list(num("2"), num("3"))}, item{"l": list(num("1"), num("2"), num("3"))}),
		changed("list-begins", "a list begins with what is appended to nothing", pageUpdates, item{}, "SET l = list_append(if_not_exists(l, :e), :v)", item{":e": list(), ":v": list(num("1"))}, item{"l": list(num("1"))}),
		changed("list-index", "an index writes one element, and one beyond the end appends", pageUpdates, item{"l": list(num("1"), num("2"))}, "SET l[1] = :v, l[9] = :w", item{":v": num("8"), ":w": num("9")}, item{"l": list(num("1"), num("8"), num("9"))}),
		changed("list-remove", "REMOVE of elements closes the gaps", pageUpdates, item{"l": list(num("1"), num("2"), num("3"), num("4"))}, "REMOVE l[0], l[2]", nil, item{"l": list(num("2"), num("4"))}),
		changed("nested", "a path writes inside a map", pageUpdates, item{"m": mapped(item{"k": num("1")})}, "SET m.k = :v, m.j = :v", item{":v": num("2")}, item{"m": mapped(item{"k": num("2"), "j": num("2")})}),
		changed("remove", "REMOVE takes attributes away, and one that is not there is no error", pageUpdates, item{"a": num("1"), "b": num("2")}, "REMOVE a, gone", nil, item{"b": num("2")}),
		changed("add-set", "ADD joins members to a set", pageUpdates, item{"s": texts("a", "b")}, "ADD s :v", item{":v": texts("b", "c")}, item{"s": texts("a", "b", "c")}),
		changed("delete-set", "DELETE takes members out of a set", pageUpdates, item{"s": texts("a", "b")}, "DELETE s :v", item{":v": texts("b", "c")}, item{"s": texts("a")}),
		changed("delete-last", "a set that loses its last member is gone", pageTypes, item{"s": texts("a"), "b": num("1")}, "DELETE s :v", item{":v": texts("a")}, item{"b": num("1")}),
		changed("sections", "SET, REMOVE, ADD and DELETE may stand together, in any order", pageUpdates, item{"a": num("1"), "s": texts("a", "b")}, "REMOVE a ADD n :v DELETE s :d SET b = :v", item{":v": num("1"), ":d": texts("b")}, item{"n": num("1"), "b": num("1"), "s": texts("a")}),
		unchanged("key", "key attributes cannot be updated", dynamodbAPI+"API_UpdateItem.html", item{"a": num("1")}, item{":v": str("1")}, "SET pk = :v", "SET sk = :v"),
		unchanged("twice", "a section comes once", pageUpdates, item{"a": num("1")}, one, "SET a = :v SET b = :v"),
		unchanged("overlap", "two paths of one update do not overlap", pageUpdates, item{"m": mapped(item{"k": num("1")})}, one, "SET m.k = :v, m = :v", "SET m = :v, m = :v"),
		unchanged("missing-parent", "what should hold a nested attribute must be there", pageUpdates, item{"a": num("1")}, one, "SET m.k = :v", "SET a.k = :v"),
		unchanged("missing-operand", "arithmetic needs its attributes", pageUpdates, item{"a": num("1")}, one, "SET n = n + :v"),
		unchanged("wrong-operand", "arithmetic and ADD need numbers or sets", pageUpdates, item{"t": str("x")}, one, "SET t = t + :v", "ADD t :v"),
		{"dynamodb/updates/put-replaces", "a put replaces the whole item", dynamodbAPI + "API_PutItem.html", func(c *check) {
			c.given("x", item{"a": num("1"), "b": num("2")})
			c.given("x", item{"a": num("3")})
			c.holds("after the second put", "x", c.with("x", item{"a": num("3")}))
		}},
		{"dynamodb/updates/all-old-all-new", "ReturnValues gives the item before or after", dynamodbAPI + "API_UpdateItem.html", func(c *check) {
			c.returned(types.ReturnValueAllOld, c.with("x", item{"a": num("1"), "b": num("5")}))
			c.returned(types.ReturnValueAllNew, c.with("x", item{"a": num("2"), "b": num("5")}))
		}},
		{"dynamodb/updates/updated-old-updated-new", "or only what was updated", dynamodbAPI + "API_UpdateItem.html", func(c *check) {
			c.returned(types.ReturnValueUpdatedOld, item{"a": num("1")})
			c.returned(types.ReturnValueUpdatedNew, item{"a": num("2")})
		}},
		{"dynamodb/updates/put-returns", "a put gives the old item or nothing", dynamodbAPI + "API_PutItem.html", func(c *check) {
			want := c.given("x", item{"a": num("1")})
			out, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: c.key("x"), ReturnValues: types.ReturnValueAllOld})
			if c.done("a put with ALL_OLD", err) {
				c.equal("the old item", out.Attributes, want)
			}
			_, err = c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: c.key("x"), ReturnValues: types.ReturnValueAllNew})
			c.refused("a put with ALL_NEW", err, "ValidationException")
		}},
		{"dynamodb/updates/unknown-table", "a table that is not there is ResourceNotFoundException", dynamodbAPI + "API_UpdateItem.html", func(c *check) {
			_, err := c.DynamoDB.UpdateItem(c.ctx, &dynamodb.UpdateItemInput{TableName: aws.String(c.main + "-gone"), Key: c.key("x"), UpdateExpression: aws.String("SET a = :v"), ExpressionAttributeValues: one})
			c.refused("an update of no table", err, "ResourceNotFoundException")
		}},
	}
}

func (c *check) returned(ask types.ReturnValue, want item) {
	c.Helper()
	c.given("x", item{"a": num("1"), "b": num("5")})
	out, err := c.DynamoDB.UpdateItem(c.ctx, &dynamodb.UpdateItemInput{TableName: &c.main, Key: c.key("x"), UpdateExpression: aws.String("SET a = :v"), ExpressionAttributeValues: item{":v": num("2")}, ReturnValues: ask})
	if c.done(string(ask), err) {
		c.equal(string(ask), out.Attributes, want)
	}
}
