package memcloud

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Query reads a partition, or a part of it, in the order of the sort key.
func (d *Dynamo) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "Query", in, func(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := legacy("KeyConditions, QueryFilter or AttributesToGet", in.KeyConditions != nil || in.QueryFilter != nil || in.AttributesToGet != nil || in.ConditionalOperator != ""); err != nil {
			return nil, err
		}
		if err := checkMode(in.ReturnConsumedCapacity); err != nil {
			return nil, err
		}
		s, err := d.searchOf(in.TableName, in.IndexName, in.Limit, in.ConsistentRead, in.ExclusiveStartKey)
		if err != nil {
			return nil, err
		}
		k, err := s.queryExpressions(in)
		if err != nil {
			return nil, err
		}
		rows, err := s.partition(k, in.ScanIndexForward == nil || *in.ScanIndexForward)
		if err != nil {
			return nil, err
		}
		p := s.read(rows)
		d.charge("Query", p.bill)
		return &dynamodb.QueryOutput{Items: p.items, Count: p.count, ScannedCount: p.scanned, LastEvaluatedKey: p.last, ConsumedCapacity: p.bill.consumed(in.ReturnConsumedCapacity, s.table.name)}, nil
	})
}

func (s *search) queryExpressions(in *dynamodb.QueryInput) (*keyCondition, error) {
	scope, err := newScope(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	k, err := scope.keyCondition(in.KeyConditionExpression, s.key)
	if err != nil {
		return nil, err
	}
	if s.filter, err = scope.condition("FilterExpression", in.FilterExpression); err != nil {
		return nil, err
	}
	for _, p := range pathsIn(s.filter) {
		if s.key.has(p.root()) {
			return nil, invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", p.root())
		}
	}
	if s.paths, err = scope.projection(in.ProjectionExpression); err != nil {
		return nil, err
	}
	if err := scope.finish(); err != nil {
		return nil, err
	}
	return k, s.choose(in.Select, s.paths != nil)
}

// partition walks over the rows that the key condition covers, from the start
// key on.
func (s *search) partition(k *keyCondition, forward bool) (iter.Seq[*record], error) {
	hash := string(encodeValue(nil, k.hash))
	if s.start != nil && s.startPosition().hash != hash {
		return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	var rows []*record
	if p := s.rows.partitions[hash]; p != nil {
		from, to := k.bounds(p.rows)
		if s.start != nil {
			i, found := p.place(s.startPosition())
			if forward {
				if found {
					i++
				}
				from = max(from, i)
			} else {
				to = min(to, i)
			}
		}
		rows = p.rows[min(from, to):to]
	}
	return func(yield func(*record) bool) {
		for i := range rows {
			r := rows[i]
			if !forward {
				r = rows[len(rows)-1-i]
			}
			if !yield(r) {
				return
			}
		}
	}, nil
}

// Scan reads a whole table or index, or one of TotalSegments parts of it.
func (d *Dynamo) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "Scan", in, func(in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := legacy("ScanFilter or AttributesToGet", in.ScanFilter != nil || in.AttributesToGet != nil || in.ConditionalOperator != ""); err != nil {
			return nil, err
		}
		if err := checkMode(in.ReturnConsumedCapacity); err != nil {
			return nil, err
		}
		s, err := d.searchOf(in.TableName, in.IndexName, in.Limit, in.ConsistentRead, in.ExclusiveStartKey)
		if err != nil {
			return nil, err
		}
		if err := s.scanExpressions(in); err != nil {
			return nil, err
		}
		segments, err := segmentsOf(in)
		if err != nil {
			return nil, err
		}
		p := s.read(s.everything(segments, uint64(aws.ToInt32(in.Segment))))
		d.charge("Scan", p.bill)
		return &dynamodb.ScanOutput{Items: p.items, Count: p.count, ScannedCount: p.scanned, LastEvaluatedKey: p.last, ConsumedCapacity: p.bill.consumed(in.ReturnConsumedCapacity, s.table.name)}, nil
	})
}

func (s *search) scanExpressions(in *dynamodb.ScanInput) error {
	scope, err := newScope(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return err
	}
	if s.filter, err = scope.condition("FilterExpression", in.FilterExpression); err != nil {
		return err
	}
	if s.paths, err = scope.projection(in.ProjectionExpression); err != nil {
		return err
	}
	if err := scope.finish(); err != nil {
		return err
	}
	return s.choose(in.Select, s.paths != nil)
}

// segmentsOf gives the number of segments, 1 without any.
func segmentsOf(in *dynamodb.ScanInput) (uint64, error) {
	if in.TotalSegments == nil && in.Segment == nil {
		return 1, nil
	}
	if in.TotalSegments == nil || in.Segment == nil {
		return 0, invalid("The TotalSegments and the Segment parameter are both required when one of them is given")
	}
	total, segment := *in.TotalSegments, *in.Segment
	if total < 1 || total > 1_000_000 || segment < 0 || segment >= total {
		return 0, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", segment, total)
	}
	return uint64(total), nil
}

// everything walks over all partitions of a segment, from the start key on.
func (s *search) everything(segments, segment uint64) iter.Seq[*record] {
	partitions := s.rows.inOrder()
	if s.start != nil {
		partitions = s.rows.from(s.startPosition().hash)
	}
	return func(yield func(*record) bool) {
		for _, p := range partitions {
			if p.hash%segments != segment {
				continue
			}
			rows := p.rows
			if s.start != nil && p.key == s.startPosition().hash {
				i, found := p.place(s.startPosition())
				if found {
					i++
				}
				rows = rows[i:]
			}
			for _, r := range rows {
				if !yield(r) {
					return
				}
			}
		}
	}
}
