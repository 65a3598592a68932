package simulate

import (
	"strings"

	"almanac/internal/memcloud"
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
	w := c.Worker.w
	reads := func(ps ...place) { t.reads = append(t.reads, ps...) }
	writes := func(ps ...place) { t.writes = append(t.writes, ps...) }
	if strings.HasPrefix(c.Worker.Name, steps) {
		writes(place{of: memcloud.ServiceStates}) // should it be its last call, its execution goes on
	}
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
		writes(w.written(*in.TableName, in.Item, in.Item)...)
	case *dynamodb.UpdateItemInput:
		writes(w.written(*in.TableName, in.Key, in.ExpressionAttributeValues)...)
	case *dynamodb.DeleteItemInput:
		writes(w.written(*in.TableName, in.Key, nil)...)
	case *dynamodb.TransactWriteItemsInput:
		for _, i := range in.TransactItems {
			switch {
			case i.Put != nil:
				writes(w.written(*i.Put.TableName, i.Put.Item, i.Put.Item)...)
			case i.Update != nil:
				writes(w.written(*i.Update.TableName, i.Update.Key, i.Update.ExpressionAttributeValues)...)
			case i.Delete != nil:
				writes(w.written(*i.Delete.TableName, i.Delete.Key, nil)...)
			case i.ConditionCheck != nil:
				reads(itemPlace(*i.ConditionCheck.TableName, i.ConditionCheck.Key))
			}
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

// steps begins the name of a worker that an execution waits for.
const steps = "snapshot-step "

// written are the places of a row's write: the row, and those partitions of indexes in which it stands, or may stand
// after it. An index's key is an attribute of the row as it is, or a value of the request; which attribute is not asked.
func (w *World) written(table string, key, values Row) []place {
	at := itemPlace(table, key)
	out := []place{at}
	index := func(it Row) {
		for _, v := range it {
			if text, ok := v.(*types.AttributeValueMemberS); ok {
				out = append(out, place{of: table + " index", partition: text.Value})
			}
		}
	}
	index(values)
	w.DB.Any(table, func(it Row) bool {
		found := itemPlace(table, it) == at
		if found {
			index(it)
		}
		return found
	})
	return out
}

func itemPlace(table string, it Row) place {
	return place{table, Text(it, schema.PK), Text(it, schema.SK)}
}

// queryPlace is the partition that a query is about, of the table or of an index.
func queryPlace(in *dynamodb.QueryInput) place {
	of := *in.TableName
	if in.IndexName != nil {
		of += " index"
	}
	_, right, _ := strings.Cut(aws.ToString(in.KeyConditionExpression), " = ")
	name, _, _ := strings.Cut(right, " ")
	key, ok := in.ExpressionAttributeValues[name].(*types.AttributeValueMemberS)
	if !ok {
		return place{of: of}
	}
	return place{of, key.Value, ""}
}
