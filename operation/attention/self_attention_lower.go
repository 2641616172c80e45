package attention

import (
	"goatb/kernel/attention"
	"goatb/kernelgraph"
	"goatb/operation"
)

// CheckValues checks lengths, layer and run statuses against the operands.
func (p SelfAttention) CheckValues(q *operation.Query) error {
	c := selfCheck{Query: q, p: &p, s: p.ports()}
	if err := c.sizes(); err != nil {
		return err
	}
	a, err := c.params()
	if err != nil {
		return err
	}
	var lists [4][]int64
	ports, n := c.s.hostPorts()
	for i, port := range ports[:n] {
		lists[i], _ = q.Values(port)
	}
	return a.CheckValues(lists[:n])
}

// sizes finds the head sizes in either layout.
func (c *selfCheck) sizes() error {
	if c.p.InputLayout == LayoutBNSD {
		c.keySize = c.In[c.s.query].Dim(3)
		c.valueSize = c.keySize
		return nil
	}
	return c.headSizes()
}

// hostPorts returns the inputs whose host values the attention kernels read,
// in their order, and how many there are.
func (s *selfPorts) hostPorts() (ports [4]int, n int) {
	order := [...]int{s.offset, s.seqLen, s.keySeqLen, s.layer, s.status}
	for _, port := range order {
		if port != absent {
			ports[n] = port
			n++
		}
	}
	return ports, n
}

// Lower writes the new rows into the caches, where there are any, and attends:
// with one kernel, or two where long keys have to be cut to keep all cores
// busy. That choice hangs on descriptors alone: growing lengths keep the plan,
// and both give the same bits. A ring cache is written last, since its new rows
// may replace keys that older rows still see.
func (p SelfAttention) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	c := selfCheck{Query: q, p: &p, s: p.ports()}
	if err := c.sizes(); err != nil {
		return err
	}
	a, err := c.params()
	if err != nil {
		return err
	}
	if c.s.newKey == absent {
		return c.attend(b, a)
	}
	if a.Ring {
		return firstOf(c.attend(b, a), c.write(b, &a))
	}
	return firstOf(c.write(b, &a), c.attend(b, a))
}

func (c *selfCheck) write(b *kernelgraph.Builder, a *attention.Params) error {
	return b.Kernel(kernelgraph.Call{
		Name: "write", Table: attention.Write, Params: writeParams(a),
		In:  []kernelgraph.Ref{b.In(c.s.newKey), b.In(c.s.newValue)},
		Out: []kernelgraph.Ref{b.In(c.s.key), b.In(c.s.value)},
		Val: c.values(b),
	})
}

func (c *selfCheck) attend(b *kernelgraph.Builder, a attention.Params) error {
	if c.p.likePaged() {
		return c.attendLikePaged(b, &a)
	}
	in := make([]kernelgraph.Ref, attention.NumIn)
	s := &c.s
	newKey, newValue := absent, absent
	if a.NewKeys {
		newKey, newValue = s.newKey, s.newValue
	}
	mask := absent
	if a.Bias != attention.NoBias {
		mask = s.mask
	}
	for at, port := range [...]int{
		attention.InQuery: s.query, attention.InKey: s.key, attention.InValue: s.value,
		attention.InMask: mask, attention.InSlopes: s.slopes, attention.InFactor: s.logN, attention.InTable: s.table,
		attention.InKeyScale: s.keyScale, attention.InValueScale: s.valueScale, attention.InProbScale: s.pScale,
		attention.InNewKey: newKey, attention.InNewValue: newValue,
	} {
		in[at] = kernelgraph.Absent
		if port != absent {
			in[at] = b.In(port)
		}
	}
	call := kernelgraph.Call{
		Name: "attend", Table: attention.Attend, Params: a,
		In: in, Out: []kernelgraph.Ref{b.Out(0)}, Val: c.values(b),
	}
	if !attention.Split(a, b.Machine()) {
		return b.Kernel(call)
	}
	return inParts(b, call, attention.Parts, a.PartsDesc())
}

// values names the tensors whose host values the kernels read.
func (c *selfCheck) values(b *kernelgraph.Builder) []kernelgraph.Ref {
	ports, n := c.s.hostPorts()
	refs := make([]kernelgraph.Ref, n)
	for i, port := range ports[:n] {
		refs[i] = b.In(port)
	}
	return refs
}
