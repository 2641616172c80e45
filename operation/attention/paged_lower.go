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
	return attendPaged(b, call, params, query.Dim(0), longest, p.valueSize(q, &x))
}

// attendPaged adds a call of paged.Attend with some query rows, as one kernel or in
// parts of contexts of up to `longest` positions.
func attendPaged(b *kernelgraph.Builder, call kernelgraph.Call, a paged.Params, rows, longest, valueSize int64) error {
	if !paged.Split(a, b.Machine(), rows, longest, valueSize) {
		return b.Kernel(call)
	}
	return inParts(b, call, paged.Parts, parts.Desc(rows*a.Heads, parts.Count(longest), valueSize))
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
