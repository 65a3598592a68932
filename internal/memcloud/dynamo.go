package memcloud

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Dynamo is an in-memory DynamoDB with the methods of the SDK's client. It is
// safe for concurrent use; requests are served one at a time, so that each is
// atomic and no transaction conflict arises by itself.
type Dynamo struct {
	Hooks

	// Unprocessed, if set, says which parts of a BatchWriteItem or
	// BatchGetItem come back unprocessed: the n-th request of the batch,
	// counted from 0 over the tables in the order of their names. It must not
	// call the service.
	Unprocessed func(call Call, n int) bool

	// Changed, if set, hears of each item that is written: as it was and as it
	// is, nil where there is none. The items are to be looked at, and neither
	// kept past the call nor changed; it must not call the service.
	Changed func(table string, old, new map[string]types.AttributeValue)

	clock func() time.Time

	mu     sync.Mutex
	tables map[string]*table
	tokens tokens
	units  Units
	lag    int
}

// NewDynamo makes an empty database. The clock is read only for creation
// times and for how long a ClientRequestToken is remembered.
func NewDynamo(clock func() time.Time) *Dynamo {
	return &Dynamo{clock: clock, tables: map[string]*table{}, tokens: tokens{seen: map[string]sealed{}}, units: Units{}}
}

// StaleIndex makes every index answer as it was n writes to its table ago; 0
// brings it up to date. n is at most MaxStale. It may be called from a Before
// hook, so that each read meets a lag of its own.
func (d *Dynamo) StaleIndex(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lag = min(max(n, 0), MaxStale)
	for _, t := range d.tables {
		t.lag = d.lag
		t.settle()
	}
}

// tell hands one change to who listens; d.mu is held.
func (d *Dynamo) tell(table string, old, new *record) {
	if d.Changed == nil {
		return
	}
	d.Changed(table, old.attributes(), new.attributes())
}

// Items gives a copy of everything in a table, in scan order, for a test that
// checks the whole world. It costs no units and meets no hook; an unknown
// table has no items.
func (d *Dynamo) Items(table string) (out []map[string]types.AttributeValue) {
	d.Any(table, func(it map[string]types.AttributeValue) bool {
		out = append(out, copyItem(it))
		return false
	})
	return out
}

// Any reports whether some item of a table is as asked. It copies nothing, for a
// test that asks often: the items are to be looked at, and neither kept nor
// changed, and asking must not call the table.
func (d *Dynamo) Any(table string, is func(map[string]types.AttributeValue) bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[table]
	if t == nil {
		return false
	}
	for _, p := range t.rows.inOrder() {
		for _, r := range p.rows {
			if is(r.item) {
				return true
			}
		}
	}
	return false
}

// table finds the table of a request; d.mu is held.
func (d *Dynamo) table(name *string) (*table, error) {
	if aws.ToString(name) == "" {
		return nil, invalid("Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	}
	t := d.tables[*name]
	if t == nil {
		return nil, &types.ResourceNotFoundException{Message: aws.String("Requested resource not found: Table: " + *name + " not found")}
	}
	return t, nil
}

// CreateTable makes a table, at once ACTIVE. Billing, encryption, streams and
// recovery are accepted and have no effect; local secondary indexes are
// refused.
func (d *Dynamo) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "CreateTable", in, func(in *dynamodb.CreateTableInput) (*dynamodb.CreateTableOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		t, err := newTable(in)
		if err != nil {
			return nil, err
		}
		if d.tables[t.name] != nil {
			return nil, &types.ResourceInUseException{Message: aws.String("Table already exists: " + t.name)}
		}
		t.created, t.lag, t.changed = d.clock(), d.lag, func(old, new *record) { d.tell(t.name, old, new) }
		d.tables[t.name] = t
		return &dynamodb.CreateTableOutput{TableDescription: t.describe()}, nil
	})
}

