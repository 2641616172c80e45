package runner

import (
	"slices"

	"goatb/device"
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tiling"
	"goatb/tilingcache"
)

// tilingAlign is the alignment of the tilings of one operation together.
const tilingAlign = 512

// Plan is everything that Setup decides and Execute repeats. It is immutable.
type Plan struct {
	Graph     *kernelgraph.Graph
	Workspace *kernelgraph.Workspace
	// Option is the graph's value of sink.OptionName.
	Option string

	root     string
	steps    []step
	kernels  []kernelStep
	slots    []tiling.Slot
	bytes    int64
	operands int
	// streams lists the ids of the streams used; main is the one that the
	// others are joined to.
	streams []int
	main    int
	// values lists the inputs whose host values tilings read, readings which kernel
	// reads them as which of its values; made says that a tiling reads what the launch
	// makes.
	values   []int
	readings []reading
	made     bool
	// alias[j*len(In)+i] says that output j may be exactly the memory of input i.
	alias []bool
	// alike says that launches of the plan are nothing but the same kernels.
	alike bool
	// opKernels counts kernels by operation type, for the global cache.
	opKernels map[string]int
}

// reading is that the tiling of a kernel reads n of an input's host values from first
// on, as one of its own values.
type reading struct{ input, kernel, value, first, n int }

// step is one node in execution order.
type step struct {
	node *kernelgraph.Node
	// kernel is the index of a kernel or copy node among the kernels, -1 else.
	kernel int
	// operands are those of a foreign node.
	operands []operand
	// runnerEnd says that the operation of a graph ends here.
	runnerEnd bool
}

// kernelStep is what a launch of a kernel needs.
type kernelStep struct {
	node     *kernelgraph.Node
	query    tilingcache.Query
	operands []operand
	scratch  operand
	log      operand
	label    device.Label
	// values are those that the tiling reads; made says that the launch makes some
	// of them.
	values    []window
	made      bool
	cacheable bool
	// twin is an earlier kernel that has the same tiling whatever the values, such
	// as the attention of another layer; -1 for none and where no values are read.
	twin int
	// runs are what a kernel consists of that does nothing but move bytes.
	runs []run
}

// window is n values that a tiling reads: part of the host values of an input,
// from the first on, or what the launch itself makes. Then input is -1, and they
// lie at `at`.
type window struct {
	input, first, n int
	at              operand
}

// source tells whose memory an operand is.
type source uint8

const (
	fromNowhere source = iota
	fromInput
	fromOutput
	fromWorkspace
)

// operand is a window of a bound tensor or of the workspace.
type operand struct {
	source    source
	index     int
	off, size int64
}

// NewPlan lays a graph out for execution. root names the operation in errors,
// main is the operation's stream id, block the bytes of a tiling block and
// slotBytes the largest tiling that is cached. Errors: ErrOutOfHostMemory when
// the tilings exceed a block; ErrInvalidTensorAddr and ErrInvalidTensorDType when
// a tiling reads the values of a tensor that has none.
func NewPlan(g *kernelgraph.Graph, w *kernelgraph.Workspace, root string, main int, block, slotBytes int64) (*Plan, error) {
	if err := status.Given("plan", "graph", g, "workspace", w); err != nil {
		return nil, err
	}
	p := &Plan{Graph: g, Workspace: w, opKernels: map[string]int{}, root: root, main: -1}
	for i := range g.Nodes {
		if err := p.addNode(&g.Nodes[i], root, slotBytes); err != nil {
			return nil, err
		}
	}
	p.markRunnerEnds()
	p.bytes = (p.bytes + tilingAlign - 1) / tilingAlign * tilingAlign
	if p.bytes > block {
		return nil, status.Errorf(status.ErrOutOfHostMemory, "tilings of %d kernels need %d bytes, a tiling block has %d", len(p.kernels), p.bytes, block)
	}
	p.findStreams(main)
	p.findAliases()
	p.alike = p.isAlike()
	return p, nil
}

func (p *Plan) addNode(n *kernelgraph.Node, root string, slotBytes int64) error {
	s := step{node: n, kernel: -1}
	switch n.Kind {
	case kernelgraph.KernelNode, kernelgraph.CopyNode:
		s.kernel = len(p.kernels)
		k := kernelStep{node: n, query: tilingcache.NewQuery(n.Kernel, &n.Problem)}
		k.operands = p.locateAll(n.In, n.Out)
		k.runs = runsOf(n, k.operands)
		k.scratch = operand{fromWorkspace, 0, p.Workspace.ScratchAt[n.Stream], n.Scratch}
		for _, r := range n.Log {
			k.log = p.locate(r)
		}
		k.label = device.Label{Op: root, Node: n.Path, Kernel: n.Kernel.Name()}
		k.cacheable = !n.NoCache && int64(n.TilingSize) <= slotBytes
		for i, r := range n.Val {
			v, err := p.valuesOf(n, r)
			if err != nil {
				return err
			}
			k.values = append(k.values, v)
			if v.made() {
				k.made, p.made = true, true
			} else {
				p.values = addOnce(p.values, v.input)
				p.readings = append(p.readings, reading{v.input, s.kernel, i, v.first, v.n})
			}
		}
		k.twin = p.findTwin(&k)
		p.operands += len(k.operands)
		p.kernels = append(p.kernels, k)
		p.slots = append(p.slots, tiling.Slot{Offset: p.bytes, Size: int64(n.TilingSize), Stream: n.Stream})
		p.bytes += (int64(n.TilingSize) + slotAlign - 1) / slotAlign * slotAlign
		p.opKernels[n.Op]++
	case kernelgraph.ForeignNode:
		s.operands = append(p.locateAll(n.In, n.Out), operand{fromWorkspace, 0, p.Workspace.ScratchAt[n.Stream], n.Scratch})
	}
	p.steps = append(p.steps, s)
	return nil
}

