package move

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// MaxPieces is the largest number of tensors that Join and Split take.
const MaxPieces = 8

// Axis is the parameter of Join and Split: the axis along which the pieces
// lie, at least 0.
type Axis struct{ Axis int64 }

// Join holds the kernels that lay several inputs one after the other along an
// axis of one output.
var Join = kernel.Table{joinRows}

// Split holds the kernels that cut one input along an axis into several
// outputs.
var Split = kernel.Table{splitRows}

// piecesTiling describes a whole of Rows rows, each the concatenation of one
// row of every piece.
type piecesTiling struct {
	Rows, Pieces int64
	// Width holds the bytes of each piece's row, Whole their sum.
	Width [MaxPieces]int64
	Whole int64
}

var joinRows = kernel.Define(kernel.Def[Axis, piecesTiling]{
	Name:  "join/rows",
	Class: device.Move,
	Moves: func(p *kernel.Problem, a Axis, _, in int) kernel.Moved {
		at, bytes := runOf(p.In, a, in)
		return kernel.Moved{OutAt: at, Bytes: bytes}
	},
	Supports: func(p *kernel.Problem, a Axis) error {
		if len(p.Out) != 1 {
			return status.Errorf(status.ErrInvalidParam, "want one output, got %d", len(p.Out))
		}
		return checkPieces(p.Out[0], p.In, a.Axis)
	},
	Tile: func(p *kernel.Problem, a Axis, t *piecesTiling, _ []int64) (kernel.Grid, error) {
		return tilePieces(p.Machine, p.In, a.Axis, t), nil
	},
	Run: func(a *kernel.Args, block int, t *piecesTiling, _ []int64) error {
		whole, at := a.Mem(int(t.Pieces)), int64(0)
		for i, w := range t.Width[:t.Pieces] {
			row, n, from, to := part(a, block, t.Rows, w)
			if n > 0 && from < to {
				copyRows(whole[row*t.Whole+at+from:], t.Whole, a.Mem(i)[row*w+from:], w, n, to-from)
			}
			at += w
		}
		return nil
	},
	Cost: costPieces,
})

var splitRows = kernel.Define(kernel.Def[Axis, piecesTiling]{
	Name:  "split/rows",
	Class: device.Move,
	Moves: func(p *kernel.Problem, a Axis, out, _ int) kernel.Moved {
		at, bytes := runOf(p.Out, a, out)
		return kernel.Moved{InAt: at, Bytes: bytes}
	},
	Supports: func(p *kernel.Problem, a Axis) error {
		if len(p.In) != 1 {
			return status.Errorf(status.ErrInvalidParam, "want one input, got %d", len(p.In))
		}
		return checkPieces(p.In[0], p.Out, a.Axis)
	},
	Tile: func(p *kernel.Problem, a Axis, t *piecesTiling, _ []int64) (kernel.Grid, error) {
		return tilePieces(p.Machine, p.Out, a.Axis, t), nil
	},
	Run: func(a *kernel.Args, block int, t *piecesTiling, _ []int64) error {
		whole, at := a.Mem(0), int64(0)
		for i, w := range t.Width[:t.Pieces] {
			row, n, from, to := part(a, block, t.Rows, w)
			if n > 0 && from < to {
				copyRows(a.Mem(1 + i)[row*w+from:], w, whole[row*t.Whole+at+from:], t.Whole, n, to-from)
			}
			at += w
		}
		return nil
	},
	Cost: costPieces,
})

// runOf returns where piece i lies in the whole, when it is one run of bytes
// there, and its size; else no bytes.
func runOf(pieces []tensor.Desc, a Axis, i int) (at, bytes int64) {
	if pieces[i].Shape.Product(0, int(a.Axis)) != 1 {
		return 0, 0
	}
	for k := range pieces[:i] {
		at += pieces[k].Bytes()
	}
	return at, pieces[i].Bytes()
}

// checkPieces checks that the pieces make up the whole along the axis.
func checkPieces(whole tensor.Desc, pieces []tensor.Desc, axis int64) error {
	if len(pieces) < 1 || len(pieces) > MaxPieces {
		return status.Errorf(status.ErrInvalidParam, "want 1 to %d pieces, got %d", MaxPieces, len(pieces))
	}
	if axis < 0 || axis >= int64(whole.Rank()) {
		return status.Errorf(status.ErrInvalidParam, "want an axis from 0 to %d, got %d", whole.Rank()-1, axis)
	}
	sum := int64(0)
	for i := range pieces {
		d := &pieces[i]
		if d.Bytes() == 0 || d.DType.Size() != whole.DType.Size() || d.Rank() != whole.Rank() ||
			d.Shape.With(int(axis), whole.Dim(int(axis))) != whole.Shape {
			return status.Errorf(status.ErrInvalidParam, "piece %d %s does not fit %s along axis %d", i, d, whole, axis)
		}
		sum += d.Dim(int(axis))
	}
	if sum != whole.Dim(int(axis)) {
		return status.Errorf(status.ErrInvalidParam, "pieces have %d along axis %d, want %d", sum, axis, whole.Dim(int(axis)))
	}
	return nil
}

func tilePieces(m kernel.Machine, pieces []tensor.Desc, axis int64, t *piecesTiling) kernel.Grid {
	t.Pieces = int64(len(pieces))
	for i := range pieces {
		d := &pieces[i]
		t.Rows = d.Shape.Product(0, int(axis))
		t.Width[i] = d.Shape.Product(int(axis), d.Rank()) * d.DType.Size()
		t.Whole += t.Width[i]
	}
	return chooseCut(m, t.Rows, t.Whole)
}

func costPieces(t *piecesTiling, _ []int64) (flops, bytes int64) { return 0, 2 * t.Rows * t.Whole }
