package memcloud

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestItemSize(t *testing.T) {
	for name, c := range map[string]struct {
		item attributes
		want int
	}{
		"text in UTF-8":   {attributes{"ä": str("é1")}, 2 + 3},
		"number":          {attributes{"n": num("12345")}, 1 + 4},
		"binary":          {attributes{"b": bin("abc")}, 1 + 3},
		"boolean, null":   {attributes{"f": truth(false), "x": null()}, 2 + 2},
		"empty list, map": {attributes{"l": lst(), "m": mp(attributes{})}, 2 + 6},
		"list":            {attributes{"l": lst(str("ab"), truth(true))}, 1 + 3 + 2 + 3},
		"map":             {attributes{"m": mp(attributes{"key": str("v")})}, 1 + 3 + 1 + 4},
		"sets":            {attributes{"s": ss("ab", "c"), "n": ns("1", "2"), "b": bs("xyz")}, 3 + 3 + 4 + 3},
	} {
		if got := itemSize(c.item); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// sized is an item of table T with about so many bytes.
func sized(bytes int, more attributes) attributes {
	out := attributes{"pk": str("a"), "sk": str("b"), "x": str(strings.Repeat("x", bytes-20))}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func TestWriteUnits(t *testing.T) {
	g := attributes{"gpk": str("g"), "gsk": num("1")}
	for name, c := range map[string]struct {
		before, after attributes // before nil: new; after nil: deleted
		table         float64
		indexes       map[string]float64
	}{
		"small":                  {nil, sized(100, nil), 1, nil},
		"just 1 KB":              {nil, sized(1024, nil), 1, nil},
		"over 1 KB":              {nil, sized(1100, nil), 2, nil},
		"smaller than before":    {sized(3000, nil), sized(100, nil), 3, nil},
		"larger than before":     {sized(100, nil), sized(3000, nil), 3, nil},
		"delete":                 {sized(3000, nil), nil, 3, nil},
		"put into indexes":       {nil, sized(3000, g), 3, map[string]float64{"due": 1, "wide": 3, "some": 1}},
		"out of indexes":         {sized(3000, g), sized(100, nil), 3, map[string]float64{"due": 1, "wide": 3, "some": 1}},
		"deleted from indexes":   {sized(3000, g), nil, 3, map[string]float64{"due": 1, "wide": 3, "some": 1}},
		"index key changed":      {sized(100, g), sized(100, attributes{"gpk": str("g"), "gsk": num("2")}), 1, map[string]float64{"due": 2, "wide": 1, "some": 2}},
		"only others changed":    {sized(100, g), sized(200, g), 1, map[string]float64{"wide": 1}},
		"nothing changed":        {sized(100, g), sized(100, g), 1, nil},
		"projected one changed":  {sized(100, g), sized(100, attributes{"gpk": str("g"), "gsk": num("1"), "note": str("n")}), 1, map[string]float64{"wide": 1, "some": 1}},
		"delete what is not":     {nil, nil, 1, nil},
		"half a key is no entry": {nil, sized(100, attributes{"gpk": str("g")}), 1, map[string]float64{"wide": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(got types.ConsumedCapacity, factor float64) {
				t.Helper()
				total := c.table * factor
				for x, u := range c.indexes {
					total += u
					if g := got.GlobalSecondaryIndexes[x]; g.CapacityUnits == nil || *g.CapacityUnits != u {
						t.Errorf("index %s: %v, want %v", x, aws.ToFloat64(g.CapacityUnits), u)
					}
				}
				if *got.Table.CapacityUnits != c.table*factor || *got.CapacityUnits != total || len(got.GlobalSecondaryIndexes) != len(c.indexes) {
					t.Errorf("table %v, total %v, indexes %d; want %v, %v, %d", *got.Table.CapacityUnits, *got.CapacityUnits, len(got.GlobalSecondaryIndexes), c.table*factor, total, len(c.indexes))
				}
			}
			for _, factor := range []float64{1, 2} { // alone, and in a transaction
				d := newTestDynamo(t, newClock())
				if c.before != nil {
					putT(t, d, "main", c.before)
				}
				before := d.Units()
				key := attributes{"pk": str("a"), "sk": str("b")}
				switch {
				case factor == 2 && c.after != nil:
					out, err := d.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("main"), Item: c.after}}}, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
					must(t, err)
					check(out.ConsumedCapacity[0], 2)
				case factor == 2:
					out, err := d.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{TableName: aws.String("main"), Key: key}}}, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
					must(t, err)
					check(out.ConsumedCapacity[0], 2)
				case c.after != nil:
					out, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("main"), Item: c.after, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
					must(t, err)
					check(*out.ConsumedCapacity, 1)
				default:
					out, err := d.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("main"), Key: key, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
					must(t, err)
					check(*out.ConsumedCapacity, 1)
				}
				index := 0.0
				for _, u := range c.indexes {
					index += u
				}
				if got, want := d.Units().Since(before).Total(), (OperationUnits{Calls: 1, TableWrite: c.table * factor, IndexWrite: index}); got != want {
					t.Errorf("counted %+v, want %+v", got, want)
				}
			}
		})
	}
}

