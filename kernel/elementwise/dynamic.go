package elementwise

import (
	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// QuantDynamic: float x [..., width] -> int8 q like x and f32 scale [...]. For
// every row, top being the largest magnitude in it, scale = top/127 and
// q = round(x·127/top), half to even: so q·scale approximates x. A row of zeros
// has scale 0 and zeros; NaN elements count as 0. Params struct{}.
var QuantDynamic = kernel.Table{quantDynamic}

type dynamicTiling struct {
	Rows, Width int64
	DType       tensor.DType
}

const quantTop = 127

var quantDynamic = kernel.Define(kernel.Def[struct{}, dynamicTiling]{
	Name:  "quantize-dynamic/go",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if err := wantOperands(p, 1, 2); err != nil {
			return err
		}
		x, q, s := &p.In[0], &p.Out[0], &p.Out[1]
		if !isFloat(x.DType) || q.DType != tensor.Int8 || q.Numel() != x.Numel() ||
			s.DType != tensor.Float32 || s.Numel()*x.Dim(-1) != x.Numel() {
			return status.Errorf(status.ErrInvalidParam, "want float rows, int8 rows and an f32 scale per row, got %s, %s and %s", x, q, s)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, _ struct{}) int64 { return scratchForEven(p, 1) },
	Tile: func(p *kernel.Problem, _ struct{}, t *dynamicTiling, _ []int64) (kernel.Grid, error) {
		x := &p.In[0]
		*t = dynamicTiling{Rows: x.Numel() / x.Dim(-1), Width: x.Dim(-1), DType: x.DType}
		each := kernel.Nanos(0.35, 2)
		if x.DType != tensor.Float32 {
			each = kernel.Nanos(0.15, 3)
		}
		return kernel.Grid{Blocks: kernel.EvenBlocksFor(p.Machine, t.Rows, float64(x.Numel())*each)}, nil
	},
	Run: func(a *kernel.Args, block int, t *dynamicTiling, _ []int64) error {
		buf, e, src, size := buffers(a, block, 1), elementOf(t.DType), a.Mem(0), t.Width*t.DType.Size()
		q, scale := device.View[int8](a.Mem(1)), device.View[float32](a.Mem(2))
		lo, hi := kernel.Share(t.Rows, block, a.Blocks)
		for r := lo; r < hi; r++ {
			x := src[r*size:][:size]
			top := floats.MaxAbs(e, x, buf)
			scale[r] = top / quantTop
			floats.QuantSymmetric(e, q[r*t.Width:][:t.Width], x, top, buf)
		}
		return nil
	},
	Cost: func(t *dynamicTiling, _ []int64) (flops, bytes int64) {
		n := t.Rows * t.Width
		return 3 * n, n*(t.DType.Size()+1) + 4*t.Rows
	},
})
