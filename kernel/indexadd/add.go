package indexadd

import (
	"math"

	"goatb/device"
	"goatb/internal/vec"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Positions of the inputs of Add. The variable is its output too, in the same
// memory.
const (
	Indices = iota // int32 [n]
	Updates        // like the variable but for n on the axis
	Alpha          // of the variable's type, [1], or absent for 1
	Valid          // int32 [1], or absent for n
	Variable
	inputs
)

// Params are the parameters of Add.
type Params struct {
	// Axis is the axis that indices choose from, 0 or more.
	Axis int64
}

// Add holds the kernels that add, for each j below the value of Valid, Alpha times
// entry j of Updates to entry Indices[j] of Variable on the axis. The variable is
// f32, f16 or bf16. An index outside of the axis and a number of valid ones outside
// of 0 to n are ErrRuntimeFail, and then nothing is written.
var Add = kernel.Table{chains}

const (
	// piece is the number of neighbouring elements that are summed at once.
	piece = 2048
	// columnStep is the least number of columns of a block: a few cache lines.
	columnStep = 64
	// evenShare is the number of items per block from which on blocks are even
	// enough.
	evenShare = 4
	// nanosPerElement, nanosPerUpdate and nanosPerIndex estimate one core's time.
	nanosPerElement, nanosPerUpdate, nanosPerIndex = 0.5, 20, 4
)

// share says what blocks share.
type share uint64

const (
	byOuter share = iota
	byColumns
	byRows
)

// tiling views the variable as [Outer, Rows, Inner] and updates as
// [Outer, Count, Inner].
type tiling struct {
	Outer, Rows, Inner, Count int64
	DType                     tensor.DType
	HasAlpha, HasValid        bool
}

// chains links the updates of each row, the first first, and then goes along the
// links.
var chains = kernel.Define(kernel.Def[Params, tiling]{
	Name:     "indexadd/chains",
	Class:    device.Vector,
	InPlace:  true,
	Pairs:    [][2]int{{0, Variable}},
	Supports: supports,
	Scratch: func(p *kernel.Problem, a Params) int64 {
		t := measure(p, a)
		return int64(t.grid(p.Machine).Blocks) * t.scratchWords() * 4
	},
	Tile: func(p *kernel.Problem, a Params, t *tiling, _ []int64) (kernel.Grid, error) {
		*t = measure(p, a)
		return t.grid(p.Machine), nil
	},
	Run: func(a *kernel.Args, block int, t *tiling, _ []int64) error { return run(a, block, t) },
	Cost: func(t *tiling, _ []int64) (flops, bytes int64) {
		n := t.Outer * t.Count * t.Inner
		return 2 * n, 4*t.Count + 3*n*t.DType.Size()
	},
})

func measure(p *kernel.Problem, a Params) tiling {
	x, axis := &p.In[Variable], int(a.Axis)
	return tiling{
		Outer: x.Shape.Product(0, axis), Rows: x.Dim(axis), Inner: x.Shape.Product(axis+1, x.Rank()),
		Count: p.In[Indices].Dim(0), DType: x.DType,
		HasAlpha: !p.In[Alpha].Empty(), HasValid: !p.In[Valid].Empty(),
	}
}

func supports(p *kernel.Problem, a Params) error {
	if len(p.In) != inputs || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want %d inputs and one output, got %d and %d", inputs, len(p.In), len(p.Out))
	}
	x, idx, up := &p.In[Variable], &p.In[Indices], &p.In[Updates]
	if _, ok := floats.Of(x.DType); !ok {
		return status.Errorf(status.ErrInvalidTensorDType, "want f32, f16 or bf16, got %s", x.DType)
	}
	if p.Out[0] != *x {
		return status.Errorf(status.ErrInvalidParam, "output %s is not the variable %s", &p.Out[0], x)
	}
	if a.Axis < 0 || a.Axis >= int64(x.Rank()) || x.Numel() < 1 || x.Dim(int(a.Axis)) > math.MaxInt32 {
		return status.Errorf(status.ErrInvalidParam, "axis %d does not fit %s", a.Axis, x)
	}
	if idx.DType != tensor.Int32 || idx.Rank() != 1 || idx.Numel() < 1 || idx.Dim(0) > math.MaxInt32 {
		return status.Errorf(status.ErrInvalidParam, "want int32 indices of rank 1, got %s", idx)
	}
	if want := x.WithShape(x.Shape.With(int(a.Axis), idx.Dim(0)).Dims()...); *up != want {
		return status.Errorf(status.ErrInvalidParam, "want updates %s, got %s", &want, up)
	}
	if alpha := &p.In[Alpha]; !alpha.Empty() && (alpha.DType != x.DType || alpha.Numel() != 1) {
		return status.Errorf(status.ErrInvalidParam, "want a factor of type %s, got %s", x.DType, alpha)
	}
	if n := &p.In[Valid]; !n.Empty() && (n.DType != tensor.Int32 || n.Numel() != 1) {
		return status.Errorf(status.ErrInvalidParam, "want one int32 number of valid indices, got %s", n)
	}
	return nil
}

// grid shares whole outer entries where there are many, then columns where they
// are long, then rows.
func (t *tiling) grid(m kernel.Machine) kernel.Grid {
	nanos := float64(t.Outer)*float64(t.Count)*(float64(t.Inner)*nanosPerElement+nanosPerUpdate) + float64(t.Count)*nanosPerIndex
	want := kernel.BlocksFor(m, math.MaxInt64, nanos)
	enough := int64(evenShare * want)
	switch {
	case t.Outer >= enough:
		return kernel.Grid{Key: uint64(byOuter), Blocks: want}
	case t.columns() >= enough:
		return kernel.Grid{Key: uint64(byColumns), Blocks: want}
	}
	return kernel.Grid{Key: uint64(byRows), Blocks: int(min(int64(want), t.Rows))}
}