const slotAlign = 64

// findTwin finds the twin of a kernel among those before it.
func (p *Plan) findTwin(k *kernelStep) int {
	if len(k.values) == 0 || k.made || !k.cacheable {
		return -1
	}
	for i := len(p.kernels) - 1; i >= 0; i-- {
		o := &p.kernels[i]
		if len(o.values) == 0 || !o.cacheable || !slices.Equal(o.values, k.values) || !o.query.Same(&k.query) {
			continue
		}
		if o.twin >= 0 {
			return o.twin
		}
		return i
	}
	return -1
}

// valuesOf finds the values that the tiling of n reads as r.
func (p *Plan) valuesOf(n *kernelgraph.Node, r kernelgraph.Ref) (window, error) {
	t := &p.Graph.Tensors[r]
	base := &p.Graph.Tensors[t.Base]
	if base.Kind != kernelgraph.Input {
		return p.madeValue(n, r)
	}
	size := base.Desc.DType.Size()
	if t.Desc.DType != base.Desc.DType || t.Offset%size != 0 {
		return window{}, status.Errorf(status.ErrInvalidTensorAddr, "the tiling of %s reads host values of %s as %s at byte %d: want %s, aligned", n.Path, base.Name, t.Desc.DType, t.Offset, base.Desc.DType)
	}
	return window{input: base.Index, first: int(t.Offset / size), n: int(t.Desc.Numel())}, nil
}

func addOnce(list []int, v int) []int {
	for _, x := range list {
		if x == v {
			return list
		}
	}
	return append(list, v)
}

func (p *Plan) locateAll(in, out []kernelgraph.Ref) []operand {
	ops := make([]operand, 0, len(in)+len(out))
	for _, refs := range [...][]kernelgraph.Ref{in, out} {
		for _, r := range refs {
			ops = append(ops, p.locate(r))
		}
	}
	return ops
}

// locate finds the memory of a tensor.
func (p *Plan) locate(r kernelgraph.Ref) operand {
	if r == kernelgraph.Absent {
		return operand{}
	}
	t := &p.Graph.Tensors[r]
	base := &p.Graph.Tensors[t.Base]
	o := operand{index: base.Index, off: t.Offset, size: t.Desc.Bytes()}
	switch base.Kind {
	case kernelgraph.Input:
		o.source = fromInput
	case kernelgraph.Output:
		o.source = fromOutput
	default:
		o.source, o.index = fromWorkspace, 0
		o.off += p.Workspace.Offset[t.Base]
	}
	return o
}

// markRunnerEnds marks the last node of every operation of a graph.
func (p *Plan) markRunnerEnds() {
	for i := range p.steps {
		p.steps[i].runnerEnd = i+1 == len(p.steps) || p.steps[i+1].node.Scope != p.steps[i].node.Scope
	}
}

func (p *Plan) findStreams(main int) {
	for i := range p.steps {
		p.streams = addOnce(p.streams, p.steps[i].node.Stream)
	}
	if len(p.streams) == 0 {
		p.streams = []int{main}
	}
	p.main = p.streams[0]
	for _, s := range p.streams {
		if s == main {
			p.main = main
		}
	}
}

// findAliases finds the pairs of output and input that a caller may bind to the
// same memory.
func (p *Plan) findAliases() {
	g := p.Graph
	p.alias = make([]bool, len(g.Inputs)*len(g.Outputs))
	sharing := kernelgraph.NewSharing(g)
	for j, out := range g.Outputs {
		for i, in := range g.Inputs {
			if in != kernelgraph.Absent && out != kernelgraph.Absent {
				p.alias[j*len(g.Inputs)+i] = sharing.Allowed(in, out)
			}
		}
	}
}

// Kernels returns the number of kernels.
func (p *Plan) Kernels() int { return len(p.kernels) }

// TilingBytes returns the bytes of all tilings together.
func (p *Plan) TilingBytes() int64 { return p.bytes }

// Values lists the inputs whose host values tilings read.
func (p *Plan) Values() []int { return p.values }
