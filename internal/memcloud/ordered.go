package memcloud

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"sort"
)

// record is a stored item, or an entry of an index. It never changes: a write
// puts another record in its place.
type record struct {
	position
	item attributes
	size int // bytes, by itemSize

	entries []*record // what each index of its table holds of it, once asked for
}

// attributes are those of a record, nil of none.
func (r *record) attributes() attributes {
	if r == nil {
		return nil
	}
	return r.item
}

// ordered keeps records by partition, and within a partition by sort key.
// Partitions stand in the order of a hash, as on AWS: a scan must not look as
// if it had an order. That order is made when somebody asks for it, so that a
// write costs the same in a large table as in a small one.
type ordered struct {
	partitions map[string]*partition
	sorted     []*partition // stale when dirty; see inOrder
	dirty      bool
}

type partition struct {
	key  string
	hash uint64
	rows []*record
}

func newOrdered() *ordered { return &ordered{partitions: map[string]*partition{}} }

func hashOf(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	// One round more: FNV leaves keys that differ in the last byte side by side.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// inOrder gives the partitions in the order of their hashes.
func (o *ordered) inOrder() []*partition {
	if o.dirty {
		o.sorted = slices.SortedFunc(maps.Values(o.partitions), func(p, q *partition) int {
			return cmp.Or(cmp.Compare(p.hash, q.hash), cmp.Compare(p.key, q.key))
		})
		o.dirty = false
	}
	return o.sorted
}

// from gives the partitions in order from the one with this key on, or from
// where it would stand.
func (o *ordered) from(key string) []*partition {
	all, hash := o.inOrder(), hashOf(key)
	return all[sort.Search(len(all), func(i int) bool {
		p := all[i]
		return p.hash > hash || p.hash == hash && p.key >= key
	}):]
}

// place finds a row, or where it would stand.
func (p *partition) place(at position) (i int, found bool) {
	i = sort.Search(len(p.rows), func(i int) bool { return p.rows[i].compare(at) >= 0 })
	return i, i < len(p.rows) && p.rows[i].compare(at) == 0
}

func (o *ordered) get(at position) *record {
	p := o.partitions[at.hash]
	if p == nil {
		return nil
	}
	if i, found := p.place(at); found {
		return p.rows[i]
	}
	return nil
}

func (o *ordered) put(r *record) {
	p := o.partitions[r.hash]
	if p == nil {
		p = &partition{key: r.hash, hash: hashOf(r.hash)}
		o.partitions[r.hash] = p
		o.dirty = true
	}
	i, found := p.place(r.position)
	if found {
		p.rows[i] = r
		return
	}
	p.rows = slices.Insert(p.rows, i, r)
}

func (o *ordered) remove(at position) {
	p := o.partitions[at.hash]
	if p == nil {
		return
	}
	i, found := p.place(at)
	if !found {
		return
	}
	p.rows = slices.Delete(p.rows, i, i+1)
	if len(p.rows) == 0 {
		delete(o.partitions, at.hash)
		o.dirty = true
	}
}

// replace takes one record out and puts another in; either may be nil.
func (o *ordered) replace(old, new *record) {
	if old != nil && (new == nil || old.hash != new.hash || old.compare(new.position) != 0) {
		o.remove(old.position)
	}
	if new != nil {
		o.put(new)
	}
}

func (o *ordered) len() int {
	n := 0
	for _, p := range o.partitions {
		n += len(p.rows)
	}
	return n
}
