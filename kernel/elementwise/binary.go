package elementwise

import (
	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// BinaryOp is an arithmetic function of two tensors.
type BinaryOp uint8

// Functions of two tensors.
const (
	Add BinaryOp = iota
	Sub
	Mul
	Div
	numBinary
)

// BinaryParams selects the function.
type BinaryParams struct{ Op BinaryOp }

// Binary: a, b -> their broadcast function, all of one type: a float type, or
// an integer type, whose results wrap, for all but Div. The output may be an
// input that has its shape.
var Binary = kernel.Table{binaryFloat, binaryInt}

type binaryTiling struct {
	Layout layout
	N      int64
	Op     BinaryOp
	DType  tensor.DType
}

var binaryFloat = kernel.Define(kernel.Def[BinaryParams, binaryTiling]{
	Name:    "binary/float",
	Class:   device.Vector,
	InPlace: true,
	Supports: func(p *kernel.Problem, b BinaryParams) error {
		if err := supportsBinary(p, b); err != nil {
			return err
		}
		if !isFloat(p.In[0].DType) {
			return status.Errorf(status.ErrInvalidParam, "want floats, got %s", p.In[0].DType)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, _ BinaryParams) int64 { return scratchFor(p, floatPair) },
	Tile: func(p *kernel.Problem, b BinaryParams, t *binaryTiling, _ []int64) (kernel.Grid, error) {
		return t.set(p, b, kernel.Nanos(0.15, 0.5)+1.5*floatNanos(p.In[0].DType))
	},
	Run: func(a *kernel.Args, block int, t *binaryTiling, _ []int64) error {
		buf := buffers(a, block, floatPair)
		lo, hi := span(t.N, block, a.Blocks)
		if t.Layout.longRuns() {
			t.runs(a, lo, hi, buf)
		} else {
			t.chunks(a, lo, hi, buf)
		}
		return nil
	},
	Cost: costBinary,
})

// supportsBinary makes the checks that floats and integers share.
func supportsBinary(p *kernel.Problem, b BinaryParams) error {
	if err := wantOperands(p, 2, 1); err != nil {
		return err
	}
	if b.Op >= numBinary {
		return status.Errorf(status.ErrInvalidParam, "unknown function %d", b.Op)
	}
	if x, y, z := p.In[0].DType, p.In[1].DType, p.Out[0].DType; x != y || x != z {
		return status.Errorf(status.ErrInvalidParam, "want one element type, got %s, %s and %s", x, y, z)
	}
	return broadcasts(p)
}

// broadcasts checks that every input broadcasts to output 0.
func broadcasts(p *kernel.Problem) error {
	for i := range p.In {
		if p.In[i].Empty() {
			continue
		}
		if err := BroadcastsTo(p.In[i].Shape, p.Out[0].Shape); err != nil {
			return err
		}
	}
	return nil
}

func (t *binaryTiling) set(p *kernel.Problem, b BinaryParams, nanos float64) (kernel.Grid, error) {
	t.N, t.Op, t.DType = p.Out[0].Numel(), b.Op, p.In[0].DType
	t.Layout.set(p.Out[0].Shape, p.In[0].Shape, p.In[1].Shape)
	return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, nanos), Key: uint64(b.Op)}, nil
}

// binaryForms are the forms of a function: of two arrays, of an array and a
// number behind it, and of a number and an array behind it.
var binaryForms = [numBinary]struct {
	arrays        floats.Func2
	number, array floats.ScalarFunc
}{
	Add: {floats.Plus, floats.AddScalar, floats.AddScalar},
	Sub: {floats.Minus, floats.SubScalar, floats.ScalarSub},
	Mul: {floats.Times, floats.MulScalar, floats.MulScalar},
	Div: {floats.Over, floats.DivScalar, floats.ScalarDiv},
}

// runs does the outputs [lo, hi) run by run: over a run an operand is an array
// or one number.
func (t *binaryTiling) runs(a *kernel.Args, lo, hi int64, buf []float32) {
	e, size, f := elementOf(t.DType), t.DType.Size(), binaryForms[t.Op]
	x, y, z := a.Mem(0), a.Mem(1), a.Mem(2)
	for w := t.Layout.walker(lo); lo < hi; {
		n, offX, offY := min(w.left(), hi-lo, pieceElements), w.offset(0)*size, w.offset(1)*size
		out, bytes := z[lo*size:(lo+n)*size], n*size
		switch {
		case w.repeats(0):
			floats.Scalar(f.array, e, out, y[offY:offY+bytes], floats.At(e, x[offX:], 0), buf)
		case w.repeats(1):
			floats.Scalar(f.number, e, out, x[offX:offX+bytes], floats.At(e, y[offY:], 0), buf)
		default:
			floats.Binary(f.arrays, e, out, x[offX:offX+bytes], y[offY:offY+bytes], buf)
		}
		w.move(n)
		lo += n
	}
}

// chunks does the outputs [lo, hi) on copies of the operands.
func (t *binaryTiling) chunks(a *kernel.Args, lo, hi int64, buf []float32) {
	dst, size := a.Mem(2), t.DType.Size()
	for ; lo < hi; lo += chunkElements {
		n := min(chunkElements, hi-lo)
		x, y := fetchPair(&t.Layout, buf, a.Mem(0), a.Mem(1), t.DType, lo, n)
		z := kernel.Room(buf, dst[lo*size:], t.DType, n)
		floats.Binary(binaryForms[t.Op].arrays, floats.F32, device.BytesOf(z), device.BytesOf(x), device.BytesOf(y), nil)
		kernel.Flush(dst[lo*size:], z, t.DType)
	}
}

func costBinary(t *binaryTiling, _ []int64) (flops, bytes int64) {
	return t.N, 3 * t.N * t.DType.Size()
}

// floatPair is the number of buffers that fetchPair takes: two for operands and
// a half one for elements of 16 bits.
const floatPair = 3

// fetchPair returns the elements of operands 0 and 1 for the outputs
// [lo, lo+n) as float32. Buffer 0 is free where operand 0 does not lie in it.
func fetchPair(l *layout, buf []float32, a, b []byte, t tensor.DType, lo, n int64) (x, y []float32) {
	half := buf[2*chunkElements:]
	x = fetchFloats(l, 0, buf[:chunkElements], half, a, t, lo, n)
	y = fetchFloats(l, 1, buf[chunkElements:2*chunkElements], half, b, t, lo, n)
	return x, y
}

// fetchFloats is fetch for a float type. buf and half hold a chunk of float32
// and of 16-bit elements.
func fetchFloats(l *layout, i int, buf, half []float32, mem []byte, t tensor.DType, lo, n int64) []float32 {
	if t == tensor.Float32 {
		return fetch(l, i, buf, device.View[float32](mem), lo, n)
	}
	bits := fetch(l, i, device.View[uint16](device.BytesOf(half)), device.View[uint16](mem), lo, n)
	kernel.LoadFloats(buf[:n], device.BytesOf(bits), t)
	return buf[:n]
}
