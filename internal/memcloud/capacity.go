package memcloud

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Capacity follows "DynamoDB read and write operations",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html,
// for indexes "Using Global Secondary Indexes" (write capacity units),
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html:
//
//   - a write costs one unit per KB begun of the larger of the item before
//     and after; an item that is not there costs one;
//   - a read costs half a unit per 4 KB begun, one if consistent;
//   - everything in a transaction costs double, checks included;
//   - a write that its condition refused costs the same;
//   - an index entry costs a unit per KB begun when it is put, taken out or
//     changed; both, when its key changes; nothing, when it stays the same.
//
// Index writes of a transaction are counted once: entries are written after
// the commit. AWS does not say so in words; it matters only to the units that
// are listed apart.

// writeUnits is for one item of a size in bytes.
func writeUnits(size int) float64 { return float64(max(1, (size+1023)/1024)) }

// readUnits is for a read of a size in bytes.
func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

func (r *record) bytes() int {
	if r == nil {
		return 0
	}
	return r.size
}

// tableUnits is what a write costs in the table.
func (w write) tableUnits() float64 { return writeUnits(max(w.old.bytes(), w.new.bytes())) }

// units is what an index entry's change costs.
func (c entryChange) units() float64 {
	switch {
	case c.old == nil && c.new == nil:
		return 0
	case c.old == nil || c.new == nil:
		return writeUnits(max(c.old.bytes(), c.new.bytes()))
	case c.old.hash != c.new.hash || c.old.compare(c.new.position) != 0:
		return writeUnits(c.old.size) + writeUnits(c.new.size)
	case equalItems(c.old.item, c.new.item):
		return 0
	}
	return writeUnits(max(c.old.size, c.new.size))
}

// bill collects what one request costs at one table.
type bill struct {
	table   float64
	indexes map[string]float64
	write   bool // write units, else read units
	double  bool // a transaction: AWS then names read and write units apart
}

// add adds a write that took effect.
func (b *bill) add(t *table, w write) {
	b.table += w.tableUnits() * b.factor()
	for i, x := range t.indexes {
		if u := w.entries[i].units(); u > 0 {
			b.index(x.name, u)
		}
	}
}

func (b *bill) index(name string, units float64) {
	if b.indexes == nil {
		b.indexes = map[string]float64{}
	}
	b.indexes[name] += units
}

func (b *bill) factor() float64 {
	if b.double {
		return 2
	}
	return 1
}

func (b *bill) total() float64 {
	sum := b.table
	for _, u := range b.indexes {
		sum += u
	}
	return sum
}

// consumed renders the bill as the request asked for it.
func (b *bill) consumed(mode types.ReturnConsumedCapacity, table string) *types.ConsumedCapacity {
	if mode == "" || mode == types.ReturnConsumedCapacityNone {
		return nil
	}
	c := &types.ConsumedCapacity{TableName: aws.String(table), CapacityUnits: aws.Float64(b.total())}
	if b.double {
		c.ReadCapacityUnits, c.WriteCapacityUnits = b.apart(b.total())
	}
	if mode == types.ReturnConsumedCapacityTotal {
		return c
	}
	c.Table = b.capacity(b.table)
	for name, u := range b.indexes {
		if c.GlobalSecondaryIndexes == nil {
			c.GlobalSecondaryIndexes = map[string]types.Capacity{}
		}
		c.GlobalSecondaryIndexes[name] = *b.capacity(u)
	}
	return c
}

func (b *bill) capacity(units float64) *types.Capacity {
	c := &types.Capacity{CapacityUnits: aws.Float64(units)}
	if b.double {
		c.ReadCapacityUnits, c.WriteCapacityUnits = b.apart(units)
	}
	return c
}

func (b *bill) apart(units float64) (read, write *float64) {
	if b.write {
		return nil, aws.Float64(units)
	}
	return aws.Float64(units), nil
}

func checkMode(mode types.ReturnConsumedCapacity) error {
	switch mode {
	case "", types.ReturnConsumedCapacityNone, types.ReturnConsumedCapacityTotal, types.ReturnConsumedCapacityIndexes:
		return nil
	}
	return invalid("Value '%s' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]", mode)
}

// OperationUnits is what one API action has cost.
type OperationUnits struct {
	Calls      int // served requests, refused conditions included
	TableWrite float64
	IndexWrite float64
	TableRead  float64
	IndexRead  float64
}

// Units is capacity by API action, e.g. "UpdateItem".
type Units map[string]OperationUnits

// Units gives what has been consumed since the start. For a part, take it
// before and after and use Since.
func (d *Dynamo) Units() Units {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(Units, len(d.units))
	for operation, u := range d.units {
		out[operation] = u
	}
	return out
}

// Since is the difference to an earlier reading.
func (u Units) Since(before Units) Units {
	out := Units{}
	for operation, n := range u {
		b := before[operation]
		diff := OperationUnits{n.Calls - b.Calls, n.TableWrite - b.TableWrite, n.IndexWrite - b.IndexWrite, n.TableRead - b.TableRead, n.IndexRead - b.IndexRead}
		if diff != (OperationUnits{}) {
			out[operation] = diff
		}
	}
	return out
}

// Total adds up all actions.
func (u Units) Total() OperationUnits {
	var t OperationUnits
	for _, n := range u {
		t = OperationUnits{t.Calls + n.Calls, t.TableWrite + n.TableWrite, t.IndexWrite + n.IndexWrite, t.TableRead + n.TableRead, t.IndexRead + n.IndexRead}
	}
	return t
}

// String is a table with a line per action and one for the total.
func (u Units) String() string {
	var b strings.Builder
	line := func(name string, n OperationUnits) {
		fmt.Fprintf(&b, "%-20s %6d calls  write %8.1f + index %7.1f  read %8.1f + index %7.1f\n", name, n.Calls, n.TableWrite, n.IndexWrite, n.TableRead, n.IndexRead)
	}
	for _, operation := range sortedNames(u) {
		line(operation, u[operation])
	}
	line("total", u.Total())
	return b.String()
}

// charge notes one call and its bills; d.mu is held.
func (d *Dynamo) charge(operation string, bills ...*bill) {
	n := d.units[operation]
	n.Calls++
	for _, b := range bills {
		indexes := b.total() - b.table
		if b.write {
			n.TableWrite += b.table
			n.IndexWrite += indexes
		} else {
			n.TableRead += b.table
			n.IndexRead += indexes
		}
	}
	d.units[operation] = n
}
