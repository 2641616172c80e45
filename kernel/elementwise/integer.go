package elementwise

import (
	"goatb/device"
	"goatb/internal/vec/words"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

var binaryInt = kernel.Define(kernel.Def[BinaryParams, binaryTiling]{
	Name:    "binary/int",
	Class:   device.Vector,
	InPlace: true,
	Supports: func(p *kernel.Problem, b BinaryParams) error {
		if err := supportsBinary(p, b); err != nil {
			return err
		}
		if t := p.In[0].DType; !isInteger(t) || b.Op == Div {
			return status.Errorf(status.ErrInvalidParam, "want integers and no division, got %s", t)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, _ BinaryParams) int64 { return scratchFor(p, wordPair) },
	Tile: func(p *kernel.Problem, b BinaryParams, t *binaryTiling, _ []int64) (kernel.Grid, error) {
		return t.set(p, b, kernel.Nanos(0.05, 0.2)*float64(p.In[0].DType.Size()))
	},
	Run: func(a *kernel.Args, block int, t *binaryTiling, _ []int64) error {
		switch t.DType {
		case tensor.Int8, tensor.Uint8:
			runBinaryInt[uint8](a, block, t)
		case tensor.Int16, tensor.Uint16:
			runBinaryInt[uint16](a, block, t)
		case tensor.Int32, tensor.Uint32:
			runBinaryInt[uint32](a, block, t)
		default:
			runBinaryInt[uint64](a, block, t)
		}
		return nil
	},
	Cost: costBinary,
})

// isInteger reports whether t is an integer type.
func isInteger(t tensor.DType) bool { return t >= tensor.Int8 && t <= tensor.Uint64 }

// wordPair is the number of buffers for two operands of up to 64 bits.
const wordPair = 4

// unsigned types stand for both signs: sums, differences and products wrap to
// the same bits.
type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

func runBinaryInt[T unsigned](a *kernel.Args, block int, t *binaryTiling) {
	x, y, z := device.View[T](a.Mem(0)), device.View[T](a.Mem(1)), device.View[T](a.Mem(2))
	bufX, bufY := wordBuffers[T](a, block)
	lo, hi := span(t.N, block, a.Blocks)
	for ; lo < hi; lo += chunkElements {
		n := min(chunkElements, hi-lo)
		u := fetch(&t.Layout, 0, bufX, x, lo, n)
		v := fetch(&t.Layout, 1, bufY, y, lo, n)
		words.Apply(wordFuncs[t.Op], z[lo:lo+n], u, v)
	}
}

// wordFuncs are the functions of integers.
var wordFuncs = [numBinary]words.Func{Add: words.Add, Sub: words.Sub, Mul: words.Mul}

// wordBuffers returns the block's chunks for two operands of type T.
func wordBuffers[T word](a *kernel.Args, block int) (x, y []T) {
	buf := buffers(a, block, wordPair)
	return device.View[T](device.BytesOf(buf[:2*chunkElements])), device.View[T](device.BytesOf(buf[2*chunkElements:]))
}
