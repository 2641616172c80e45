package llama

import (
	"cmp"
	"container/heap"
)

// pair is two neighbouring tokens whose joint token the vocabulary has. It is
// out of date when other tokens have come to its places.
type pair struct {
	score       float32
	at          int // place of the left token
	left, right int32
	joint       int32
}

// pairs is a heap: the best score first, the leftmost among equals.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(p[j].score, p[i].score), cmp.Compare(p[i].at, p[j].at)) < 0
}
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pairs) Push(x any)   { *p = append(*p, x.(pair)) }
func (p *pairs) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// merger joins tokens in place: next and prev link the places that still hold
// one, and a place that holds none has the token -1.
type merger struct {
	t          *Tokenizer
	ids        []int32
	prev, next []int
	queue      pairs
}

// merge joins neighbours, the best score first, until none have a joint token,
// in time n log n. It overwrites ids.
func (t *Tokenizer) merge(ids []int32) []int32 {
	m := merger{t: t, ids: ids, prev: make([]int, len(ids)), next: make([]int, len(ids))}
	for i := range ids {
		m.prev[i], m.next[i] = i-1, i+1
		if p, ok := m.find(i); ok {
			m.queue = append(m.queue, p)
		}
	}
	heap.Init(&m.queue)
	for m.queue.Len() > 0 {
		m.join(heap.Pop(&m.queue).(pair))
	}
	kept := ids[:0]
	for _, id := range ids {
		if id >= 0 {
			kept = append(kept, id)
		}
	}
	return kept
}

// find returns the pair whose left token lies at a place, -1 being before all.
func (m *merger) find(at int) (pair, bool) {
	if at < 0 || m.next[at] == len(m.ids) {
		return pair{}, false
	}
	left, right := m.ids[at], m.ids[m.next[at]]
	joint, ok := m.t.ids[m.t.pieces[left]+m.t.pieces[right]]
	if !ok {
		return pair{}, false
	}
	return pair{m.t.scores[joint], at, left, right, joint}, true
}

// join puts the joint token in the place of the left one, unless the pair is out
// of date.
func (m *merger) join(p pair) {
	right := m.next[p.at]
	if m.ids[p.at] != p.left || right == len(m.ids) || m.ids[right] != p.right {
		return
	}
	after := m.next[right]
	m.ids[p.at], m.ids[right] = p.joint, -1
	m.next[p.at] = after
	if after < len(m.ids) {
		m.prev[after] = p.at
	}
	for _, at := range [...]int{m.prev[p.at], p.at} {
		if q, ok := m.find(at); ok {
			heap.Push(&m.queue, q)
		}
	}
}
