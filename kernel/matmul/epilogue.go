package matmul

import (
	"math"

	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// epilogue says what happens to the sums of a product.
type epilogue struct {
	Out, Bias, Scale              tensor.DType
	HasBias, Accumulate, PerToken bool
	// BiasBatch and ScaleBatch are strides in elements.
	BiasBatch, ScaleBatch int64
}

// floatEpilogue checks the operands that follow a float product.
func floatEpilogue(p *kernel.Problem, s *shape) (epilogue, error) {
	e := epilogue{Out: p.Out[0].DType}
	if err := wantAbsent(p, Scale, TokenScale); err != nil {
		return e, err
	}
	if bias := &p.In[Bias]; !bias.Empty() {
		if !isFloat(bias.DType) {
			return e, status.Errorf(status.ErrInvalidParam, "want a bias of a float type, got %s", bias)
		}
		if err := e.setBias(bias, s); err != nil {
			return e, err
		}
	}
	if acc := &p.In[Acc]; !acc.Empty() {
		if acc.DType != tensor.Float32 || e.Out != tensor.Float32 || acc.Numel() != s.outputs() {
			return e, status.Errorf(status.ErrInvalidParam, "want accumulator and output f32 with %d elements, got %s and %s", s.outputs(), acc, &p.Out[0])
		}
		e.Accumulate = true
	}
	return e, s.wantOutput(&p.Out[0])
}

// int8Epilogue checks the operands that follow an int8 product.
func int8Epilogue(p *kernel.Problem, s *shape) (epilogue, error) {
	e := epilogue{Out: p.Out[0].DType, Scale: p.In[Scale].DType}
	if err := wantAbsent(p, Acc); err != nil {
		return e, err
	}
	scale := &p.In[Scale]
	switch scale.DType {
	case tensor.Float32, tensor.Int64, tensor.Uint64:
	default:
		return e, status.Errorf(status.ErrInvalidParam, "want scales f32, int64 or uint64, got %s", scale)
	}
	var err error
	if e.ScaleBatch, err = s.columnStride(scale); err != nil {
		return e, err
	}
	if bias := &p.In[Bias]; !bias.Empty() {
		if bias.DType != tensor.Int32 {
			return e, status.Errorf(status.ErrInvalidParam, "want an int32 bias, got %s", bias)
		}
		if err := e.setBias(bias, s); err != nil {
			return e, err
		}
	}
	if ts := &p.In[TokenScale]; !ts.Empty() {
		if ts.DType != tensor.Float32 || ts.Numel() != s.m {
			return e, status.Errorf(status.ErrInvalidParam, "want f32 scales of %d rows, got %s", s.m, ts)
		}
		e.PerToken = true
	}
	return e, s.wantOutput(&p.Out[0])
}

func (e *epilogue) setBias(bias *tensor.Desc, s *shape) (err error) {
	e.HasBias, e.Bias = true, bias.DType
	e.BiasBatch, err = s.columnStride(bias)
	return err
}

// finisherRows is the number of rows that a finisher's buffer holds.
const finisherRows = 2

// finisher turns rows of sums into rows of the output.
type finisher struct {
	a  *kernel.Args
	ep *epilogue
	// buf has room for two rows: column values, and a row on its way.
	buf []float32
	// bias and scale hold the values of the current columns; intBias is the
	// bias of an int8 product.
	bias, scale []float32
	intBias     []int32
}

// floatColumns prepares the bias of columns [j, j+n) of a batch.
func (f *finisher) floatColumns(b, j, n int64) {
	if f.ep.HasBias {
		at := b*f.ep.BiasBatch + j
		f.bias = f.buf[:n]
		kernel.LoadFloats(f.bias, f.a.Mem(Bias)[at*f.ep.Bias.Size():], f.ep.Bias)
	}
}

// floats finishes a row of float sums, which it overwrites, and stores it from
// output element at on.
func (f *finisher) floats(at int64, row []float32) {
	e := f.ep
	if e.HasBias {
		if e.Bias != tensor.Float32 {
			half := device.BytesOf(f.buf[len(row):])
			kernel.StoreFloats(half, row, e.Bias)
			kernel.LoadFloats(row, half, e.Bias)
		}
		vec.Add(row, row, f.bias)
	}
	dst := f.a.Mem(Inputs)[at*e.Out.Size():]
	if e.Accumulate {
		acc := device.View[float32](dst)[:len(row)]
		vec.Add(acc, acc, row)
		return
	}
	kernel.StoreFloats(dst, row, e.Out)
}

// int8Columns prepares bias and scales of columns [j, j+n) of a batch.
func (f *finisher) int8Columns(b, j, n int64) {
	at := b*f.ep.ScaleBatch + j
	f.scale = f.buf[:n]
	if f.ep.Scale == tensor.Float32 {
		copy(f.scale, device.View[float32](f.a.Mem(Scale))[at:])
	} else {
		for c, v := range device.View[uint64](f.a.Mem(Scale))[at : at+n] {
			f.scale[c] = math.Float32frombits(uint32(v))
		}
	}
	if f.ep.HasBias {
		at = b*f.ep.BiasBatch + j
		f.intBias = device.View[int32](f.a.Mem(Bias))[at : at+n]
	}
}

// ints finishes the sums of row i of an int8 product, which it overwrites, and
// stores them from output element at on.
func (f *finisher) ints(at, i int64, row []int32) {
	for c, v := range f.intBias {
		row[c] += v
	}
	vals := f.buf[len(row) : 2*len(row)]
	scale := f.scale[:len(row)]
	for c, v := range row {
		vals[c] = float32(v) * scale[c]
	}
	if f.ep.PerToken {
		vec.Scale(vals, vals, device.View[float32](f.a.Mem(TokenScale))[i])
	}
	kernel.StoreFloats(f.a.Mem(Inputs)[at*f.ep.Out.Size():], vals, f.ep.Out)
}