// DescribeTable describes a table.
func (d *Dynamo) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return invoke(ctx, &d.Hooks, ServiceDynamoDB, "DescribeTable", in, func(in *dynamodb.DescribeTableInput) (*dynamodb.DescribeTableOutput, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		t, err := d.table(in.TableName)
		if err != nil {
			return nil, err
		}
		return &dynamodb.DescribeTableOutput{Table: t.describe()}, nil
	})
}

func newTable(in *dynamodb.CreateTableInput) (*table, error) {
	if err := checkName(aws.ToString(in.TableName)); err != nil {
		return nil, err
	}
	if len(in.LocalSecondaryIndexes) > 0 {
		return nil, invalid("local secondary indexes are not served by this stand-in; use a global one")
	}
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range in.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	key, err := schemaOf(in.KeySchema, kinds)
	if err != nil {
		return nil, err
	}
	t := &table{name: *in.TableName, key: key, rows: newOrdered(), defined: in.AttributeDefinitions}
	used := map[string]bool{}
	for _, name := range key.names() {
		used[name] = true
	}
	for _, g := range in.GlobalSecondaryIndexes {
		x, err := newIndex(t, g, kinds)
		if err != nil {
			return nil, err
		}
		for _, name := range x.key.names() {
			used[name] = true
		}
		t.indexes = append(t.indexes, x)
	}
	if len(used) != len(kinds) {
		return nil, invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return t, nil
}

// checkName checks the name of a table or an index.
func checkName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return r > 0x7f || !wordByte(byte(r)) && r != '-' && r != '.'
	})
	if bad || len(name) < 3 || len(name) > 255 {
		return invalid("Invalid table/index name %q. Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'", name)
	}
	return nil
}

func schemaOf(elements []types.KeySchemaElement, kinds map[string]types.ScalarAttributeType) (keySchema, error) {
	var k keySchema
	for i, e := range elements {
		name := aws.ToString(e.AttributeName)
		kind, ok := kinds[name]
		if !ok {
			return k, invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s]", name)
		}
		switch {
		case i == 0 && e.KeyType == types.KeyTypeHash:
			k.hash = keyAttribute{name, kind}
		case i == 1 && e.KeyType == types.KeyTypeRange && name != k.hash.name:
			k.sort = keyAttribute{name, kind}
		default:
			return k, invalid("Invalid KeySchema: element %d (%s, %s): first one HASH key, then at most one other RANGE key", i, name, e.KeyType)
		}
	}
	if k.hash.name == "" {
		return k, invalid("Invalid KeySchema: the HASH key is missing")
	}
	return k, nil
}

func newIndex(t *table, g types.GlobalSecondaryIndex, kinds map[string]types.ScalarAttributeType) (*index, error) {
	name := aws.ToString(g.IndexName)
	if err := checkName(name); err != nil {
		return nil, err
	}
	if t.index(name) != nil {
		return nil, invalid("One or more parameter values were invalid: Duplicate index name: %s", name)
	}
	key, err := schemaOf(g.KeySchema, kinds)
	if err != nil {
		return nil, err
	}
	if g.Projection == nil {
		return nil, invalid("One or more parameter values were invalid: Unknown ProjectionType: null, IndexName: %s", name)
	}
	x := &index{name: name, key: key, projection: *g.Projection, projected: map[string]bool{}, rows: newOrdered()}
	for _, n := range append(key.names(), t.key.names()...) {
		x.projected[n] = true
	}
	switch g.Projection.ProjectionType {
	case types.ProjectionTypeAll:
		x.all = true
	case types.ProjectionTypeKeysOnly:
	case types.ProjectionTypeInclude:
		for _, n := range g.Projection.NonKeyAttributes {
			x.projected[n] = true
		}
	default:
		return nil, invalid("One or more parameter values were invalid: Unknown ProjectionType: %q, IndexName: %s", g.Projection.ProjectionType, name)
	}
	return x, nil
}
