package memcloud

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"
)

// keysOf gives "pk/sk" of each item.
func keysOf(items []map[string]value) []string {
	out := []string{}
	for _, item := range items {
		k := item["pk"].(*types.AttributeValueMemberS).Value
		if sk, ok := item["sk"].(*types.AttributeValueMemberS); ok {
			k += "/" + sk.Value
		}
		out = append(out, k)
	}
	return out
}

func seeded(t testing.TB) *Dynamo {
	d := newTestDynamo(t, newClock())
	for i, sk := range []string{"RUN#1", "DEF#1", "RUN#3", "RUN#2", "STATE", "RUN#"} {
		putT(t, d, "main", attributes{"pk": str("A"), "sk": str(sk), "i": num(fmt.Sprint(i)), "m": mp(attributes{"x": num("1"), "y": num("2")})})
	}
	putT(t, d, "main", attributes{"pk": str("B"), "sk": str("RUN#1"), "i": num("9")})
	return d
}

func TestQueryRanges(t *testing.T) {
	d := seeded(t)
	for _, c := range []struct {
		text string
		want string
	}{
		{"pk = :a", "DEF#1 RUN# RUN#1 RUN#2 RUN#3 STATE"},
		{"pk = :a AND sk = :r2", "RUN#2"},
		{":a = pk AND :r2 = sk", "RUN#2"},
		{"sk < :r2 AND pk = :a", "DEF#1 RUN# RUN#1"},
		{"pk = :a AND sk <= :r2", "DEF#1 RUN# RUN#1 RUN#2"},
		{"pk = :a AND sk > :r2", "RUN#3 STATE"},
		{"pk = :a AND sk >= :r2", "RUN#2 RUN#3 STATE"},
		{"pk = :a AND sk BETWEEN :r AND :r2", "RUN# RUN#1 RUN#2"},
		{"(pk = :a) AND (begins_with(sk, :r))", "RUN# RUN#1 RUN#2 RUN#3"},
		{"pk = :none", ""},
	} {
		for _, forward := range []bool{true, false} {
			values := attributes{}
			for k, v := range map[string]string{":a": "A", ":r": "RUN#", ":r2": "RUN#2", ":none": "Z"} {
				if slices.Contains(strings.FieldsFunc(c.text, func(r rune) bool { return strings.ContainsRune(" (),", r) }), k) {
					values[k] = str(v)
				}
			}
			want := strings.Fields(c.want)
			if !forward {
				slices.Reverse(want)
			}
			// Whole, and page by page with each size.
			for limit := range 8 {
				in := &dynamodb.QueryInput{TableName: aws.String("main"), KeyConditionExpression: aws.String(c.text), ExpressionAttributeValues: values, ScanIndexForward: aws.Bool(forward)}
				if limit > 0 {
					in.Limit = aws.Int32(int32(limit))
				}
				var got []string
				for {
					out, err := d.Query(ctx, in)
					must(t, err)
					if limit > 0 && len(out.Items) > limit || int(out.Count) != len(out.Items) {
						t.Fatalf("a page of %d", len(out.Items))
					}
					for _, k := range keysOf(out.Items) {
						got = append(got, strings.TrimPrefix(k, "A/"))
					}
					if out.LastEvaluatedKey == nil {
						break
					}
					in.ExclusiveStartKey = out.LastEvaluatedKey
				}
				if strings.Join(got, " ") != strings.Join(want, " ") {
					t.Errorf("%s (limit %d): got %v, want %v", c.text, limit, got, want)
				}
			}
		}
	}
}

