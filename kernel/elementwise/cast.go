package elementwise

import (
	"math"

	"goatb/device"
	"goatb/internal/vec/words"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Cast: x -> y of another element type, by the rules of tensor.Convert; params
// struct{}. The last kernel takes every pair of types that Convert takes.
var Cast = kernel.Table{castLoops, castAny}

type castTiling struct {
	N        int64
	From, To tensor.DType
}

// castBuffers: 64-bit integers and floats of a chunk.
const castBuffers = 3

var castLoops = kernel.Define(kernel.Def[struct{}, castTiling]{
	Name:    "cast/go",
	Class:   device.Vector,
	InPlace: true,
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if err := supportsCast(p); err != nil {
			return err
		}
		if from, to := p.In[0].DType, p.Out[0].DType; !castsFast(from, to) {
			return status.Errorf(status.ErrInvalidParam, "no loop casts %s to %s", from, to)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, _ struct{}) int64 { return scratchFor(p, castBuffers) },
	Tile: func(p *kernel.Problem, _ struct{}, t *castTiling, _ []int64) (kernel.Grid, error) {
		return t.set(p, kernel.Nanos(0.2, 2)), nil
	},
	Run: func(a *kernel.Args, block int, t *castTiling, _ []int64) error {
		buf := buffers(a, block, castBuffers)
		src, dst, ss, ds := a.Mem(0), a.Mem(1), t.From.Size(), t.To.Size()
		lo, hi := span(t.N, block, a.Blocks)
		for ; lo < hi; lo += chunkElements {
			n := min(chunkElements, hi-lo)
			t.chunk(buf, dst[lo*ds:(lo+n)*ds], src[lo*ss:(lo+n)*ss], n)
		}
		return nil
	},
	Cost: costCast,
})

var castAny = kernel.Define(kernel.Def[struct{}, castTiling]{
	Name:  "cast/any",
	Class: device.Vector,
	Supports: func(p *kernel.Problem, _ struct{}) error {
		if err := supportsCast(p); err != nil {
			return err
		}
		return tensor.Convert(nil, p.Out[0].DType, nil, p.In[0].DType)
	},
	Tile: func(p *kernel.Problem, _ struct{}, t *castTiling, _ []int64) (kernel.Grid, error) {
		return t.set(p, 20), nil
	},
	Run: func(a *kernel.Args, block int, t *castTiling, _ []int64) error {
		ss, ds := t.From.Size(), t.To.Size()
		lo, hi := span(t.N, block, a.Blocks)
		return tensor.Convert(a.Mem(1)[lo*ds:hi*ds], t.To, a.Mem(0)[lo*ss:hi*ss], t.From)
	},
	Cost: costCast,
})

func supportsCast(p *kernel.Problem) error {
	if err := wantOperands(p, 1, 1); err != nil {
		return err
	}
	if p.In[0].Numel() != p.Out[0].Numel() {
		return status.Errorf(status.ErrInvalidParam, "want as many outputs as inputs, got %s and %s", p.In[0], p.Out[0])
	}
	return nil
}

func (t *castTiling) set(p *kernel.Problem, nanos float64) kernel.Grid {
	*t = castTiling{N: p.In[0].Numel(), From: p.In[0].DType, To: p.Out[0].DType}
	return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, nanos)}
}

func costCast(t *castTiling, _ []int64) (flops, bytes int64) {
	return 0, t.N * (t.From.Size() + t.To.Size())
}

// castsFast reports whether the loops round once for the pair. Wide integers
// would be rounded twice on their way to bf16, and uint64 does not pass through
// int64 as a number.
func castsFast(from, to tensor.DType) bool {
	switch {
	case isFloat(from):
		return isFloat(to) || to != tensor.Uint64 && (isInteger(to) || to == tensor.Bool)
	case isInteger(from) || from == tensor.Bool:
		wide := from.Size() > 2
		return isInteger(to) || to == tensor.Bool ||
			isFloat(to) && from != tensor.Uint64 && !(wide && to == tensor.BFloat16)
	}
	return false
}

// chunk casts n elements, by way of float32, int32 or int64.
func (t *castTiling) chunk(buf []float32, dst, src []byte, n int64) {
	floats := buf[2*chunkElements:][:n]
	short := device.View[int32](device.BytesOf(buf[:chunkElements]))[:n]
	switch {
	case t.From == tensor.Int32 && t.To == tensor.Int64:
		words.Convert(device.View[int64](dst), device.View[int32](src))
	case t.From == tensor.Int64 && t.To == tensor.Int32:
		words.Convert(device.View[int32](dst), device.View[int64](src))
	case isFloat(t.From) && isFloat(t.To):
		kernel.StoreFloats(dst, kernel.Floats(floats, src, t.From, n), t.To)
	case isFloat(t.From) && isShort(t.To):
		truncateShort(short, kernel.Floats(floats, src, t.From, n), t.To)
		storeShort(dst, short, t.To)
	case isShort(t.From) && isFloat(t.To):
		loadShort(short, src, t.From)
		y := kernel.Room(floats, dst, t.To, n)
		words.Convert(y, short)
		kernel.Flush(dst, y, t.To)
	case fitsWord(t.From) && fitsWord(t.To):
		loadShort(short, src, t.From)
		storeShort(dst, short, t.To)
	default:
		t.wide(buf, dst, src, n)
	}
}

