package store

import (
	"context"
	"strings"

	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// get reads one row consistently; an absent row is an empty item.
func (s *Store) get(ctx context.Context, k schema.Key) (item, error) {
	out, err := patient(ctx, s, func() (*dynamodb.GetItemOutput, error) {
		return s.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.Table, Key: keyItem(k), ConsistentRead: aws.Bool(true)})
	})
	if err != nil {
		return nil, classify(err)
	}
	return out.Item, nil
}

// patient repeats a read that DynamoDB refuses for its rate as often as a write: that is no failed attempt of a run either.
func patient[O any](ctx context.Context, s *Store, read func() (O, error)) (O, error) {
	for n := 0; ; n++ {
		out, err := read()
		if err == nil || !again(err) || n == maxTries || s.Pause(ctx, jitter(n)) != nil {
			return out, err
		}
	}
}

// batch reads up to 100 rows consistently (AWS: BatchGetItem), by key. What DynamoDB leaves over is asked for again.
func (s *Store) batch(ctx context.Context, keys []schema.Key) (map[schema.Key]item, error) {
	found := make(map[schema.Key]item, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), 100)
		ask := make([]item, 0, n)
		for _, k := range keys[:n] {
			ask = append(ask, keyItem(k))
		}
		keys = keys[n:]
		for try := 0; len(ask) > 0; try++ {
			out, err := patient(ctx, s, func() (*dynamodb.BatchGetItemOutput, error) {
				return s.DB.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
					s.Table: {Keys: ask, ConsistentRead: aws.Bool(true)}}})
			})
			if err != nil {
				return nil, classify(err)
			}
			for _, it := range out.Responses[s.Table] {
				found[keyOf(it)] = it
			}
			ask = out.UnprocessedKeys[s.Table].Keys
			if len(ask) > 0 {
				if err := s.Pause(ctx, jitter(min(try, maxTries))); err != nil {
					return nil, classify(err)
				}
			}
		}
	}
	return found, nil
}

// page is one page of a range read.
type page struct {
	items []item
	next  item // empty: the last page
}

// query reads one page of a span, at most limit rows where limit is positive.
func (s *Store) query(ctx context.Context, sp span, from item, limit int) (page, error) {
	in := sp.in
	in.TableName = &s.Table
	if limit > 0 {
		in.Limit = aws.Int32(int32(limit))
	}
	if len(from) > 0 {
		in.ExclusiveStartKey = from
	}
	out, err := patient(ctx, s, func() (*dynamodb.QueryOutput, error) { return s.DB.Query(ctx, &in) })
	if err != nil {
		return page{}, classify(err)
	}
	return page{out.Items, out.LastEvaluatedKey}, nil
}

// span is what one list reads: a partition of the table or of an index, and which of its sort keys.
type span struct {
	in              dynamodb.QueryInput
	partition, sort string // the attributes that it is found and ordered by
	of              string // the partition's value
	holds           func(sort string) bool
}

// below is a consistent read of the rows of one partition whose sort key has a prefix.
func below(pk schema.Partition, prefix string, backwards bool) span {
	sp := beginning(schema.PK, string(pk), schema.SK, prefix)
	sp.in.ConsistentRead, sp.in.ScanIndexForward = aws.Bool(true), aws.Bool(!backwards)
	return sp
}

// index is a read of one index partition whose sort key is at most a value.
func index(name, pkAttr, pk, skAttr, upTo string) span {
	var e expression
	cond := e.name(pkAttr) + " = " + e.value(pk) + " AND " + e.name(skAttr) + " <= " + e.value(upTo)
	return span{in: dynamodb.QueryInput{IndexName: &name, KeyConditionExpression: &cond, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values},
		partition: pkAttr, of: pk, sort: skAttr, holds: func(sk string) bool { return sk <= upTo }}
}

// beginning is a read of one partition whose sort key has a prefix; an empty prefix means all of it.
func beginning(pkAttr, pk, skAttr, prefix string) span {
	var e expression
	cond := e.name(pkAttr) + " = " + e.value(pk)
	if prefix != "" {
		cond += " AND begins_with(" + e.name(skAttr) + ", " + e.value(prefix) + ")"
	}
	return span{in: dynamodb.QueryInput{KeyConditionExpression: &cond, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values},
		partition: pkAttr, of: pk, sort: skAttr, holds: func(sk string) bool { return strings.HasPrefix(sk, prefix) }}
}

func keyOf(it item) schema.Key {
	return schema.Key{PK: schema.Partition(str(it, schema.PK)), SK: schema.Sort(str(it, schema.SK))}
}

// kindOf tells what kind of record a key names, by its sort key's prefix.
func kindOf(k schema.Key) string {
	if p, _, ok := strings.Cut(string(k.SK), "#"); ok {
		return p + "#"
	}
	return string(k.SK)
}
