package roofline

import (
	"context"
	"errors"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/operation/linear"
	"goatb/tensor"
)

// modelProducts are the products of a prompt and nothing else: each with the
// model's own weights, one behind the other.
type modelProducts struct {
	c     *atb.Context
	calls []call
	own   []atb.Buffer
	// operands holds inputs and outputs, one of each descriptor.
	operands map[tensor.Desc]atb.Tensor
	flops    float64
}

// newProducts sets the products of a prompt of some rows up; the classifier gets
// the last of them.
func newProducts(c *atb.Context, m *llama.Model, rows int64) (*modelProducts, error) {
	p := &modelProducts{c: c, operands: map[tensor.Desc]atb.Tensor{}}
	list := m.Matrices()
	for i := range list {
		if i == len(list)-1 {
			rows = 1
		}
		if err := p.add(&list[i], m.DType, rows); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// operand returns a tensor of small numbers, the same one for each descriptor.
func (p *modelProducts) operand(t atb.DType, dims ...int64) (atb.Tensor, error) {
	d := tensor.Of(t, dims...)
	if x, ok := p.operands[d]; ok {
		return x, nil
	}
	x, err := randomTensor(p.c, t, dims...)
	if err == nil {
		p.own = append(p.own, x.Data)
		p.operands[d] = x
	}
	return x, err
}

func (p *modelProducts) add(x *llama.Matrix, t atb.DType, rows int64) error {
	spec, in := atb.Spec(linear.Linear{TransposeB: true}), t
	switch x.Weights {
	case llama.Int8:
		spec, in = linear.Linear{TransposeB: true, OutDataType: t, QuantMode: linear.QuantPerToken}, tensor.Int8
	case llama.Int4:
		spec = linear.Int4Linear{Columns: x.Rows}
	}
	left, err := p.operand(in, rows, x.Cols)
	if err != nil {
		return err
	}
	out, err := p.operand(t, 1, rows, x.Rows)
	if err != nil {
		return err
	}
	op, err := atb.New(spec)
	if err != nil {
		return err
	}
	out.Desc.Shape = tensor.ShapeOf(rows, x.Rows)
	k := call{op: op, pack: atb.VariantPack{In: append([]atb.Tensor{left}, x.Tensors...), Out: []atb.Tensor{out}}}
	if x.Weights == llama.Int8 {
		factor, err := p.operand(tensor.Float32, rows)
		if err != nil {
			return err
		}
		k.pack.In = append(k.pack.In, factor)
	}
	p.calls = append(p.calls, k)
	p.flops += 2 * float64(rows) * float64(x.Rows) * float64(x.Cols)
	return nil
}

// run computes all products and waits for them.
func (p *modelProducts) run(ctx context.Context) error {
	for i := range p.calls {
		k := &p.calls[i]
		size, err := k.op.Setup(k.pack, p.c)
		if err != nil {
			return err
		}
		ws, err := p.c.Workspace(size)
		if err != nil {
			return err
		}
		if err := k.op.Execute(k.pack, ws, p.c); err != nil {
			return err
		}
	}
	return p.c.Synchronize(ctx)
}

func (p *modelProducts) close() error {
	var errs []error
	for i := range p.calls {
		errs = append(errs, p.calls[i].op.Close())
	}
	for _, b := range p.own {
		errs = append(errs, p.c.Free(b))
	}
	return errors.Join(errs...)
}
