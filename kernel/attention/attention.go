package attention

import (
	"fmt"

	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
)

// Attend holds the attention kernels: NumIn inputs as the constants of this
// package number them, one output.
var Attend = kernel.Table{attend}

// Parts holds the kernels that do the parts of a row's keys apart: inputs and
// values as Attend, but no quantisation; the output is what PartsDesc
// describes, for parts.Merge.
var Parts = kernel.Table{attendParts}

var attend = kernel.Define(kernel.Def[Params, tiling]{
	Name:     "attention/go",
	Class:    device.Mix,
	TileOn:   kernel.OnHost | kernel.OnAICPU,
	Keys:     numKeys,
	Supports: supports,
	Scratch:  scratchBytes,
	Slower:   slower,
	Tail:     tail,
	Tile: func(p *kernel.Problem, a Params, t *tiling, tail []int64) (kernel.Grid, error) {
		return tile(p, a, t, tail, 0)
	},
	Run:  run,
	Cost: cost,
})

var attendParts = kernel.Define(kernel.Def[Params, tiling]{
	Name:     "attention/parts",
	Class:    device.Mix,
	TileOn:   kernel.OnHost | kernel.OnAICPU,
	Keys:     numKeys,
	Supports: supportParts,
	Scratch:  scratchBytes,
	Slower:   slower,
	Tail:     tail,
	Tile: func(p *kernel.Problem, a Params, t *tiling, tail []int64) (kernel.Grid, error) {
		return tile(p, a, t, tail, p.Out[0].Dim(1))
	},
	Run:  run,
	Cost: cost,
})

// slower says why keys and values are not used where they lie.
func slower(p *kernel.Problem, a Params) (why []string) {
	t := p.In[InKey].DType
	for i, size := range [...]int64{a.KeySize, a.ValueSize} {
		if !vec.CacheTakes(elementOf(t), int(size)) {
			why = append(why, fmt.Sprintf("%s are widened: this processor has no loop over %s rows of %d elements", [...]string{"keys", "values"}[i], t, size))
		}
	}
	return why
}

func tail(_ *kernel.Problem, a Params) int { return int(a.Batch+1) * sequenceWords }

func cost(t *tiling, _ []int64) (flops, bytes int64) { return t.Flops, t.Bytes }

// run does the items block, block+Blocks, block+2*Blocks and so on: neighbours
// are of like length, so the blocks get like shares.
func run(a *kernel.Args, block int, t *tiling, tail []int64) error {
	var w worker
	w.start(a, block, t)
	index := int64(0)
	w.seq = readSequence(tail, index)
	before, n := int64(0), t.items(&w.seq)
	for item := int64(block); item < t.Items; item += int64(a.Blocks) {
		for item-before >= n {
			index++
			w.seq = readSequence(tail, index)
			before, n = before+n, t.items(&w.seq)
		}
		if err := w.item(item-before, a.Key); err != nil {
			return err
		}
	}
	return nil
}
