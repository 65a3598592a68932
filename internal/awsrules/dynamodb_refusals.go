package awsrules

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// refusals are what a condition that does not hold brings about, by each kind of write.
func refusals() []Rule {
	api := func(action string) string { return dynamodbAPI + "API_" + action + ".html" }
	return []Rule{
		{"dynamodb/refused/put", "a put whose condition fails changes nothing", api("PutItem"), func(c *check) {
			c.refusal(c.conditional("put", ""), false)
		}},
		{"dynamodb/refused/update", "an update whose condition fails changes nothing", api("UpdateItem"), func(c *check) {
			c.refusal(c.conditional("update", ""), false)
		}},
		{"dynamodb/refused/delete", "a delete whose condition fails changes nothing", api("DeleteItem"), func(c *check) {
			c.refusal(c.conditional("delete", ""), false)
		}},
		{"dynamodb/refused/put-all-old", "a refused put gives the old item when asked", api("PutItem"), func(c *check) {
			c.refusal(c.conditional("put", types.ReturnValuesOnConditionCheckFailureAllOld), true)
		}},
		{"dynamodb/refused/update-all-old", "a refused update gives the old item when asked", api("UpdateItem"), func(c *check) {
			c.refusal(c.conditional("update", types.ReturnValuesOnConditionCheckFailureAllOld), true)
		}},
		{"dynamodb/refused/delete-all-old", "a refused delete gives the old item when asked", api("DeleteItem"), func(c *check) {
			c.refusal(c.conditional("delete", types.ReturnValuesOnConditionCheckFailureAllOld), true)
		}},
		{"dynamodb/refused/no-old", "there is no old item to give where none was", api("UpdateItem"), func(c *check) {
			_, err := c.DynamoDB.UpdateItem(c.ctx, &dynamodb.UpdateItemInput{
				TableName: &c.main, Key: c.key("none"), UpdateExpression: aws.String("SET a = :v"), ConditionExpression: aws.String("attribute_exists(pk)"),
				ExpressionAttributeValues: item{":v": num("1")}, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			if refused, ok := as[*types.ConditionalCheckFailedException](c, "an update of no item", err); ok && len(refused.Item) > 0 {
				c.unlike("the old item is %v; want none", plain(refused.Item))
			}
			if it := c.get("none"); it != nil {
				c.unlike("a refused update made %v", plain(it))
			}
		}},
		{"dynamodb/refused/delete-absent", "a delete of an item that is not there succeeds; with a condition that it is, it is refused", api("DeleteItem"), func(c *check) {
			_, err := c.DynamoDB.DeleteItem(c.ctx, &dynamodb.DeleteItemInput{TableName: &c.main, Key: c.key("none")})
			c.done("a delete of no item", err)
			_, err = c.DynamoDB.DeleteItem(c.ctx, &dynamodb.DeleteItemInput{TableName: &c.main, Key: c.key("none"), ConditionExpression: aws.String("attribute_exists(pk)")})
			c.refused("a delete of no item that must be there", err, "ConditionalCheckFailedException")
		}},
	}
}

var stands = item{"state": str("queued"), "fence": num("7")}

// conditional asks for a write of an item that stands, under a condition that fails.
func (c *check) conditional(kind string, old types.ReturnValuesOnConditionCheckFailure) error {
	c.Helper()
	c.given("x", stands)
	condition, vs := aws.String("fence < :v"), item{":v": num("7")}
	var err error
	switch kind {
	case "put":
		_, err = c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: c.key("x"), ConditionExpression: condition, ExpressionAttributeValues: vs, ReturnValuesOnConditionCheckFailure: old})
	case "update":
		_, err = c.DynamoDB.UpdateItem(c.ctx, &dynamodb.UpdateItemInput{TableName: &c.main, Key: c.key("x"), UpdateExpression: aws.String("SET fence = :v"), ConditionExpression: condition, ExpressionAttributeValues: vs, ReturnValuesOnConditionCheckFailure: old})
	default:
		_, err = c.DynamoDB.DeleteItem(c.ctx, &dynamodb.DeleteItemInput{TableName: &c.main, Key: c.key("x"), ConditionExpression: condition, ExpressionAttributeValues: vs, ReturnValuesOnConditionCheckFailure: old})
	}
	return err
}

