package parts

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Merge holds the kernels that join parts: the input is what Desc describes,
// the output has rows*valueSize elements of a float type. It has no parameters
// (struct{}).
var Merge = kernel.Table{merge}

// mergeTiling is the plan of a launch.
type mergeTiling struct {
	Rows, Parts, ValueSize int64
	OutType                tensor.DType
}

// Estimates of one core, in nanoseconds.
const (
	nanosPerJoin    = 20
	nanosPerElement = 0.5
	// usualParts bounds the parts of a row that the estimate counts: there is room for
	// the longest context, and most are shorter.
	usualParts = 8
)

// line is the number of float32 in a cache line, which blocks do not share.
const line = 16

func scratchSize(valueSize int64) int64 { return (valueSize + line - 1) / line * line }

var merge = kernel.Define(kernel.Def[struct{}, mergeTiling]{
	Name:     "parts/merge",
	Class:    device.Vector,
	Supports: func(p *kernel.Problem, _ struct{}) error { return supportMerge(p) },
	Scratch: func(p *kernel.Problem, _ struct{}) int64 {
		return int64(max(p.Machine.Cores, 1)) * scratchSize(p.In[0].Dim(2)-2) * 4
	},
	Tile: func(p *kernel.Problem, _ struct{}, t *mergeTiling, _ []int64) (kernel.Grid, error) {
		in := &p.In[0]
		t.Rows, t.Parts, t.ValueSize, t.OutType = in.Dim(0), in.Dim(1), in.Dim(2)-2, p.Out[0].DType
		nanos := float64(t.Rows*min(t.Parts, usualParts)) * (nanosPerJoin + float64(t.ValueSize)*nanosPerElement)
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Rows, nanos)}, nil
	},
	Run: runMerge,
	// As if every row had all parts that there is room for.
	Cost: func(t *mergeTiling, _ []int64) (flops, bytes int64) {
		n := t.Rows * t.Parts
		return 3 * n * t.ValueSize, 4*n*(t.ValueSize+2) + t.Rows*t.ValueSize*t.OutType.Size()
	},
})

func supportMerge(p *kernel.Problem) error {
	if len(p.In) != 1 || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want 1 input and 1 output, got %d and %d", len(p.In), len(p.Out))
	}
	in, o := &p.In[0], &p.Out[0]
	if in.DType != tensor.Float32 || in.Rank() != 3 || in.Dim(2) < 3 {
		return status.Errorf(status.ErrInvalidParam, "want parts f32[rows,parts,values+2], got %s", in)
	}
	if want := in.Dim(0) * (in.Dim(2) - 2); o.Numel() != want {
		return status.Errorf(status.ErrInvalidParam, "want an output of %d elements for parts %s, got %s", want, in, o)
	}
	switch o.DType {
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		return nil
	}
	return status.Errorf(status.ErrInvalidParam, "want a float output, got %s", o)
}

// runMerge merges the block's rows.
func runMerge(a *kernel.Args, block int, t *mergeTiling, _ []int64) error {
	in, out := ViewOf(a.Mem(0), t.Parts, t.ValueSize), a.Mem(1)
	total := device.View[float32](a.Scratch.Bytes())[int64(block)*scratchSize(t.ValueSize):][:t.ValueSize]
	size := t.ValueSize * t.OutType.Size()
	lo, hi := kernel.Share(t.Rows, block, a.Blocks)
	for row := lo; row < hi; row++ {
		in.merge(row, total)
		kernel.StoreFloats(out[row*size:(row+1)*size], total, t.OutType)
	}
	return nil
}
