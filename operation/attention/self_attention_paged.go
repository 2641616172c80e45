package attention

import (
	"goatb/kernel/attention"
	"goatb/kernel/paged"
	"goatb/kernelgraph"
	"goatb/tensor"
)

// likePaged reports whether the call is a PREFIX_ENCODER without slopes: each row is
// then what a PagedAttention of that row at the end of its context is. It calls the
// same kernels, so that a token has the same bits as part of a prompt and alone.
func (p *SelfAttention) likePaged() bool {
	return p.CalcType == SelfPrefixEncoder && !p.MaskType.slopes()
}

// attendLikePaged calls the kernels of PagedAttention.
func (c *selfCheck) attendLikePaged(b *kernelgraph.Builder, a *attention.Params) error {
	s := &c.s
	params := paged.Params{Scale: a.QKScale, Heads: a.Heads, KVHeads: a.KeyHeads, Mask: paged.Causal, QueryLens: true}
	call := kernelgraph.Call{
		Name: "attend", Table: paged.Attend, Params: params,
		In:  make([]kernelgraph.Ref, paged.NumInputs),
		Val: []kernelgraph.Ref{b.In(s.keySeqLen), b.In(s.seqLen)},
	}
	for i := range call.In {
		call.In[i] = kernelgraph.Absent
	}
	call.In[paged.InTables] = b.In(s.table)
	rows := tensor.ShapeOf(a.Rows, a.Heads, a.KeySize)
	blocks := tensor.ShapeOf(a.Blocks, a.Slots, a.KeyHeads, a.KeySize)
	var out kernelgraph.Ref
	for _, x := range [...]struct {
		to    *kernelgraph.Ref
		of    kernelgraph.Ref
		shape tensor.Shape
	}{
		{&call.In[paged.InQuery], b.In(s.query), rows}, {&call.In[paged.InKey], b.In(s.key), blocks},
		{&call.In[paged.InValue], b.In(s.value), blocks}, {&out, b.Out(0), rows},
	} {
		var err error
		if *x.to, err = shaped(b, x.of, x.shape); err != nil {
			return err
		}
	}
	call.Out = []kernelgraph.Ref{out}
	return attendPaged(b, call, params, a.Rows, paged.Capacity(a.Columns, a.Slots), a.ValueSize)
}

// shaped returns r as a tensor of another shape with as many elements.
func shaped(b *kernelgraph.Builder, r kernelgraph.Ref, s tensor.Shape) (kernelgraph.Ref, error) {
	d := b.Desc(r)
	if d.Shape == s {
		return r, nil
	}
	d.Shape = s
	return b.View(r, d, 0)
}
