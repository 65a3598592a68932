package memcloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Limits of reads over many items. Source: "BatchGetItem",
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
const (
	maxBatchGet   = 100
	maxBatchBytes = 16 * 1024 * 1024
)

// one is a checked read of one item.
type one struct {
	table *table
	key   attributes
	paths []path
}

func (d *Dynamo) one(table *string, key attributes, projection *string, names map[string]string) (*one, error) {
	t, err := d.table(table)
	if err != nil {
		return nil, err
	}
	s, err := newScope(names, nil)
	if err != nil {
		return nil, err
	}
	paths, err := s.projection(projection)
	if err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	key, err = t.key.checkKey(key)
	return &one{t, key, paths}, err
}

// read gives the item for the caller, nil if there is none, and its size.
func (o *one) read() (item attributes, size int) {
	r := o.table.rows.get(o.table.place(o.key))
	if r == nil {
		return nil, 0
	}
	return picked(r.item, o.paths), r.size
}

// picked is a copy of the item, or of what a projection leaves of it.
func picked(item attributes, paths []path) attributes {
	if paths == nil {
		return copyItem(item)
	}
	for _, p := range paths {
		if len(p) > 1 {
			return copyItem(project(item, paths))
		}
	}
	out := make(attributes, len(paths))
	for _, p := range paths {
		if v := item[p.root()]; v != nil {
			out[p.root()] = copyValue(v)
		}
	}
	return out
}

// GetItem reads one item.
func (d *Dynamo) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "GetItem", in, func(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := legacy("AttributesToGet", in.AttributesToGet != nil); err != nil {
			return nil, err
		}
		if err := checkMode(in.ReturnConsumedCapacity); err != nil {
			return nil, err
		}
		o, err := d.one(in.TableName, in.Key, in.ProjectionExpression, in.ExpressionAttributeNames)
		if err != nil {
			return nil, err
		}
		item, size := o.read()
		b := &bill{table: readUnits(size, aws.ToBool(in.ConsistentRead))}
		d.charge("GetItem", b)
		return &dynamodb.GetItemOutput{Item: item, ConsumedCapacity: b.consumed(in.ReturnConsumedCapacity, o.table.name)}, nil
	})
}

// TransactGetItems reads up to 100 items at one moment; a missing one is an
// ItemResponse without item.
func (d *Dynamo) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "TransactGetItems", in, func(in *dynamodb.TransactGetItemsInput) (*dynamodb.TransactGetItemsOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := checkMode(in.ReturnConsumedCapacity); err != nil {
			return nil, err
		}
		reads, err := d.transactReads(in.TransactItems)
		if err != nil {
			return nil, err
		}
		out, bills, total := &dynamodb.TransactGetItemsOutput{}, bills{}, 0
		for _, o := range reads {
			item, size := o.read()
			total += size
			out.Responses = append(out.Responses, types.ItemResponse{Item: item})
			bills.of(o.table, false).table += 2 * readUnits(size, true)
		}
		if total > maxTransaction {
			return nil, invalid("The aggregate size of the items in the transaction exceeds 4 MB: %d bytes", total)
		}
		d.charge("TransactGetItems", bills.list()...)
		out.ConsumedCapacity = bills.consumed(in.ReturnConsumedCapacity)
		return out, nil
	})
}

func (d *Dynamo) transactReads(items []types.TransactGetItem) ([]*one, error) {
	if len(items) < 1 || len(items) > maxActions {
		return nil, invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length between 1 and %d, is %d", maxActions, len(items))
	}
	var out []*one
	seen := map[string]bool{}
	for _, item := range items {
		if item.Get == nil {
			return nil, invalid("Value null at 'transactItems.get' failed to satisfy constraint: Member must not be null")
		}
		o, err := d.one(item.Get.TableName, item.Get.Key, item.Get.ProjectionExpression, item.Get.ExpressionAttributeNames)
		if err != nil {
			return nil, err
		}
		name := o.table.name + "/" + o.table.key.identity(o.key)
		if seen[name] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[name] = true
		out = append(out, o)
	}
	return out, nil
}

// batched is one read of a batch with what the caller asked for.
type batched struct {
	*one
	given      attributes
	consistent bool
}

// BatchGetItem reads up to 100 items, in no promised order; missing ones are
// just not there. What exceeds 16 MB, or what Unprocessed names, comes back
// as unprocessed.
func (d *Dynamo) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "BatchGetItem", in, func(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := checkMode(in.ReturnConsumedCapacity); err != nil {
			return nil, err
		}
		reads, err := d.batchReads(in.RequestItems)
		if err != nil {
			return nil, err
		}
		out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}, UnprocessedKeys: map[string]types.KeysAndAttributes{}}
		bills, total := bills{}, 0
		call := Call{Service: ServiceDynamoDB, Operation: "BatchGetItem", Input: in}
		for n, r := range reads {
			name := r.table.name
			item, size := r.read()
			if d.Unprocessed != nil && d.Unprocessed(call, n) || total+size > maxBatchBytes {
				rest, ok := out.UnprocessedKeys[name]
				if !ok {
					rest = in.RequestItems[name]
					rest.Keys = nil
				}
				rest.Keys = append(rest.Keys, copyItem(r.given))
				out.UnprocessedKeys[name] = rest
				continue
			}
			total += size
			if item != nil {
				out.Responses[name] = append(out.Responses[name], item)
			}
			b := bills.of(r.table, false)
			b.double = false
			b.table += readUnits(size, r.consistent)
		}
		d.charge("BatchGetItem", bills.list()...)
		out.ConsumedCapacity = bills.consumed(in.ReturnConsumedCapacity)
		return out, nil
	})
}

func (d *Dynamo) batchReads(items map[string]types.KeysAndAttributes) ([]batched, error) {
	var out []batched
	for _, name := range sortedNames(items) {
		ask := items[name]
		if err := legacy("AttributesToGet", ask.AttributesToGet != nil); err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, key := range ask.Keys {
			o, err := d.one(aws.String(name), key, ask.ProjectionExpression, ask.ExpressionAttributeNames)
			if err != nil {
				return nil, err
			}
			id := o.table.key.identity(o.key)
			if seen[id] {
				return nil, invalid("Provided list of item keys contains duplicates")
			}
			seen[id] = true
			out = append(out, batched{o, o.key, aws.ToBool(ask.ConsistentRead)})
		}
	}
	if len(out) < 1 || len(out) > maxBatchGet {
		return nil, invalid("Too many items requested for the BatchGetItem call: between 1 and %d are allowed, %d were given", maxBatchGet, len(out))
	}
	return out, nil
}
