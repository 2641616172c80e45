package tilingcache

import (
	"goatb/device"
	"goatb/kernel"
)

// Entry is a tiling with its launch shape. Its bytes are 64-byte aligned and
// stay as they are until the Local cache that owns it computes a tiling for the
// same kernel slot again.
type Entry struct {
	Grid  kernel.Grid
	query Query
	flat  []int64
	bytes []byte
	valid bool
}

// Bytes returns the tiling.
func (e *Entry) Bytes() []byte { return e.bytes }

// matches reports whether e is the tiling of the query with the values.
func (e *Entry) matches(q *Query, values [][]int64) bool {
	return e.valid && e.query.same(q) && sameValues(e.flat, values)
}

// reset prepares e to take the tiling of the query with the values; its memory
// is reused.
func (e *Entry) reset(q *Query, values [][]int64) {
	e.valid = false
	e.query = *q
	e.flat = appendValues(e.flat[:0], values)
	if e.bytes == nil || cap(e.bytes) < q.size {
		e.bytes = alignedBytes(q.size) // never nil, also for a tiling of no bytes
	}
	e.bytes = e.bytes[:q.size]
}

// alignedBytes returns n bytes at a multiple of kernel.Align.
func alignedBytes(n int) []byte {
	b := device.BytesOf(make([]uint64, (n+kernel.Align+7)/8))
	off := int(-address(b) & (kernel.Align - 1))
	return b[off : off+n : off+n]
}

// Local caches the tilings of one operation: slots for each of its kernels,
// replaced round robin. It belongs to one goroutine at a time and allocates
// only while slots are filled for the first time or grow.
type Local struct {
	slots int
	nodes []localNode
}

// localNode holds the slots of one kernel.
type localNode struct {
	entries []Entry
	// last is the entry of the last hit, where the next scan starts; next is
	// the entry that is replaced next.
	last, next int
	// spare takes tilings that are not kept.
	spare *Entry
}

// NewLocal makes a cache of `slots` entries for each kernel, at least one.
func NewLocal(slots int) *Local { return &Local{slots: max(slots, 1)} }

// Grow makes room for kernels 0 to n-1; what is cached stays.
func (l *Local) Grow(n int) {
	for len(l.nodes) < n {
		l.nodes = append(l.nodes, localNode{})
	}
}

// Find returns the tiling of kernel k, or nil.
func (l *Local) Find(k int, q *Query, values [][]int64) *Entry {
	n := &l.nodes[k]
	for i := range n.entries {
		at := n.last + i
		if at >= len(n.entries) {
			at -= len(n.entries)
		}
		if n.entries[at].matches(q, values) {
			n.last = at
			return &n.entries[at]
		}
	}
	return nil
}

// Replace returns the entry of kernel k that takes the tiling of the query:
// a fresh slot while there are some, then the next one in turn. The caller
// fills Bytes and Grid and then calls Keep.
func (l *Local) Replace(k int, q *Query, values [][]int64) *Entry {
	n := &l.nodes[k]
	if len(n.entries) < l.slots {
		if n.entries == nil {
			n.entries = make([]Entry, 0, min(l.slots, 8))
		}
		n.entries = append(n.entries, Entry{})
		n.next = len(n.entries) - 1
	}
	at := n.next
	n.next = (at + 1) % len(n.entries)
	n.last = at
	e := &n.entries[at]
	e.reset(q, values)
	return e
}

// Spare returns an entry of kernel k for a tiling that is not to be kept: it is
// never found again, and the next Spare of the kernel takes it.
func (l *Local) Spare(k int, q *Query, values [][]int64) *Entry {
	n := &l.nodes[k]
	if n.spare == nil {
		n.spare = new(Entry)
	}
	n.spare.reset(q, values)
	return n.spare
}

// Keep makes e findable: its bytes and grid are complete.
func (l *Local) Keep(e *Entry) { e.valid = true }
