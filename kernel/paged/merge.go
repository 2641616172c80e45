package paged

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Merge holds the kernels that join what Parts wrote: input f32 [tokens,
// heads, parts, dv+2], output [tokens, heads, dv] of a float type, values as
// Attend.
var Merge = kernel.Table{mergeGo}

// mergeTiling is the plan of Merge; the tail holds the sequences.
type mergeTiling struct {
	Tokens, Heads, Group, Parts, ValueDim, Sequences int64
	// KVHeads is the number of sequences per query row where every kv head
	// has its own context, else 0.
	KVHeads int64
	OutType tensor.DType
}

var mergeGo = kernel.Define(kernel.Def[Params, mergeTiling]{
	Name:     "pagedmerge/go",
	Class:    device.Vector,
	Supports: func(p *kernel.Problem, a Params) error { _, err := measureMerge(p, a); return err },
	Scratch: func(p *kernel.Problem, a Params) int64 {
		return int64(max(p.Machine.Cores, 1)) * (p.Out[0].Dim(2)*4 + 64)
	},
	Tail: func(p *kernel.Problem, a Params) int { return int(p.Val[0].Numel()+1) * sequenceWords },
	Tile: func(p *kernel.Problem, a Params, t *mergeTiling, tail []int64) (kernel.Grid, error) {
		g, err := measureMerge(p, a)
		if err != nil {
			return kernel.Grid{}, err
		}
		if _, err := g.fillSequences(p, a, tail); err != nil {
			return kernel.Grid{}, err
		}
		t.Tokens, t.Heads, t.Group, t.ValueDim, t.Sequences = g.Tokens, g.Heads, g.Group, g.ValueDim, g.Sequences
		t.Parts, t.OutType = p.In[0].Dim(2), p.Out[0].DType
		if a.PerHead {
			t.KVHeads = a.KVHeads
		}
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, g.Tokens*g.Heads, t.nanos(tail))}, nil
	},
	Run: runMerge,
	Cost: func(t *mergeTiling, tail []int64) (flops, bytes int64) {
		n := t.joins(tail)
		return 3 * n * t.ValueDim, 4*n*(t.ValueDim+2) + t.Tokens*t.Heads*t.ValueDim*t.OutType.Size()
	},
})

// measureMerge checks the descriptors of Merge and gives the geometry that
// fillSequences reads.
func measureMerge(p *kernel.Problem, a Params) (geometry, error) {
	g := geometry{Heads: a.Heads, KVHeads: a.KVHeads, PerHead: a.PerHead}
	if len(p.In) != 1 || len(p.Out) != 1 || len(p.Val) == 0 || a.KVHeads < 1 || a.Heads%a.KVHeads != 0 {
		return g, status.Errorf(status.ErrInvalidParam, "want 1 input, 1 output and context lengths, got %d, %d, %d", len(p.In), len(p.Out), len(p.Val))
	}
	in, o := &p.In[0], &p.Out[0]
	if o.Rank() != 3 || o.Dim(1) != a.Heads || !isFloat(o.DType) {
		return g, status.Errorf(status.ErrInvalidParam, "want a float output of %d heads, got %s", a.Heads, o)
	}
	g.Tokens, g.ValueDim, g.Group = o.Dim(0), o.Dim(2), a.Heads/a.KVHeads
	if in.DType != tensor.Float32 || in.Rank() != 4 || in.Shape != tensor.ShapeOf(g.Tokens, g.Heads, in.Dim(2), g.ValueDim+2) {
		return g, status.Errorf(status.ErrInvalidParam, "want parts f32[%d,%d,parts,%d], got %s", g.Tokens, g.Heads, g.ValueDim+2, in)
	}
	g.MaxContext = in.Dim(2) * PartLen
	return g, g.measureLengths(p, a)
}

// runMerge joins the parts of the block's rows in order.
func runMerge(a *kernel.Args, block int, t *mergeTiling, tail []int64) error {
	in, out := device.View[float32](a.Mem(0)), a.Mem(1)
	total := device.View[float32](a.Scratch.Bytes())[int64(block)*(t.ValueDim+16):][:t.ValueDim]
	width, size := t.ValueDim+2, t.ValueDim*t.OutType.Size()
	lo, hi := kernel.Share(t.Tokens*t.Heads, block, a.Blocks)
	s, end := int64(-1), int64(0)
	var q sequence
	for row := lo; row < hi; row++ {
		token := row / t.Heads
		if t.KVHeads > 0 {
			q = readSequence(tail, token*t.KVHeads+row%t.Heads/t.Group)
		} else {
			for token >= end {
				s++
				q = readSequence(tail, s)
				end = q.Row + q.Rows
			}
		}
		var top, sum float32
		parts := in[row*t.Parts*width:]
		for range NumParts(q.Context) {
			p := parts[:width]
			join(total, &top, &sum, p[:t.ValueDim], p[t.ValueDim], p[t.ValueDim+1])
			parts = parts[width:]
		}
		normalise(total, sum)
		kernel.StoreFloats(out[row*size:(row+1)*size], total, t.OutType)
	}
	return nil
}

// joins counts the parts that are joined.
func (t *mergeTiling) joins(tail []int64) int64 {
	n, heads := int64(0), t.Heads
	if t.KVHeads > 0 {
		heads = t.Group
	}
	for s := range t.Sequences {
		q := readSequence(tail, s)
		n += NumParts(q.Context) * q.Rows * heads
	}
	return n
}

func (t *mergeTiling) nanos(tail []int64) float64 {
	const perJoin, perElement = 20, 0.5
	return float64(t.joins(tail)) * (perJoin + float64(t.ValueDim)*perElement)
}
