package elementwise

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// lowest is the smallest quantised value under the options.
func lowest(o kernel.Options) int8 {
	if o.QuantMinNeg127 {
		return -127
	}
	return -128
}

// QuantMulParams are the scale and offset of a whole tensor.
type QuantMulParams struct{ Scale, Offset float32 }

// QuantMul: float x -> int8, round(x·Scale+Offset), half to even, clamped.
var QuantMul = kernel.Table{quantMul}

type quantMulTiling struct {
	N             int64
	Scale, Offset float32
	Low           int8
	DType         tensor.DType
}

var quantMul = kernel.Define(kernel.Def[QuantMulParams, quantMulTiling]{
	Name:  "quantize-mul/go",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, _ QuantMulParams) error {
		if err := wantOperands(p, 1, 1); err != nil {
			return err
		}
		if x, y := &p.In[0], &p.Out[0]; !isFloat(x.DType) || y.DType != tensor.Int8 || x.Numel() != y.Numel() {
			return status.Errorf(status.ErrInvalidParam, "want floats and as many int8, got %s and %s", x, y)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, _ QuantMulParams) int64 { return scratchFor(p, 1) },
	Tile: func(p *kernel.Problem, q QuantMulParams, t *quantMulTiling, _ []int64) (kernel.Grid, error) {
		*t = quantMulTiling{N: p.In[0].Numel(), Scale: q.Scale, Offset: q.Offset, Low: lowest(p.Options), DType: p.In[0].DType}
		return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, kernel.Nanos(0.25, 1)+floatNanos(t.DType)/2)}, nil
	},
	Run: func(a *kernel.Args, block int, t *quantMulTiling, _ []int64) error {
		buf, dst := buffers(a, block, 1), device.View[int8](a.Mem(1))
		lo, hi := span(t.N, block, a.Blocks)
		for ; lo < hi; lo += chunkElements {
			n := min(chunkElements, hi-lo)
			x := kernel.Floats(buf, a.Mem(0)[lo*t.DType.Size():], t.DType, n)
			vec.QuantMul(dst[lo:], x, t.Scale, t.Offset, t.Low)
		}
		return nil
	},
	Cost: func(t *quantMulTiling, _ []int64) (flops, bytes int64) {
		return 2 * t.N, t.N * (t.DType.Size() + 1)
	},
})

// QuantDiv: float x, float scale, int8 offset (may be absent) -> int8,
// round(x/scale+offset), half to even, clamped. scale and offset broadcast to
// x. Params struct{}.
var QuantDiv = kernel.Table{quantDiv}

type quantDivTiling struct {
	Layout   layout
	N        int64
	X, Scale tensor.DType
	Offset   bool
	Low      int8
}

// quantDivBuffers: x, scale and offset as floats and a half one for 16-bit
// elements.
const quantDivBuffers = 4

var quantDiv = kernel.Define(kernel.Def[struct{}, quantDivTiling]{
	Name:  "quantize-div/go",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if err := wantOperands(p, 3, 1); err != nil {
			return err
		}
		x, s, o, y := &p.In[0], &p.In[1], &p.In[2], &p.Out[0]
		if !isFloat(x.DType) || !isFloat(s.DType) || !o.Empty() && o.DType != tensor.Int8 || y.DType != tensor.Int8 || x.Shape != y.Shape {
			return status.Errorf(status.ErrInvalidParam, "want float x and scale, int8 offset and output like x, got %s, %s, %s and %s", x, s, o, y)
		}
		return broadcasts(p)
	},
	Scratch: func(p *kernel.Problem, _ struct{}) int64 { return scratchFor(p, quantDivBuffers) },
	Tile: func(p *kernel.Problem, _ struct{}, t *quantDivTiling, _ []int64) (kernel.Grid, error) {
		*t = quantDivTiling{N: p.In[0].Numel(), X: p.In[0].DType, Scale: p.In[1].DType, Offset: !p.In[2].Empty(), Low: lowest(p.Options)}
		t.Layout.set(p.Out[0].Shape, p.In[0].Shape, p.In[1].Shape, offsetShape(p))
		return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, kernel.Nanos(0.6, 3)+floatNanos(t.X)/2)}, nil
	},
	Run: func(a *kernel.Args, block int, t *quantDivTiling, _ []int64) error {
		buf, dst := buffers(a, block, quantDivBuffers), device.View[int8](a.Mem(3))
		half := buf[3*chunkElements:]
		lo, hi := span(t.N, block, a.Blocks)
		for ; lo < hi; lo += chunkElements {
			n := min(chunkElements, hi-lo)
			x := fetchFloats(&t.Layout, 0, buf, half, a.Mem(0), t.X, lo, n)
			s := fetchFloats(&t.Layout, 1, buf[chunkElements:], half, a.Mem(1), t.Scale, lo, n)
			o := fetchOffset(&t.Layout, buf[2*chunkElements:], half, a.Mem(2), t.Offset, lo, n)
			vec.QuantDiv(dst[lo:], x, s, o, t.Low)
		}
		return nil
	},
	Cost: func(t *quantDivTiling, _ []int64) (flops, bytes int64) {
		return 2 * t.N, t.N * (t.X.Size() + 1)
	},
})

