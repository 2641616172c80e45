// Package optest runs an operation's kernel graph on plain memory, without a
// device: every kernel's blocks one after the other, with canaries around every
// tensor, poisoned temporaries, outputs and scratch. It is the reference that
// tests of operation families use; the full runtime is tested against the same
// results.
package optest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/tensor"
)

// Case is one run of an operation.
type Case struct {
	Spec operation.Spec
	// Profile is native when nil.
	Profile *operation.Profile
	// In describes the inputs, empty for an absent one; Data holds their bytes.
	// Host ports read their values from Data.
	In   []tensor.Desc
	Data [][]byte
	// Out describes the outputs; nil takes what InferShape returns.
	Out []tensor.Desc
	// InPlace maps an output to the input whose memory the caller passes.
	InPlace map[int]int
	// Machine defaults to two cores.
	Machine kernel.Machine
	Options kernel.Options
}

// Result is what a run leaves behind.
type Result struct {
	// Out holds the output bytes, In the input bytes after the run.
	Out, In [][]byte
	Graph   *kernelgraph.Graph
}

// Run runs the case and returns the bytes of the outputs.
func Run(t testing.TB, c Case) Result {
	t.Helper()
	g, in, out := lower(t, &c)
	r := &run{g: g, mem: make([]memory, len(g.Tensors))}
	for i := range g.Tensors {
		r.place(t, &c, kernelgraph.Ref(i))
	}
	values := hostValues(t, &c)
	for i := range g.Nodes {
		r.node(t, &g.Nodes[i], values)
	}
	for i := range r.mem {
		r.mem[i].check(t, g.Tensors[i].Name)
	}
	res := Result{Graph: g, In: make([][]byte, len(in)), Out: make([][]byte, len(out))}
	for i, ref := range g.Inputs {
		res.In[i] = r.bytes(ref)
	}
	for i, ref := range g.Outputs {
		res.Out[i] = r.bytes(ref)
	}
	return res
}

func lower(t testing.TB, c *Case) (*kernelgraph.Graph, []tensor.Desc, []tensor.Desc) {
	t.Helper()
	if c.Profile == nil {
		c.Profile = operation.Native()
	}
	if c.Machine.Cores == 0 {
		c.Machine = kernel.Machine{Cores: 2, L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}
	}
	require.NoError(t, c.Spec.Validate())
	out := c.Out
	if out == nil {
		var err error
		out, err = operation.InferShape(c.Spec, c.Profile, c.In)
		require.NoError(t, err)
	}
	env := &kernelgraph.Env{Machine: c.Machine, Options: c.Options, Copy: move.Copy}
	g, err := operation.Lower(c.Spec, c.Profile, env, c.In, out, hostValues(t, c))
	require.NoError(t, err)
	return g, c.In, out
}

// hostValues reads the values of the host ports from the data.
func hostValues(t testing.TB, c *Case) [][]int64 {
	t.Helper()
	values := make([][]int64, len(c.In))
	for i, p := range c.Spec.Signature().In {
		if p.Host && i < len(c.In) && !c.In[i].Empty() {
			x := device.Tensor{Desc: c.In[i], Host: c.Data[i]}
			v, err := x.AppendValues(nil)
			require.NoError(t, err)
			values[i] = v
		}
	}
	return values
}

const (
	guard     = 64
	guardByte = 0xA5
)

// memory is a tensor's payload between canaries; a view shares its base's.
type memory struct{ whole, payload []byte }

func newMemory(n int64) memory {
	w := device.BytesOf(make([]uint64, (n+2*guard+7)/8))
	for i := range w {
		w[i] = guardByte
	}
	return memory{w, w[guard : guard+n : guard+n]}
}

func (m *memory) check(t testing.TB, name string) {
	t.Helper()
	if m.whole == nil {
		return
	}
	for i, v := range m.whole {
		if (i < guard || i >= guard+len(m.payload)) && v != guardByte {
			require.FailNow(t, "memory around a tensor was written", "%s at byte %d of %d", name, i-guard, len(m.payload))
		}
	}
}

type run struct {
	g   *kernelgraph.Graph
	mem []memory
}

func (r *run) place(t testing.TB, c *Case, ref kernelgraph.Ref) {
	t.Helper()
	x := &r.g.Tensors[ref]
	n := x.Desc.Bytes()
	switch x.Kind {
	case kernelgraph.View:
		return
	case kernelgraph.Input:
		require.Len(t, c.Data[x.Index], int(n), "bytes of input %d", x.Index)
		r.mem[ref] = newMemory(n)
		copy(r.mem[ref].payload, c.Data[x.Index])
	case kernelgraph.Output:
		if src, ok := c.InPlace[x.Index]; ok {
			r.mem[ref] = r.mem[r.g.Inputs[src]]
			return
		}
		fallthrough
	default:
		r.mem[ref] = newMemory(n)
		for i := range r.mem[ref].payload {
			r.mem[ref].payload[i] = 0xff
		}
	}
}

func (r *run) buffer(ref kernelgraph.Ref) device.Buffer {
	if ref == kernelgraph.Absent {
		return device.Buffer{}
	}
	base, off := r.g.Base(ref)
	return device.Wrap(r.mem[base].payload).At(off, r.g.Tensors[ref].Desc.Bytes())
}

func (r *run) bytes(ref kernelgraph.Ref) []byte {
	if ref == kernelgraph.Absent {
		return nil
	}
	return bytes.Clone(r.buffer(ref).Bytes())
}

func (r *run) node(t testing.TB, n *kernelgraph.Node, values [][]int64) {
	t.Helper()
	if n.Kind == kernelgraph.RecordNode || n.Kind == kernelgraph.WaitNode {
		return // one after the other needs no order
	}
	a := device.Args{}
	for _, ref := range n.In {
		a.Buffers = append(a.Buffers, r.buffer(ref))
	}
	for _, ref := range n.Out {
		a.Buffers = append(a.Buffers, r.buffer(ref))
	}
	if n.Kind == kernelgraph.CopyNode && &a.Mem(0)[0] == &a.Mem(1)[0] {
		return
	}
	p := n.Problem
	for _, ref := range n.Val {
		x := &r.g.Tensors[ref]
		require.Equal(t, kernelgraph.Input, x.Kind, "%s reads the host values of %s, which is no input", n.Path, x.Name)
		p.Values = append(p.Values, values[x.Index])
	}
	scratch, tiling := newMemory(n.Scratch), newMemory(int64(n.TilingSize))
	for i := range scratch.payload {
		scratch.payload[i] = 0xff
	}
	grid, err := n.Kernel.Tile(&p, tiling.payload)
	require.NoError(t, err, n.Path)
	a.Scratch, a.Tiling, a.Key, a.Blocks = device.Wrap(scratch.payload), tiling.payload, grid.Key, grid.Blocks
	require.NoError(t, n.Kernel.Program().Prepare(&a), "%s %s", n.Path, n.Kernel.Name())
	for b := range grid.Blocks {
		require.NoError(t, n.Kernel.Program().Run(&a, b), "%s %s block %d", n.Path, n.Kernel.Name(), b)
	}
	scratch.check(t, n.Path+" scratch")
	tiling.check(t, n.Path+" tiling")
}
