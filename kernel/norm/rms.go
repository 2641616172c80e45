package norm

import (
	"math"

	"goatb/device"
	"goatb/internal/vec"
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
	DTypes      [rmsOperands]tensor.DType
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
		nanos := 0.7
		for i := range t.DTypes {
			if d := rmsDesc(p, i); !d.Empty() {
				t.DTypes[i] = d.DType
				if d.Numel() == p.In[rmsX].Numel() {
					nanos += transferNanos(d.DType)
				}
			}
		}
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Rows, float64(t.Rows*width)*nanos)}, nil
	},
	Run: func(a *kernel.Args, block int, t *rmsTiling, _ []int64) error {
		lo, hi := kernel.Share(t.Rows, block, a.Blocks)
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
	rstd := device.View[float32](ops[rmsRstd].mem)
	row := buf.row(rmsBufRow)
	for i := lo; i < hi; i++ {
		s := ops[rmsX].load(row, i, t.Width)
		if bias != nil {
			vec.Add(row, s, bias)
			s = row
		}
		if ops[rmsResidual].there() {
			vec.Add(row, s, ops[rmsResidual].load(buf.row(rmsBufResidual), i, t.Width))
			s = row
		}
		if ops[rmsSum].there() {
			kernel.StoreFloats(ops[rmsSum].at(i, t.Width), s, ops[rmsSum].dtype)
		}
		r := reciprocalRMS(s, t.Eps)
		if rstd != nil {
			rstd[i] = r
		}
		out := ops[rmsY].at(i, t.Width)
		y := kernel.Room(row, out, ops[rmsY].dtype, t.Width)
		t.scale(y, s, r, gamma, beta)
		kernel.Flush(out, y, ops[rmsY].dtype)
	}
}

// scale writes s·r·gamma (+ beta).
func (t *rmsTiling) scale(y, s []float32, r float32, gamma, beta []float32) {
	switch {
	case t.HalfSteps:
		vec.Scale(y, s, r)
		vec.RoundF16(y, y)
		vec.Mul(y, y, gamma)
	case beta != nil:
		vec.ScaleMulAdd(y, s, r, gamma, beta)
	default:
		vec.ScaleMul(y, s, r, gamma)
	}
}

// reciprocalRMS is 1/√(mean(s²)+eps). A sum of squares beyond float32 is taken
// again in float64.
func reciprocalRMS(s []float32, eps float32) float32 {
	sum := float64(vec.SumSquares(s))
	if math.IsInf(sum, 1) {
		sum = 0
		for _, v := range s {
			sum += float64(v) * float64(v)
		}
	}
	return float32(1 / math.Sqrt(sum/float64(len(s))+float64(eps)))
}

func addOne(dst, src []float32) []float32 {
	for i, v := range src {
		dst[i] = 1 + v
	}
	return dst
}