// offsetShape is the shape of optional input 2.
func offsetShape(p *kernel.Problem) tensor.Shape {
	if p.In[2].Empty() {
		return tensor.ShapeOf(1)
	}
	return p.In[2].Shape
}

// fetchOffset returns operand 2, int8 or absent, for the outputs [lo, lo+n).
func fetchOffset(l *layout, buf, half []float32, mem []byte, there bool, lo, n int64) []float32 {
	if !there {
		clear(buf[:n])
		return buf[:n]
	}
	o := fetch(l, 2, device.View[int8](device.BytesOf(half)), device.View[int8](mem), lo, n)
	vec.Int8Floats(buf[:n], o)
	return buf[:n]
}

// Dequantize: int8 x, float scale, int8 offset (may be absent) -> float y of
// scale's type, (x-offset)·scale, rounded once; f16 saturates at ±65504. scale
// and offset broadcast to x. Params struct{}.
var Dequantize = kernel.Table{dequantize}

type dequantTiling struct {
	Layout layout
	N      int64
	Scale  tensor.DType
	Offset bool
}

var dequantize = kernel.Define(kernel.Def[struct{}, dequantTiling]{
	Name:  "dequantize/go",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if err := wantOperands(p, 3, 1); err != nil {
			return err
		}
		x, s, o, y := &p.In[0], &p.In[1], &p.In[2], &p.Out[0]
		if x.DType != tensor.Int8 || !isFloat(s.DType) || !o.Empty() && o.DType != tensor.Int8 || y.DType != s.DType || x.Shape != y.Shape {
			return status.Errorf(status.ErrInvalidParam, "want int8 x, float scale, int8 offset and output of scale's type, got %s, %s, %s and %s", x, s, o, y)
		}
		return broadcasts(p)
	},
	Scratch: func(p *kernel.Problem, _ struct{}) int64 { return scratchFor(p, quantDivBuffers) },
	Tile: func(p *kernel.Problem, _ struct{}, t *dequantTiling, _ []int64) (kernel.Grid, error) {
		*t = dequantTiling{N: p.In[0].Numel(), Scale: p.In[1].DType, Offset: !p.In[2].Empty()}
		t.Layout.set(p.Out[0].Shape, p.In[0].Shape, p.In[1].Shape, offsetShape(p))
		return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, kernel.Nanos(0.4, 2)+floatNanos(t.Scale))}, nil
	},
	Run: func(a *kernel.Args, block int, t *dequantTiling, _ []int64) error {
		buf, dst, size := buffers(a, block, quantDivBuffers), a.Mem(3), t.Scale.Size()
		half, src := buf[3*chunkElements:], device.View[int8](a.Mem(0))
		lo, hi := span(t.N, block, a.Blocks)
		for ; lo < hi; lo += chunkElements {
			n := min(chunkElements, hi-lo)
			x := buf[:n]
			vec.Int8Floats(x, src[lo:lo+n])
			s := fetchFloats(&t.Layout, 1, buf[chunkElements:], half, a.Mem(1), t.Scale, lo, n)
			if t.Offset {
				vec.Sub(x, x, fetchOffset(&t.Layout, buf[2*chunkElements:], half, a.Mem(2), true, lo, n))
			}
			vec.Mul(x, x, s)
			if t.Scale == tensor.Float16 {
				vec.Clamp(x, -maxF16, maxF16)
			}
			kernel.StoreFloats(dst[lo*size:], x, t.Scale)
		}
		return nil
	},
	Cost: func(t *dequantTiling, _ []int64) (flops, bytes int64) {
		return 2 * t.N, t.N * (1 + t.Scale.Size())
	},
})

// maxF16 is the largest finite f16.
const maxF16 = 65504
