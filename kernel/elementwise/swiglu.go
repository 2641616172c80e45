package elementwise

import (
	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// SwiGLU: x [..., 2h] -> y [..., h], silu of the first half times the second.
// Params struct{}.
var SwiGLU = kernel.Table{swiglu}

// SwiGLUGrad: dy [..., h], x [..., 2h] -> dx [..., 2h], the gradient of SwiGLU.
// The output may be x. Params struct{}.
var SwiGLUGrad = kernel.Table{swigluGrad}

// gluTiling walks rows of two halves, every half in pieces.
type gluTiling struct {
	Rows, Half, Pieces int64
	DType              tensor.DType
}

func (t *gluTiling) set(p *kernel.Problem, half int64, nanos float64) kernel.Grid {
	y := &p.Out[0]
	*t = gluTiling{Rows: y.Numel() / y.Dim(-1), Half: half, Pieces: (half + chunkElements - 1) / chunkElements, DType: y.DType}
	return kernel.Grid{Blocks: kernel.EvenBlocksFor(p.Machine, t.Rows*t.Pieces, float64(t.Rows*half)*nanos)}
}

// piece returns the row, the first element and the length of piece i.
func (t *gluTiling) piece(i int64) (row, from, n int64) {
	row, from = i/t.Pieces, i%t.Pieces*chunkElements
	return row, from, min(chunkElements, t.Half-from)
}

// wantFloats checks the number of operands and that all have one float type.
func wantFloats(p *kernel.Problem, in, out int) error {
	if err := wantOperands(p, in, out); err != nil {
		return err
	}
	t := p.In[0].DType
	for _, descs := range [2][]tensor.Desc{p.In, p.Out} {
		for i := range descs {
			if d := &descs[i]; d.DType != t || !isFloat(t) {
				return status.Errorf(status.ErrInvalidParam, "want f32, f16 or bf16 throughout, got %s and %s", t, d.DType)
			}
		}
	}
	return nil
}

// twice checks that wide has the shape of half but for a last dimension twice
// as long.
func twice(wide, half *tensor.Desc) error {
	if wide.Rank() != half.Rank() || wide.Shape != half.Shape.With(-1, 2*half.Dim(-1)) {
		return status.Errorf(status.ErrInvalidParam, "want %s with a last dimension twice as long, got %s", half, wide)
	}
	return nil
}

var swiglu = kernel.Define(kernel.Def[struct{}, gluTiling]{
	Name:  "swiglu/go",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if err := wantFloats(p, 1, 1); err != nil {
			return err
		}
		return twice(&p.In[0], &p.Out[0])
	},
	Scratch: func(p *kernel.Problem, _ struct{}) int64 { return scratchForEven(p, 1) },
	Tile: func(p *kernel.Problem, _ struct{}, t *gluTiling, _ []int64) (kernel.Grid, error) {
		return t.set(p, p.Out[0].Dim(-1), kernel.Nanos(0.5, 3.5)+1.5*floatNanos(p.In[0].DType)), nil
	},
	Run: func(a *kernel.Args, block int, t *gluTiling, _ []int64) error {
		buf, src, dst, size := buffers(a, block, 1), a.Mem(0), a.Mem(1), t.DType.Size()
		lo, hi := kernel.Share(t.Rows*t.Pieces, block, a.Blocks)
		for i := lo; i < hi; i++ {
			row, from, n := t.piece(i)
			gate, up := src[(row*2*t.Half+from)*size:], src[((row*2+1)*t.Half+from)*size:]
			floats.Binary(floats.SwiGLU, elementOf(t.DType), dst[(row*t.Half+from)*size:][:n*size], gate[:n*size], up[:n*size], buf)
		}
		return nil
	},
	Cost: func(t *gluTiling, _ []int64) (flops, bytes int64) {
		n := t.Rows * t.Half
		return 4 * n, 3 * n * t.DType.Size()
	},
})

var swigluGrad = kernel.Define(kernel.Def[struct{}, gluTiling]{
	Name:    "swiglu-grad/go",
	Class:   device.Vector,
	InPlace: true,
	Pairs:   [][2]int{{0, 1}},
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if err := wantFloats(p, 2, 1); err != nil {
			return err
		}
		if p.In[1].Shape != p.Out[0].Shape {
			return status.Errorf(status.ErrInvalidParam, "want an output like x, got %s and %s", p.In[1], p.Out[0])
		}
		return twice(&p.In[1], &p.In[0])
	},
	Scratch: func(p *kernel.Problem, _ struct{}) int64 { return scratchForEven(p, 5) },
	Tile: func(p *kernel.Problem, _ struct{}, t *gluTiling, _ []int64) (kernel.Grid, error) {
		return t.set(p, p.In[0].Dim(-1), kernel.Nanos(0.7, 7)+2.5*floatNanos(p.In[0].DType)), nil
	},
	Run: func(a *kernel.Args, block int, t *gluTiling, _ []int64) error {
		buf, grad, src, dst, size := buffers(a, block, 5), a.Mem(0), a.Mem(1), a.Mem(2), t.DType.Size()
		lo, hi := kernel.Share(t.Rows*t.Pieces, block, a.Blocks)
		for i := lo; i < hi; i++ {
			row, from, n := t.piece(i)
			first, second, bytes := (row*2*t.Half+from)*size, ((row*2+1)*t.Half+from)*size, n*size
			dy := grad[(row*t.Half+from)*size:][:bytes]
			floats.SwiGLUGrad(elementOf(t.DType), dst[first:][:bytes], dst[second:][:bytes], dy, src[first:][:bytes], src[second:][:bytes], buf)
		}
		return nil
	},
	Cost: func(t *gluTiling, _ []int64) (flops, bytes int64) {
		n := t.Rows * t.Half
		return 10 * n, 5 * n * t.DType.Size()
	},
})
