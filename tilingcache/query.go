package tilingcache

import (
	"hash/maphash"

	"goatb/kernel"
	"goatb/tensor"
)

// seed is chosen once per process; hashes never leave it.
var seed = maphash.MakeSeed()

// Query is the part of a tiling's key that a plan fixes: kernel and problem.
// The host values come with each lookup. A Query is immutable. It keeps a
// problem alive and nothing else of the plan it came from, so a cache may
// outlive operations and contexts.
type Query struct {
	kernel  *kernel.Kernel
	problem *kernel.Problem
	hash    uint64
	size    int
}

// NewQuery makes the query of a kernel and its problem, whose descriptors must
// not change any more; its Values are not looked at. Without either it is the zero
// Query.
func NewQuery(k *kernel.Kernel, p *kernel.Problem) Query {
	if k == nil || p == nil {
		return Query{}
	}
	own := *p
	own.Values = nil
	q := Query{kernel: k, problem: &own, size: k.TilingSize(p)}
	h := mix(maphash.Comparable(seed, k), maphash.Comparable(seed, p.Params))
	h = mix(h, maphash.Comparable(seed, p.Machine))
	h = mix(h, maphash.Comparable(seed, p.Options))
	for _, descs := range [...][]tensor.Desc{p.In, p.Out, p.Val} {
		h = mix(h, uint64(len(descs)))
		for i := range descs {
			h = mix(h, maphash.Comparable(seed, descs[i]))
		}
	}
	q.hash = h
	return q
}

// Size returns the bytes of the tiling.
func (q *Query) Size() int { return q.size }

// Same reports whether two queries ask for the same tiling where the host values
// are equal.
func (q *Query) Same(o *Query) bool { return q.same(o) }

func (q *Query) same(o *Query) bool {
	return q.kernel == o.kernel && (q.problem == o.problem || (q.hash == o.hash && q.problem.Same(o.problem)))
}

// mix folds x into h. It need only spread; equality is checked after it.
func mix(h, x uint64) uint64 {
	h ^= x
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// sameValues compares host values with their flat copy.
func sameValues(flat []int64, values [][]int64) bool {
	for _, v := range values {
		if len(flat) < len(v) {
			return false
		}
		for i, x := range v {
			if flat[i] != x {
				return false
			}
		}
		flat = flat[len(v):]
	}
	return len(flat) == 0
}

func appendValues(flat []int64, values [][]int64) []int64 {
	for _, v := range values {
		flat = append(flat, v...)
	}
	return flat
}
