package memcloud

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxItem is the largest item in bytes. Source: "Quotas",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxItem = 400 * 1024

// MaxStale is how far back an index can be served, in writes.
const MaxStale = 256

type table struct {
	name    string
	key     keySchema
	rows    *ordered
	indexes []*index
	defined []types.AttributeDefinition
	created time.Time

	// log holds the latest writes, so that indexes can be moved back and
	// forth; first is the number of the oldest one in it.
	log   []write
	first int
	lag   int

	changed func(old, new *record)
}

// write is one item's change: in the table, and in each index.
type write struct {
	old, new *record
	entries  []entryChange // by index, in the order of table.indexes
}

type entryChange struct{ old, new *record }

// index is a global secondary index.
type index struct {
	name       string
	key        keySchema
	projection types.Projection
	all        bool            // every attribute is projected
	projected  map[string]bool // else: these
	rows       *ordered
	at         int // how many writes are in rows
}

// entry is what the index holds of an item; nil where the item lacks a part
// of the index's key.
func (x *index) entry(r *record) *record {
	if r == nil {
		return nil
	}
	if r.item[x.key.hash.name] == nil || x.key.sort.name != "" && r.item[x.key.sort.name] == nil {
		return nil
	}
	e := &record{position: x.key.position(r.item), item: r.item, size: r.size}
	e.id = r.id
	if !x.all {
		e.item = make(attributes, len(x.projected))
		for name := range x.projected {
			if v := r.item[name]; v != nil {
				e.item[name] = v
			}
		}
		e.size = itemSize(e.item)
	}
	return e
}

func (t *table) index(name string) *index {
	for _, x := range t.indexes {
		if x.name == name {
			return x
		}
	}
	return nil
}

// place is where an item with this key stands.
func (t *table) place(key attributes) position {
	at := t.key.position(key)
	at.id = at.hash // as identity spells it
	if t.key.sort.name != "" {
		at.id = string(encodeValue(append(append(make([]byte, 0, 96), at.hash...), '/'), key[t.key.sort.name]))
	}
	return at
}

// planned works out what a write does to the indexes, without doing it.
func (t *table) planned(old, new *record) write {
	w := write{old: old, new: new, entries: make([]entryChange, len(t.indexes))}
	was, is := t.entries(old), t.entries(new)
	for i := range w.entries {
		w.entries[i] = entryChange{was[i], is[i]}
	}
	return w
}

// entries are what each index holds of an item, worked out once.
func (t *table) entries(r *record) []*record {
	if r != nil && r.entries != nil {
		return r.entries
	}
	out := make([]*record, len(t.indexes))
	for i, x := range t.indexes {
		out[i] = x.entry(r)
	}
	if r != nil {
		r.entries = out
	}
	return out
}

// commit does a planned write.
func (t *table) commit(w write) {
	if w.old == nil && w.new == nil {
		return
	}
	t.rows.replace(w.old, w.new)
	t.changed(w.old, w.new)
	if len(t.indexes) == 0 {
		return
	}
	t.log = append(t.log, w)
	t.settle()
	if len(t.log) > 2*MaxStale {
		drop := len(t.log) - MaxStale
		t.log = append([]write(nil), t.log[drop:]...)
		t.first += drop
	}
}

// settle moves every index to where the lag wants it.
func (t *table) settle() {
	target := max(t.first, t.first+len(t.log)-t.lag)
	for i, x := range t.indexes {
		for ; x.at < target; x.at++ {
			c := t.log[x.at-t.first].entries[i]
			x.rows.replace(c.old, c.new)
		}
		for ; x.at > target; x.at-- {
			c := t.log[x.at-1-t.first].entries[i]
			x.rows.replace(c.new, c.old)
		}
	}
}

// checkItem checks a whole item before it is stored.
func (t *table) checkItem(item attributes, tooBig string) error {
	if err := t.key.checkItem(item); err != nil {
		return err
	}
	for _, x := range t.indexes {
		if err := x.key.checkIndexed(x.name, item); err != nil {
			return err
		}
	}
	if itemSize(item) > maxItem {
		return invalid("%s", tooBig)
	}
	return nil
}

func (t *table) describe() *types.TableDescription {
	d := &types.TableDescription{
		TableName:            aws.String(t.name),
		TableArn:             aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/" + t.name),
		TableStatus:          types.TableStatusActive,
		AttributeDefinitions: append([]types.AttributeDefinition(nil), t.defined...),
		KeySchema:            t.key.elements(),
		CreationDateTime:     aws.Time(t.created),
		ItemCount:            aws.Int64(int64(t.rows.len())),
		BillingModeSummary:   &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest},
	}
	for _, x := range t.indexes {
		projection := x.projection
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName:   aws.String(x.name),
			IndexStatus: types.IndexStatusActive,
			IndexArn:    aws.String(*d.TableArn + "/index/" + x.name),
			KeySchema:   x.key.elements(),
			Projection:  &projection,
			ItemCount:   aws.Int64(int64(x.rows.len())),
		})
	}
	return d
}

func (k keySchema) elements() []types.KeySchemaElement {
	out := []types.KeySchemaElement{{AttributeName: aws.String(k.hash.name), KeyType: types.KeyTypeHash}}
	if k.sort.name != "" {
		out = append(out, types.KeySchemaElement{AttributeName: aws.String(k.sort.name), KeyType: types.KeyTypeRange})
	}
	return out
}
