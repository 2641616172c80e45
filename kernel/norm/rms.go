package norm

import (
	"math"
	"unsafe"

	"goatb/device"
	"goatb/internal/cpu"
	"goatb/internal/vec"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// RMSParams are the parameters of RMS.
type RMSParams struct {
	// Eps is added to the mean square.
	Eps float32
	// OnePlus multiplies by 1+gamma instead of gamma.
	OnePlus bool
	// HalfSteps rounds the normalised row to f16 before it is multiplied by
	// gamma; then y is f16.
	HalfSteps bool
}

// Operands of RMS; inputs first.
const (
	rmsX = iota
	rmsResidual
	rmsBias
	rmsGamma
	rmsBeta
	rmsY
	rmsSum
	rmsRstd
	rmsOperands
	rmsInputs = rmsY
)

// RMS normalises rows by their root mean square.
//
// In: x [rows..., width], residual like x (may be absent), bias [width] (may be
// absent), gamma [width], beta [width] (may be absent). Out: y like x, sum like
// x (may be absent), rstd f32, one per row (may be absent). All but rstd are of
// any float type. The width is gamma's number of elements.
//
//	s = x (+ bias) (+ residual)      r = 1/√(mean(s²)+Eps)
//	y = s·r·gamma (+ beta)           sum = s          rstd = r
//
// y may be the memory of x, and sum that of residual.
var RMS = kernel.Table{rms}

type rmsTiling struct {
	Rows, Width int64
	Eps         float32
	OnePlus     bool
	HalfSteps   bool
	// Around says that y goes around the caches.
	Around bool
	// Plain says that all operands are f32 and rows are scaled by nothing but gamma.
	Plain  bool
	DTypes [rmsOperands]tensor.DType
}

// Row buffers of RMS.
const (
	rmsBufRow = iota
	rmsBufResidual
	rmsBufBias
	rmsBufGamma
	rmsBufBeta
	rmsBuffers
)

var rms = kernel.Define(kernel.Def[RMSParams, rmsTiling]{
	Name:     "rmsnorm/go",
	Class:    device.Vector,
	InPlace:  true,
	Pairs:    [][2]int{{0, rmsX}, {1, rmsResidual}},
	Supports: supportsRMS,
	Scratch: func(p *kernel.Problem, _ RMSParams) int64 {
		return scratchFor(p, rmsBuffers, p.In[rmsGamma].Numel())
	},
	Tile: func(p *kernel.Problem, r RMSParams, t *rmsTiling, _ []int64) (kernel.Grid, error) {
		width := p.In[rmsGamma].Numel()
		*t = rmsTiling{Rows: p.In[rmsX].Numel() / width, Width: width, Eps: r.Eps, OnePlus: r.OnePlus, HalfSteps: r.HalfSteps}
		t.Around = kernel.Around(p.Machine, p.In[rmsX].Bytes()+p.Out[0].Bytes())
		nanos := kernel.Nanos(0.1, 0.7)
		t.Plain = !t.Around && !r.OnePlus && !r.HalfSteps && p.In[rmsBias].Empty() && p.In[rmsBeta].Empty()
		for i := range t.DTypes {
			if d := rmsDesc(p, i); !d.Empty() {
				t.DTypes[i] = d.DType
				t.Plain = t.Plain && d.DType == tensor.Float32
				if d.Numel() == p.In[rmsX].Numel() {
					nanos += transferNanos(d.DType)
				}
			}
		}
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Rows, float64(t.Rows*width)*nanos)}, nil
	},
	Run: func(a *kernel.Args, block int, t *rmsTiling, _ []int64) error {
		lo, hi := kernel.Share(t.Rows, block, a.Blocks)
		if t.Plain {
			t.plainRows(a, buffersOf(a, block, rmsBuffers, t.Width), lo, hi)
			return nil
		}
		t.rows(a, buffersOf(a, block, rmsBuffers, t.Width), lo, hi)
		return nil
	},
	Cost: func(t *rmsTiling, _ []int64) (flops, bytes int64) {
		n := t.Rows * t.Width
		for i, d := range t.DTypes {
			switch i {
			case rmsX, rmsResidual, rmsY, rmsSum:
				bytes += n * d.Size()
			case rmsRstd:
				bytes += t.Rows * d.Size()
			default:
				bytes += t.Width * d.Size()
			}
		}
		return 4 * n, bytes
	},
})

