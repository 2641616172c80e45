package move

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Box is the parameter of Window: the first position of the window on every
// axis; its size is the output's shape.
type Box struct{ From [tensor.MaxRank]int64 }

// Window holds the kernels that copy a box of the input to the output.
var Window = kernel.Table{windowRows}

// windowTiling describes the box as rows of Width contiguous bytes that start
// at Offset in the input, over Axes axes of Dim rows with input strides in
// bytes, the last axis varying fastest. Axes is at least 1.
type windowTiling struct {
	Offset, Width, Rows, Axes int64
	Dim, Stride               [tensor.MaxRank]int64
}

var windowRows = kernel.Define(kernel.Def[Box, windowTiling]{
	Name:  "window/rows",
	Class: device.Move,
	Supports: func(p *kernel.Problem, a Box) error {
		if len(p.In) != 1 || len(p.Out) != 1 {
			return status.Errorf(status.ErrInvalidParam, "want one input and one output, got %d and %d", len(p.In), len(p.Out))
		}
		in, out := &p.In[0], &p.Out[0]
		if in.Bytes() == 0 || out.Bytes() == 0 || in.Rank() != out.Rank() || in.DType.Size() != out.DType.Size() {
			return status.Errorf(status.ErrInvalidParam, "want equal ranks and element sizes, got %s and %s", in, out)
		}
		for i := range in.Rank() {
			if from := a.From[i]; from < 0 || out.Dim(i) > in.Dim(i) || from > in.Dim(i)-out.Dim(i) {
				return status.Errorf(status.ErrInvalidParam, "window of %s at %d leaves %s on axis %d", out, from, in, i)
			}
		}
		return nil
	},
	Moves: func(p *kernel.Problem, a Box, _, _ int) kernel.Moved {
		var t windowTiling
		if tileWindow(&p.In[0], &p.Out[0], &a, &t); t.Rows != 1 {
			return kernel.Moved{}
		}
		return kernel.Moved{InAt: t.Offset, Bytes: t.Width}
	},
	Tile: func(p *kernel.Problem, a Box, t *windowTiling, _ []int64) (kernel.Grid, error) {
		tileWindow(&p.In[0], &p.Out[0], &a, t)
		return chooseCut(p.Machine, t.Rows, t.Width), nil
	},
	Run:  runWindow,
	Cost: func(t *windowTiling, _ []int64) (flops, bytes int64) { return 0, 2 * t.Rows * t.Width },
})

// tileWindow merges the axes that the window takes whole into those before
// them and drops axes of one row.
func tileWindow(in, out *tensor.Desc, a *Box, t *windowTiling) {
	stride := in.DType.Size()
	t.Width, t.Rows = stride, 1
	// whole says that all bytes up to here are contiguous in the input.
	whole := true
	var dim, str [tensor.MaxRank]int64
	n := 0
	for i := in.Rank() - 1; i >= 0; i-- {
		d := out.Dim(i)
		t.Offset += a.From[i] * stride
		switch {
		case whole:
			t.Width *= d
		case d == 1:
		case n > 0 && str[n-1]*dim[n-1] == stride:
			dim[n-1] *= d
			t.Rows *= d
		default:
			dim[n], str[n] = d, stride
			n++
			t.Rows *= d
		}
		whole = whole && d == in.Dim(i)
		stride *= in.Dim(i)
	}
	if n == 0 {
		dim[0], n = 1, 1
	}
	t.Axes = int64(n)
	for i := range n {
		t.Dim[i], t.Stride[i] = dim[n-1-i], str[n-1-i]
	}
}

func runWindow(a *kernel.Args, block int, t *windowTiling, _ []int64) error {
	src, dst := a.Mem(0), a.Mem(1)
	row, n, from, to := part(a, block, t.Rows, t.Width)
	last := t.Axes - 1
	for n > 0 && from < to {
		// Rows up to the end of the last axis lie at one stride.
		at, rest := t.Offset, row
		for i := last; i >= 0; i-- {
			at += rest % t.Dim[i] * t.Stride[i]
			rest /= t.Dim[i]
		}
		run := min(n, t.Dim[last]-row%t.Dim[last])
		copyRows(dst[row*t.Width+from:], t.Width, src[at+from:], t.Stride[last], run, to-from)
		row, n = row+run, n-run
	}
	return nil
}
