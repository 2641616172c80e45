package elementwise

import (
	"goatb/device"
	"goatb/internal/vec/words"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// CompareOp is a comparison of two tensors.
type CompareOp uint8

// Comparisons. All are false where an operand is NaN.
const (
	Less CompareOp = iota
	Greater
	Equal
	numCompare
)

// CompareParams selects the comparison.
type CompareParams struct{ Op CompareOp }

// Compare: a, b of one type -> int8 or bool, 1 where the broadcast comparison
// holds and 0 elsewhere.
var Compare = kernel.Table{compareAll}

type compareTiling struct {
	Layout layout
	N      int64
	Op     CompareOp
	DType  tensor.DType
}

var compareAll = kernel.Define(kernel.Def[CompareParams, compareTiling]{
	Name:  "compare/go",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, c CompareParams) error {
		if err := wantOperands(p, 2, 1); err != nil {
			return err
		}
		if c.Op >= numCompare {
			return status.Errorf(status.ErrInvalidParam, "unknown comparison %d", c.Op)
		}
		x, y, z := p.In[0].DType, p.In[1].DType, p.Out[0].DType
		if x != y || !isFloat(x) && !isInteger(x) && x != tensor.Bool || !isTruth(z) {
			return status.Errorf(status.ErrInvalidParam, "want two operands of one type and int8 or bool, got %s, %s and %s", x, y, z)
		}
		return broadcasts(p)
	},
	Scratch: func(p *kernel.Problem, _ CompareParams) int64 { return scratchFor(p, wordPair) },
	Tile: func(p *kernel.Problem, c CompareParams, t *compareTiling, _ []int64) (kernel.Grid, error) {
		t.N, t.Op, t.DType = p.Out[0].Numel(), c.Op, p.In[0].DType
		t.Layout.set(p.Out[0].Shape, p.In[0].Shape, p.In[1].Shape)
		return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, kernel.Nanos(0.05, 0.5)*float64(t.DType.Size())+floatNanos(t.DType)), Key: uint64(c.Op)}, nil
	},
	Run:  runCompare,
	Cost: func(t *compareTiling, _ []int64) (flops, bytes int64) { return t.N, t.N * (2*t.DType.Size() + 1) },
})

// isTruth reports whether t holds truth values: a byte that is 0 for false.
func isTruth(t tensor.DType) bool { return t == tensor.Int8 || t == tensor.Bool }

func runCompare(a *kernel.Args, block int, t *compareTiling, _ []int64) error {
	switch t.DType {
	case tensor.Int8:
		compareWords[int8](a, block, t)
	case tensor.Int16:
		compareWords[int16](a, block, t)
	case tensor.Int32:
		compareWords[int32](a, block, t)
	case tensor.Int64:
		compareWords[int64](a, block, t)
	case tensor.Uint8, tensor.Bool:
		compareWords[uint8](a, block, t)
	case tensor.Uint16:
		compareWords[uint16](a, block, t)
	case tensor.Uint32:
		compareWords[uint32](a, block, t)
	case tensor.Uint64:
		compareWords[uint64](a, block, t)
	case tensor.Float32:
		compareWords[float32](a, block, t)
	default:
		compareHalves(a, block, t)
	}
	return nil
}

func compareWords[T words.Number](a *kernel.Args, block int, t *compareTiling) {
	x, y, z := device.View[T](a.Mem(0)), device.View[T](a.Mem(1)), device.View[int8](a.Mem(2))
	bufX, bufY := wordBuffers[T](a, block)
	lo, hi := span(t.N, block, a.Blocks)
	for ; lo < hi; lo += chunkElements {
		n := min(chunkElements, hi-lo)
		judge(z[lo:lo+n], fetch(&t.Layout, 0, bufX, x, lo, n), fetch(&t.Layout, 1, bufY, y, lo, n), t.Op)
	}
}

// compareHalves compares f16 and bf16 as float32.
func compareHalves(a *kernel.Args, block int, t *compareTiling) {
	z, buf := device.View[int8](a.Mem(2)), buffers(a, block, wordPair)
	lo, hi := span(t.N, block, a.Blocks)
	for ; lo < hi; lo += chunkElements {
		n := min(chunkElements, hi-lo)
		x, y := fetchPair(&t.Layout, buf, a.Mem(0), a.Mem(1), t.DType, lo, n)
		judge(z[lo:lo+n], x, y, t.Op)
	}
}

func judge[T words.Number](z []int8, x, y []T, op CompareOp) {
	switch op {
	case Less:
		words.Greater(z, y, x)
	case Greater:
		words.Greater(z, x, y)
	default:
		words.Equal(z, x, y)
	}
}