func TestQueryFilterProjectionCount(t *testing.T) {
	d := seeded(t)
	in := &dynamodb.QueryInput{TableName: aws.String("main"), KeyConditionExpression: aws.String("pk = :a"), FilterExpression: aws.String("i > :one"), ProjectionExpression: aws.String("sk, m.x, #i"), ExpressionAttributeNames: map[string]string{"#i": "i"}, ExpressionAttributeValues: attributes{":a": str("A"), ":one": num("1")}, Limit: aws.Int32(3)}
	out, err := d.Query(ctx, in)
	must(t, err)
	if out.ScannedCount != 3 || out.Count != 1 || len(out.LastEvaluatedKey) != 2 {
		t.Fatalf("scanned %d, count %d, last %v", out.ScannedCount, out.Count, out.LastEvaluatedKey)
	}
	wantItem(t, out.Items[0], attributes{"sk": str("RUN#"), "m": mp(attributes{"x": num("1")}), "i": num("5")})
	in.ProjectionExpression, in.ExpressionAttributeNames, in.Limit, in.Select = nil, nil, nil, types.SelectCount
	out, err = d.Query(ctx, in)
	must(t, err)
	if out.Count != 4 || out.ScannedCount != 6 || out.Items != nil {
		t.Errorf("count %d of %d, items %v", out.Count, out.ScannedCount, out.Items)
	}
}

func TestPageOfOneMegabyte(t *testing.T) {
	d := newTestDynamo(t, newClock())
	for i := range 5 {
		putT(t, d, "main", attributes{"pk": str("A"), "sk": str(fmt.Sprint(i)), "x": str(strings.Repeat("x", 300*1024))})
	}
	in := &dynamodb.QueryInput{TableName: aws.String("main"), KeyConditionExpression: aws.String("pk = :a"), ExpressionAttributeValues: attributes{":a": str("A")}, ProjectionExpression: aws.String("sk")}
	out, err := d.Query(ctx, in)
	must(t, err)
	if len(out.Items) != 3 || out.LastEvaluatedKey == nil {
		t.Fatalf("%d items, last %v", len(out.Items), out.LastEvaluatedKey)
	}
	in.ExclusiveStartKey = out.LastEvaluatedKey
	out, err = d.Query(ctx, in)
	must(t, err)
	if len(out.Items) != 2 || out.LastEvaluatedKey != nil {
		t.Fatalf("%d items, last %v", len(out.Items), out.LastEvaluatedKey)
	}
}

