package paged

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/status"
	"goatb/tensor"
)

// Attend holds the kernels of attention over a paged cache: the inputs of this
// package, output [tokens, heads, dv] of a float type, values as Params says.
var Attend = kernel.Table{attendGo}

// Parts holds the kernels that do the parts of a context apart: inputs and
// values as Attend, output as parts.Desc describes it for rows of tokens*heads.
var Parts = kernel.Table{partsGo}

var attendGo = kernel.Define(kernel.Def[Params, tiling]{
	Name:   "paged/go",
	Class:  device.Mix,
	TileOn: kernel.OnHost | kernel.OnAICPU,
	Keys:   numKeys,
	Supports: func(p *kernel.Problem, a Params) error {
		var g geometry
		if err := g.measure(p, a); err != nil {
			return err
		}
		o := &p.Out[0]
		if !isFloat(o.DType) || o.Shape != tensor.ShapeOf(g.Tokens, g.Heads, g.ValueDim) {
			return status.Errorf(status.ErrInvalidParam, "want a float output [%d,%d,%d], got %s", g.Tokens, g.Heads, g.ValueDim, o)
		}
		return nil
	},
	Scratch: scratchBytes,
	Slower:  slower,
	Tail:    tail,
	Tile: func(p *kernel.Problem, a Params, t *tiling, tail []int64) (kernel.Grid, error) {
		return tile(p, a, t, tail, 0)
	},
	Share: share,
	Cost:  func(t *tiling, tail []int64) (flops, bytes int64) { return t.cost(tail) },
})

var partsGo = kernel.Define(kernel.Def[Params, tiling]{
	Name:   "pagedparts/go",
	Class:  device.Mix,
	TileOn: kernel.OnHost | kernel.OnAICPU,
	Keys:   numKeys,
	Supports: func(p *kernel.Problem, a Params) error {
		var g geometry
		if err := g.measure(p, a); err != nil {
			return err
		}
		if want := parts.Desc(g.Tokens*g.Heads, parts.Count(g.MaxContext), g.ValueDim); p.Out[0] != want {
			return status.Errorf(status.ErrInvalidParam, "want an output %s, got %s", want, p.Out[0])
		}
		return nil
	},
	Scratch: scratchBytes,
	Slower:  slower,
	Tail:    tail,
	Tile: func(p *kernel.Problem, a Params, t *tiling, tail []int64) (kernel.Grid, error) {
		return tile(p, a, t, tail, p.Out[0].Dim(1))
	},
	Share: share,
	Cost:  func(t *tiling, tail []int64) (flops, bytes int64) { return t.cost(tail) },
})

// scratchBytes is the scratch of all blocks.
func scratchBytes(p *kernel.Problem, a Params) int64 {
	var g geometry
	if err := g.measure(p, a); err != nil {
		return 0
	}
	return scratchOf(&g).Each * 4 * int64(kernel.MostEvenBlocks(p.Machine))
}

func tail(p *kernel.Problem, a Params) int {
	var g geometry
	if err := g.measure(p, a); err != nil {
		return 0
	}
	return tailWords(p, &g)
}

func tile(p *kernel.Problem, a Params, t *tiling, tail []int64, apart int64) (kernel.Grid, error) {
	if err := t.measure(p, a); err != nil {
		return kernel.Grid{}, err
	}
	most, err := t.fillSequences(p, a, tail)
	if err != nil {
		return kernel.Grid{}, err
	}
	t.Parts, t.OutType = apart, p.Out[0].DType
	t.block(most)
	return t.cut(p.Machine, tail), nil
}

// attendAll does all parts of an item and writes its output rows.
func (w *worker) attendAll() error {
	t, rows, n := w.t, w.rows(), parts.Count(w.context)
	if n == 0 { // nothing is seen, whatever the values are
		clear(w.partSum[:rows])
		w.store(w.part, w.partSum)
		return nil
	}
	w.stream.open(w, 0, n)
	w.loadQuery()
	if n == 1 {
		// The total of one part is the part.
		if err := w.attend(0); err != nil {
			return err
		}
		w.store(w.part, w.partSum)
		return nil
	}
	clear(w.totalSum[:rows])
	for p := range n {
		if err := w.attend(p); err != nil {
			return err
		}
		for r := range rows {
			total, part := w.total[r*t.ValueDim:(r+1)*t.ValueDim], w.part[r*t.ValueDim:(r+1)*t.ValueDim]
			parts.Join(total, &w.totalMax[r], &w.totalSum[r], part, w.partMax[r], w.partSum[r])
		}
	}
	w.store(w.total, w.totalSum)
	return nil
}

// store divides the values of an item's rows by their sums and writes them.
func (w *worker) store(values, sums []float32) {
	t, out := w.t, w.a.Mem(NumInputs)
	heads, size := w.together(), t.OutType.Size()
	rows, row := heads*w.group, int64(0)
	for h := int64(0); h < w.heads; h += heads {
		for r := range w.queryRows {
			at, n := ((w.firstRow+r)*t.Heads+w.queryHead(h, 0))*t.ValueDim, rows*t.ValueDim
			from, to := values[row*t.ValueDim:][:n], out[at*size:(at+n)*size]
			room := kernel.Room(from, to, t.OutType, n)
			parts.Finish(room, from, sums[row:row+rows])
			kernel.Flush(to, room, t.OutType)
			row += rows
		}
	}
}

// attendPart does one part of an item and writes it apart. The item of a row's
// last part, or the only one of a row without parts, marks the end.
func (w *worker) attendPart() error {
	t, n := w.t, parts.Count(w.context)
	if n > 0 {
		w.stream.open(w, w.partIndex, 1)
		w.loadQuery()
		if err := w.attend(w.partIndex); err != nil {
			return err
		}
	}
	out := parts.ViewOf(w.a.Mem(NumInputs), t.Parts, t.ValueDim)
	row := int64(0)
	for h := range w.heads {
		for r := range w.queryRows {
			for g := range w.group {
				at := (w.firstRow+r)*t.Heads + w.queryHead(h, g)
				if n > 0 {
					out.Put(at, w.partIndex, w.part[row*t.ValueDim:(row+1)*t.ValueDim], w.partMax[row], w.partSum[row])
				}
				if w.partIndex >= n-1 {
					out.End(at, n)
				}
				row++
			}
		}
	}
	return nil
}