func TestReadUnits(t *testing.T) {
	d := newTestDynamo(t, newClock())
	putT(t, d, "main", sized(9000, attributes{"gpk": str("g"), "gsk": num("1")}))
	key := attributes{"pk": str("a"), "sk": str("b")}
	for _, c := range []struct {
		consistent bool
		key        attributes
		want       float64
	}{{true, key, 3}, {false, key, 1.5}, {true, attributes{"pk": str("gone"), "sk": str("x")}, 1}, {false, attributes{"pk": str("gone"), "sk": str("x")}, 0.5}} {
		out, err := d.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("main"), Key: c.key, ConsistentRead: aws.Bool(c.consistent), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
		must(t, err)
		if *out.ConsumedCapacity.CapacityUnits != c.want || out.ConsumedCapacity.Table != nil {
			t.Errorf("%+v: %v", c, *out.ConsumedCapacity.CapacityUnits)
		}
	}
	query := func(index *string, condition, v string, consistent bool) (*dynamodb.QueryOutput, float64, float64) {
		before := d.Units()
		out, err := d.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("main"), IndexName: index, KeyConditionExpression: aws.String(condition), ExpressionAttributeValues: attributes{":v": str(v)}, ConsistentRead: aws.Bool(consistent), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
		must(t, err)
		u := d.Units().Since(before).Total()
		return out, u.TableRead, u.IndexRead
	}
	for _, c := range []struct {
		index        *string
		condition, v string
		consistent   bool
		table, of    float64
	}{{nil, "pk = :v", "a", true, 3, 0}, {nil, "pk = :v", "a", false, 1.5, 0}, {nil, "pk = :v", "none", false, 0.5, 0}, {aws.String("due"), "gpk = :v", "g", false, 0, 0.5}, {aws.String("wide"), "gpk = :v", "g", false, 0, 1.5}} {
		out, table, of := query(c.index, c.condition, c.v, c.consistent)
		if table != c.table || of != c.of || *out.ConsumedCapacity.CapacityUnits != table+of || *out.ConsumedCapacity.Table.CapacityUnits != table {
			t.Errorf("%+v: %v and %v", c, table, of)
		}
	}
}

func TestRefusedConditionsCostUnits(t *testing.T) {
	d := newTestDynamo(t, newClock())
	putT(t, d, "main", sized(3000, attributes{"gpk": str("g")}))
	before := d.Units()
	_, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("main"), Item: sized(100, nil), ConditionExpression: aws.String("attribute_not_exists(pk)")})
	wantCode(t, err, "ConditionalCheckFailedException", "")
	_, err = d.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{TableName: aws.String("main"), Key: attributes{"pk": str("a"), "sk": str("b")}, ConditionExpression: aws.String("attribute_not_exists(pk)")}}}})
	wantCode(t, err, "TransactionCanceledException", "")
	want := Units{"PutItem": {Calls: 1, TableWrite: 3}, "TransactWriteItems": {Calls: 1, TableWrite: 6}}
	if got := d.Units().Since(before); got.String() != want.String() {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A repeated transaction costs the reading of its items.
func TestRepeatedTransactionCostsReads(t *testing.T) {
	d := newTestDynamo(t, newClock())
	must(t, transact(d, "token", addAction("a"), addAction("b")))
	before := d.Units()
	must(t, transact(d, "token", addAction("a"), addAction("b")))
	if got, want := d.Units().Since(before).Total(), (OperationUnits{Calls: 1, TableRead: 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
