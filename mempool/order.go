package mempool

import "goatb/status"

// Order is the order between the nodes of a graph that runs on several streams:
// nodes of one stream follow each other, and a node follows those that it waits
// for. Nodes are numbered in the order in which they are added, which is an
// order that respects all of this.
//
// It keeps a vector clock for each node: how many nodes of each stream have
// happened when the node is done.
type Order struct {
	streams int
	stream  []int32
	clock   []int32 // by node and stream
	now     []int32 // by stream and stream: the clock of its latest node
}

// NewOrder makes an order without nodes, of streams 0 to streams-1.
func NewOrder(streams int) *Order {
	return &Order{streams: streams, now: make([]int32, streams*streams)}
}

// Len returns the number of nodes.
func (o *Order) Len() int { return len(o.stream) }

// Add adds a node at the end of a stream, which happens after the given nodes
// too, and returns its number. Errors: ErrInvalidParam for a stream or a node
// that is not there.
func (o *Order) Add(stream int, after ...int) (int, error) {
	if stream < 0 || stream >= o.streams {
		return 0, status.Errorf(status.ErrInvalidParam, "want a stream of 0 to %d, got %d", o.streams-1, stream)
	}
	now := o.now[stream*o.streams:][:o.streams]
	for _, i := range after {
		if i < 0 || i >= len(o.stream) {
			return 0, status.Errorf(status.ErrInvalidParam, "node %d: want one of %d earlier nodes to follow, got %d", len(o.stream), len(o.stream), i)
		}
		for s, t := range o.at(i) {
			now[s] = max(now[s], t)
		}
	}
	now[stream]++
	o.stream = append(o.stream, int32(stream))
	o.clock = append(o.clock, now...)
	return len(o.stream) - 1, nil
}

func (o *Order) at(i int) []int32 { return o.clock[i*o.streams:][:o.streams] }

// Before reports whether node i happens before node j. No node happens before
// itself.
func (o *Order) Before(i, j int) bool {
	s := o.stream[i]
	return i != j && o.clock[j*o.streams+int(s)] >= o.clock[i*o.streams+int(s)]
}

// After reports whether all nodes of one list happen before all of another. It
// takes time in proportion to their lengths.
func (o *Order) After(earlier, later []int) bool {
	for _, j := range later {
		for _, i := range earlier {
			if !o.Before(i, j) {
				return false
			}
		}
	}
	return true
}

// LinearEnd returns the first node such that all later ones happen after all of
// the given nodes, which are in ascending order: the end of a lifetime that is
// safe where nodes are taken in the order of their numbers.
func (o *Order) LinearEnd(uses []int) int {
	last := uses[len(uses)-1]
	for j := len(o.stream) - 1; j > last; j-- {
		for _, i := range uses {
			if !o.Before(i, j) {
				return j
			}
		}
	}
	return last
}
