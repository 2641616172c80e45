package elementwise

import (
	"goatb/kernel/elementwise"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Operands.
const (
	inX = iota
	inY
	inOffset
	inScale = inY
)

// Check checks the shapes and the target of a Cast.
func (e Elewise) Check(q *operation.Query) error {
	const code = status.ErrInvalidTensorDim
	x := &q.In[inX]
	switch e.Type {
	case Cast:
		return e.checkTarget(q)
	case Quant:
		if n, ok := q.Limit("quantLastDimMultiple"); ok && x.Dim(-1)%n != 0 {
			return q.BadIn(code, inX, "want a last dimension that is a multiple of %d, got %s", n, x.Shape)
		}
	case DynamicQuant:
		return e.checkRows(q)
	case QuantPerChannel, DequantPerChannel:
		for i := inScale; i <= inOffset; i++ {
			if !q.Has(i) {
				continue
			}
			if err := elementwise.BroadcastsTo(q.In[i].Shape, x.Shape); err != nil {
				return q.BadIn(code, i, "want a shape that broadcasts to x %s, got %s", x.Shape, q.In[i].Shape)
			}
		}
	default:
		_, err := e.outDesc(q)
		return err
	}
	return nil
}

// checkTarget checks the target of a Cast. A profile lists the targets as bits
// numbered by ATB's ids of types.
func (e Elewise) checkTarget(q *operation.Query) error {
	t := e.target(&q.In[inX])
	if targets, ok := q.Limit("castTargets"); ok && targets>>t.ACL()&1 == 0 || t.IsComplex() {
		return status.Errorf(status.ErrInvalidParam, "outTensorType: no cast to %s", t)
	}
	return nil
}

// target is the type that Cast converts to.
func (e Elewise) target(x *tensor.Desc) tensor.DType {
	switch {
	case e.OutTensorType != tensor.Undefined:
		return e.OutTensorType
	case x.DType == tensor.Float32:
		return tensor.Float16
	}
	return tensor.Float32
}

// checkRows checks the rows of a DynamicQuant.
func (e Elewise) checkRows(q *operation.Query) error {
	x := &q.In[inX]
	if x.Rank() < 2 {
		return q.BadIn(status.ErrInvalidTensorDimNum, inX, "want rank 2 or more, got %s", x)
	}
	if most, ok := q.Limit("dynamicQuantLastDim." + x.DType.String()); ok && x.Dim(-1) > most {
		return q.BadIn(status.ErrInvalidTensorDim, inX, "want a last dimension of at most %d, got %s", most, x)
	}
	return nil
}

// outDesc describes output 0.
func (e Elewise) outDesc(q *operation.Query) (tensor.Desc, error) {
	d := q.In[inX]
	switch e.Type {
	case Cast:
		d.DType = e.target(&d)
	case Quant, QuantPerChannel, DynamicQuant:
		d.DType = tensor.Int8
	case DequantPerChannel:
		d.DType = q.In[inScale].DType
	case Add, Sub, Mul, RealDiv, LogicalAnd, LogicalOr, Less, Greater, Equal:
		shape, err := elementwise.Broadcast(d.Shape, q.In[inY].Shape)
		if err != nil {
			return d, q.BadIn(status.ErrInvalidTensorDim, inY, "want a shape that broadcasts with x %s, got %s", d.Shape, q.In[inY].Shape)
		}
		d.Shape = shape
		if e.compares() {
			d.DType = tensor.Int8
		}
		if n := d.Bytes(); n == 0 || n > tensor.MaxBytes {
			return d, q.BadIn(status.ErrInvalidTensorDim, inY, "broadcasts with x to a tensor beyond %d bytes: %s", int64(tensor.MaxBytes), shape)
		}
	}
	return d, nil
}

// compares reports whether the output holds truth values of any inputs.
func (e Elewise) compares() bool { return e.Type == Less || e.Type == Greater || e.Type == Equal }

// Infer returns the outputs' descriptors.
func (e Elewise) Infer(q *operation.Query) ([]tensor.Desc, error) {
	d, err := e.outDesc(q)
	if err != nil {
		return nil, err
	}
	if e.Type == DynamicQuant {
		return []tensor.Desc{d, {DType: tensor.Float32, Shape: d.Shape.Slice(0, d.Rank()-1)}}, nil
	}
	return []tensor.Desc{d}, nil
}