// rmsDesc returns the descriptor of an operand.
func rmsDesc(p *kernel.Problem, i int) *tensor.Desc {
	if i < rmsInputs {
		return &p.In[i]
	}
	return &p.Out[i-rmsInputs]
}

func supportsRMS(p *kernel.Problem, r RMSParams) error {
	if len(p.In) != rmsInputs || len(p.Out) != rmsOperands-rmsInputs {
		return status.Errorf(status.ErrInternal, "want %d inputs and %d outputs, got %d and %d", rmsInputs, rmsOperands-rmsInputs, len(p.In), len(p.Out))
	}
	n, width := p.In[rmsX].Numel(), p.In[rmsGamma].Numel()
	if width == 0 || n == 0 || n%width != 0 {
		return status.Errorf(status.ErrInvalidParam, "want rows of gamma's size, got x %s and gamma %s", p.In[rmsX], p.In[rmsGamma])
	}
	for i := range rmsOperands {
		d, want := rmsDesc(p, i), width
		switch i {
		case rmsX, rmsResidual, rmsY, rmsSum:
			want = n
		case rmsRstd:
			want = n / width
		}
		if d.Empty() && i != rmsY {
			continue
		}
		if d.Numel() != want || !isFloat(d.DType) || i == rmsRstd && d.DType != tensor.Float32 {
			return status.Errorf(status.ErrInvalidParam, "operand %d: want %d floats, got %s", i, want, d)
		}
	}
	if r.HalfSteps && (p.Out[0].DType != tensor.Float16 || !p.In[rmsBeta].Empty()) {
		return status.Errorf(status.ErrInvalidParam, "steps of f16 want an f16 output and no beta, got %s", p.Out[0])
	}
	return nil
}

// rows normalises the rows [lo, hi).
func (t *rmsTiling) rows(a *kernel.Args, buf rowBuffers, lo, hi int64) {
	var ops [rmsOperands]operand
	for i := range ops {
		ops[i] = operand{a.Mem(i), t.DTypes[i]}
	}
	gamma := ops[rmsGamma].load(buf.row(rmsBufGamma), 0, t.Width)
	if t.OnePlus {
		gamma = addOne(buf.row(rmsBufGamma), gamma)
	}
	var bias, beta []float32
	if ops[rmsBias].there() {
		bias = ops[rmsBias].load(buf.row(rmsBufBias), 0, t.Width)
	}
	if ops[rmsBeta].there() {
		beta = ops[rmsBeta].load(buf.row(rmsBufBeta), 0, t.Width)
	}
	n := norm{t: t, ops: ops, buf: buf, gamma: gamma, bias: bias, beta: beta, rstd: device.View[float32](ops[rmsRstd].mem)}
	direct := bias == nil && beta == nil && !t.HalfSteps && !ops[rmsResidual].there() && !ops[rmsSum].there() &&
		t.DTypes[rmsX] == t.DTypes[rmsY]
	n.around = t.Around && cpu.Active().Has(cpu.AVX2) && unsafe.SliceData(ops[rmsX].mem) != unsafe.SliceData(ops[rmsY].mem)
	for i := lo; i < hi; i++ {
		if direct {
			n.direct(i)
		} else {
			n.row(i)
		}
	}
}

// plainRows is rows where Plain: a short row takes less time than finding out what
// there is to do.
func (t *rmsTiling) plainRows(a *kernel.Args, buf rowBuffers, lo, hi int64) {
	var ops [rmsOperands][]float32
	for i := range ops {
		ops[i] = device.View[float32](a.Mem(i))
	}
	gamma, row := ops[rmsGamma][:t.Width], buf.row(rmsBufRow)
	for i := lo; i < hi; i++ {
		at, end := i*t.Width, (i+1)*t.Width
		s := ops[rmsX][at:end]
		if sum := ops[rmsSum]; sum != nil {
			row = sum[at:end]
		}
		switch residual := ops[rmsResidual]; {
		case residual != nil:
			vec.Add(row, s, residual[at:end])
			s = row
		case ops[rmsSum] != nil:
			copy(row, s)
		}
		squares := float64(vec.SumSquares(s))
		if math.IsInf(squares, 1) {
			squares = wideSquares(s)
		}
		vec.ScaleMul(ops[rmsY][at:end], s, t.reciprocal(squares, i, ops[rmsRstd]), gamma)
	}
}

