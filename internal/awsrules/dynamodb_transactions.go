package awsrules

import (
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const apiTransact = dynamodbAPI + "API_TransactWriteItems.html"
const apiCancelled = apiTransact + "#API_TransactWriteItems_Errors"

func (c *check) transact(actions ...types.TransactWriteItem) error {
	_, err := c.DynamoDB.TransactWriteItems(c.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return err
}

func (c *check) putAction(sort string, more item, condition string, old bool) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &c.main, Item: c.with(sort, more), ConditionExpression: optional(condition), ReturnValuesOnConditionCheckFailure: allOld(old)}}
}

func (c *check) updateAction(sort, expression, condition string, vs item) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{TableName: &c.main, Key: c.key(sort), UpdateExpression: &expression, ConditionExpression: optional(condition), ExpressionAttributeValues: vs}}
}

func (c *check) deleteAction(sort, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &c.main, Key: c.key(sort), ConditionExpression: optional(condition)}}
}

func (c *check) checkAction(sort, condition string, old bool) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &c.main, Key: c.key(sort), ConditionExpression: &condition, ReturnValuesOnConditionCheckFailure: allOld(old)}}
}

func allOld(old bool) types.ReturnValuesOnConditionCheckFailure {
	if old {
		return types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return ""
}

// reasons notes cancellation reasons other than the wanted codes, in the order of the actions.
func (c *check) reasons(what string, err error, codes ...string) []types.CancellationReason {
	c.Helper()
	cancelled, ok := as[*types.TransactionCanceledException](c, what, err)
	if !ok {
		return nil
	}
	var got []string
	for _, r := range cancelled.CancellationReasons {
		got = append(got, aws.ToString(r.Code))
	}
	if strings.Join(got, " ") != strings.Join(codes, " ") {
		c.unlike("%s: reasons %v; want %v", what, got, codes)
		return nil
	}
	return cancelled.CancellationReasons
}

func transactions() []Rule {
	const noneThere = "attribute_not_exists(pk)"
	const there = "attribute_exists(pk)"
	return []Rule{
		{"dynamodb/transactions/all", "puts, updates, deletes and checks are done together", apiTransact, func(c *check) {
			c.given("delete", nil)
			c.given("check", nil)
			if c.done("four actions", c.transact(c.putAction("put", item{"a": num("1")}, noneThere, false), c.updateAction("update", "SET a = :v", "", item{":v": num("1")}), c.deleteAction("delete", there), c.checkAction("check", there, false))) {
				c.holds("the put", "put", c.with("put", item{"a": num("1")}))
				c.holds("the update", "update", c.with("update", item{"a": num("1")}))
				c.holds("the deleted", "delete", nil)
			}
		}},
		{"dynamodb/transactions/none", "one condition that fails, and nothing is done", apiTransact, func(c *check) {
			c.reasons("a failed check", c.transact(c.putAction("put", nil, "", false), c.updateAction("update", "SET a = :v", "", item{":v": num("1")}), c.checkAction("gone", there, false)), "None", "None", "ConditionalCheckFailed")
			c.holds("the put", "put", nil)
			c.holds("the update", "update", nil)
		}},
		{"dynamodb/transactions/reasons-in-order", "reasons come one for each action, in their order, None for those that could have been done", apiCancelled, func(c *check) {
			c.given("there", nil)
			c.reasons("refused at both ends", c.transact(c.putAction("there", nil, noneThere, false), c.putAction("fresh", nil, "", false), c.deleteAction("gone", there)), "ConditionalCheckFailed", "None", "ConditionalCheckFailed")
			c.reasons("refused in the middle", c.transact(c.putAction("fresh", nil, "", false), c.checkAction("gone", there, false), c.updateAction("other", "SET a = :v", "", item{":v": num("1")})), "None", "ConditionalCheckFailed", "None")
		}},
		{"dynamodb/transactions/reason-has-message", "a refused condition has a message, None has none", apiCancelled, func(c *check) {
			if rs := c.reasons("one refused", c.transact(c.putAction("fresh", nil, "", false), c.deleteAction("gone", there)), "None", "ConditionalCheckFailed"); rs != nil {
				if aws.ToString(rs[0].Message) != "" || aws.ToString(rs[1].Message) == "" {
					c.unlike("the messages are %q and %q", aws.ToString(rs[0].Message), aws.ToString(rs[1].Message))
				}
			}
		}},
		{"dynamodb/transactions/reason-has-old", "a reason has the old item where its action asked for it, and only there", apiCancelled, func(c *check) {
			want := c.given("there", item{"state": str("queued")})
			rs := c.reasons("asked and not asked", c.transact(c.putAction("there", nil, noneThere, true), c.checkAction("gone", there, true), c.putAction("fresh", nil, "", true)), "ConditionalCheckFailed", "ConditionalCheckFailed", "None")
			if rs != nil {
				c.equal("the old item", rs[0].Item, want)
				c.equal("of an item that is not there", rs[1].Item, nil)
				c.equal("of an action that could have been done", rs[2].Item, nil)
			}
			if rs := c.reasons("not asked", c.transact(c.putAction("there", nil, noneThere, false)), "ConditionalCheckFailed"); rs != nil {
				c.equal("of an action that did not ask", rs[0].Item, nil)
			}
		}},
		{"dynamodb/transactions/invalid-operand", "an operand that does not fit the item cancels with ValidationError", apiCancelled, func(c *check) {
			c.given("text", item{"n": str("x")})
			c.reasons("ADD to a text", c.transact(c.putAction("fresh", nil, "", false), c.updateAction("text", "ADD n :v", "", item{":v": num("1")})), "None", "ValidationError")
			c.holds("the other action's item", "fresh", nil)
		}},
		{"dynamodb/transactions/one-item-twice", "no two actions are on one item", apiTransact, func(c *check) {
			c.refused("a check and an update of one item", c.transact(c.checkAction("x", noneThere, false), c.updateAction("x", "SET a = :v", "", item{":v": num("1")})), "ValidationException", "TransactionCanceledException")
			c.holds("the item", "x", nil)
		}},
		{"dynamodb/transactions/hundred", "a transaction has up to 100 actions", apiTransact, func(c *check) { c.done("100 actions", c.transact(c.many(100)...)) }},
		{"dynamodb/transactions/above-hundred", "and no more", apiTransact, func(c *check) {
			c.refused("101 actions", c.transact(c.many(101)...), "ValidationException")
		}},
		{"dynamodb/transactions/empty", "and at least one", apiTransact, func(c *check) {
			_, err := c.DynamoDB.TransactWriteItems(c.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{}})
			c.refused("no action", err, "ValidationException")
		}},
		{"dynamodb/transactions/bytes", "its items have at most 4 MB together", apiTransact, func(c *check) {
			large := item{"body": str(strings.Repeat("x", 390_000))}
			var actions []types.TransactWriteItem
			for i := range 11 {
				actions = append(actions, c.putAction(fmt.Sprint(i), large, "", false))
			}
			c.refused("eleven items of 390 KB", c.transact(actions...), "ValidationException", "TransactionCanceledException")
			c.holds("the first item", "0", nil)
		}},
		{"dynamodb/transactions/item-too-large", "an item beyond 400 KB refuses the whole", apiTransact, func(c *check) {
			c.refused("401 KB", c.transact(c.putAction("small", nil, "", false), c.putAction("large", item{"body": str(strings.Repeat("x", 401<<10))}, "", false)), "ValidationException", "TransactionCanceledException")
			c.holds("the small item", "small", nil)
		}},
		{"dynamodb/transactions/grows-too-large", "so does one that an update makes too large", apiCancelled, func(c *check) {
			c.given("x", item{"body": str(strings.Repeat("x", 300_000))})
			c.reasons("an update beyond 400 KB", c.transact(c.updateAction("x", "SET more = :v", "", item{":v": str(strings.Repeat("x", 200_000))})), "ValidationError")
		}},
		{"dynamodb/transactions/get", "a transaction of reads answers in its order, with nothing for what is not there", dynamodbAPI + "API_TransactGetItems.html", func(c *check) {
			want := c.given("b", item{"a": num("1")})
			get := func(sort string) types.TransactGetItem {
				return types.TransactGetItem{Get: &types.Get{TableName: &c.main, Key: c.key(sort)}}
			}
			out, err := c.DynamoDB.TransactGetItems(c.ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get("gone"), get("b")}})
			if !c.done("two reads", err) {
				return
			}
			if len(out.Responses) != 2 {
				c.unlike("%d responses; want 2", len(out.Responses))
				return
			}
			c.equal("the missing", out.Responses[0].Item, nil)
			c.equal("the other", out.Responses[1].Item, want)
		}},
		{"dynamodb/transactions/get-above-hundred", "it has at most 100 reads", dynamodbAPI + "API_TransactGetItems.html", func(c *check) {
			var gets []types.TransactGetItem
			for i := range 101 {
				gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: &c.main, Key: c.key(fmt.Sprint(i))}})
			}
			_, err := c.DynamoDB.TransactGetItems(c.ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
			c.refused("101 reads", err, "ValidationException")
			_, err = c.DynamoDB.TransactGetItems(c.ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets[:100]})
			c.done("100 reads", err)
		}},
		{"dynamodb/transactions/serial", "transactions and single writes at once on one item are each done whole, or refused as a conflict", guide + "transaction-apis.html#transaction-conflict-handling", rivals},
	}
}