// columns is the number of groups of columns that blocks share.
func (t *tiling) columns() int64 { return (t.Inner + columnStep - 1) / columnStep }

// scratchWords is the size of a block's scratch: the first update of each row,
// the one behind each update, and a piece of sums.
func (t *tiling) scratchWords() int64 { return t.Rows + t.Count + piece }

// box is what a block writes.
type box struct{ outer, outerEnd, column, columnEnd, row, rowEnd int64 }

func (t *tiling) box(key share, block, blocks int) box {
	b := box{outerEnd: t.Outer, columnEnd: t.Inner, rowEnd: t.Rows}
	switch key {
	case byOuter:
		b.outer, b.outerEnd = kernel.Share(t.Outer, block, blocks)
	case byColumns:
		lo, hi := kernel.Share(t.columns(), block, blocks)
		b.column, b.columnEnd = lo*columnStep, min(hi*columnStep, t.Inner)
	default:
		b.row, b.rowEnd = kernel.Share(t.Rows, block, blocks)
	}
	return b
}

func run(a *kernel.Args, block int, t *tiling) error {
	indices, err := t.indices(a)
	if err != nil {
		return err
	}
	words := device.View[int32](a.Scratch.Bytes())[int64(block)*t.scratchWords():][:t.scratchWords()]
	first, next, sums := words[:t.Rows], words[t.Rows:t.Rows+t.Count], words[t.Rows+t.Count:]
	b := t.box(share(a.Key), block, a.Blocks)
	link(first, next, indices, b.row, b.rowEnd)
	e, _ := floats.Of(t.DType)
	alpha := [1]float32{1}
	if t.HasAlpha {
		alpha[0] = floats.At(e, a.Mem(Alpha), 0)
	}
	w := walk{
		e: e, alpha: alpha[:], first: first, next: next, indices: indices,
		sums: device.View[float32](device.BytesOf(sums)),
	}
	variable, updates, size := a.Mem(inputs), a.Mem(Updates), t.DType.Size()
	for o := b.outer; o < b.outerEnd; o++ {
		x, u := variable[o*t.Rows*t.Inner*size:], updates[o*t.Count*t.Inner*size:]
		for c := b.column; c < b.columnEnd; c += piece {
			n := min(piece, b.columnEnd-c)
			if t.DType == tensor.Float32 {
				w.f32(device.View[float32](x)[c:], device.View[float32](u)[c:], t.Inner, n, b)
			} else {
				w.half(device.View[uint16](x)[c:], device.View[uint16](u)[c:], t.Inner, n, b)
			}
		}
	}
	return nil
}

// indices returns the valid indices, all of them checked.
func (t *tiling) indices(a *kernel.Args) ([]int32, error) {
	indices := device.View[int32](a.Mem(Indices))[:t.Count]
	if t.HasValid {
		n := device.View[int32](a.Mem(Valid))[0]
		if n < 0 || int64(n) > t.Count {
			return nil, status.Errorf(status.ErrRuntimeFail, "want 0 to %d valid indices, got %d", t.Count, n).On("validNum")
		}
		indices = indices[:n]
	}
	for j, i := range indices {
		if uint64(int64(i)) >= uint64(t.Rows) {
			return nil, status.Errorf(status.ErrRuntimeFail, "index %d at position %d is outside 0 to %d", i, j, t.Rows-1).On("indices")
		}
	}
	return indices, nil
}

// end is behind the last update of a row.
const end = -1

// link makes a chain of the updates of each row in [row, rowEnd), in the order of
// their positions. Rows without updates have no chain.
func link(first, next, indices []int32, row, rowEnd int64) {
	for _, i := range indices {
		if int64(i) >= row && int64(i) < rowEnd {
			first[i] = end
		}
	}
	for j := len(indices) - 1; j >= 0; j-- {
		if i := indices[j]; int64(i) >= row && int64(i) < rowEnd {
			next[j], first[i] = first[i], int32(j)
		}
	}
}

// walk goes along the chains.
type walk struct {
	e                    floats.Element
	alpha                []float32
	first, next, indices []int32
	sums                 []float32
}

// f32 sums n columns of all rows of the box, at x and u, whose rows are inner
// elements apart.
func (w *walk) f32(x, u []float32, inner, n int64, b box) {
	for j, i := range w.indices {
		if !w.starts(j, i, b) {
			continue
		}
		acc := x[int64(i)*inner:][:n]
		for k := int32(j); k != end; k = w.next[k] {
			vec.Mix(w.e, acc, w.alpha, u[int64(k)*inner:][:n], int(n))
		}
	}
}

// half is f32 for 16-bit types, which are summed in scratch.
func (w *walk) half(x, u []uint16, inner, n int64, b box) {
	acc := w.sums[:n]
	for j, i := range w.indices {
		if !w.starts(j, i, b) {
			continue
		}
		row := device.BytesOf(x[int64(i)*inner:][:n])
		floats.Widen(w.e, acc, row)
		for k := int32(j); k != end; k = w.next[k] {
			vec.Mix(w.e, acc, w.alpha, u[int64(k)*inner:][:n], int(n))
		}
		if w.e == floats.F16 {
			tensor.F32ToF16(device.View[tensor.F16](row), acc)
		} else {
			tensor.F32ToBF16(device.View[tensor.BF16](row), acc)
		}
	}
}

// starts reports whether update j, which is of row i, is the first one of a row
// of the box.
func (w *walk) starts(j int, i int32, b box) bool {
	return int64(i) >= b.row && int64(i) < b.rowEnd && w.first[i] == int32(j)
}
