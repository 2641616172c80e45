package softmax

import (
	"math"

	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// A softmax over few long rows runs in three launches whose blocks share the
// chunks of all rows. The params are the View of the rows; Inner is 1.
var (
	// Max: x -> the largest element of every chunk, f32[Outer, chunks].
	Max = kernel.Table{chunkMax}
	// Exp: x, Max's result -> e^(x-max), f32 like x, and its sum over every
	// chunk, f32[Outer, chunks].
	Exp = kernel.Table{chunkExp}
	// Normalise: Exp's two results -> y. The output may be the first input.
	Normalise = kernel.Table{chunkScale}
)

// Parts returns the number of chunks per row when rows are so few and long that
// three launches keep more of the machine's cores busy than one, and false
// otherwise.
func Parts(m kernel.Machine, v View) (int64, bool) {
	n := chunks(v.Length)
	return n, !m.Accelerator && v.Inner == 1 && v.Outer < int64(m.Cores) && v.Outer*n >= 2*int64(m.Cores) && n >= 4
}

// partsTiling is the plan of the three launches.
type partsTiling struct {
	Outer, Length, Chunks int64
	DType                 tensor.DType
}

// span returns row, first element and end of chunk i of all.
func (t *partsTiling) span(i int64) (row, from, to int64) {
	row = i / t.Chunks
	from = i % t.Chunks * Chunk
	return row, from, min(from+Chunk, t.Length)
}

// operandKind is what an operand of the three launches holds.
type operandKind uint8

const (
	// data is the softmax's own input or output, f32, f16 or bf16.
	data operandKind = iota
	// wide is f32 for every element of it.
	wide
	// perChunk is f32 for every chunk.
	perChunk
)

// checkParts checks the operands of a launch against their kinds.
func checkParts(p *kernel.Problem, v View, in, out []operandKind) error {
	if len(p.In) != len(in) || len(p.Out) != len(out) {
		return status.Errorf(status.ErrInvalidParam, "want %d inputs and %d outputs, got %d and %d", len(in), len(out), len(p.In), len(p.Out))
	}
	if v.Inner != 1 {
		return status.Errorf(status.ErrInvalidParam, "slices have a stride of %d", v.Inner)
	}
	n := p.In[0].Numel()
	if err := v.fits(n); err != nil {
		return err
	}
	check := func(d *tensor.Desc, k operandKind) error {
		count, ok := n, d.DType == tensor.Float32
		switch k {
		case data:
			ok = ok || d.DType == tensor.Float16 || d.DType == tensor.BFloat16
		case perChunk:
			count = v.Outer * chunks(v.Length)
		}
		if !ok || d.Numel() != count {
			return status.Errorf(status.ErrInvalidParam, "want %d floats, got %s", count, d)
		}
		return nil
	}
	for i := range in {
		if err := check(&p.In[i], in[i]); err != nil {
			return err
		}
	}
	for i := range out {
		if err := check(&p.Out[i], out[i]); err != nil {
			return err
		}
	}
	return nil
}

func tileParts(p *kernel.Problem, v View, t *partsTiling, x tensor.DType) (kernel.Grid, error) {
	t.Outer, t.Length, t.Chunks, t.DType = v.Outer, v.Length, chunks(v.Length), x
	return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, v.Outer*t.Chunks, float64(v.Outer*v.Length))}, nil
}

// scratchParts is a chunk of float32 per block for 16-bit data.
func scratchParts(p *kernel.Problem, v View, x tensor.DType) int64 {
	if x == tensor.Float32 {
		return 0
	}
	var t partsTiling
	g, _ := tileParts(p, v, &t, x)
	return int64(g.Blocks) * Chunk * 4
}

