package simulate

import (
	"strings"

	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// touched is what a call may read and write. Two calls of different workers that do not touch each other's come to the
// same in either order. To say too much of a call is safe, to say too little is not.
type touched struct {
	all           bool // everything
	reads, writes []place
}

// place is an item, an object, or something larger: empty parts stand for all.
type place struct{ of, partition, item string }

func (p place) meets(q place) bool {
	return p.of == q.of && (p.partition == "" || q.partition == "" || p.partition == q.partition && (p.item == "" || q.item == "" || p.item == q.item))
}

// apart reports that two moves come to the same in either order.
func apart(x, y choice) bool {
	return x.side != y.side && !x.touches.all && !y.touches.all && !meet(x.touches.writes, y.touches.writes) &&
		!meet(x.touches.writes, y.touches.reads) && !meet(x.touches.reads, y.touches.writes)
}

func meet(ps, qs []place) bool {
	for _, p := range ps {
		for _, q := range qs {
			if p.meets(q) {
				return true
			}
		}
	}
	return false
}

// touches says what a call touches. Sources are never written here, so that reading them touches nothing.
func touches(c *Call) (t touched) {
	reads := func(ps ...place) { t.reads = append(t.reads, ps...) }
	writes := func(ps ...place) { t.writes = append(t.writes, ps...) }
	switch in := c.Input.(type) {
	case *dynamodb.GetItemInput:
		reads(itemPlace(*in.TableName, in.Key))
	case *dynamodb.BatchGetItemInput:
		for table, asked := range in.RequestItems {
			for _, k := range asked.Keys {
				reads(itemPlace(table, k))
			}
		}
	case *dynamodb.QueryInput:
		reads(queryPlace(in))
	case *dynamodb.PutItemInput:
		writes(itemPlace(*in.TableName, in.Item))
	case *dynamodb.UpdateItemInput:
		writes(itemPlace(*in.TableName, in.Key))
	case *dynamodb.DeleteItemInput:
		writes(itemPlace(*in.TableName, in.Key))
	case *dynamodb.TransactWriteItemsInput:
		for _, i := range in.TransactItems {
			written, read := actionPlaces(i)
			t.writes, t.reads = append(t.writes, written...), append(t.reads, read...)
		}
	case *s3.GetObjectInput:
		reads(place{"S3", *in.Bucket, *in.Key})
	case *s3.HeadObjectInput:
		reads(place{"S3", *in.Bucket, *in.Key})
	case *s3.ListObjectsV2Input:
		reads(place{"S3", *in.Bucket, ""})
	case *s3.PutObjectInput:
		writes(place{"S3", *in.Bucket, *in.Key})
	default:
		switch of := service(c.Name); {
		case of == "Source":
		case c.Writes():
			writes(place{of: of})
		default:
			reads(place{of: of})
		}
	}
	return t
}

func itemPlace(table string, it Row) place {
	return place{table, Text(it, schema.PK), Text(it, schema.SK)}
}

// queryPlace is the partition that a query of the table itself is about; an index holds rows of every partition.
func queryPlace(in *dynamodb.QueryInput) place {
	if in.IndexName == nil {
		condition := aws.ToString(in.KeyConditionExpression)
		for name, v := range in.ExpressionAttributeValues {
			key, ok := v.(*types.AttributeValueMemberS)
			if ok && pkIs(condition, in.ExpressionAttributeNames, name) {
				return place{*in.TableName, key.Value, ""}
			}
		}
	}
	return place{of: *in.TableName}
}

// pkIs reports that a key condition begins with the partition key being a value.
func pkIs(condition string, names map[string]string, value string) bool {
	left, right, ok := strings.Cut(condition, " = ")
	if name, placeholder := names[left]; placeholder {
		left = name
	}
	first, _, _ := strings.Cut(right, " ")
	return ok && left == schema.PK && first == value
}

func actionPlaces(i types.TransactWriteItem) (writes, reads []place) {
	switch {
	case i.Put != nil:
		writes = append(writes, itemPlace(*i.Put.TableName, i.Put.Item))
	case i.Update != nil:
		writes = append(writes, itemPlace(*i.Update.TableName, i.Update.Key))
	case i.Delete != nil:
		writes = append(writes, itemPlace(*i.Delete.TableName, i.Delete.Key))
	case i.ConditionCheck != nil:
		reads = append(reads, itemPlace(*i.ConditionCheck.TableName, i.ConditionCheck.Key))
	}
	return writes, reads
}
