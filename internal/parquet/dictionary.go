package parquet

import (
	"bytes"
	"hash/maphash"
)

// dictionary numbers distinct texts in the order in which they first came, so that its bytes depend on the rows alone.
type dictionary struct {
	table []uint32 // by hash, then the next free place: 1 + the text's number; 0 is free
	data  []byte
	ends  []int
}

const (
	firstTable = 64
	trial      = 1 << 14   // values before a dictionary is judged
	maxEntries = 1 << 16   // so that an index takes at most 16 bits
	maxEntry   = 512 << 10 // bytes of all texts: a page that every reader holds whole
)

var seed = maphash.MakeSeed()

// find is the text's number; a text that is new gets the next one.
func (d *dictionary) find(s []byte) uint32 {
	if 2*len(d.ends) >= len(d.table) {
		d.grow()
	}
	mask := uint64(len(d.table) - 1)
	for at := maphash.Bytes(seed, s) & mask; ; at = (at + 1) & mask {
		n := d.table[at]
		if n == 0 {
			d.data = append(d.data, s...)
			d.ends = append(d.ends, len(d.data))
			d.table[at] = uint32(len(d.ends))
			return uint32(len(d.ends) - 1)
		}
		if bytes.Equal(d.text(n-1), s) {
			return n - 1
		}
	}
}

func (d *dictionary) text(i uint32) []byte {
	from := 0
	if i > 0 {
		from = d.ends[i-1]
	}
	return d.data[from:d.ends[i]]
}

func (d *dictionary) grow() {
	d.table = make([]uint32, max(firstTable, 2*len(d.table)))
	mask := uint64(len(d.table) - 1)
	for i := range d.ends {
		at := maphash.Bytes(seed, d.text(uint32(i))) & mask
		for d.table[at] != 0 {
			at = (at + 1) & mask
		}
		d.table[at] = uint32(i + 1)
	}
}

// pays reports whether the texts of so many values are worth a dictionary, as far as can be told yet.
func (d *dictionary) pays(values int) bool {
	return len(d.ends) <= maxEntries && len(d.data) <= maxEntry && (values < trial || 2*len(d.ends) <= values)
}

func (d *dictionary) reset() {
	clear(d.table)
	d.data, d.ends = d.data[:0], d.ends[:0]
}
