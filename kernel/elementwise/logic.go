package elementwise

import (
	"goatb/device"
	"goatb/internal/vec/words"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// LogicOp is a function of truth values: a byte is false when it is 0.
type LogicOp uint8

// Functions of truth values.
const (
	And LogicOp = iota
	Or
	Not
	numLogic
)

// LogicParams selects the function.
type LogicParams struct{ Op LogicOp }

// Logic: a, b (Not: a) of type int8 or bool -> 0 or 1 of the same type,
// broadcast. The output may be an input that has its shape.
var Logic = kernel.Table{logicBytes}

type logicTiling struct {
	Layout layout
	N      int64
	Op     LogicOp
}

var logicBytes = kernel.Define(kernel.Def[LogicParams, logicTiling]{
	Name:    "logic/go",
	Class:   device.Vector,
	InPlace: true,
	Supports: func(p *kernel.Problem, l LogicParams) error {
		if l.Op >= numLogic {
			return status.Errorf(status.ErrInvalidParam, "unknown logic function %d", l.Op)
		}
		if err := wantOperands(p, l.operands(), 1); err != nil {
			return err
		}
		for i := range p.In {
			if x, z := p.In[i].DType, p.Out[0].DType; x != z || !isTruth(x) {
				return status.Errorf(status.ErrInvalidParam, "want int8 or bool throughout, got %s and %s", x, z)
			}
		}
		return broadcasts(p)
	},
	Scratch: func(p *kernel.Problem, _ LogicParams) int64 { return scratchFor(p, wordPair) },
	Tile: func(p *kernel.Problem, l LogicParams, t *logicTiling, _ []int64) (kernel.Grid, error) {
		t.N, t.Op = p.Out[0].Numel(), l.Op
		shapes := [2]tensor.Shape{p.In[0].Shape, p.In[len(p.In)-1].Shape}
		t.Layout.set(p.Out[0].Shape, shapes[:len(p.In)]...)
		return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, kernel.Nanos(0.06, 0.5)), Key: uint64(l.Op)}, nil
	},
	Run: func(a *kernel.Args, block int, t *logicTiling, _ []int64) error {
		bufX, bufY := wordBuffers[uint8](a, block)
		last := len(a.Buffers) - 1
		x, y, z := a.Mem(0), a.Mem(last-1), a.Mem(last)
		lo, hi := span(t.N, block, a.Blocks)
		for ; lo < hi; lo += chunkElements {
			n := min(chunkElements, hi-lo)
			u := fetch(&t.Layout, 0, bufX, x, lo, n)
			switch t.Op {
			case Not:
				words.Not(z[lo:lo+n], u)
			case And:
				words.And(z[lo:lo+n], u, fetch(&t.Layout, 1, bufY, y, lo, n))
			default:
				words.Or(z[lo:lo+n], u, fetch(&t.Layout, 1, bufY, y, lo, n))
			}
		}
		return nil
	},
	Cost: func(t *logicTiling, _ []int64) (flops, bytes int64) { return t.N, 3 * t.N },
})

// operands is the number of inputs.
func (l LogicParams) operands() int {
	if l.Op == Not {
		return 1
	}
	return 2
}
