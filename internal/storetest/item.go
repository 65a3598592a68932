package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is a row as DynamoDB holds it.
type Item = map[string]types.AttributeValue

// row is an item in Go values; av says which.
type row map[string]any

// av spells a value as the specification of the records has it.
func av(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case int:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(v)}
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []byte:
		return &types.AttributeValueMemberB{Value: v}
	case time.Time:
		return &types.AttributeValueMemberS{Value: schema.Time(v)}
	case []string:
		l := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
		for _, s := range v {
			l.Value = append(l.Value, av(s))
		}
		return l
	case row:
		return &types.AttributeValueMemberM{Value: v.item()}
	}
	panic(fmt.Sprintf("storetest: no attribute for %T", v))
}

func (r row) item() Item {
	it := Item{}
	for k, v := range r {
		it[k] = av(v)
	}
	return it
}

// with is a copy with other values; nil takes an attribute out.
func (r row) with(changes row) row {
	c := maps.Clone(r)
	for k, v := range changes {
		if v == nil {
			delete(c, k)
		} else {
			c[k] = v
		}
	}
	return c
}

// world is every row of a place, by key.
type world map[schema.Key]Item

func (w world) add(k schema.Key, r row) world {
	it := r.item()
	it[schema.PK], it[schema.SK] = av(string(k.PK)), av(string(k.SK))
	w[k] = it
	return w
}

// change is what a transition does to one row: attributes set (nil: removed), and a line added to the timeline. A row
// that was not there comes to be.
type change struct {
	key  schema.Key
	set  row
	line string
}

func (w world) after(changes []change) world {
	out := world{}
	for k, it := range w {
		out[k] = maps.Clone(it)
	}
	for _, c := range changes {
		it := out[c.key]
		if it == nil {
			it = Item{schema.PK: av(string(c.key.PK)), schema.SK: av(string(c.key.SK))}
			out[c.key] = it
		}
		for k, v := range c.set {
			if v == nil {
				delete(it, k)
			} else {
				it[k] = av(v)
			}
		}
		if c.line != "" {
			l := &types.AttributeValueMemberL{}
			if old, ok := it[schema.Timeline].(*types.AttributeValueMemberL); ok {
				l.Value = append(l.Value, old.Value...)
			}
			l.Value = append(l.Value, av(c.line))
			it[schema.Timeline] = l
		}
	}
	return out
}

// write puts a world as it is, past the store and its tap.
func (b *bench) write(t testing.TB, w world) {
	t.Helper()
	for _, it := range w {
		if _, err := b.tap.DynamoDB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: it}); err != nil {
			t.Fatalf("put %s: %v", show(it), err)
		}
	}
}

// overwrite puts one row in the place of what stands; nil takes it away.
func (b *bench) overwrite(t testing.TB, k schema.Key, it Item) {
	t.Helper()
	if it != nil {
		b.write(t, world{k: it})
		return
	}
	_, err := b.tap.DynamoDB.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.Table, Key: Item{schema.PK: av(string(k.PK)), schema.SK: av(string(k.SK))}})
	if err != nil {
		t.Fatalf("delete %s: %v", k, err)
	}
}

// read takes every row of a place, consistently.
func (b *bench) read(t testing.TB, p place) world {
	t.Helper()
	w := world{}
	for _, pk := range b.partitions(p) {
		out, err := b.tap.DynamoDB.Query(t.Context(), &dynamodb.QueryInput{TableName: &b.Table, ConsistentRead: aws.Bool(true),
			KeyConditionExpression: aws.String("#k = :v"), ExpressionAttributeNames: map[string]string{"#k": schema.PK},
			ExpressionAttributeValues: Item{":v": av(string(pk))}})
		if err != nil {
			t.Fatalf("read %s: %v", pk, err)
		}
		for _, it := range out.Items {
			w[schema.Key{PK: pk, SK: schema.Sort(text(it, schema.SK))}] = it
		}
	}
	if b.snapshots {
		return w
	}
	for _, it := range b.outbox(t, p) {
		w[schema.Key{PK: schema.Partition(text(it, schema.PK)), SK: schema.Sort(text(it, schema.SK))}] = it
	}
	return w
}

// outbox takes the notices of a place's run, past the store and its tap. The partition is shared with other places.
func (b *bench) outbox(t testing.TB, p place) []Item {
	t.Helper()
	k := schema.NoticeKey(p.run() + "#")
	out, err := b.tap.DynamoDB.Query(context.WithoutCancel(t.Context()), &dynamodb.QueryInput{TableName: &b.Table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("#k = :v AND begins_with(#s, :s)"), ExpressionAttributeNames: map[string]string{"#k": schema.PK, "#s": schema.SK},
		ExpressionAttributeValues: Item{":v": av(string(k.PK)), ":s": av(string(k.SK))}})
	if err != nil {
		t.Fatalf("read %s: %v", k, err)
	}
	return out.Items
}

// row reads one row, past the store and its tap.
func (b *bench) row(t testing.TB, k schema.Key) Item {
	t.Helper()
	out, err := b.tap.DynamoDB.GetItem(context.WithoutCancel(t.Context()), &dynamodb.GetItemInput{TableName: &b.Table, ConsistentRead: aws.Bool(true),
		Key: Item{schema.PK: av(string(k.PK)), schema.SK: av(string(k.SK))}})
	if err != nil {
		t.Fatalf("read %s: %v", k, err)
	}
	return out.Item
}

func text(it Item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// diff says how a world differs from the one that is right; "" where it does not.
func diff(got, want world) string {
	var lines []string
	keys := map[schema.Key]bool{}
	for k := range got {
		keys[k] = true
	}
	for k := range want {
		keys[k] = true
	}
	for k := range keys {
		switch g, w := got[k], want[k]; {
		case g == nil:
			lines = append(lines, fmt.Sprintf("%s is missing; want %s", k, show(w)))
		case w == nil:
			lines = append(lines, fmt.Sprintf("%s should not be there: %s", k, show(g)))
		default:
			lines = append(lines, diffItem(k, g, w)...)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func diffItem(k schema.Key, got, want Item) []string {
	var lines []string
	names := maps.Clone(got)
	maps.Copy(names, want)
	for n := range names {
		if !reflect.DeepEqual(got[n], want[n]) {
			lines = append(lines, fmt.Sprintf("%s: %s is %s; want %s", k, n, showValue(got[n]), showValue(want[n])))
		}
	}
	return lines
}

func show(it Item) string {
	parts := make([]string, 0, len(it))
	for n, v := range it {
		parts = append(parts, n+"="+showValue(v))
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

func showValue(v types.AttributeValue) string {
	switch v := v.(type) {
	case nil:
		return "absent"
	case *types.AttributeValueMemberS:
		return strconv.Quote(v.Value)
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberM:
		return show(v.Value)
	case *types.AttributeValueMemberL:
		parts := make([]string, len(v.Value))
		for i, e := range v.Value {
			parts[i] = showValue(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	return string(b)
}
