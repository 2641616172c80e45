// Package overflow holds the kernel that looks for overflow in a tensor.
package overflow

import (
	"math"
	"sync/atomic"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Mode tells what counts as overflow.
type Mode uint8

// Modes.
const (
	// InfNaN looks for infinities and NaN, which is what IEEE arithmetic
	// leaves behind.
	InfNaN Mode = iota
	// Saturation looks for values at the largest finite magnitude of the type
	// as well, which is what saturating arithmetic leaves behind.
	Saturation
)

// String returns the mode's name.
func (m Mode) String() string { return [...]string{"inf-nan", "saturation"}[m&1] }

// Params are the parameters of the scan.
type Params struct{ Mode Mode }

type tiling struct {
	elems     int64
	threshold uint32
	dtype     tensor.DType
}

// nanosPerElement is what a core needs for one element, for the block dim.
const nanosPerElement = 0.5

// Scan sets an int32 flag to 1 when its float input holds an overflow:
//
//	inputs   0 x     any shape  f16 bf16 f32
//	outputs  0 flag  [1] int32, left as it is when nothing is found
//
// Each type is decoded by its own rules: 0x7F80 is infinite as bf16 and NaN as
// f16.
var Scan = kernel.Table{kernel.Define(kernel.Def[Params, tiling]{
	Name:  "overflow/go",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, _ Params) error {
		switch t := p.In[0].DType; t {
		case tensor.Float32, tensor.Float16, tensor.BFloat16:
			return nil
		default:
			return status.Errorf(status.ErrInvalidTensorDType, "want a float tensor, got %s", t)
		}
	},
	Tile: func(p *kernel.Problem, a Params, t *tiling, _ []int64) (kernel.Grid, error) {
		t.elems, t.dtype = p.In[0].Numel(), p.In[0].DType
		t.threshold = threshold(t.dtype, a.Mode)
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.elems, float64(t.elems)*nanosPerElement)}, nil
	},
	Run: run,
	Cost: func(t *tiling, _ []int64) (int64, int64) {
		return t.elems, t.elems * t.dtype.Size()
	},
})}

// threshold is the smallest magnitude, as bits without the sign, that counts.
func threshold(t tensor.DType, m Mode) uint32 {
	inf := map[tensor.DType]uint32{tensor.Float32: 0x7f800000, tensor.Float16: 0x7c00, tensor.BFloat16: 0x7f80}[t]
	if m == Saturation {
		return inf - 1
	}
	return inf
}

func run(a *kernel.Args, block int, t *tiling, _ []int64) error {
	lo, hi := kernel.Share(t.elems, block, a.Blocks)
	var found bool
	if t.dtype == tensor.Float32 {
		found = anyAtLeast(device.View[uint32](a.Mem(0))[lo:hi], math.MaxInt32, t.threshold)
	} else {
		found = anyAtLeast(device.View[uint16](a.Mem(0))[lo:hi], math.MaxInt16, uint16(t.threshold))
	}
	if found {
		atomic.StoreInt32(&device.View[int32](a.Mem(1))[0], 1)
	}
	return nil
}

// anyAtLeast reports whether some x, its sign masked off, is at least limit.
func anyAtLeast[T uint16 | uint32](xs []T, mask, limit T) bool {
	for _, x := range xs {
		if x&mask >= limit {
			return true
		}
	}
	return false
}
