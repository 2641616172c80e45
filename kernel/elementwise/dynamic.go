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
	Scratch: func(p *kernel.Problem, _ struct{}) int64 {
		if p.In[0].DType == tensor.Float32 {
			return 0
		}
		return int64(max(p.Machine.Cores, 1)) * 4 * p.In[0].Dim(-1)
	},
	Tile: func(p *kernel.Problem, _ struct{}, t *dynamicTiling, _ []int64) (kernel.Grid, error) {
		x := &p.In[0]
		*t = dynamicTiling{Rows: x.Numel() / x.Dim(-1), Width: x.Dim(-1), DType: x.DType}
		nanos := float64(x.Numel()) * (kernel.Nanos(0.35, 2) + floatNanos(x.DType)/2)
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Rows, nanos)}, nil
	},
	Run: func(a *kernel.Args, block int, t *dynamicTiling, _ []int64) error {
		var buf []float32
		if t.DType != tensor.Float32 {
			buf = device.View[float32](a.Scratch.Bytes())[int64(block)*t.Width:][:t.Width]
		}
		src, width := a.Mem(0), t.Width*t.DType.Size()
		q, scale := device.View[int8](a.Mem(1)), device.View[float32](a.Mem(2))
		lo, hi := kernel.Share(t.Rows, block, a.Blocks)
		for r := lo; r < hi; r++ {
			x := kernel.Floats(buf, src[r*width:], t.DType, t.Width)
			top := vec.MaxAbs(x)
			scale[r] = top / quantTop
			vec.QuantSymmetric(q[r*t.Width:], x, top)
		}
		return nil
	},
	Cost: func(t *dynamicTiling, _ []int64) (flops, bytes int64) {
		n := t.Rows * t.Width
		return 3 * n, n*(t.DType.Size()+1) + 4*t.Rows
	},
})
