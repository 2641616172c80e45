package sink

import (
	"goatb/status"
)

// None is the stream or event of an operation that has none.
const None = -1

// Assignment gives streams and events to the operations of a captured segment.
type Assignment struct {
	// Streams names the streams by id; the main streams come first.
	Streams []string
	// Events is the number of events.
	Events int
	// Attached and Event are the attached stream and the private event of each
	// operation, None for one that is not sunk.
	Attached, Event []int
	// Waits order the kernels that produce values before the tilings that read
	// them, in graph order of the readers; Joins order each attached stream
	// before the end of stream Main.
	Waits, Joins []Edge
	// Main is the stream that every attached stream is joined to.
	Main int
}

// Edge is an event from one stream to another, recorded once and waited for
// once.
type Edge struct {
	Event int
	// From and To are operations by index in the segment, FromStream and ToStream
	// where the event is recorded and waited for. To is End for the graph's end.
	From, FromStream int
	To, ToStream     int
}

// End is the To of an edge to the end of the graph.
const End = -1

// Assign gives resources to the sunk operations of a captured segment. Sunk
// operations on one main stream share an attached stream, so that their tilings
// follow each other in graph order; each has an event of its own. A tiling waits
// for the kernels that produce the values that it reads and for nothing else:
// also for a sunk producer's kernel, which runs on that one's main stream, and
// not merely for its tiling, since only the kernel makes the value. mains is the
// number of main streams, main the one that is joined at the end.
//
// Errors name the operation: those of Sinks and ResourcesOf; a producer that
// does not stand before its reader (ErrInvalidGraph); a main stream out of range
// (ErrInvalidStream).
func Assign(ops []Op, marks []Mark, mains, main int) (*Assignment, error) {
	if main < 0 || main >= mains {
		return nil, status.Errorf(status.ErrInvalidStream, "want a main stream from 0 to %d, got %d", mains-1, main)
	}
	a := &Assignment{Main: main, Attached: make([]int, len(ops)), Event: make([]int, len(ops))}
	for range mains {
		a.Streams = append(a.Streams, "main")
	}
	last := map[int]int{}
	byKey := map[string]int{}
	for i := range ops {
		o := &ops[i]
		a.Attached[i], a.Event[i] = None, None
		if o.Stream < 0 || o.Stream >= mains {
			return nil, o.fail(status.ErrInvalidStream, "calc", "want a main stream from 0 to %d, got %d", mains-1, o.Stream)
		}
		switch sunk, err := Sinks(o, &marks[i]); {
		case err != nil:
			return nil, err
		case !sunk:
			continue
		}
		r, err := ResourcesOf(o)
		if err != nil {
			return nil, err
		}
		if o.NoAttached {
			continue
		}
		a.Attached[i] = a.stream(byKey, r.Streams[0].Key(o.Stream))
		a.Event[i] = a.event()
		last[a.Attached[i]] = i
		if err := a.waits(ops, i); err != nil {
			return nil, err
		}
	}
	for s := mains; s < len(a.Streams); s++ {
		a.Joins = append(a.Joins, Edge{a.event(), last[s], s, End, main})
	}
	return a, nil
}

// stream returns the attached stream with a key, a new one for a new key.
func (a *Assignment) stream(byKey map[string]int, key string) int {
	s, ok := byKey[key]
	if !ok {
		s = len(a.Streams)
		byKey[key] = s
		a.Streams = append(a.Streams, tilingName)
	}
	return s
}

func (a *Assignment) event() int {
	a.Events++
	return a.Events - 1
}

// waits adds an edge from each producer of a value that the tiling of operation
// i reads.
func (a *Assignment) waits(ops []Op, i int) error {
	o := &ops[i]
	seen := map[int]bool{}
	for n := range o.Inputs {
		in := &o.Inputs[n]
		if !o.depends(in) || in.Const || in.Producer == Outside || seen[in.Producer] {
			continue
		}
		if in.Producer < 0 || in.Producer >= i {
			return o.fail(status.ErrInvalidGraph, "calc", "input %d: want a producer before operation %d, got %d", n, i, in.Producer)
		}
		seen[in.Producer] = true
		a.Waits = append(a.Waits, Edge{a.event(), in.Producer, ops[in.Producer].Stream, i, a.Attached[i]})
	}
	return nil
}

// Ops returns the operations of a segment with producers counted in it: what
// another segment makes is there before the segment starts, so it counts as
// Outside.
func (s Segment) Ops(ops []Op) []Op {
	out := make([]Op, 0, s.Last-s.First+1)
	for _, o := range ops[s.First : s.Last+1] {
		inputs := make([]Input, len(o.Inputs))
		for i, in := range o.Inputs {
			if in.Producer -= s.First; in.Producer < 0 {
				in.Producer = Outside
			}
			inputs[i] = in
		}
		o.Inputs = inputs
		out = append(out, o)
	}
	return out
}
