package softmax

import (
	"math"

	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Whole holds the kernels that do a softmax in one launch: one input, one
// output of the same float type, params View. The output may be the memory of
// the input.
var Whole = kernel.Table{rows, columns}

// tiling is the plan of a launch: blocks share Outer rows, or Outer times
// groups of Group neighbouring columns.
type tiling struct {
	Outer, Length, Inner int64
	// Group is the number of columns that a block turns into rows at once,
	// Pitch the distance of those rows in scratch, in elements.
	Group, Groups, Pitch int64
	DType                tensor.DType
}

// supports checks the operands of a softmax: v views them all.
func supports(p *kernel.Problem, v View) error {
	if len(p.In) != 1 || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want one input and one output, got %d and %d", len(p.In), len(p.Out))
	}
	x, y := &p.In[0], &p.Out[0]
	switch x.DType {
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
	default:
		return status.Errorf(status.ErrInvalidTensorDType, "want f32, f16 or bf16, got %s", x.DType)
	}
	if x.DType != y.DType || x.Numel() != y.Numel() {
		return status.Errorf(status.ErrInvalidParam, "want an output like %s, got %s", x, y)
	}
	return v.fits(x.Numel())
}

// fits checks that the view has n elements.
func (v *View) fits(n int64) error {
	if v.Outer < 1 || v.Length < 1 || v.Inner < 1 || n%v.Outer != 0 || n/v.Outer%v.Length != 0 || n/v.Outer/v.Length != v.Inner {
		return status.Errorf(status.ErrInvalidParam, "view %d x %d x %d does not have %d elements", v.Outer, v.Length, v.Inner, n)
	}
	return nil
}

// pieceElements is about what is done in one call.
const pieceElements = 16 << 10

// eachRow does rows of size bytes one by one.
func eachRow(e floats.Element, dst, src []byte, size int64, buf []float32) {
	for ; len(src) > 0; dst, src = dst[size:], src[size:] {
		exps := buf
		if e == floats.F32 {
			exps = device.View[float32](dst[:size])
		}
		finish(e, dst[:size], src[:size], exps)
	}
}

// finish writes the softmax of src to dst, both of type e; exps has room for a
// slice and is dst itself for float32.
func finish(e floats.Element, dst, src []byte, exps []float32) {
	size := int64(4)
	if e != floats.F32 {
		size = 2
	}
	length := int64(len(src)) / size
	top := float32(math.Inf(-1))
	for at := int64(0); at < length; at += Chunk {
		top = max(top, floats.Max(e, src[at*size:min(at+Chunk, length)*size], exps))
	}
	var sum float32
	for at := int64(0); at < length; at += Chunk {
		end := min(at+Chunk, length)
		sum += floats.ExpSum(e, exps[at:end], src[at*size:end*size], top)
	}
	for at := int64(0); at < length; at += Chunk {
		end := min(at+Chunk, length)
		normalise(e, dst[at*size:end*size], exps[at:end], sum, exps[at:])
	}
}

// normalise divides by the sum; a sum of 0 means that all elements are -Inf.
func normalise(e floats.Element, dst []byte, src []float32, sum float32, buf []float32) {
	if sum == 0 {
		clear(dst)
		return
	}
	floats.ScaleTo(e, dst, src, 1/sum, buf)
}

// rows does slices that are contiguous.
var rows = kernel.Define(kernel.Def[View, tiling]{
	Name:    "softmax/rows",
	Class:   device.Vector,
	InPlace: true,
	Supports: func(p *kernel.Problem, v View) error {
		if err := supports(p, v); err != nil {
			return err
		}
		if v.Inner != 1 {
			return status.Errorf(status.ErrInvalidParam, "slices have a stride of %d", v.Inner)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, v View) int64 {
		if p.In[0].DType == tensor.Float32 {
			return 0
		}
		return int64(rowBlocks(p, v)) * pitch(v.Length) * 4
	},
	Tile: func(p *kernel.Problem, v View, t *tiling, _ []int64) (kernel.Grid, error) {
		t.Outer, t.Length, t.Inner = v.Outer, v.Length, v.Inner
		t.Pitch, t.DType = pitch(v.Length), p.In[0].DType
		return kernel.Grid{Blocks: rowBlocks(p, v)}, nil
	},
	Run: func(a *kernel.Args, block int, t *tiling, _ []int64) error {
		lo, hi := kernel.Share(t.Outer, block, a.Blocks)
		e, _ := floats.Of(t.DType)
		size := t.Length * t.DType.Size()
		var buf []float32
		if t.DType != tensor.Float32 {
			buf = device.View[float32](a.Scratch.Bytes())[int64(block)*t.Pitch:][:t.Length]
		}
		for lo < hi {
			n := min(max(pieceElements/t.Length, 1), hi-lo)
			src, dst := a.Mem(0)[lo*size:(lo+n)*size], a.Mem(1)[lo*size:(lo+n)*size]
			if !floats.Softmax(e, dst, src, int(t.Length), buf) {
				eachRow(e, dst, src, size, buf)
			}
			lo += n
		}
		return nil
	},
	Cost: cost,
})

func rowBlocks(p *kernel.Problem, v View) int {
	return kernel.BlocksFor(p.Machine, v.Outer, float64(p.In[0].Numel())*nanosPerElement())
}

// pitch rounds a row up to whole cache lines, an odd number of them, so that
// the same column of neighbouring rows falls into different cache sets.
func pitch(length int64) int64 {
	const line = 16
	return ((length+line-1)/line | 1) * line
}

func cost(t *tiling, _ []int64) (flops, bytes int64) {
	n := t.Outer * t.Length * t.Inner
	return 5 * n, 2 * n * t.DType.Size()
}