func TestRefusedQueries(t *testing.T) {
	d := seeded(t)
	base := func() *dynamodb.QueryInput {
		return &dynamodb.QueryInput{TableName: aws.String("main"), KeyConditionExpression: aws.String("pk = :a"), ExpressionAttributeValues: attributes{":a": str("A")}}
	}
	key := func(text string, more attributes) func(*dynamodb.QueryInput) {
		return func(in *dynamodb.QueryInput) {
			in.KeyConditionExpression = aws.String(text)
			for k, v := range more {
				in.ExpressionAttributeValues[k] = v
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*dynamodb.QueryInput)
		words  string
	}{
		"no condition":     {func(in *dynamodb.QueryInput) { in.KeyConditionExpression = nil }, "must be specified"},
		"no partition":     {key("sk = :a", nil), "Query condition missed key schema element: pk"},
		"range of pk":      {key("pk > :a", nil), "Query key condition not supported"},
		"other attribute":  {key("pk = :a AND i = :b", attributes{":b": num("1")}), "i is no key attribute"},
		"or":               {key("pk = :a OR sk = :a", nil), "Invalid operator used in KeyConditionExpression"},
		"not equal":        {key("pk = :a AND sk <> :b", attributes{":b": str("x")}), "Invalid operator used in KeyConditionExpression"},
		"contains":         {key("pk = :a AND contains(sk, :b)", attributes{":b": str("x")}), "Invalid operator used in KeyConditionExpression"},
		"twice":            {key("pk = :a AND sk > :b AND sk < :c", attributes{":b": str("x"), ":c": str("y")}), "must only contain one condition per key"},
		"nested":           {key("pk.x = :a", nil), "nested attribute paths"},
		"type":             {key("pk = :b", attributes{":b": num("1")}), "does not match schema type"},
		"empty":            {key("pk = :b", attributes{":b": str("")}), "empty string value"},
		"filter on key":    {func(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("sk = :a") }, "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk"},
		"limit 0":          {func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(0) }, "at 'limit'"},
		"no such index":    {func(in *dynamodb.QueryInput) { in.IndexName = aws.String("nope") }, "does not have the specified index: nope"},
		"start elsewhere":  {func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = attributes{"pk": str("B"), "sk": str("x")} }, "outside query boundaries"},
		"start incomplete": {func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = attributes{"pk": str("A")} }, "starting key is invalid"},
		"start mistyped":   {func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = attributes{"pk": str("A"), "sk": num("1")} }, "starting key is invalid"},
		"specific nothing": {func(in *dynamodb.QueryInput) { in.Select = types.SelectSpecificAttributes }, "Must specify"},
		"count and some":   {func(in *dynamodb.QueryInput) { in.Select, in.ProjectionExpression = types.SelectCount, aws.String("i") }, "Cannot specify the ProjectionExpression"},
		"odd select":       {func(in *dynamodb.QueryInput) { in.Select = "SOME" }, "at 'select'"},
		"all projected":    {func(in *dynamodb.QueryInput) { in.Select = types.SelectAllProjectedAttributes }, "IndexName"},
		"odd capacity":     {func(in *dynamodb.QueryInput) { in.ReturnConsumedCapacity = "SOME" }, "returnConsumedCapacity"},
		"overlap":          {func(in *dynamodb.QueryInput) { in.ProjectionExpression = aws.String("m, m.x") }, "Two document paths overlap"},
		"legacy":           {func(in *dynamodb.QueryInput) { in.KeyConditions = map[string]types.Condition{} }, "legacy"},
		"consistent index": {func(in *dynamodb.QueryInput) {
			in.IndexName, in.KeyConditionExpression, in.ConsistentRead = aws.String("due"), aws.String("gpk = :a"), aws.Bool(true)
		}, "Consistent reads are not supported on global secondary indexes"},
		"not projected": {func(in *dynamodb.QueryInput) {
			in.IndexName, in.KeyConditionExpression, in.ProjectionExpression = aws.String("due"), aws.String("gpk = :a"), aws.String("i")
		}, "Global secondary index due does not project [i]"},
		"filter not projected": {func(in *dynamodb.QueryInput) {
			in.IndexName, in.KeyConditionExpression, in.FilterExpression = aws.String("due"), aws.String("gpk = :a"), aws.String("i = :a")
		}, "Global secondary index due does not project [i]"},
		"all of keys only": {func(in *dynamodb.QueryInput) {
			in.IndexName, in.KeyConditionExpression, in.Select = aws.String("due"), aws.String("gpk = :a"), types.SelectAllAttributes
		}, "projection type is not ALL"},
	} {
		t.Run(name, func(t *testing.T) {
			in := base()
			c.change(in)
			_, err := d.Query(ctx, in)
			wantCode(t, err, "ValidationException", c.words)
		})
	}
}

func TestScan(t *testing.T) {
	d := newTestDynamo(t, newClock())
	want := map[string]bool{}
	for i := range 40 {
		pk, sk := fmt.Sprint("p", i%9), fmt.Sprint("s", i)
		putT(t, d, "main", attributes{"pk": str(pk), "sk": str(sk), "i": num(fmt.Sprint(i)), "gsk": num(fmt.Sprint(i % 3))})
		want[pk+"/"+sk] = true
	}
	scan := func(in *dynamodb.ScanInput) []string {
		in.TableName = aws.String("main")
		var got []string
		for {
			out, err := d.Scan(ctx, in)
			must(t, err)
			got = append(got, keysOf(out.Items)...)
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				return got
			}
		}
	}
	complete := func(got []string) {
		t.Helper()
		seen := map[string]bool{}
		for _, k := range got {
			if seen[k] || !want[k] {
				t.Errorf("%s twice or wrong", k)
			}
			seen[k] = true
		}
		if len(seen) != len(want) {
			t.Errorf("%d of %d", len(seen), len(want))
		}
	}
	whole := scan(&dynamodb.ScanInput{})
	complete(whole)
	complete(scan(&dynamodb.ScanInput{Limit: aws.Int32(7)}))
	complete(scan(&dynamodb.ScanInput{Limit: aws.Int32(1), IndexName: aws.String("some")}))
	if sort.StringsAreSorted(whole) {
		t.Error("a scan looks ordered: on AWS it is not")
	}
	var parts []string
	for i := range 3 {
		parts = append(parts, scan(&dynamodb.ScanInput{Segment: aws.Int32(int32(i)), TotalSegments: aws.Int32(3), Limit: aws.Int32(2)})...)
	}
	complete(parts)
	out, err := d.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("main"), FilterExpression: aws.String("i < :ten AND begins_with(pk, :p)"), ExpressionAttributeValues: attributes{":ten": num("10"), ":p": str("p")}, Select: types.SelectCount})
	must(t, err)
	if out.Count != 10 || out.ScannedCount != 40 {
		t.Errorf("%d of %d", out.Count, out.ScannedCount)
	}
	for _, in := range []*dynamodb.ScanInput{{Segment: aws.Int32(1)}, {Segment: aws.Int32(3), TotalSegments: aws.Int32(3)}, {IndexName: aws.String("due"), ConsistentRead: aws.Bool(true)}, {Limit: aws.Int32(-1)}, {ExpressionAttributeNames: map[string]string{"#a": "a"}}} {
		in.TableName = aws.String("main")
		_, err := d.Scan(ctx, in)
		wantCode(t, err, "ValidationException", "")
	}
}

