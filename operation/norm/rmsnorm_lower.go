package norm

import (
	"goatb/kernel/elementwise"
	"goatb/kernel/norm"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/tensor"
)

// Lower adds the normalisation and, for the quantised kinds, the quantisation
// of its result: of an f32 temporary, or of output y where there is one.
func (n RMSNorm) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	k := n.kind()
	if !n.quantised() {
		second := kernelgraph.Absent
		if len(k.out) == 2 {
			second = b.Out(1)
		}
		if n.rstd() {
			return n.normalise(b, &k.ports, "", b.Out(0), kernelgraph.Absent, second)
		}
		return n.normalise(b, &k.ports, "", b.Out(0), second, kernelgraph.Absent)
	}
	y, sum := kernelgraph.Absent, kernelgraph.Absent
	if n.LayerType == Post {
		y = b.Out(1)
	} else {
		y = b.Temp("normalised", tensor.Desc{DType: tensor.Float32, Shape: q.In[xIn].Shape})
	}
	if n.LayerType == Pre {
		sum = b.Out(1)
	}
	if err := n.normalise(b, &k.ports, "normalise", y, sum, kernelgraph.Absent); err != nil {
		return err
	}
	c := kernelgraph.Call{Name: "quantise", Params: struct{}{}, In: []kernelgraph.Ref{y}, Out: []kernelgraph.Ref{b.Out(0)}}
	if n.dynamic() {
		c.Table = elementwise.QuantDynamic
		c.Out = append(c.Out, b.Out(1))
	} else {
		c.Table = elementwise.QuantDiv
		c.In = append(c.In, b.In(k.ports.scale), b.In(k.ports.offset))
	}
	return b.Kernel(c)
}

// normalise adds the kernel of the normalisation.
func (n *RMSNorm) normalise(b *kernelgraph.Builder, p *rmsPorts, name string, y, sum, rstd kernelgraph.Ref) error {
	in := func(i int) kernelgraph.Ref {
		if i < 0 {
			return kernelgraph.Absent
		}
		return b.In(i)
	}
	params := norm.RMSParams{Eps: n.Norm.Epsilon, HalfSteps: n.half()}
	if n.LayerType == Plain {
		params.OnePlus = n.Norm.ModelType == ModelGemma
	} else {
		params.Eps = n.residual().Epsilon
	}
	return b.Kernel(kernelgraph.Call{
		Name: name, Table: norm.RMS, Params: params,
		In:  []kernelgraph.Ref{b.In(xIn), in(p.residual), in(p.bias), in(p.gamma), in(p.beta)},
		Out: []kernelgraph.Ref{y, sum, rstd},
	})
}
