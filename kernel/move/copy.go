package move

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
)

// Copy holds the plain copies: one input, one output of the same byte size,
// params struct{}. The output may be the memory of the input.
var Copy = kernel.Table{copyBytes}

// copyTiling cuts a copy into byte ranges.
type copyTiling struct {
	// Bytes is the size, Lines the number of 64-byte lines in it, counting a
	// last short one: blocks share lines, so that no two write one line.
	Bytes, Lines int64
}

const lineBytes = 64

var copyBytes = kernel.Define(kernel.Def[struct{}, copyTiling]{
	Name:    "copy/bytes",
	Class:   device.Move,
	InPlace: true,
	Moves: func(p *kernel.Problem, _ struct{}, _, _ int) kernel.Moved {
		return kernel.Moved{Bytes: p.In[0].Bytes()}
	},
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if len(p.In) != 1 || len(p.Out) != 1 || p.In[0].Bytes() == 0 || p.In[0].Bytes() != p.Out[0].Bytes() {
			return status.Errorf(status.ErrInvalidParam, "want one input and one output of the same size, got %v and %v", p.In, p.Out)
		}
		return nil
	},
	Tile: func(p *kernel.Problem, _ struct{}, t *copyTiling, _ []int64) (kernel.Grid, error) {
		t.Bytes = p.In[0].Bytes()
		t.Lines = (t.Bytes + lineBytes - 1) / lineBytes
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Lines, float64(t.Bytes)*nanosPerByte)}, nil
	},
	Run: func(a *kernel.Args, block int, t *copyTiling, _ []int64) error {
		lo, hi := kernel.Share(t.Lines, block, a.Blocks)
		from, to := lo*lineBytes, min(hi*lineBytes, t.Bytes)
		copy(a.Mem(1)[from:to], a.Mem(0)[from:to])
		return nil
	},
	Cost: func(t *copyTiling, _ []int64) (flops, bytes int64) { return 0, 2 * t.Bytes },
})