// norm is a launch of a block with what its rows share.
type norm struct {
	t                 *rmsTiling
	ops               [rmsOperands]operand
	buf               rowBuffers
	gamma, bias, beta []float32
	rstd              []float32
	around            bool
}

// direct does a row that is scaled by nothing but gamma, without a copy.
func (n *norm) direct(i int64) {
	e, _ := floats.Of(n.t.DTypes[rmsX])
	x, row := n.ops[rmsX].at(i, n.t.Width), n.buf.row(rmsBufRow)
	sum := float64(floats.SumSquares(e, x, row))
	if math.IsInf(sum, 1) {
		sum = wideSquares(n.ops[rmsX].load(row, i, n.t.Width))
	}
	y := n.ops[rmsY].at(i, n.t.Width)
	if !n.around {
		floats.ScaleMul(e, y, x, n.t.reciprocal(sum, i, n.rstd), n.gamma, row)
		return
	}
	near := device.BytesOf(n.buf.row(rmsBufResidual))[:len(y)]
	floats.ScaleMul(e, near, x, n.t.reciprocal(sum, i, n.rstd), n.gamma, row)
	vec.CopyAround(y, near)
}

// row does a row in float32.
func (n *norm) row(i int64) {
	t, width, row := n.t, n.t.Width, n.buf.row(rmsBufRow)
	s := n.sum(row, i)
	if sum := &n.ops[rmsSum]; sum.there() {
		kernel.StoreFloats(sum.at(i, width), s, sum.dtype)
	}
	squares := float64(vec.SumSquares(s))
	if math.IsInf(squares, 1) {
		squares = wideSquares(s)
	}
	r, out := t.reciprocal(squares, i, n.rstd), n.ops[rmsY].at(i, width)
	if e, _ := floats.Of(t.DTypes[rmsY]); n.beta == nil && !t.HalfSteps {
		floats.ScaleMulTo(e, out, s, r, n.gamma, n.buf.row(rmsBufResidual))
		return
	}
	y := kernel.Room(row, out, t.DTypes[rmsY], width)
	t.scale(y, s, r, n.gamma, n.beta)
	kernel.Flush(out, y, t.DTypes[rmsY])
}

// sum returns x + bias + residual, in row where it is not x itself.
func (n *norm) sum(row []float32, i int64) []float32 {
	x, residual, width := &n.ops[rmsX], &n.ops[rmsResidual], n.t.Width
	if n.bias == nil && residual.there() && residual.dtype == x.dtype {
		e, _ := floats.Of(x.dtype)
		floats.Add(e, row, x.at(i, width), residual.at(i, width), n.buf.row(rmsBufResidual))
		return row
	}
	s := x.load(row, i, width)
	if n.bias != nil {
		vec.Add(row, s, n.bias)
		s = row
	}
	if residual.there() {
		vec.Add(row, s, residual.load(n.buf.row(rmsBufResidual), i, width))
		s = row
	}
	return s
}

// reciprocal is 1/√(mean(s²)+eps) of row i, whose squares have the given sum; rstd
// receives it, if there is any.
func (t *rmsTiling) reciprocal(sum float64, i int64, rstd []float32) float32 {
	r := float32(1 / math.Sqrt(sum/float64(t.Width)+float64(t.Eps)))
	if rstd != nil {
		rstd[i] = r
	}
	return r
}

// scale writes s·r·gamma + beta, or in steps.
func (t *rmsTiling) scale(y, s []float32, r float32, gamma, beta []float32) {
	if !t.HalfSteps {
		vec.ScaleMulAdd(y, s, r, gamma, beta)
		return
	}
	vec.Scale(y, s, r)
	vec.RoundF16(y, y)
	vec.Mul(y, y, gamma)
}

// wideSquares is a sum of squares beyond float32.
func wideSquares(s []float32) (sum float64) {
	for _, v := range s {
		sum += float64(v) * float64(v)
	}
	return sum
}

func addOne(dst, src []float32) []float32 {
	for i, v := range src {
		dst[i] = 1 + v
	}
	return dst
}
