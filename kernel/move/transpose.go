package move

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Perm is the parameter of Transpose: output axis j is input axis Axis[j]. Only
// the first rank entries count.
type Perm struct{ Axis [tensor.MaxRank]int8 }

// Transpose holds the kernels that permute axes.
var Transpose = kernel.Table{transposeTiles, transposeRows}

// permTiling describes a permutation in which neighbouring axes that stay
// together are one axis and axes of size 1 are gone. The output has Axes outer
// axes with input strides in bytes; below them lie either rows of Width
// contiguous bytes (transposeRows) or matrices (transposeTiles): Down output
// rows of Across elements of Size bytes, which the input holds transposed, its
// rows InStride bytes apart, output rows OutStride bytes apart.
type permTiling struct {
	Axes                                    int64
	Dim, In, Out                            [tensor.MaxRank]int64
	Outer, Width                            int64
	Size, Down, Across, InStride, OutStride int64
	// Tile is the number of output rows of a tile.
	Tile, TilesDown, TilesAcross int64
}

// merged is a permutation after merging: Dim and In (input stride in bytes) by
// output axis, outermost first.
type merged struct {
	n       int
	dim, in [tensor.MaxRank]int64
}

// merge drops axes of size 1 and joins output axes that are neighbours in the
// input as well. Bytes of an element are not an axis.
func merge(in *tensor.Desc, a *Perm) merged {
	var stride [tensor.MaxRank]int64
	s := in.DType.Size()
	for i := in.Rank() - 1; i >= 0; i-- {
		stride[i] = s
		s *= in.Dim(i)
	}
	var m merged
	for j := range in.Rank() {
		axis := a.Axis[j]
		d, st := in.Dim(int(axis)), stride[axis]
		switch {
		case d == 1:
		case m.n > 0 && m.in[m.n-1] == d*st:
			m.dim[m.n-1] *= d
			m.in[m.n-1] = st
		default:
			m.dim[m.n], m.in[m.n] = d, st
			m.n++
		}
	}
	return m
}

func checkPerm(p *kernel.Problem, a *Perm) error {
	if len(p.In) != 1 || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want one input and one output, got %d and %d", len(p.In), len(p.Out))
	}
	in, out := &p.In[0], &p.Out[0]
	if in.Bytes() == 0 || in.DType.Size() != out.DType.Size() || in.Numel() != out.Numel() {
		return status.Errorf(status.ErrInvalidParam, "want equal element sizes and counts, got %s and %s", in, out)
	}
	seen := 0
	for _, axis := range a.Axis[:in.Rank()] {
		if axis < 0 || int(axis) >= in.Rank() || seen&(1<<axis) != 0 {
			return status.Errorf(status.ErrInvalidParam, "%v is no permutation of %d axes", a.Axis[:in.Rank()], in.Rank())
		}
		seen |= 1 << axis
	}
	return nil
}

// transposeRows moves whole rows: the last axis stays the last, or elements
// have a size that no tile kernel has.
var transposeRows = kernel.Define(kernel.Def[Perm, permTiling]{
	Name:     "transpose/rows",
	Class:    device.Move,
	Supports: func(p *kernel.Problem, a Perm) error { return checkPerm(p, &a) },
	Tile: func(p *kernel.Problem, a Perm, t *permTiling, _ []int64) (kernel.Grid, error) {
		m := merge(&p.In[0], &a)
		t.Width, t.Outer = p.In[0].DType.Size(), 1
		if m.n > 0 && m.in[m.n-1] == t.Width {
			m.n--
			t.Width *= m.dim[m.n]
		}
		if m.n == 0 {
			m.dim[0], m.n = 1, 1
		}
		t.Axes = int64(m.n)
		for i := range m.n {
			t.Dim[i], t.In[i] = m.dim[i], m.in[i]
			t.Outer *= m.dim[i]
		}
		return chooseCut(p.Machine, t.Outer, t.Width), nil
	},
	Run: func(a *kernel.Args, block int, t *permTiling, _ []int64) error {
		src, dst := a.Mem(0), a.Mem(1)
		row, n, from, to := part(a, block, t.Outer, t.Width)
		last := t.Axes - 1
		for n > 0 && from < to {
			at, rest := int64(0), row
			for i := last; i >= 0; i-- {
				at += rest % t.Dim[i] * t.In[i]
				rest /= t.Dim[i]
			}
			run := min(n, t.Dim[last]-row%t.Dim[last])
			copyRows(dst[row*t.Width+from:], t.Width, src[at+from:], t.In[last], run, to-from)
			row, n = row+run, n-run
		}
		return nil
	},
	Cost: func(t *permTiling, _ []int64) (flops, bytes int64) { return 0, 2 * t.Outer * t.Width },
})