func (c *check) many(n int) (out []types.TransactWriteItem) {
	for i := range n {
		out = append(out, c.putAction(fmt.Sprint(i), nil, "", false))
	}
	return out
}

// rivals count what they did themselves: whatever met, the items hold just that. A single write that meets a
// transaction is refused with TransactionConflictException, a transaction is cancelled for TransactionConflict; neither
// can be provoked at will, and the probes say where they do not occur at all.
func rivals(c *check) {
	var all sync.WaitGroup
	var mu sync.Mutex
	both, alone := 0, 0
	one := item{":v": num("1")}
	for i := range 6 {
		all.Go(func() {
			for range 5 {
				var err error
				count := &both
				if i%2 == 0 {
					err = c.transact(c.updateAction("a", "ADD n :v", "", one), c.updateAction("b", "ADD n :v", "", one))
				} else {
					count, err = &alone, c.update("a", "ADD n :v", "", nil, one)
				}
				mu.Lock()
				switch code := codeOf(err); {
				case err == nil:
					*count++
				case code != "TransactionConflictException" && code != "TransactionCanceledException" && code != "TransactionInProgressException":
					c.unlike("a rival: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if both+alone == 0 {
		c.unlike("no rival came through")
		return
	}
	want := func(sort string, n int) {
		if n == 0 {
			c.holds("of those who came through", sort, nil)
			return
		}
		c.holds("of those who came through", sort, c.with(sort, item{"n": num(fmt.Sprint(n))}))
	}
	want("a", both+alone)
	want("b", both)
}

func (c *check) tokened(token string, actions ...types.TransactWriteItem) (*dynamodb.TransactWriteItemsOutput, error) {
	return c.DynamoDB.TransactWriteItems(c.ctx, &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token, TransactItems: actions, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
}

// token is one that no other run has used.
func (c *check) token(suffix string) string { return c.Run + "-" + suffix }

func tokens() []Rule {
	one := item{":v": num("1")}
	return []Rule{
		{"dynamodb/tokens/once", "the same transaction under the same token is done once, and answered like the first", apiTransact, func(c *check) {
			for i := range 3 {
				_, err := c.tokened(c.token("once"), c.updateAction("n", "ADD n :v", "", one))
				c.done(fmt.Sprint("call ", i+1), err)
			}
			c.holds("the counter", "n", c.with("n", item{"n": num("1")}))
		}},
		{"dynamodb/tokens/condition-not-asked-again", "its conditions are not asked again", apiTransact, func(c *check) {
			for i := range 2 {
				_, err := c.tokened(c.token("cond"), c.putAction("n", nil, "attribute_not_exists(pk)", false))
				c.done(fmt.Sprint("call ", i+1), err)
			}
		}},
		{"dynamodb/tokens/mismatch", "another transaction under the token is IdempotentParameterMismatchException", apiTransact, func(c *check) {
			_, err := c.tokened(c.token("other"), c.updateAction("n", "ADD n :v", "", one))
			c.ready(err)
			_, err = c.tokened(c.token("other"), c.updateAction("n", "ADD n :v", "", item{":v": num("2")}))
			c.refused("with another value", err, "IdempotentParameterMismatchException")
			_, err = c.tokened(c.token("other"), c.updateAction("m", "ADD n :v", "", one))
			c.refused("with another item", err, "IdempotentParameterMismatchException")
			c.holds("the counter", "n", c.with("n", item{"n": num("1")}))
		}},
		{"dynamodb/tokens/cancelled", "a transaction that was cancelled is tried again under its token", pageTransact, func(c *check) {
			_, err := c.tokened(c.token("again"), c.updateAction("n", "ADD n :v", "attribute_exists(pk)", one))
			c.refused("before the item is there", err, "TransactionCanceledException")
			c.given("n", nil)
			_, err = c.tokened(c.token("again"), c.updateAction("n", "ADD n :v", "attribute_exists(pk)", one))
			if c.done("once it is there", err) {
				c.holds("the counter", "n", c.with("n", item{"n": num("1")}))
			}
		}},
		{"dynamodb/tokens/read-units", "the repeated call is charged for reading", apiTransact, func(c *check) {
			first, err := c.tokened(c.token("units"), c.putAction("n", nil, "", false))
			c.ready(err)
			again, err := c.tokened(c.token("units"), c.putAction("n", nil, "", false))
			if !c.done("the second call", err) {
				return
			}
			if len(first.ConsumedCapacity) != 1 || len(again.ConsumedCapacity) != 1 || aws.ToFloat64(first.ConsumedCapacity[0].WriteCapacityUnits) == 0 || aws.ToFloat64(again.ConsumedCapacity[0].ReadCapacityUnits) == 0 {
				c.unlike("the first was charged %+v, the second %+v", first.ConsumedCapacity, again.ConsumedCapacity)
			}
		}},
		{"dynamodb/tokens/length", "a token has at most 36 characters", apiTransact, func(c *check) {
			_, err := c.tokened(strings.Repeat("t", 37), c.putAction("n", nil, "", false))
			c.refused("37 characters", err, "ValidationException")
		}},
	}
}