func (c *check) refusal(err error, old bool) {
	c.Helper()
	refused, ok := as[*types.ConditionalCheckFailedException](c, "a write whose condition fails", err)
	if want := c.with("x", stands); ok && old {
		c.equal("the old item", refused.Item, want)
	} else if ok && len(refused.Item) > 0 {
		c.unlike("the refusal gives %v unasked", plain(refused.Item))
	}
	c.holds("the item after the refusal", "x", c.with("x", stands))
}

// expressions are how an expression has to be written.
func expressions() []Rule {
	return []Rule{
		{"dynamodb/expressions/unused-value", "a value that no expression uses is refused", pageValues, func(c *check) {
			c.refused("an unused value", c.update("x", "SET a = :v", "", nil, item{":v": num("1"), ":w": num("1")}), "ValidationException")
		}},
		{"dynamodb/expressions/unused-name", "a name that no expression uses is refused", pageNames, func(c *check) {
			c.refused("an unused name", c.update("x", "SET a = :v", "", map[string]string{"#b": "b"}, item{":v": num("1")}), "ValidationException")
		}},
		{"dynamodb/expressions/undefined-value", "a value that is not given is refused", pageValues, func(c *check) {
			c.refused("a missing value", c.update("x", "SET a = :v, b = :w", "", nil, item{":v": num("1")}), "ValidationException")
		}},
		{"dynamodb/expressions/undefined-name", "a name that is not given is refused", pageNames, func(c *check) {
			c.refused("a missing name", c.update("x", "SET #a = :v", "", nil, item{":v": num("1")}), "ValidationException")
		}},
		{"dynamodb/expressions/without-expression", "names and values without an expression are refused", pageValues, func(c *check) {
			_, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: c.key("x"), ExpressionAttributeValues: item{":v": num("1")}})
			c.refused("values without an expression", err, "ValidationException")
			_, err = c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: c.key("x"), ExpressionAttributeNames: map[string]string{"#a": "a"}})
			c.refused("names without an expression", err, "ValidationException")
		}},
		{"dynamodb/expressions/reserved", "a reserved word is refused as a bare name, in any case, and taken by a placeholder", pageReserved, func(c *check) {
			c.refused("SET status", c.update("x", "SET status = :v", "", nil, item{":v": num("1")}), "ValidationException")
			c.refused("SET Name", c.update("x", "SET Name = :v", "", nil, item{":v": num("1")}), "ValidationException")
			c.done("SET #s", c.update("x", "SET #s = :v", "", map[string]string{"#s": "status"}, item{":v": num("1")}))
		}},
		{"dynamodb/expressions/dots-in-names", "a placeholder stands for one name, dots and all", pageNames, func(c *check) {
			if c.done("SET #a", c.update("x", "SET #a = :v", "", map[string]string{"#a": "a.b"}, item{":v": num("1")})) {
				c.holds("the item", "x", c.with("x", item{"a.b": num("1")}))
			}
		}},
		{"dynamodb/expressions/empty", "an empty expression is refused", pageConditions, func(c *check) {
			_, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: c.key("x"), ConditionExpression: aws.String("")})
			c.refused("an empty condition", err, "ValidationException")
		}},
		{"dynamodb/expressions/syntax", "an expression that does not parse is refused", pageOperators, func(c *check) {
			for _, text := range []string{"a =", "a = :v AND", "a == :v", "(a = :v", "a = :v OR OR a = :v", "exists(a) AND a = :v", "a = 1 AND a = :v"} {
				c.refused(text, c.update("x", "SET b = :v", text, nil, item{":v": num("1")}), "ValidationException")
			}
		}},
		{"dynamodb/expressions/length", "an expression has at most 4 KB", pageQuotas, func(c *check) {
			long := func(n int) string {
				text := "SET b = :v"
				return text + strings.Repeat(" ", n-len(text))
			}
			c.done("4,096 bytes", c.update("x", long(4096), "", nil, item{":v": num("1")}))
			c.refused("4,097 bytes", c.update("x", long(4097), "", nil, item{":v": num("1")}), "ValidationException")
		}},
		{"dynamodb/expressions/itself", "an attribute is not compared with itself", pageOperators, func(c *check) {
			c.refused("a = a", c.update("x", "SET b = :v", "a = a", nil, item{":v": num("1")}), "ValidationException")
		}},
		{"dynamodb/expressions/between-bounds", "BETWEEN takes no bounds in the wrong order", pageOperators, func(c *check) {
			c.refused("a BETWEEN 2 AND 1", c.update("x", "SET b = :v", "a BETWEEN :v AND :w", nil, item{":v": num("2"), ":w": num("1")}), "ValidationException")
		}},
	}
}
