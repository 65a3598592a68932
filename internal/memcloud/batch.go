package memcloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxBatchWrite is how many writes one call may carry. Source: "BatchWriteItem",
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
const maxBatchWrite = 25

// BatchWriteItem does up to 25 puts and deletes, each by itself; what
// Unprocessed names comes back undone.
func (d *Dynamo) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "BatchWriteItem", in, func(in *dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := checkMode(in.ReturnConsumedCapacity); err != nil {
			return nil, err
		}
		actions, requests, err := d.batchWrites(in.RequestItems)
		if err != nil {
			return nil, err
		}
		out, bills := &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{}}, bills{}
		call := Call{Service: ServiceDynamoDB, Operation: "BatchWriteItem", Input: in}
		for n, a := range actions {
			name := a.table.name
			if d.Unprocessed != nil && d.Unprocessed(call, n) {
				out.UnprocessedItems[name] = append(out.UnprocessedItems[name], requests[n])
				continue
			}
			w, err := a.try()
			if err != nil {
				return nil, err // cannot be: the form was checked, and there is no condition
			}
			a.table.commit(w)
			b := bills.of(a.table, true)
			b.double = false
			b.add(a.table, w)
		}
		d.charge("BatchWriteItem", bills.list()...)
		out.ConsumedCapacity = bills.consumed(in.ReturnConsumedCapacity)
		return out, nil
	})
}

func (d *Dynamo) batchWrites(items map[string][]types.WriteRequest) ([]*action, []types.WriteRequest, error) {
	var actions []*action
	var requests []types.WriteRequest
	size := 0
	for _, name := range sortedNames(items) {
		seen := map[string]bool{}
		for _, r := range items[name] {
			a, err := d.batchWrite(name, r)
			if err != nil {
				return nil, nil, err
			}
			if seen[a.at.id] {
				return nil, nil, invalid("Provided list of item keys contains duplicates")
			}
			seen[a.at.id] = true
			size += itemSize(a.item)
			actions, requests = append(actions, a), append(requests, r)
		}
	}
	if len(actions) < 1 || len(actions) > maxBatchWrite {
		return nil, nil, invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Member must have length between 1 and %d, is %d", maxBatchWrite, len(actions))
	}
	if size > maxBatchBytes {
		return nil, nil, invalid("The batch is larger than 16 MB: %d bytes", size)
	}
	return actions, requests, nil
}

func (d *Dynamo) batchWrite(table string, r types.WriteRequest) (*action, error) {
	switch {
	case r.PutRequest != nil && r.DeleteRequest == nil:
		return d.put(request{table: aws.String(table), item: r.PutRequest.Item})
	case r.DeleteRequest != nil && r.PutRequest == nil:
		return d.keyed(request{table: aws.String(table), key: r.DeleteRequest.Key})
	}
	return nil, invalid("A write request of table %s is neither exactly a put nor exactly a delete", table)
}