func TestIndexIsSparseAndProjects(t *testing.T) {
	d := newTestDynamo(t, newClock())
	query := func(index, condition string, v value) []map[string]value {
		out, err := d.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("main"), IndexName: aws.String(index), KeyConditionExpression: aws.String(condition), ExpressionAttributeValues: attributes{":v": v}})
		must(t, err)
		return out.Items
	}
	item := attributes{"pk": str("A"), "sk": str("1"), "gpk": str("due#0"), "note": str("x"), "other": str("y")}
	putT(t, d, "main", item)
	if len(query("due", "gpk = :v", str("due#0"))) != 0 {
		t.Error("an item without gsk stands in the index due")
	}
	wantItem(t, query("wide", "gpk = :v", str("due#0"))[0], item)
	item["gsk"] = num("5.0")
	putT(t, d, "main", item)
	wantItem(t, query("due", "gpk = :v", str("due#0"))[0], attributes{"pk": str("A"), "sk": str("1"), "gpk": str("due#0"), "gsk": num("5")})
	wantItem(t, query("some", "gsk = :v", num("5"))[0], attributes{"pk": str("A"), "sk": str("1"), "gsk": num("5"), "note": str("x")})
	// Numbers order as numbers, and equal index keys are told apart.
	for i, n := range []string{"10", "9", "-1", "9"} {
		putT(t, d, "main", attributes{"pk": str("B"), "sk": str(fmt.Sprint(i)), "gpk": str("due#0"), "gsk": num(n)})
	}
	if got := fmt.Sprint(keysOf(query("due", "gpk = :v", str("due#0")))); got != "[B/2 A/1 B/1 B/3 B/0]" {
		t.Error(got)
	}
	_, err := d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("main"), Key: attributes{"pk": str("A"), "sk": str("1")}, UpdateExpression: aws.String("REMOVE gpk")})
	must(t, err)
	if got := fmt.Sprint(keysOf(query("due", "gpk = :v", str("due#0")))); got != "[B/2 B/1 B/3 B/0]" {
		t.Error(got)
	}
}

// Whatever is written and whatever the lag: an index answers as the table was
// that many writes ago.
func TestStaleIndex(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := newTestDynamo(t, newClock())
		history := []string{""}
		snapshot := func() string {
			var due []string
			for _, item := range d.Items("main") {
				if g, ok := item["gpk"].(*types.AttributeValueMemberS); ok && g.Value == "g" {
					due = append(due, string(encodeItem(nil, item)))
				}
			}
			sort.Strings(due)
			return strings.Join(due, "\n")
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			key := attributes{"pk": str(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "pk")), "sk": str("x")}
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				d.StaleIndex(rapid.IntRange(0, 20).Draw(r, "lag"))
				continue
			case 1:
				had := len(d.Items("main"))
				_, err := d.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("main"), Key: key})
				must(t, err)
				if len(d.Items("main")) == had {
					continue // nothing was written
				}
			default:
				key["gpk"] = str(rapid.SampledFrom([]string{"g", "other"}).Draw(r, "gpk"))
				key["n"] = num(fmt.Sprint(rapid.IntRange(0, 3).Draw(r, "n")))
				putT(t, d, "main", key)
			}
			history = append(history, snapshot())
			lag := d.lag
			out, err := d.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("main"), IndexName: aws.String("wide"), KeyConditionExpression: aws.String("gpk = :g"), ExpressionAttributeValues: attributes{":g": str("g")}})
			must(t, err)
			var got []string
			for _, item := range out.Items {
				got = append(got, string(encodeItem(nil, item)))
			}
			sort.Strings(got)
			if want := history[max(0, len(history)-1-lag)]; strings.Join(got, "\n") != want {
				r.Fatalf("lag %d: got %q, want %q", lag, got, want)
			}
		}
	})
}

