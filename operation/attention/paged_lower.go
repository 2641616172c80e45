package attention

import (
	"goatb/kernel/paged"
	"goatb/kernel/parts"
	"goatb/kernelgraph"
	"goatb/operation"
)

// Lower calls one kernel, or two where a long context has to be cut to keep
// all cores busy. The choice hangs on descriptors alone: growing lengths keep
// the plan, and both give the same bits.
func (p PagedAttention) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	x := p.ports()
	params := p.kernelParams()
	call := kernelgraph.Call{Table: paged.Attend, Params: params, In: p.operands(b, &x), Out: []kernelgraph.Ref{b.Out(0)}, Val: []kernelgraph.Ref{b.In(x.contextLens)}}
	for _, in := range [...]int{x.queryLens, x.runStatus} {
		if in >= 0 {
			call.Val = append(call.Val, b.In(in))
		}
	}
	query := &q.In[x.query]
	longest := paged.Capacity(q.In[x.tables].Dim(1), q.In[x.key].Dim(p.slotAxis()))
	if x.mask >= 0 {
		longest = min(longest, q.In[x.mask].Dim(-1))
	}
	dv := p.valueSize(q, &x)
	if !paged.Split(params, b.Machine(), query.Dim(0), longest, dv) {
		return b.Kernel(call)
	}
	return inParts(b, call, paged.Parts, parts.Desc(query.Dim(0)*query.Dim(1), parts.Count(longest), dv))
}

func (p PagedAttention) kernelParams() paged.Params {
	quant := paged.NoQuant
	switch p.QuantType {
	case QuantDequantFusion:
		quant = paged.Dequant
	case QuantOffline:
		quant = paged.Offline
	case QuantOnline:
		quant = paged.Online
	}
	return paged.Params{
		Scale: p.QKScale, Heads: int64(p.HeadNum), KVHeads: p.kvHeads(), ValueDim: int64(p.MLAVHeadSize),
		Mask: p.maskMode(), Quant: quant, HeadMajor: p.InputLayout == LayoutBNSD, PerHead: p.compress(),
		QueryLens: p.spec(), RunStatus: p.BatchRunStatusEnable,
	}
}

// operands puts the inputs where the kernels expect them.
func (p PagedAttention) operands(b *kernelgraph.Builder, x *pagedPorts) []kernelgraph.Ref {
	in := make([]kernelgraph.Ref, paged.NumInputs)
	for to, from := range [...]int{
		paged.InQuery: x.query, paged.InKey: x.key, paged.InValue: x.value, paged.InTables: x.tables,
		paged.InMask: x.mask, paged.InRazor: x.razor, paged.InLogN: x.logN,
		paged.InKeyScale: x.keyScale, paged.InKeyOffset: x.keyOffset,
		paged.InValueScale: x.valueScale, paged.InValueOffset: x.valueOffset, paged.InProbScale: x.probScale,
	} {
		in[to] = kernelgraph.Absent
		if from >= 0 {
			in[to] = b.In(from)
		}
	}
	return in
}
