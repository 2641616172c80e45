package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"goatb/device"
	"goatb/operation"
)

// buildNamed makes the graph from names, its nodes in another order that says
// the same.
func (r *recipe) buildNamed(events []device.Event) (*operation.Op, error) {
	b := operation.BuildGraph("named", tensorNames(r.inputs()), tensorNames(r.outputs))
	for _, i := range r.shuffled(rand.New(rand.NewPCG(r.seed, 3))) {
		s := &r.steps[i]
		op, err := r.operation(s, events)
		if err != nil {
			return nil, err
		}
		in := tensorNames(s.in)
		for j := range in {
			if s.reshape != nil && s.reshape[j] != nil {
				view := fmt.Sprintf("%s_as_%d_%d", in[j], i, j)
				b.Reshape(in[j], s.reshape[j], view)
				in[j] = view
			}
		}
		b.AddNamed(fmt.Sprintf("step %d", i), op, in, tensorNames(s.out))
		for j, c := range s.chunk {
			if c != (operation.Chunk{}) {
				b.Chunk(in[j], c.Num, c.Index)
			}
		}
	}
	return b.Build()
}

func tensorNames(ids []int) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprintf("t%d", id)
	}
	return names
}

// shuffled returns the nodes in a random order that keeps what a builder takes
// from the order of its list: who comes first at a tensor that is written more
// than once, and where events stand among the nodes of their streams.
func (r *recipe) shuffled(rng *rand.Rand) []int {
	writers := make([]int, len(r.values))
	for i := range r.values {
		if r.values[i].input {
			writers[i] = 1
		}
	}
	for i := range r.steps {
		for _, id := range r.steps[i].out {
			writers[id]++
		}
	}
	rest := make([]int, len(r.steps))
	for i := range rest {
		rest[i] = i
	}
	order := make([]int, 0, len(rest))
	for len(rest) > 0 {
		var free []int // places in rest of nodes that may come next
		for k, i := range rest {
			if !slices.ContainsFunc(rest[:k], func(j int) bool { return keeps(&r.steps[j], &r.steps[i], writers) }) {
				free = append(free, k)
			}
		}
		k := free[rng.IntN(len(free))]
		order = append(order, rest[k])
		rest = slices.Delete(rest, k, k+1)
	}
	return order
}

// keeps reports whether b has to stay behind a in the list.
func keeps(a, b *step, writers []int) bool {
	if a.isEvent() || b.isEvent() {
		return a.stream == b.stream || a.isEvent() && b.isEvent() && a.event == b.event
	}
	touches := func(s *step, id int) bool { return slices.Contains(s.in, id) || slices.Contains(s.out, id) }
	for id, n := range writers {
		if n > 1 && touches(a, id) && touches(b, id) {
			return true
		}
	}
	return false
}

func (s *step) isEvent() bool { return s.make == nil && s.graph == nil }