var chunkMax = kernel.Define(kernel.Def[View, partsTiling]{
	Name:  "softmax-max/chunks",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, v View) error {
		return checkParts(p, v, []operandKind{data}, []operandKind{perChunk})
	},
	Scratch: func(p *kernel.Problem, v View) int64 { return scratchParts(p, v, p.In[0].DType) },
	Tile: func(p *kernel.Problem, v View, t *partsTiling, _ []int64) (kernel.Grid, error) {
		return tileParts(p, v, t, p.In[0].DType)
	},
	Run: func(a *kernel.Args, block int, t *partsTiling, _ []int64) error {
		out := device.View[float32](a.Mem(1))
		lo, hi := kernel.Share(t.Outer*t.Chunks, block, a.Blocks)
		e, _ := floats.Of(t.DType)
		for i := lo; i < hi; i++ {
			out[i] = floats.Max(e, t.chunk(a.Mem(0), i), t.buffer(a, block))
		}
		return nil
	},
	Cost: func(t *partsTiling, _ []int64) (flops, bytes int64) {
		return t.Outer * t.Length, t.Outer * (t.Length*t.DType.Size() + t.Chunks*4)
	},
})

// chunk returns chunk i of the softmax's own input or output.
func (t *partsTiling) chunk(mem []byte, i int64) []byte {
	row, from, to := t.span(i)
	size := t.DType.Size()
	return mem[(row*t.Length+from)*size : (row*t.Length+to)*size]
}

// buffer returns the block's scratch for 16-bit data.
func (t *partsTiling) buffer(a *kernel.Args, block int) []float32 {
	if t.DType == tensor.Float32 {
		return nil
	}
	return device.View[float32](a.Scratch.Bytes())[block*Chunk:][:Chunk]
}

var chunkExp = kernel.Define(kernel.Def[View, partsTiling]{
	Name:  "softmax-exp/chunks",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, v View) error {
		return checkParts(p, v, []operandKind{data, perChunk}, []operandKind{wide, perChunk})
	},
	Tile: func(p *kernel.Problem, v View, t *partsTiling, _ []int64) (kernel.Grid, error) {
		return tileParts(p, v, t, p.In[0].DType)
	},
	Run: func(a *kernel.Args, block int, t *partsTiling, _ []int64) error {
		maxes, exps, sums := device.View[float32](a.Mem(1)), device.View[float32](a.Mem(2)), device.View[float32](a.Mem(3))
		e, _ := floats.Of(t.DType)
		lo, hi := kernel.Share(t.Outer*t.Chunks, block, a.Blocks)
		for i := lo; i < hi; i++ {
			row, from, to := t.span(i)
			top := float32(math.Inf(-1))
			for _, m := range maxes[row*t.Chunks : (row+1)*t.Chunks] {
				top = max(top, m)
			}
			sums[i] = floats.ExpSum(e, exps[row*t.Length+from:row*t.Length+to], t.chunk(a.Mem(0), i), top)
		}
		return nil
	},
	Cost: func(t *partsTiling, _ []int64) (flops, bytes int64) {
		return 3 * t.Outer * t.Length, t.Outer * (t.Length*(t.DType.Size()+4) + t.Chunks*8)
	},
})

var chunkScale = kernel.Define(kernel.Def[View, partsTiling]{
	Name:    "softmax-normalise/chunks",
	Class:   device.Vector,
	InPlace: true,
	Pairs:   [][2]int{{0, 0}},
	Supports: func(p *kernel.Problem, v View) error {
		return checkParts(p, v, []operandKind{wide, perChunk}, []operandKind{data})
	},
	Scratch: func(p *kernel.Problem, v View) int64 { return scratchParts(p, v, p.Out[0].DType) },
	Tile: func(p *kernel.Problem, v View, t *partsTiling, _ []int64) (kernel.Grid, error) {
		return tileParts(p, v, t, p.Out[0].DType)
	},
	Run: func(a *kernel.Args, block int, t *partsTiling, _ []int64) error {
		exps, sums := device.View[float32](a.Mem(0)), device.View[float32](a.Mem(1))
		lo, hi := kernel.Share(t.Outer*t.Chunks, block, a.Blocks)
		e, _ := floats.Of(t.DType)
		for i := lo; i < hi; i++ {
			row, from, to := t.span(i)
			var sum float32
			for _, s := range sums[row*t.Chunks : (row+1)*t.Chunks] {
				sum += s
			}
			normalise(e, t.chunk(a.Mem(2), i), exps[row*t.Length+from:row*t.Length+to], sum, t.buffer(a, block))
		}
		return nil
	},
	Cost: func(t *partsTiling, _ []int64) (flops, bytes int64) {
		return t.Outer * t.Length, t.Outer * (t.Length*(t.DType.Size()+4) + t.Chunks*4)
	},
})