// wide casts n elements of which one side has 64 bits, is bool, or is uint32
// beside a float.
func (t *castTiling) wide(buf []float32, dst, src []byte, n int64) {
	ints := device.View[int64](device.BytesOf(buf[:2*chunkElements]))[:n]
	floats := buf[2*chunkElements:][:n]
	if isFloat(t.From) {
		truncate(ints, kernel.Floats(floats, src, t.From, n), t.To)
		storeInts(dst, ints, t.To)
		return
	}
	loadInts(ints, src, t.From)
	if isFloat(t.To) {
		words.Convert(floats, ints)
		kernel.StoreFloats(dst, floats, t.To)
		return
	}
	storeInts(dst, ints, t.To)
}

// fitsWord reports whether t is an integer type whose bits int32 holds, isShort
// whether int32 holds its numbers.
func fitsWord(t tensor.DType) bool { return isInteger(t) && t.Size() <= 4 }
func isShort(t tensor.DType) bool  { return fitsWord(t) && t != tensor.Uint32 }

// loadShort widens integers to int32, storeShort stores their lower bits.
func loadShort(dst []int32, src []byte, t tensor.DType) {
	switch t {
	case tensor.Int8:
		words.Convert(dst, device.View[int8](src))
	case tensor.Int16:
		words.Convert(dst, device.View[int16](src))
	case tensor.Uint8:
		words.Convert(dst, src)
	case tensor.Uint16:
		words.Convert(dst, device.View[uint16](src))
	default:
		copy(dst, device.View[int32](src))
	}
}

func storeShort(dst []byte, src []int32, t tensor.DType) {
	switch t.Size() {
	case 1:
		words.Convert(dst, src)
	case 2:
		words.Convert(device.View[uint16](dst), src)
	default:
		copy(device.View[int32](dst), src)
	}
}

// truncateShort rounds toward zero and clamps to the range of t; NaN gives 0.
func truncateShort(dst []int32, src []float32, t tensor.DType) {
	low, high := words.Range(int(8*t.Size()), t >= tensor.Uint8)
	words.Ints(dst, src, low, high)
}

// truncate is truncateShort for every integer type. For bool it gives 1 for all
// but 0.
func truncate(dst []int64, src []float32, to tensor.DType) {
	dst = dst[:len(src)]
	if to == tensor.Bool {
		for i, v := range src {
			dst[i] = int64(truth(v != 0))
		}
		return
	}
	lo, hi := rangeOf(to)
	below, above := float32(lo), float32(hi)
	for i, v := range src {
		switch {
		case v > below && v < above:
			dst[i] = int64(v)
		case v >= above:
			dst[i] = hi
		case v <= below:
			dst[i] = lo
		default:
			dst[i] = 0
		}
	}
}

// rangeOf returns the ends of an integer type that int64 holds.
func rangeOf(t tensor.DType) (lo, hi int64) {
	bits := uint(8 * t.Size())
	if t >= tensor.Uint8 {
		return 0, 1<<bits - 1
	}
	return math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)
}

// loadInts widens numbers to int64, bool to 0 or 1.
func loadInts(dst []int64, src []byte, t tensor.DType) {
	switch t {
	case tensor.Int8:
		words.Convert(dst, device.View[int8](src))
	case tensor.Int16:
		words.Convert(dst, device.View[int16](src))
	case tensor.Int32:
		words.Convert(dst, device.View[int32](src))
	case tensor.Uint8:
		words.Convert(dst, src)
	case tensor.Uint16:
		words.Convert(dst, device.View[uint16](src))
	case tensor.Uint32:
		words.Convert(dst, device.View[uint32](src))
	case tensor.Bool:
		for i, v := range src {
			dst[i] = int64(truth(v != 0))
		}
	default:
		copy(dst, device.View[int64](src))
	}
}

// storeInts stores the low bits, and 0 or 1 for bool.
func storeInts(dst []byte, src []int64, t tensor.DType) {
	switch t.Size() {
	case 1:
		if t == tensor.Bool {
			for i, v := range src {
				dst[i] = uint8(truth(v != 0))
			}
			return
		}
		words.Convert(dst, src)
	case 2:
		words.Convert(device.View[uint16](dst), src)
	case 4:
		words.Convert(device.View[uint32](dst), src)
	default:
		copy(device.View[int64](dst), src)
	}
}

// truth is 1 for true; the compiler makes it a flag without a jump.
func truth(b bool) int8 {
	if b {
		return 1
	}
	return 0
}
