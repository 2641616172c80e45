package compiled

import (
	"fmt"
	"math"
	"slices"

	"goatb/tiling/sink"
)

// check refuses a file that holds what nobody writes, so that whoever reads it
// finds every index in its range. What only a device can tell is left to loading.
func (f *File) check() error {
	if int(f.Form) >= len(sink.Forms()) {
		return damaged("unknown form %d", f.Form)
	}
	for i, u := range f.Units {
		if u == nil {
			return damaged("graph %d is missing", i)
		}
		if why := u.check(f.Form); why != "" {
			return damaged("graph %d (%.64q): %s", i, u.Name, why)
		}
	}
	return nil
}

// check returns what is wrong with a unit of a form, "" for nothing.
func (u *Unit) check(form sink.Form) string {
	n := len(u.Nodes)
	switch {
	case len(u.Marks) != n || len(u.Before) != n:
		return fmt.Sprintf("want %d marks and tilings, got %d and %d", n, len(u.Marks), len(u.Before))
	case u.Streams < 1 || u.Main < 0 || u.Main >= u.Streams:
		return fmt.Sprintf("stream %d of %d is joined to", u.Main, u.Streams)
	}
	ops := make([]sink.Op, n)
	for i := range u.Nodes {
		ops[i] = u.Nodes[i].Op
		if why := u.checkNode(i, form); why != "" {
			return fmt.Sprintf("node %d: %s", i, why)
		}
	}
	if form == sink.V2Form {
		if len(u.Segments) > 0 {
			return "form v2 has no segments"
		}
		return ""
	}
	split := sink.Split(ops, u.Marks)
	if len(split) != len(u.Segments) {
		return fmt.Sprintf("want %d segments, got %d", len(split), len(u.Segments))
	}
	for i := range u.Segments {
		if why := u.checkSegment(i, split[i]); why != "" {
			return fmt.Sprintf("segment %d: %s", i, why)
		}
	}
	return ""
}

// checkNode checks the description, the mark and the tiling of a node.
func (u *Unit) checkNode(i int, form sink.Form) string {
	d, m, b := &u.Nodes[i], &u.Marks[i], u.Before[i]
	o := &d.Op
	switch {
	case o.ID != int64(i):
		return fmt.Sprintf("its id is %d", o.ID)
	case o.Unknown:
		return "a graph with unknown shapes is not captured"
	case o.Stream < 0 || o.Stream >= u.Streams:
		return fmt.Sprintf("want a stream below %d, got %d", u.Streams, o.Stream)
	case m.Sunk && (m.Unknown || !d.kernel() || o.Registration == nil || o.Registration.Function == ""):
		return "it cannot be tiled on the device and is marked so"
	case form == sink.V2Form && m.Sunk:
		return "it is tiled on the device in form v2"
	}
	for _, in := range o.Inputs {
		if in.Producer != sink.Outside && (in.Producer < 0 || in.Producer >= i) {
			return fmt.Sprintf("node %d makes what it reads", in.Producer)
		}
	}
	// In form v2 nobody asks for the tiling of what reads values.
	asked := form != sink.V2Form || !m.Depends
	if tiled := d.kernel() && !m.Unknown; asked && tiled != (b != nil) {
		return fmt.Sprintf("it has a tiling: want %v, got %v", tiled, b != nil)
	}
	if b != nil && (len(b.Data) != d.TilingBytes || b.BlockDim < 1 || b.BlockDim > math.MaxInt32) {
		return fmt.Sprintf("want a tiling of %d bytes with blocks, got %d bytes and %d blocks", d.TilingBytes, len(b.Data), b.BlockDim)
	}
	return ""
}

// checkSegment checks a segment against what the marks ask for.
func (u *Unit) checkSegment(i int, want sink.Segment) string {
	seg := &u.Segments[i]
	switch l := seg.List; {
	case seg.Segment != want:
		return fmt.Sprintf("want nodes %d to %d, got %d to %d", want.First, want.Last, seg.First, seg.Last)
	case seg.Host != (l == nil):
		return "a task list where the host works, or none where the device does"
	case l == nil:
		return ""
	case len(l.Streams) < u.Streams || len(l.Streams) > u.Streams+len(l.Tasks) || l.Events < 0 || l.Events > len(l.Tasks):
		return fmt.Sprintf("%d tasks with %d streams and %d events", len(l.Tasks), len(l.Streams), l.Events)
	}
	c := taskCheck{segment: want, list: seg.List}
	for j := range seg.List.Tasks {
		if t := &seg.List.Tasks[j]; t.Kind == sink.SuperKernelTask {
			c.supers = append(c.supers, t.Op)
		}
	}
	for j := range seg.List.Tasks {
		if why := c.task(j); why != "" {
			return fmt.Sprintf("task %d: %s", j, why)
		}
	}
	return ""
}

// taskCheck checks the tasks of a list.
type taskCheck struct {
	segment sink.Segment
	list    *sink.List
	supers  []int64 // ids of super kernels
}

func (c *taskCheck) inside(op int64) bool {
	return op >= int64(c.segment.First) && op <= int64(c.segment.Last)
}

func (c *taskCheck) task(i int) string {
	t := &c.list.Tasks[i]
	switch {
	case t.Kind > sink.UpdateTask:
		return fmt.Sprintf("unknown kind %d", t.Kind)
	case t.Stream < 0 || t.Stream >= len(c.list.Streams):
		return fmt.Sprintf("stream %d", t.Stream)
	case t.Op < 0 || !c.inside(t.Op) && !slices.Contains(c.supers, t.Op):
		return fmt.Sprintf("operation %d", t.Op)
	case t.InSuper && !c.inside(t.Sub):
		return fmt.Sprintf("operation %d of a super kernel", t.Sub)
	case (t.Kind == sink.WaitTask || t.Kind == sink.RecordTask || t.InSuper) && (t.Event < 0 || t.Event >= c.list.Events):
		return fmt.Sprintf("event %d", t.Event)
	case t.Kind == sink.UpdateTask && (t.Target < 0 || t.Target >= i || !c.list.Tasks[t.Target].Updated):
		return fmt.Sprintf("an update of task %d", t.Target)
	case t.Kind <= sink.FFTSPlusTask && (t.BlockDim < 1 || t.BlockDim > math.MaxInt32):
		return fmt.Sprintf("%d blocks", t.BlockDim)
	}
	for _, s := range t.Subs {
		if !c.inside(s.Op) || s.BlockDim < 1 || s.BlockDim > math.MaxInt32 || s.Dynamic && (s.Flag < 0 || s.Flag >= c.list.Events) {
			return fmt.Sprintf("operation %d with %d blocks and flag %d in a super kernel", s.Op, s.BlockDim, s.Flag)
		}
	}
	return ""
}
