package activation

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Func is an activation function.
type Func uint8

// Activation functions.
const (
	Relu     Func = iota // max(x, 0)
	GeluTanh             // x/2·(1+tanh(√(2/π)·(x+0.044715·x³)))
	GeluErf              // x/2·(1+erf(x/√2))
	Swish                // x·sigmoid(Scale·x)
	Sigmoid              // 1/(1+e^-x)
	Log                  // natural logarithm
	numFuncs
)

// funcNanos is the time of one element on one core.
var funcNanos = [numFuncs]float64{Relu: 0.5, GeluTanh: 4, GeluErf: 7.5, Swish: 3, Sigmoid: 3, Log: 3}

// Params selects the function.
type Params struct {
	Func Func
	// Scale is the factor inside Swish.
	Scale float32
}

// Unary: x -> y, both of one float type and size. The output may be the input.
var Unary = kernel.Table{unary}

type unaryTiling struct {
	N, Pieces int64
	Scale     float32
	Func      Func
	DType     tensor.DType
}

var unary = kernel.Define(kernel.Def[Params, unaryTiling]{
	Name:    "activation/go",
	Class:   device.Vector,
	InPlace: true,
	Supports: func(p *kernel.Problem, a Params) error {
		if err := wantFloats(p, 1, 1); err != nil {
			return err
		}
		if a.Func >= numFuncs {
			return status.Errorf(status.ErrInvalidParam, "unknown activation %d", a.Func)
		}
		if x, y := &p.In[0], &p.Out[0]; x.Numel() != y.Numel() {
			return status.Errorf(status.ErrInvalidParam, "want an output as large as the input, got %s and %s", x, y)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, _ Params) int64 { return scratchFor(p, 1) },
	Tile: func(p *kernel.Problem, a Params, t *unaryTiling, _ []int64) (kernel.Grid, error) {
		n, d := p.In[0].Numel(), p.In[0].DType
		*t = unaryTiling{N: n, Pieces: pieces(n), Scale: a.Scale, Func: a.Func, DType: d}
		nanos := float64(n) * (funcNanos[a.Func] + 2*transferNanos(d))
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Pieces, nanos), Key: uint64(a.Func)}, nil
	},
	Run: func(a *kernel.Args, block int, t *unaryTiling, _ []int64) error {
		buf, src, dst, size := buffers(a, block, 1), a.Mem(0), a.Mem(1), t.DType.Size()
		lo, hi := kernel.Share(t.Pieces, block, a.Blocks)
		for i := lo; i < hi; i++ {
			from := i * pieceElements
			n := min(pieceElements, t.N-from)
			x := kernel.Floats(buf, src[from*size:], t.DType, n)
			y := kernel.Room(buf, dst[from*size:], t.DType, n)
			t.apply(y, x)
			kernel.Flush(dst[from*size:], y, t.DType)
		}
		return nil
	},
	Cost: func(t *unaryTiling, _ []int64) (flops, bytes int64) { return t.N, 2 * t.N * t.DType.Size() },
})

func (t *unaryTiling) apply(y, x []float32) {
	switch t.Func {
	case Relu:
		vec.Relu(y, x)
	case GeluTanh:
		vec.GeluTanh(y, x)
	case GeluErf:
		vec.GeluErf(y, x)
	case Swish:
		vec.Swish(y, x, t.Scale)
	case Sigmoid:
		vec.Sigmoid(y, x)
	default:
		vec.Log(y, x)
	}
}
