package elementwise

import (
	"goatb/kernel"
	"goatb/kernel/elementwise"
	"goatb/kernelgraph"
	"goatb/operation"
)

// Lower adds the kernel.
func (e Elewise) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	outs, err := e.Infer(q)
	if err != nil {
		return err
	}
	table, params := e.kernel()
	c := kernelgraph.Call{Table: table, Params: params}
	for i := range q.In {
		c.In = append(c.In, b.In(i))
	}
	for i, want := range outs {
		out := b.Out(i)
		// A profile may leave the shape of an output to the caller.
		if b.Desc(out) != want {
			if out, err = b.View(out, want, 0); err != nil {
				return err
			}
		}
		c.Out = append(c.Out, out)
	}
	return b.Kernel(c)
}

// kernel returns the kernels of a type and their parameters.
func (e Elewise) kernel() (kernel.Table, any) {
	switch e.Type {
	case Cast:
		return elementwise.Cast, struct{}{}
	case Quant:
		return elementwise.QuantMul, elementwise.QuantMulParams{Scale: e.Quant.InputScale, Offset: float32(e.Quant.InputOffset)}
	case QuantPerChannel:
		return elementwise.QuantDiv, struct{}{}
	case DequantPerChannel:
		return elementwise.Dequantize, struct{}{}
	case DynamicQuant:
		return elementwise.QuantDynamic, struct{}{}
	case LogicalNot:
		return elementwise.Logic, elementwise.LogicParams{Op: elementwise.Not}
	case LogicalAnd:
		return elementwise.Logic, elementwise.LogicParams{Op: elementwise.And}
	case LogicalOr:
		return elementwise.Logic, elementwise.LogicParams{Op: elementwise.Or}
	case Less:
		return elementwise.Compare, elementwise.CompareParams{Op: elementwise.Less}
	case Greater:
		return elementwise.Compare, elementwise.CompareParams{Op: elementwise.Greater}
	case Equal:
		return elementwise.Compare, elementwise.CompareParams{Op: elementwise.Equal}
	case Add:
		return elementwise.Binary, elementwise.BinaryParams{Op: elementwise.Add}
	case Sub:
		return elementwise.Binary, elementwise.BinaryParams{Op: elementwise.Sub}
	case Mul:
		return elementwise.Binary, elementwise.BinaryParams{Op: elementwise.Mul}
	case RealDiv:
		return elementwise.Binary, elementwise.BinaryParams{Op: elementwise.Div}
	}
	return elementwise.Unary, e.unary()
}

// unary returns the parameters of the functions of one float tensor.
func (e Elewise) unary() elementwise.UnaryParams {
	switch e.Type {
	case Cos:
		return elementwise.UnaryParams{Op: elementwise.Cos}
	case Sin:
		return elementwise.UnaryParams{Op: elementwise.Sin}
	case Neg:
		return elementwise.UnaryParams{Op: elementwise.Neg}
	case Tanh:
		return elementwise.UnaryParams{Op: elementwise.Tanh}
	}
	return elementwise.UnaryParams{Op: elementwise.Muls, Scale: e.Muls.VarAttr}
}
