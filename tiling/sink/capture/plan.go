package capture

import (
	"slices"
	"strconv"

	"goatb/tiling/sink"
)

// Plan is a graph that is judged and cut into segments. It is immutable and knows
// no device.
type Plan struct {
	Settings Settings
	Nodes    []Node
	Ops      []sink.Op
	Marks    []sink.Mark
	// Segments cover all nodes in order.
	Segments []Segment
	// HostTilings counts the tilings that were computed on the host.
	HostTilings int64
	// Wired is the execution graph of form v2, nil in other forms, and Before the
	// tilings that its constants hold, by node.
	Wired  *sink.Prepared
	Before []*sink.Before
}

// Segment is a run of nodes. List is nil for a node that the host does.
type Segment struct {
	sink.Segment
	List *sink.List
}

// New judges the nodes and generates the lists. Errors: those of
// sink.Build.Judge, of the tilings on the host, and of the generator; all name the
// operation.
func New(nodes []Node, s Settings) (*Plan, error) {
	ops, err := Describe(nodes)
	if err != nil {
		return nil, err
	}
	p := &Plan{Settings: s, Nodes: nodes, Ops: ops, Before: make([]*sink.Before, len(nodes))}
	if s.Form == sink.V2Form {
		return p, p.pretileAll()
	}
	if p.Marks, err = s.Build.Judge(p.Ops); err != nil {
		return nil, err
	}
	for _, seg := range sink.Split(p.Ops, p.Marks) {
		part := Segment{Segment: seg}
		if !seg.Host {
			if err := p.generate(&part, len(p.Segments)); err != nil {
				return nil, err
			}
		}
		p.Segments = append(p.Segments, part)
	}
	return p, nil
}

// pretile computes the tiling of a kernel on the host.
func (p *Plan) pretile(i int) error {
	n := &p.Nodes[i]
	b, err := sink.PreTile(&p.Ops[i], n.Kernel, n.Problem, nil)
	if err != nil {
		return err
	}
	p.Before[i] = b
	p.HostTilings++
	return nil
}

// generate makes the list of a captured segment, which is the n-th.
func (p *Plan) generate(seg *Segment, n int) error {
	marks := p.Marks[seg.First : seg.Last+1]
	c := sink.Captured{Ops: seg.Segment.Ops(p.Ops), Marks: marks}
	if p.Settings.Form == sink.SuperKernelForm {
		c.Supers = p.fuse(c.Ops, n)
	}
	a, err := sink.Assign(c.Ops, marks, p.Settings.Streams, p.Settings.Main)
	if err != nil {
		return err
	}
	events := p.events(&seg.Segment, a)
	for i := range c.Ops {
		n := &p.Nodes[seg.First+i]
		if n.Kernel == nil {
			c.Tasks, c.Workspaces = append(c.Tasks, n.eventTask(c.Ops[i].ID, events)), append(c.Workspaces, nil)
			continue
		}
		if err := p.pretile(seg.First + i); err != nil {
			return err
		}
		b := p.Before[seg.First+i]
		c.Tasks = append(c.Tasks, []sink.Task{n.task(&c.Ops[i], &marks[i], p.Settings.Form, b)})
		c.Workspaces = append(c.Workspaces, b.Plan(&c.Ops[i]))
	}
	seg.List, err = sink.Generate(&c, a, &p.Settings.Soc, &p.Settings.Machine)
	return err
}

// events gives the pairs that lie in a segment as a whole their events, behind
// those of an assignment. Others order nothing: segments run one after the other.
func (p *Plan) events(seg *sink.Segment, a *sink.Assignment) map[int]int {
	parts := map[int]int{}
	for i := seg.First; i <= seg.Last; i++ {
		parts[p.Nodes[i].Pair]++
	}
	events := map[int]int{}
	for i := seg.First; i <= seg.Last; i++ {
		if n := &p.Nodes[i]; n.Pair > 0 && !n.Waits && parts[n.Pair] == 2 {
			events[n.Pair] = a.Events
			a.Events++
		}
	}
	return events
}

// eventTask is the record or wait of a pair.
func (n *Node) eventTask(op int64, events map[int]int) []sink.Task {
	e, inside := events[n.Pair]
	switch {
	case !inside:
		return nil
	case n.Waits:
		return []sink.Task{{Kind: sink.WaitTask, Stream: n.Stream, Op: op, Event: e}}
	}
	return []sink.Task{{Kind: sink.RecordTask, Stream: n.Stream, Op: op, Event: e}}
}

// fuse puts kernels that follow each other on a stream into the scope of one
// super kernel, which ends before a tiling that reads what it makes. Ids of super
// kernels follow those of the nodes.
func (p *Plan) fuse(ops []sink.Op, segment int) []sink.SuperKernel {
	var out []sink.SuperKernel
	fresh, first := true, 0
	for i := range ops {
		if ops[i].CompileInfo == "" { // no kernel
			fresh = true
			continue
		}
		if n := len(out); fresh || out[n-1].Stream != ops[i].Stream || makes(&ops[i], first) {
			fresh, first = false, i
			out = append(out, sink.SuperKernel{
				Op: superID(p, segment, n), Name: "superkernel" + strconv.Itoa(segment) + "_" + strconv.Itoa(n), Stream: ops[i].Stream,
			})
		}
		ops[i].Fusion.Scope = out[len(out)-1].Name
	}
	return out
}

// makes reports whether the tiling of an operation reads what an operation from
// `first` on makes.
func makes(o *sink.Op, first int) bool {
	return slices.ContainsFunc(o.Inputs, func(in sink.Input) bool { return in.Producer >= first })
}

// superID numbers the super kernels of a graph: there are fewer than nodes in
// each segment.
func superID(p *Plan, segment, n int) int64 {
	return int64(len(p.Nodes))*int64(segment+1) + int64(n)
}

// pretileAll marks the kernels of form v2, tiles those whose values are known, and
// wires them.
func (p *Plan) pretileAll() error {
	for i := range p.Ops {
		o := &p.Ops[i]
		if p.Nodes[i].Kernel == nil {
			p.Marks = append(p.Marks, sink.Mark{Unknown: true, Reason: o.HostOnly})
			continue
		}
		m := sink.Mark{Depends: len(o.Inputs) > 0}
		if !m.Depends || p.Nodes[i].Problem.Values != nil {
			if err := p.pretile(i); err != nil {
				return err
			}
		}
		p.Marks = append(p.Marks, m)
	}
	return p.Wire()
}

// Wire makes the execution graph of form v2 from operations, marks and tilings.
// Nodes that are no kernels are outside of it.
func (p *Plan) Wire() error {
	var ops []sink.Op
	var before []*sink.Before
	var marks []sink.Mark
	at := make([]int, len(p.Ops)) // in the execution graph
	for i := range p.Ops {
		o := p.Ops[i]
		if at[i] = sink.Outside; o.CompileInfo == "" { // no kernel
			continue
		}
		at[i] = len(ops)
		o.Inputs = slices.Clone(o.Inputs)
		for j := range o.Inputs {
			if in := &o.Inputs[j]; in.Producer != sink.Outside {
				in.Producer = at[in.Producer]
			}
		}
		ops, marks, before = append(ops, o), append(marks, p.Marks[i]), append(before, p.Before[i])
	}
	var err error
	p.Wired, err = sink.Prepare(ops, marks, before)
	return err
}
