package main

import (
	"fmt"
	"io"

	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// gateEntry is what the gates of device-sink decided about an operation.
type gateEntry struct {
	Operation string `json:"operation"`
	Sunk      bool   `json:"sunk"`
	Reason    string `json:"reason"`
}

// taskEntry is a task of a list. ID counts all tasks; segments follow each other.
type taskEntry struct {
	ID         int    `json:"id"`
	Segment    int    `json:"segment"`
	Stream     int    `json:"stream"`
	Kind       string `json:"kind"`
	Operation  string `json:"operation"`
	Event      *int   `json:"event,omitempty"`
	ArgsFormat string `json:"args_format"`
	// BlockDim is 0xFFFFFFFF for a kernel whose tiling the device computes.
	BlockDim uint32 `json:"block_dim"`
}

// gateEntries lists the kernels in order.
func gateEntries(p *capture.Plan) []gateEntry {
	list := []gateEntry{}
	for i, m := range p.Marks {
		reason := m.Reason
		if m.Gate != sink.NoGate {
			reason = m.Gate.String() + ": " + reason
		}
		list = append(list, gateEntry{p.Ops[i].Name, m.Sunk, reason})
	}
	return list
}

// taskEntries lists the tasks of all captured segments.
func taskEntries(p *capture.Plan) []taskEntry {
	list := []taskEntry{}
	for s := range p.Segments {
		l := p.Segments[s].List
		if l == nil {
			continue
		}
		for i := range l.Tasks {
			list = append(list, taskOf(p, &l.Tasks[i], len(list), s))
		}
	}
	return list
}

func taskOf(p *capture.Plan, t *sink.Task, id, segment int) taskEntry {
	e := taskEntry{ID: id, Segment: segment, Stream: t.Stream, Kind: t.Kind.String(), Operation: "super kernel", ArgsFormat: t.Args, BlockDim: t.BlockDim}
	if t.Op < int64(len(p.Ops)) {
		e.Operation = p.Ops[t.Op].Name
	}
	if t.InSuper {
		e.Operation = p.Ops[t.Sub].Name
	}
	if t.Kind == sink.WaitTask || t.Kind == sink.RecordTask || t.InSuper {
		e.Event = &t.Event
	}
	if t.Updated {
		e.BlockDim = sink.BlockDimPending
	}
	for _, c := range t.Contexts {
		e.ArgsFormat += c.Args
	}
	for _, k := range t.Subs {
		if e.BlockDim = max(e.BlockDim, k.BlockDim); k.Dynamic {
			e.BlockDim = sink.BlockDimPending
			break
		}
	}
	return e
}

// writeTasks prints marks and task lists.
func writeTasks(w io.Writer, p *capture.Plan) error {
	if err := sink.WriteMarks(w, p.Ops, p.Marks); err != nil {
		return err
	}
	if p.Wired != nil {
		return p.Wired.WriteText(w)
	}
	for s := range p.Segments {
		seg := &p.Segments[s]
		if seg.List == nil {
			if _, err := fmt.Fprintf(w, "\nsegment %d: host: %s\n", s, p.Ops[seg.First].Name); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(w, "\nsegment %d: operations %d to %d\n", s, seg.First, seg.Last); err != nil {
			return err
		}
		if err := seg.List.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}
