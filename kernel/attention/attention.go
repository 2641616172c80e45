package attention

import (
	"goatb/device"
	"goatb/kernel"
)

// Attend holds the attention kernels: NumIn inputs as the constants of this
// package number them, one output.
var Attend = kernel.Table{attend}

var attend = kernel.Define(kernel.Def[Params, tiling]{
	Name:     "attention/go",
	Class:    device.Mix,
	Supports: supports,
	Scratch:  scratchBytes,
	Tail:     func(_ *kernel.Problem, a Params) int { return int(a.Batch+1) * sequenceWords },
	Tile:     tile,
	Run:      run,
	Cost:     func(t *tiling, _ []int64) (flops, bytes int64) { return t.Flops, t.Bytes },
})

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
