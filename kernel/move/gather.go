package move

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Pick is the parameter of Gather.
type Pick struct {
	// Axis is the axis that indices choose from, BatchDims the number of
	// leading axes that data and indices share: 0 <= BatchDims <= Axis.
	Axis, BatchDims int64
	// ZeroOutside makes an index outside the axis give zeros instead of an
	// error.
	ZeroOutside bool
}

// Gather holds the kernels that copy rows of input 0 chosen by the int32,
// uint32 or int64 indices in input 1. The result has the axes
// data[:Axis] + indices[BatchDims:] + data[Axis+1:].
var Gather = kernel.Table{gatherRows}

// gatherTiling views data as [Batch, Middle, Rows, Width bytes], indices as
// [Batch, Picks] and the output as [Batch, Middle, Picks, Width bytes].
type gatherTiling struct {
	Batch, Middle, Rows, Picks, Width int64
	Index                             tensor.DType
	ZeroOutside                       bool
	// Word says that a row is one element of Width 2, 4 or 8 bytes.
	Word bool
}

var gatherRows = kernel.Define(kernel.Def[Pick, gatherTiling]{
	Name:     "gather/rows",
	Class:    device.Move,
	Supports: supportsGather,
	Tile: func(p *kernel.Problem, a Pick, t *gatherTiling, _ []int64) (kernel.Grid, error) {
		x, idx := &p.In[0], &p.In[1]
		axis, batch := int(a.Axis), int(a.BatchDims)
		t.Batch = x.Shape.Product(0, batch)
		t.Middle = x.Shape.Product(batch, axis)
		t.Rows = x.Dim(axis)
		t.Picks = idx.Shape.Product(batch, idx.Rank())
		t.Width = x.Shape.Product(axis+1, x.Rank()) * x.DType.Size()
		t.Index, t.ZeroOutside = idx.DType, a.ZeroOutside
		size := x.DType.Size()
		t.Word = t.Width == size && (size == 2 || size == 4 || size == 8)
		return chooseCut(p.Machine, t.Batch*t.Middle*t.Picks, t.Width), nil
	},
	Run: func(a *kernel.Args, block int, t *gatherTiling, _ []int64) error {
		switch t.Index {
		case tensor.Int32:
			return gather[int32](a, block, t)
		case tensor.Uint32:
			return gather[uint32](a, block, t)
		default:
			return gather[int64](a, block, t)
		}
	},
	Cost: func(t *gatherTiling, _ []int64) (flops, bytes int64) {
		return 0, t.Batch*t.Middle*t.Picks*t.Width*2 + t.Batch*t.Picks*t.Index.Size()
	},
})

func supportsGather(p *kernel.Problem, a Pick) error {
	if len(p.In) != 2 || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want two inputs and one output, got %d and %d", len(p.In), len(p.Out))
	}
	x, idx, out := &p.In[0], &p.In[1], &p.Out[0]
	switch idx.DType {
	case tensor.Int32, tensor.Uint32, tensor.Int64:
	default:
		return status.Errorf(status.ErrInvalidTensorDType, "want int32, uint32 or int64 indices, got %s", idx.DType)
	}
	if a.BatchDims < 0 || a.BatchDims > a.Axis || a.Axis >= int64(x.Rank()) || a.BatchDims > int64(idx.Rank()) {
		return status.Errorf(status.ErrInvalidParam, "axis %d and %d batch dims do not fit %s and %s", a.Axis, a.BatchDims, x, idx)
	}
	axis, batch := int(a.Axis), int(a.BatchDims)
	if x.Shape.Slice(0, batch) != idx.Shape.Slice(0, batch) {
		return status.Errorf(status.ErrInvalidParam, "batch dims of %s and %s differ", x, idx)
	}
	want := x.Shape.Slice(0, axis).Append(idx.Shape.Slice(batch, idx.Rank()).Dims()...).Append(x.Shape.Slice(axis+1, x.Rank()).Dims()...)
	if x.Bytes() == 0 || idx.Bytes() == 0 || out.DType.Size() != x.DType.Size() || out.Numel() != want.Numel() {
		return status.Errorf(status.ErrInvalidParam, "want an output of %s, got %s", want, out)
	}
	return nil
}

// gather copies the rows of one block. Every run of rows shares a batch and a
// middle position, so the inner loop only reads an index and copies.
func gather[I int32 | uint32 | int64](a *kernel.Args, block int, t *gatherTiling) error {
	src, indices, dst := a.Mem(0), device.View[I](a.Mem(1)), a.Mem(2)
	row, n, from, to := part(a, block, t.Batch*t.Middle*t.Picks, t.Width)
	if from >= to {
		return nil
	}
	for n > 0 {
		group, first := row/t.Picks, row%t.Picks
		run := min(n, t.Picks-first)
		at := group/t.Middle*t.Picks + first
		table := src[group*t.Rows*t.Width : (group+1)*t.Rows*t.Width]
		out := dst[row*t.Width : (row+run)*t.Width]
		if bad := pick(out, table, indices[at:at+run], t, from, to); bad >= 0 {
			return status.Errorf(status.ErrRuntimeFail, "index %d at position %d is outside 0 to %d", indices[at+bad], at+bad, t.Rows-1).On("input 1 (indices)")
		}
		row, n = row+run, n-run
	}
	return nil
}

// pick copies the bytes [from, to) of each chosen row and returns the position
// of the first bad index, or -1.
func pick[I int32 | uint32 | int64](dst, table []byte, indices []I, t *gatherTiling, from, to int64) int64 {
	if t.Word {
		switch t.Width {
		case 2:
			return pickWords(device.View[uint16](dst), device.View[uint16](table), indices, t.ZeroOutside)
		case 4:
			return pickWords(device.View[uint32](dst), device.View[uint32](table), indices, t.ZeroOutside)
		default:
			return pickWords(device.View[uint64](dst), device.View[uint64](table), indices, t.ZeroOutside)
		}
	}
	return pickRows(dst, table, indices, t, from, to)
}

func pickRows[I int32 | uint32 | int64](dst, table []byte, indices []I, t *gatherTiling, from, to int64) int64 {
	for i, v := range indices {
		out := dst[int64(i)*t.Width+from : int64(i)*t.Width+to]
		if uint64(int64(v)) < uint64(t.Rows) {
			copy(out, table[int64(v)*t.Width+from:int64(v)*t.Width+to])
			continue
		}
		if !t.ZeroOutside {
			return int64(i)
		}
		clear(out)
	}
	return -1
}

// pickWords is pickRows for rows of one element.
func pickWords[E uint16 | uint32 | uint64, I int32 | uint32 | int64](dst, table []E, indices []I, zeroOutside bool) int64 {
	dst = dst[:len(indices)]
	for i, v := range indices {
		if uint64(int64(v)) < uint64(len(table)) {
			dst[i] = table[v]
			continue
		}
		if !zeroOutside {
			return int64(i)
		}
		dst[i] = 0
	}
	return -1
}
