package memcloud

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Limits of a transaction. Source: "Amazon DynamoDB Transactions: How it
// works", https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
const (
	maxActions     = 100
	maxTransaction = 4 * 1024 * 1024
)

// TransactWriteItems does all of its actions or none. It costs its actions,
// however large the tables are.
func (d *Dynamo) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "TransactWriteItems", in, func(in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := checkMode(in.ReturnConsumedCapacity); err != nil {
			return nil, err
		}
		actions, err := d.actions(in.TransactItems)
		if err != nil {
			return nil, err
		}
		token, print := aws.ToString(in.ClientRequestToken), ""
		if token != "" {
			if len(token) > 36 {
				return nil, invalid("Value at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36")
			}
			print = fingerprint(in.TransactItems)
			repeated, err := d.tokens.repeated(d.clock(), token, print)
			if err != nil {
				return nil, err
			}
			if repeated {
				return d.replay(actions, in.ReturnConsumedCapacity), nil
			}
		}
		out, err := d.transact(actions, in.ReturnConsumedCapacity)
		if err == nil && token != "" {
			d.tokens.remember(d.clock(), token, print)
		}
		return out, err
	})
}

// actions checks the form of a transaction. What is wrong here is wrong for
// the whole request, not for one of its actions.
func (d *Dynamo) actions(items []types.TransactWriteItem) ([]*action, error) {
	if len(items) < 1 || len(items) > maxActions {
		return nil, invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length between 1 and %d, is %d", maxActions, len(items))
	}
	out := make([]*action, len(items))
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		a, err := d.action(item)
		if err != nil {
			return nil, err
		}
		name := a.table.name + "/" + a.at.id
		if seen[name] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[name] = true
		out[i] = a
	}
	return out, nil
}

func (d *Dynamo) action(item types.TransactWriteItem) (*action, error) {
	given := 0
	for _, is := range []bool{item.Put != nil, item.Update != nil, item.Delete != nil, item.ConditionCheck != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	kind, r := requestOf(item)
	switch kind {
	case "Put":
		return d.put(r)
	case "Update":
		if r.update == nil {
			return nil, invalid("Value null at 'transactItems.update.updateExpression' failed to satisfy constraint: Member must not be null")
		}
		return d.modify(r)
	case "Delete":
		return d.keyed(r)
	}
	if r.condition == nil {
		return nil, invalid("Value null at 'transactItems.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null")
	}
	a, err := d.keyed(r)
	if err == nil {
		a.checks = true
	}
	return a, err
}

// requestOf puts the four kinds of action into one form.
func requestOf(item types.TransactWriteItem) (kind string, r request) {
	switch {
	case item.Put != nil:
		p := item.Put
		return "Put", request{table: p.TableName, item: p.Item, condition: p.ConditionExpression, names: p.ExpressionAttributeNames, values: p.ExpressionAttributeValues, onFailure: p.ReturnValuesOnConditionCheckFailure}
	case item.Update != nil:
		u := item.Update
		return "Update", request{table: u.TableName, key: u.Key, update: u.UpdateExpression, condition: u.ConditionExpression, names: u.ExpressionAttributeNames, values: u.ExpressionAttributeValues, onFailure: u.ReturnValuesOnConditionCheckFailure}
	case item.Delete != nil:
		x := item.Delete
		return "Delete", request{table: x.TableName, key: x.Key, condition: x.ConditionExpression, names: x.ExpressionAttributeNames, values: x.ExpressionAttributeValues, onFailure: x.ReturnValuesOnConditionCheckFailure}
	}
	c := item.ConditionCheck
	return "ConditionCheck", request{table: c.TableName, key: c.Key, condition: c.ConditionExpression, names: c.ExpressionAttributeNames, values: c.ExpressionAttributeValues, onFailure: c.ReturnValuesOnConditionCheckFailure}
}

// transact tries every action on the tables as they are, and only then writes.
func (d *Dynamo) transact(actions []*action, mode types.ReturnConsumedCapacity) (*dynamodb.TransactWriteItemsOutput, error) {
	writes := make([]write, len(actions))
	reasons := make([]types.CancellationReason, len(actions))
	bills := bills{}
	cancelled, size := false, 0
	for i, a := range actions {
		w, err := a.try()
		writes[i], reasons[i] = w, reasonOf(err)
		cancelled = cancelled || err != nil
		size += max(w.old.bytes(), w.new.bytes())
		b := bills.of(a.table, true)
		if err != nil {
			b.table += 2 * w.tableUnits()
			continue
		}
		b.add(a.table, w)
	}
	if size > maxTransaction {
		return nil, invalid("The aggregate size of the items in the transaction exceeds 4 MB: %d bytes", size)
	}
	if cancelled {
		for _, b := range bills {
			b.indexes = nil // nothing was written
		}
		d.charge("TransactWriteItems", bills.list()...)
		return nil, cancellation(reasons)
	}
	for i, a := range actions {
		if !a.checks {
			a.table.commit(writes[i])
		}
	}
	d.charge("TransactWriteItems", bills.list()...)
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: bills.consumed(mode)}, nil
}

// replay answers a repeated token: nothing is done, and AWS bills the reading
// of the items.
func (d *Dynamo) replay(actions []*action, mode types.ReturnConsumedCapacity) *dynamodb.TransactWriteItemsOutput {
	bills := bills{}
	for _, a := range actions {
		bills.of(a.table, false).table += 2 * readUnits(a.table.rows.get(a.at).bytes(), true)
	}
	d.charge("TransactWriteItems", bills.list()...)
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: bills.consumed(mode)}
}

// reasonOf gives one action's reason as AWS lists it.
func reasonOf(err error) types.CancellationReason {
	if err == nil {
		return types.CancellationReason{Code: aws.String("None")}
	}
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Message: refused.Message, Item: refused.Item}
	}
	message := err.Error()
	var api smithy.APIError
	if errors.As(err, &api) {
		message = api.ErrorMessage()
	}
	return types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String(message)}
}

// cancellation builds the exception around its reasons.
func cancellation(reasons []types.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = aws.ToString(r.Code)
	}
	return &types.TransactionCanceledException{
		Message:             aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}

// bills are the bills of a request over several tables, by table name.
type bills map[string]*bill

func (b bills) of(t *table, write bool) *bill {
	if b[t.name] == nil {
		b[t.name] = &bill{write: write, double: true}
	}
	return b[t.name]
}

func (b bills) list() []*bill {
	out := make([]*bill, 0, len(b))
	for _, name := range sortedNames(b) {
		out = append(out, b[name])
	}
	return out
}

func (b bills) consumed(mode types.ReturnConsumedCapacity) []types.ConsumedCapacity {
	var out []types.ConsumedCapacity
	for _, name := range sortedNames(b) {
		if c := b[name].consumed(mode, name); c != nil {
			out = append(out, *c)
		}
	}
	return out
}
