package attention

import (
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/kernelgraph"
	"goatb/tensor"
)

// inParts adds a call in two kernels: one of the table, which writes its parts
// to a temporary that d describes, and one that merges them into the call's
// output.
func inParts(b *kernelgraph.Builder, call kernelgraph.Call, table kernel.Table, d tensor.Desc) error {
	apart, out := b.Temp("parts", d), call.Out
	call.Name, call.Table, call.Out = "parts", table, []kernelgraph.Ref{apart}
	if err := b.Kernel(call); err != nil {
		return err
	}
	return b.Kernel(kernelgraph.Call{Name: "merge", Table: parts.Merge, Params: struct{}{}, In: call.Out, Out: out})
}
