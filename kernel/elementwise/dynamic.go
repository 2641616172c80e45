package elementwise

import (
	"goatb/device"
	"goatb/internal/vec"
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
		lo, hi := kernel.Share(t.Rows, block, a.Blocks)
		switch t.DType {
		case tensor.Float16:
			t.halves(a, vec.F16, lo, hi)
		case tensor.BFloat16:
			t.halves(a, vec.BF16, lo, hi)
		default:
			t.floats(a, lo, hi)
		}
		return nil
	},
	Cost: func(t *dynamicTiling, _ []int64) (flops, bytes int64) {
		n := t.Rows * t.Width
		return 3 * n, n*(t.DType.Size()+1) + 4*t.Rows
	},
})

// floats does the rows [lo, hi) of float32.
func (t *dynamicTiling) floats(a *kernel.Args, lo, hi int64) {
	x, q, scale := device.View[float32](a.Mem(0)), device.View[int8](a.Mem(1)), device.View[float32](a.Mem(2))
	for r := lo; r < hi; r++ {
		row := x[r*t.Width:][:t.Width]
		top := vec.MaxAbs(row)
		scale[r] = top / quantTop
		vec.QuantSymmetric(q[r*t.Width:], row, top)
	}
}

// halves does the rows [lo, hi) of a 16-bit type.
func (t *dynamicTiling) halves(a *kernel.Args, e vec.Element, lo, hi int64) {
	x, q, scale := device.View[uint16](a.Mem(0)), device.View[int8](a.Mem(1)), device.View[float32](a.Mem(2))
	for r := lo; r < hi; r++ {
		row := x[r*t.Width:][:t.Width]
		top := vec.MaxAbsHalves(e, row)
		scale[r] = top / quantTop
		vec.QuantSymmetricHalves(e, q[r*t.Width:], row, top)
	}
}
