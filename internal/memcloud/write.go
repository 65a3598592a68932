package memcloud

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// run serves a single write: it checks, tries, commits and bills.
func (d *Dynamo) run(operation string, mode types.ReturnConsumedCapacity, a *action) (write, *types.ConsumedCapacity, error) {
	if err := checkMode(mode); err != nil {
		return write{}, nil, err
	}
	w, err := a.try()
	b := &bill{write: true}
	if err != nil {
		var refused *types.ConditionalCheckFailedException
		if errors.As(err, &refused) {
			b.table = w.tableUnits()
			d.charge(operation, b)
		}
		return w, nil, err
	}
	a.table.commit(w)
	b.add(a.table, w)
	d.charge(operation, b)
	return w, b.consumed(mode, a.table.name), nil
}

// legacy refuses the parameters that expressions have replaced.
func legacy(name string, given bool) error {
	if given {
		return invalid("%s is a legacy parameter that this stand-in does not serve; use an expression", name)
	}
	return nil
}

// PutItem writes a whole item.
func (d *Dynamo) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "PutItem", in, func(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := legacy("Expected", in.Expected != nil || in.ConditionalOperator != ""); err != nil {
			return nil, err
		}
		if err := oldOrNone(in.ReturnValues); err != nil {
			return nil, err
		}
		a, err := d.put(request{table: in.TableName, item: in.Item, condition: in.ConditionExpression, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, onFailure: in.ReturnValuesOnConditionCheckFailure})
		if err != nil {
			return nil, err
		}
		w, consumed, err := d.run("PutItem", in.ReturnConsumedCapacity, a)
		if err != nil {
			return nil, err
		}
		out := &dynamodb.PutItemOutput{ConsumedCapacity: consumed}
		if in.ReturnValues == types.ReturnValueAllOld && w.old != nil {
			out.Attributes = copyItem(w.old.item)
		}
		return out, nil
	})
}

// DeleteItem deletes an item; one that is not there is no error.
func (d *Dynamo) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "DeleteItem", in, func(in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := legacy("Expected", in.Expected != nil || in.ConditionalOperator != ""); err != nil {
			return nil, err
		}
		if err := oldOrNone(in.ReturnValues); err != nil {
			return nil, err
		}
		a, err := d.keyed(request{table: in.TableName, key: in.Key, condition: in.ConditionExpression, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, onFailure: in.ReturnValuesOnConditionCheckFailure})
		if err != nil {
			return nil, err
		}
		w, consumed, err := d.run("DeleteItem", in.ReturnConsumedCapacity, a)
		if err != nil {
			return nil, err
		}
		out := &dynamodb.DeleteItemOutput{ConsumedCapacity: consumed}
		if in.ReturnValues == types.ReturnValueAllOld && w.old != nil {
			out.Attributes = copyItem(w.old.item)
		}
		return out, nil
	})
}

func oldOrNone(v types.ReturnValue) error {
	switch v {
	case "", types.ReturnValueNone, types.ReturnValueAllOld:
		return nil
	}
	return invalid("Return values set to invalid value: %s; must be NONE or ALL_OLD", v)
}

// UpdateItem changes an item, or makes it: AWS knows no update that needs the
// item to exist other than by condition.
func (d *Dynamo) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "UpdateItem", in, func(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := legacy("Expected or AttributeUpdates", in.Expected != nil || in.AttributeUpdates != nil || in.ConditionalOperator != ""); err != nil {
			return nil, err
		}
		switch in.ReturnValues {
		case "", types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueAllNew, types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew:
		default:
			return nil, invalid("Value '%s' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]", in.ReturnValues)
		}
		a, err := d.modify(request{table: in.TableName, key: in.Key, update: in.UpdateExpression, condition: in.ConditionExpression, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, onFailure: in.ReturnValuesOnConditionCheckFailure})
		if err != nil {
			return nil, err
		}
		w, consumed, err := d.run("UpdateItem", in.ReturnConsumedCapacity, a)
		if err != nil {
			return nil, err
		}
		return &dynamodb.UpdateItemOutput{ConsumedCapacity: consumed, Attributes: copyItem(a.returned(in.ReturnValues, w))}, nil
	})
}

// returned picks what ReturnValues asks for; nil when there is nothing.
func (a *action) returned(v types.ReturnValue, w write) attributes {
	of := w.new
	if v == types.ReturnValueAllOld || v == types.ReturnValueUpdatedOld {
		of = w.old
	}
	if of == nil {
		return nil
	}
	switch v {
	case types.ReturnValueAllOld, types.ReturnValueAllNew:
		return of.item
	case types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew:
		if a.update == nil {
			return nil
		}
		if out := project(of.item, a.update.paths()); len(out) > 0 {
			return out
		}
	}
	return nil
}
