package runner

import (
	"slices"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/tiling"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// captured is what the launches of a plan share under a policy that captures.
type captured struct {
	// made says that the rest is set; version is that of the addresses that were
	// seen to fit it last.
	made    bool
	version uint64
	// skipped and absent are the copies that are left out and the inputs without
	// device memory: a launch where they differ is captured anew.
	skipped, absent []bool
	copies          int64
	// plan is nil where everything is launched from the host. graph is what is
	// replayed, nil in form v2, whose policy is wired.
	plan  *capture.Plan
	graph *capture.Graph
	wired *tiling.Wired
	// pairs are the events inside the graph.
	pairs pairs
	// steps is the step of each node of the plan.
	steps []int
	// hosted says that some kernel is tiled on the host at every launch.
	hosted bool
}

// fits reports whether the captured graph is right for the bound addresses.
func (r *Runner) fits() bool {
	c := &r.captured
	if !c.made {
		return false
	}
	if c.version == r.version {
		return true
	}
	for i := range r.in {
		if c.absent[i] != r.in[i].IsNil() {
			return false
		}
	}
	if !slices.Equal(c.skipped, r.skip) {
		return false
	}
	c.version = r.version
	return true
}

// capture judges the plan under the bound addresses and loads what is captured.
// The host values are taken already.
func (r *Runner) capture() error {
	r.retire()
	c := captured{version: r.version, skipped: slices.Clone(r.skip), absent: make([]bool, len(r.in)), hosted: true}
	for i := range r.in {
		c.absent[i] = r.in[i].IsNil()
	}
	for _, skipped := range c.skipped {
		if skipped {
			c.copies++
		}
	}
	if err := r.decide(&c); err != nil {
		return err
	}
	c.made = true
	r.captured = c
	return nil
}

// decide chooses between form v2, a captured graph, and neither.
func (r *Runner) decide(c *captured) error {
	var err error
	if c.pairs, err = r.findPairs(); err != nil {
		return err
	}
	var models device.ModelDevice
	if r.env.Sinking.Form != sink.V2Form {
		why := r.hostOnly(&c.pairs)
		if models, err = device.Models(r.env.Device); why == "" && err != nil {
			why = "the device " + r.env.Device.Props().Name + " does not run task lists"
		}
		if why != "" {
			return r.fallBack(why)
		}
	}
	s, err := r.settings(models, "")
	if err != nil {
		return err
	}
	if c.plan, err = r.captures(r.nodes(c), s); err != nil {
		return err
	}
	r.tally.tilings += c.plan.HostTilings
	if s.Form == sink.V2Form {
		r.wire(c)
	} else {
		r.noteMarks(c)
		if c.graph, err = c.plan.Load(models); err != nil {
			return err
		}
	}
	r.env.Counters.Captures.Add(1)
	return nil
}

// noteMarks notes what stays on the host.
func (r *Runner) noteMarks(c *captured) {
	c.hosted = false
	for i, m := range c.plan.Marks {
		o := &c.plan.Ops[i]
		c.hosted = c.hosted || m.Unknown && o.HostOnly == ""
		if m.Gate != sink.NoGate {
			r.env.Sinking.Fallbacks.Add(Fallback{Op: r.plan.root, Node: o.Name, Gate: m.Gate.String(), Reason: m.Reason})
		}
	}
}

// wire makes the policy of form v2.
func (r *Runner) wire(c *captured) {
	c.wired = &tiling.Wired{Constants: make([]tiling.Constant, len(r.launches))}
	for i, m := range c.plan.Marks {
		if s := &r.plan.steps[c.steps[i]]; s.kernel >= 0 && !m.Depends {
			b := c.plan.Before[i]
			c.wired.Constants[s.kernel] = tiling.Constant{Data: b.Data, Grid: kernel.Grid{Key: b.Key, Blocks: int(b.BlockDim)}}
		}
	}
}

// nodes describes the steps to capture, without the copies that are left out.
func (r *Runner) nodes(c *captured) []capture.Node {
	nodes := make([]capture.Node, 0, len(r.plan.steps))
	at := make([]int, len(r.plan.steps))
	for i := range r.plan.steps {
		s := &r.plan.steps[i]
		at[i] = len(nodes)
		if s.kernel < 0 {
			label := &device.Label{Op: r.plan.root, Node: s.node.Path, Kernel: s.node.What()}
			n := capture.Node{Label: label, Stream: r.plan.streamIndex(s.node.Stream)}
			if n.Pair = c.pairs.of[i]; n.Pair == 0 {
				n.HostOnly = otherReason(s)
			}
			n.Waits = s.node.Kind == kernelgraph.WaitNode
			nodes = append(nodes, n)
		} else if !c.skipped[s.kernel] {
			nodes = append(nodes, r.node(c, i, at))
		} else {
			continue
		}
		c.steps = append(c.steps, i)
	}
	return nodes
}

// otherReason says what a step does that is no kernel.
func otherReason(s *step) string {
	if s.node.Kind == kernelgraph.ForeignNode {
		return "it calls a user's own operation"
	}
	return "it works on an event"
}

// node describes the kernel of step i; at has the numbers of the nodes before it.
func (r *Runner) node(c *captured, i int, at []int) capture.Node {
	s := &r.plan.steps[i]
	ks := &r.plan.kernels[s.kernel]
	n := capture.Node{
		Label: &ks.label, Kernel: ks.node.Kernel, Problem: &r.problems[s.kernel],
		Stream: r.plan.streamIndex(ks.node.Stream), Inputs: len(ks.node.In), Operands: make([]device.Address, len(ks.operands)),
	}
	for i := range ks.operands {
		n.Operands[i] = c.word(&ks.operands[i])
	}
	if ks.scratch.size > 0 {
		n.Scratch = c.word(&ks.scratch)
	}
	n.Log, n.NeverTimeout = c.word(&ks.log), s.node.NeverTimeout
	for _, v := range n.Problem.Values {
		if v == nil || ks.made { // not known yet
			p := *n.Problem
			p.Values, n.Problem = nil, &p
			break
		}
	}
	for j := range ks.values {
		w := &ks.values[j]
		if w.made() {
			n.Values = append(n.Values, capture.Value{Input: sink.Outside, Made: c.word(&w.at), Producers: r.producers(c, at, i, s.node.Val[j], nil)})
			continue
		}
		size := n.Problem.Val[j].DType.Size()
		n.Values = append(n.Values, capture.Value{Input: w.input, Off: int64(w.first) * size, Size: int64(w.n) * size})
	}
	return n
}

// word is the place of an operand in the address table.
func (c *captured) word(o *operand) device.Address {
	a := device.Address{Index: o.index, Off: o.off, Size: o.size}
	switch o.source {
	case fromInput:
		if c.absent[o.index] {
			return device.Address{} // a host tensor: kernels get its values in their tiling
		}
		a.Type = device.InputMemory
	case fromOutput:
		a.Type = device.OutputMemory
	case fromWorkspace:
		a.Type = device.WorkspaceMemory
	default:
		return device.Address{}
	}
	return a
}

// streamIndex numbers a stream among those of the plan.
func (p *Plan) streamIndex(id int) int { return slices.Index(p.streams, id) }

// retire gives the captured graph up.
func (r *Runner) retire() {
	if r.captured.graph != nil {
		r.env.Sinking.Retired.Add(r.captured.graph)
	}
	r.captured = captured{}
}
