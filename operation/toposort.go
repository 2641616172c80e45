package operation

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"goatb/device"
)

// sorted returns who has to come before whom and the nodes in execution order:
// a stable topological order of that.
func (b *GraphBuilder) sorted() (*dependencies, []int, error) {
	d := newDependencies(len(b.nodes))
	writers := map[string][]int{}
	for i := range b.nodes {
		for _, t := range b.nodes[i].out {
			if w := writers[t]; len(w) == 0 || w[len(w)-1] != i {
				writers[t] = append(w, i)
			}
		}
	}
	for i := range b.nodes {
		for _, name := range b.nodes[i].in {
			if name == "" {
				continue
			}
			t := b.base(name)
			if err := d.read(i, t, writers[t], slices.Contains(b.in, t)); err != nil {
				return nil, nil, badGraph("%s: %v", b.nodeName(i), err)
			}
		}
	}
	for _, w := range writers {
		for k := 1; k < len(w); k++ {
			d.add(w[k-1], w[k])
		}
	}
	b.orderEvents(d)
	order, err := d.order(b.nodeName)
	return d, order, err
}

// orderEvents keeps nodes without tensors, such as events, where the list has
// them among the nodes of their stream, and those of one event in the list's
// order: they have no tensors that could tell.
func (b *GraphBuilder) orderEvents(d *dependencies) {
	for i := range b.nodes {
		if len(b.nodes[i].in)+len(b.nodes[i].out) > 0 {
			continue
		}
		for j := range b.nodes {
			if b.stream(i) == b.stream(j) || b.event(i) != nil && b.event(i) == b.event(j) {
				d.add(min(i, j), max(i, j))
			}
		}
	}
}

func (b *GraphBuilder) stream(i int) int {
	o, _ := b.nodes[i].op.(*Op)
	return o.Stream()
}

// event returns the event of an event node, nil for other nodes.
func (b *GraphBuilder) event(i int) device.Event {
	if o, ok := b.nodes[i].op.(*Op); ok {
		if e, ok := o.spec.(Event); ok {
			return e.Event
		}
	}
	return nil
}

func (b *GraphBuilder) nodeName(i int) string {
	if n := b.nodes[i].name; n != "" {
		return n
	}
	return fmt.Sprintf("%d_%s", i, b.nodes[i].op.Name())
}

// dependencies is a graph of nodes: before[i] lists who has to come before i.
type dependencies struct {
	before, after [][]int
}

func newDependencies(n int) *dependencies {
	return &dependencies{before: make([][]int, n), after: make([][]int, n)}
}

func (d *dependencies) add(first, second int) {
	if first != second && !slices.Contains(d.before[second], first) {
		d.before[second] = append(d.before[second], first)
		d.after[first] = append(d.after[first], second)
	}
}

// read orders reader i of a tensor among its writers: after the last one before
// it in the list or, when there is none and the tensor is no input, after the
// first; and before the next one.
func (d *dependencies) read(i int, tensor string, writers []int, input bool) error {
	at := -1
	for k, w := range writers {
		if w < i {
			at = k
		}
	}
	if at < 0 && !input {
		if len(writers) == 0 {
			return fmt.Errorf("it reads %q, which is no input and which no node writes", tensor)
		}
		at = 0
		if writers[0] == i {
			return fmt.Errorf("it reads %q before any node writes it", tensor)
		}
	}
	if at >= 0 {
		d.add(writers[at], i)
	}
	if at+1 < len(writers) {
		d.add(i, writers[at+1])
	}
	return nil
}

// order is Kahn's algorithm with the smallest free node first.
func (d *dependencies) order(name func(int) string) ([]int, error) {
	waiting := make([]int, len(d.before))
	var free intHeap
	for i := range d.before {
		if waiting[i] = len(d.before[i]); waiting[i] == 0 {
			heap.Push(&free, i)
		}
	}
	order := make([]int, 0, len(d.before))
	for free.Len() > 0 {
		i := heap.Pop(&free).(int)
		order = append(order, i)
		for _, j := range d.after[i] {
			if waiting[j]--; waiting[j] == 0 {
				heap.Push(&free, j)
			}
		}
	}
	if len(order) < len(d.before) {
		return nil, badGraph("the nodes form a cycle: %s", d.cycle(waiting, name))
	}
	return order, nil
}

// cycle names the nodes of one cycle among those that still wait.
func (d *dependencies) cycle(waiting []int, name func(int) string) string {
	i := slices.IndexFunc(waiting, func(n int) bool { return n > 0 })
	at := map[int]int{}
	var path []int
	for {
		if start, ok := at[i]; ok {
			path = append(path[start:], i)
			break
		}
		at[i] = len(path)
		path = append(path, i)
		for _, j := range d.before[i] {
			if waiting[j] > 0 {
				i = j
				break
			}
		}
	}
	slices.Reverse(path)
	names := make([]string, len(path))
	for k, i := range path {
		names[k] = name(i)
	}
	return strings.Join(names, " -> ")
}

// intHeap is a min-heap.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds an int.
func (h *intHeap) Push(x any) { *h = append(*h, x.(int)) }

// Pop removes the last element.
func (h *intHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