// The history that lag needs stays bounded, and a long lag meets its bound.
func TestStaleIndexIsBounded(t *testing.T) {
	d := newTestDynamo(t, newClock())
	for i := range 3 * MaxStale {
		putT(t, d, "main", attributes{"pk": str(fmt.Sprint(i)), "sk": str("x"), "gpk": str("g")})
	}
	d.StaleIndex(1 << 30)
	out, err := d.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("main"), IndexName: aws.String("wide"), KeyConditionExpression: aws.String("gpk = :g"), ExpressionAttributeValues: attributes{":g": str("g")}})
	must(t, err)
	if out.Count != 2*MaxStale || len(d.tables["main"].log) > 2*MaxStale {
		t.Errorf("%d entries, log of %d", out.Count, len(d.tables["main"].log))
	}
	d.StaleIndex(0)
	if d.tables["main"].index("wide").rows.len() != 3*MaxStale {
		t.Error("the index did not catch up")
	}
}

func TestCreateAndDescribe(t *testing.T) {
	d := newTestDynamo(t, newClock())
	out, err := d.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("main")})
	must(t, err)
	if out.Table.TableStatus != types.TableStatusActive || len(out.Table.GlobalSecondaryIndexes) != 3 || len(out.Table.KeySchema) != 2 {
		t.Errorf("%+v", out.Table)
	}
	attr := func(names ...string) (out []types.AttributeDefinition) {
		for _, n := range names {
			out = append(out, types.AttributeDefinition{AttributeName: aws.String(n), AttributeType: "S"})
		}
		return out
	}
	keys := []types.KeySchemaElement{{AttributeName: aws.String("a"), KeyType: "HASH"}}
	index := func(p *types.Projection) []types.GlobalSecondaryIndex {
		return []types.GlobalSecondaryIndex{{IndexName: aws.String("idx"), KeySchema: keys, Projection: p}}
	}
	for name, c := range map[string]struct {
		in   dynamodb.CreateTableInput
		code string
	}{
		"again":           {dynamodb.CreateTableInput{TableName: aws.String("main"), AttributeDefinitions: attr("a"), KeySchema: keys}, "ResourceInUseException"},
		"no name":         {dynamodb.CreateTableInput{}, "ValidationException"},
		"undefined":       {dynamodb.CreateTableInput{TableName: aws.String("new"), KeySchema: keys}, "ValidationException"},
		"defined for fun": {dynamodb.CreateTableInput{TableName: aws.String("new"), AttributeDefinitions: attr("a", "b"), KeySchema: keys}, "ValidationException"},
		"no hash":         {dynamodb.CreateTableInput{TableName: aws.String("new"), AttributeDefinitions: attr("a")}, "ValidationException"},
		"no projection":   {dynamodb.CreateTableInput{TableName: aws.String("new"), AttributeDefinitions: attr("a"), KeySchema: keys, GlobalSecondaryIndexes: index(nil)}, "ValidationException"},
		"odd projection":  {dynamodb.CreateTableInput{TableName: aws.String("new"), AttributeDefinitions: attr("a"), KeySchema: keys, GlobalSecondaryIndexes: index(&types.Projection{})}, "ValidationException"},
		"local index":     {dynamodb.CreateTableInput{TableName: aws.String("new"), LocalSecondaryIndexes: []types.LocalSecondaryIndex{{}}}, "ValidationException"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.CreateTable(ctx, &c.in)
			wantCode(t, err, c.code, "")
		})
	}
}
