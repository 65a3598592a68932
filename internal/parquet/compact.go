package parquet

import "encoding/binary"

// compact appends structures in Thrift's compact protocol
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). Writing them by hand lets a footer
// of a million column chunks go out piece by piece.
type compact struct {
	b     []byte
	last  int64
	outer []int64
}

const (
	typeTrue   = 1
	typeFalse  = 2
	typeI32    = 5
	typeI64    = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// field begins a field; ids ascend and are at most 15 apart.
func (c *compact) field(id int64, typ byte) {
	c.b = append(c.b, byte(id-c.last)<<4|typ)
	c.last = id
}

func (c *compact) i32(id, v int64) { c.field(id, typeI32); c.b = binary.AppendVarint(c.b, v) }
func (c *compact) i64(id, v int64) { c.field(id, typeI64); c.b = binary.AppendVarint(c.b, v) }

func (c *compact) text(id int64, s string) { c.field(id, typeBinary); c.element(s) }

// element is a text of a list.
func (c *compact) element(s string) {
	c.b = append(binary.AppendUvarint(c.b, uint64(len(s))), s...)
}

// list begins a list of n elements.
func (c *compact) list(id int64, typ byte, n int) {
	c.field(id, typeList)
	if n < 15 {
		c.b = append(c.b, byte(n)<<4|typ)
		return
	}
	c.b = binary.AppendUvarint(append(c.b, 0xF0|typ), uint64(n))
}

// open begins a structure: a field's, or an element of a list where id is 0.
func (c *compact) open(id int64) {
	if id > 0 {
		c.field(id, typeStruct)
	}
	c.outer = append(c.outer, c.last)
	c.last = 0
}

func (c *compact) close() {
	c.b = append(c.b, 0)
	c.last = c.outer[len(c.outer)-1]
	c.outer = c.outer[:len(c.outer)-1]
}
