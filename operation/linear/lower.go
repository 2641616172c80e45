package linear

import (
	"goatb/kernel"
	"goatb/kernel/matmul"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Lower adds the product's kernels: one or two, as matmul.Choose says.
func (l Linear) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	p := Product{Params: matmul.Params{TransA: l.TransposeA, TransB: l.TransposeB, EinSum: l.einSum()}, Out: b.Out(0)}
	p.In = operands(b.In(xIn), b.In(weightIn))
	if l.HasBias {
		p.In[matmul.Bias] = b.In(thirdIn)
	}
	if l.quantised() {
		p.In[matmul.Scale] = b.In(l.scaleIn())
	}
	if l.perToken() {
		p.In[matmul.TokenScale] = b.In(fourthIn)
	}
	if l.EnAccum {
		if err := b.Copy(b.In(thirdIn), p.Out); err != nil {
			return err
		}
		p.In[matmul.Acc] = p.Out
	}
	return Multiply(b, p)
}

// Product is a matrix product on tensors of a kernel graph.
type Product struct {
	Params matmul.Params
	// In holds the operands by matmul's positions, Absent where there is none.
	In  [matmul.Inputs]kernelgraph.Ref
	Out kernelgraph.Ref
}

// operands returns the operands of a kernel that takes x, w or both alone.
func operands(x, w kernelgraph.Ref) (in [matmul.Inputs]kernelgraph.Ref) {
	for i := range in {
		in[i] = kernelgraph.Absent
	}
	in[matmul.X], in[matmul.W] = x, w
	return in
}

// Multiply adds the kernels of a product to a kernel graph. Errors:
// ErrInvalidParam when the operands do not fit.
func Multiply(b *kernelgraph.Builder, p Product) error {
	if err := status.Given("multiply", "builder", b); err != nil {
		return err
	}
	problem := kernel.Problem{Out: []tensor.Desc{b.Desc(p.Out)}, Machine: b.Machine()}
	for _, r := range p.In {
		problem.In = append(problem.In, b.Desc(r))
	}
	strategy, temp, err := matmul.Choose(&problem, p.Params)
	if err != nil {
		return err
	}
	if strategy == matmul.SplitK {
		return splitK(b, p, temp)
	}
	return b.Kernel(kernelgraph.Call{Name: "matmul", Table: matmul.Product, Params: p.Params, In: p.In[:], Out: []kernelgraph.Ref{p.Out}})
}

// splitK sums the chunks of K apart and adds them up in a second kernel.
func splitK(b *kernelgraph.Builder, p Product, temp tensor.Desc) error {
	sums := b.Temp("partial", temp)
	both := operands(p.In[matmul.X], p.In[matmul.W])
	err := b.Kernel(kernelgraph.Call{Name: "partial", Table: matmul.Partial, Params: p.Params, In: both[:], Out: []kernelgraph.Ref{sums}})
	if err != nil {
		return err
	}
	p.In[matmul.X], p.In[matmul.W] = sums, kernelgraph.Absent
	return b.Kernel(kernelgraph.Call{Name: "reduce", Table: matmul.Reduce, Params: p.Params, In: p.In[:], Out: []kernelgraph.Ref{p.Out}})
}
