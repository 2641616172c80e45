package operation

import (
	"fmt"
	"slices"

	"goatb/device"
)

// OrderStreams makes Build put nodes of different streams in order where one
// writes a tensor that the other reads or writes: an event is recorded behind
// the first and waited for before the second. Without it, or with nil, that is the caller's
// business, with Event nodes. newEvent makes an event, such as a device's
// NewEvent; the events stay the caller's, who closes them after the graph.
func (b *GraphBuilder) OrderStreams(newEvent func() (device.Event, error)) *GraphBuilder {
	b = b.begun()
	b.newEvent = newEvent
	return b
}

// withEvents adds the events to nodes, which are in execution order.
func (b *GraphBuilder) withEvents(nodes []Node, deps *dependencies, order []int) ([]Node, error) {
	events := map[[2]int]device.Event{}
	var out []Node
	for k, i := range order {
		for _, first := range slices.Sorted(slices.Values(deps.before[i])) {
			e, ok := events[[2]int{first, i}]
			if !ok {
				continue
			}
			n, err := b.eventNode(i, Event{e, EventWait}, "wait_"+b.nodeName(first))
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
		out = append(out, nodes[k])
		for _, second := range slices.Sorted(slices.Values(deps.after[i])) {
			if !b.crosses(i, second) {
				continue
			}
			e, err := b.newEvent()
			if err != nil {
				return nil, fmt.Errorf("event between %s and %s: %w", b.nodeName(i), b.nodeName(second), err)
			}
			events[[2]int{i, second}] = e
			n, err := b.eventNode(i, Event{e, EventRecord}, "record_"+b.nodeName(second))
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// eventNode makes an event operation on the stream of node i.
func (b *GraphBuilder) eventNode(i int, e Event, name string) (Node, error) {
	op, err := New(e)
	if err != nil {
		return Node{}, err
	}
	if o, ok := b.nodes[i].op.(*Op); ok && o.streamSet {
		err = op.SetStream(o.stream)
	}
	return Node{Name: name, Op: op}, err
}

// crosses reports whether nodes i and j, which share a tensor, may run on
// different streams: those without an id of their own follow the graph.
func (b *GraphBuilder) crosses(i, j int) bool {
	for _, k := range [...]int{i, j} {
		if len(b.nodes[k].in)+len(b.nodes[k].out) == 0 {
			return false // an event: the caller orders it
		}
	}
	x, _ := b.nodes[i].op.(*Op)
	y, _ := b.nodes[j].op.(*Op)
	xSet, ySet := x != nil && x.streamSet, y != nil && y.streamSet
	return xSet != ySet || xSet && x.stream != y.stream
}
