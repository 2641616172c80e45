package attention

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/tensor"
)

type randSource = rand.Rand

var testMachine = kernel.Machine{Cores: 2, L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}

// hostValues returns the host values of a call by input.
func (d *selfData) hostValues() [][]int64 {
	values := make([][]int64, len(d.in))
	for i, p := range d.spec.Signature().In {
		if p.Host {
			for _, v := range device.View[int32](d.data[i]) {
				values[i] = append(values[i], int64(v))
			}
		}
	}
	return values
}

// graph lowers the call.
func (d *selfData) graph(t testing.TB) *kernelgraph.Graph {
	t.Helper()
	out, err := operation.InferShape(d.spec, operation.Native(), d.in)
	require.NoError(t, err)
	env := &kernelgraph.Env{Machine: testMachine, Copy: move.Copy}
	g, err := operation.Lower(d.spec, operation.Native(), env, d.in, out, d.hostValues())
	require.NoError(t, err)
	return g
}

// nodeProblem returns a node's problem with its host values, and the bytes of
// its inputs, nil for an absent one. memory holds the tensors by reference.
func nodeProblem(g *kernelgraph.Graph, n *kernelgraph.Node, memory map[kernelgraph.Ref][]byte, values [][]int64) (kernel.Problem, [][]byte) {
	p := n.Problem
	for _, r := range n.Val {
		p.Values = append(p.Values, values[g.Tensors[r].Index])
	}
	in := make([][]byte, len(n.In))
	for i, r := range n.In {
		if r != kernelgraph.Absent {
			x := &g.Tensors[r]
			in[i] = memory[x.Base][x.Offset:][:x.Desc.Bytes()]
		}
	}
	return p, in
}

func (d *selfData) memory(g *kernelgraph.Graph) map[kernelgraph.Ref][]byte {
	m := map[kernelgraph.Ref][]byte{}
	for i, r := range g.Inputs {
		m[r] = d.data[i]
	}
	return m
}

// runNodes runs the kernels of a call on one core without checks and returns
// the output of the last and the first error.
func runNodes(t testing.TB, d *selfData) ([]byte, error) {
	t.Helper()
	g := d.graph(t)
	m, values := d.memory(g), d.hostValues()
	aligned := func(n int64) []byte { return device.BytesOf(make([]uint64, n/8+1))[:n] }
	var out []byte
	for i := range g.Nodes {
		n := &g.Nodes[i]
		p, in := nodeProblem(g, n, m, values)
		tiling := aligned(int64(n.TilingSize))
		grid, err := n.Kernel.Tile(&p, tiling)
		require.NoError(t, err)
		a := device.Args{Blocks: grid.Blocks, Key: grid.Key, Tiling: tiling, Scratch: device.Wrap(aligned(n.Scratch))}
		for _, b := range in {
			a.Buffers = append(a.Buffers, device.Wrap(b))
		}
		for _, r := range n.Out {
			r = g.Tensors[r].Base
			if m[r] == nil {
				m[r] = aligned(g.Tensors[r].Desc.Bytes())
			}
			out = m[r]
			a.Buffers = append(a.Buffers, device.Wrap(m[r]))
		}
		for b := range grid.Blocks {
			if err := n.Kernel.Program().Run(&a, b); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// TestMatrixUnderAllWorkers runs the attention kernel of every combination under
// every number of workers and order of blocks.
func TestMatrixUnderAllWorkers(t *testing.T) {
	n := uint64(0)
	for c := range Matrix() {
		n++
		t.Run(c.String(), func(t *testing.T) {
			d := randomData(c, 5000+n)
			d.dtype = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}[n%3]
			d.maskT = d.dtype
			if c.QuantType != QuantNone {
				d.dtype, d.maskT = d.spec.OutDataType, tensor.Float32
			}
			d.build()
			g := d.graph(t)
			m, values := d.memory(g), d.hostValues()
			for i := range g.Nodes {
				node := &g.Nodes[i]
				p, in := nodeProblem(g, node, m, values)
				k := kerneltest.Case{Kernel: node.Kernel, Problem: p, In: in}
				if len(node.Out) == 2 {
					m[node.Out[0]], m[node.Out[1]] = d.written(t, node.Out, g)
					continue
				}
				d.check(t, floatsOf(kerneltest.Run(t, k)[0], p.Out[0].DType))
			}
		})
	}
}

// written returns the caches as they are once the new rows are in them.
func (d *selfData) written(t testing.TB, out []kernelgraph.Ref, g *kernelgraph.Graph) (key, value []byte) {
	p := d.spec.ports()
	assert.Equal(t, g.Inputs[p.key], out[0])
	assert.Equal(t, g.Inputs[p.value], out[1])
	return encode(d.cacheRows(d.k, d.dk, true), d.dtype), encode(d.cacheRows(d.v, d.dv, true), d.dtype)
}

// TestPlanDoesNotDependOnLengths lowers a call for other lengths: kernels,
// parameters, scratch and tiling sizes stay.
func TestPlanDoesNotDependOnLengths(t *testing.T) {
	for c := range Matrix() {
		d := newSelfData(c.Spec(4, 2), 3).build()
		first := d.graph(t)
		for i, p := range d.spec.Signature().In {
			if p.Host && p.Name != "batchStatus" {
				clear(d.data[i])
			}
		}
		second := d.graph(t)
		require.Equal(t, first.Tensors, second.Tensors)
		require.Len(t, second.Nodes, len(first.Nodes))
		for i := range first.Nodes {
			assert.True(t, first.Nodes[i].Problem.Same(&second.Nodes[i].Problem), "%s", c)
			assert.Equal(t, first.Nodes[i].Scratch, second.Nodes[i].Scratch)
			assert.Equal(t, first.Nodes[i].TilingSize, second.Nodes[i].TilingSize)
		}
	}
}

// TestCheckValuesAllocatesNothing repeats the check that every step makes.
func TestCheckValuesAllocatesNothing(t *testing.T) {
	for c := range Matrix() {
		d := newSelfData(c.Spec(4, 2), 3).build()
		sig := d.spec.Signature()
		q := (&operation.Query{Stage: operation.StageSetup, In: d.in, Sig: &sig, Profile: operation.Native()}).WithValues(d.hostValues())
		var spec operation.ValueChecker = d.spec
		allocs := testing.AllocsPerRun(5, func() {
			if err := spec.CheckValues(q); err != nil {
				t.Error(err)
			}
		})
		assert.Zero(t, allocs, "%s", c)
	}
}
