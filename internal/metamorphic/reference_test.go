package metamorphic

import (
	"slices"
	"testing"

	"goatb/kernel"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/tensor"
)

// reference computes a recipe node by node, each tensor in memory of its own: the
// bytes of its outputs and, since some are updated in place, of its inputs. It
// knows nothing of graphs: a node is an operation on plain memory that takes
// values and gives values.
func reference(t *testing.T, r *recipe, m kernel.Machine, d *dataset) [][]byte {
	t.Helper()
	x := &interpreter{t, m, d.n}
	return x.run(r, d.bytes)
}

type interpreter struct {
	*testing.T
	machine kernel.Machine
	n       int64
}

func (x *interpreter) run(r *recipe, in [][]byte) [][]byte {
	x.Helper()
	mem := make([][]byte, len(r.values))
	for k, i := range r.inputs() {
		mem[i] = in[k]
	}
	for i := range r.steps {
		s := &r.steps[i]
		switch {
		case s.graph != nil:
			x.graph(r, s, mem)
		case s.make != nil:
			x.node(r, s, mem)
		}
	}
	var out [][]byte
	for _, i := range slices.Concat(r.outputs, r.inputs()) {
		out = append(out, mem[i])
	}
	return out
}

// node computes one operation.
func (x *interpreter) node(r *recipe, s *step, mem [][]byte) {
	x.Helper()
	c := optest.Case{Spec: s.make(), Machine: x.machine, Options: kernel.Options{ShuffleK: true}}
	for j, i := range s.in {
		d, b := s.view(j, r.values[i].desc(x.n), mem[i])
		c.In, c.Data = append(c.In, d), append(c.Data, b)
	}
	for j, b := range optest.Run(x, c).Out {
		mem[s.out[j]] = b
	}
}

// view applies the reshape function and the chunk of an input.
func (s *step) view(j int, d tensor.Desc, b []byte) (tensor.Desc, []byte) {
	if s.reshape != nil && s.reshape[j] != nil {
		d.Shape = s.reshape[j](d.Shape)
	}
	if s.chunk != nil && s.chunk[j] != (operation.Chunk{}) {
		c, part := s.chunk[j], len(b)/s.chunk[j].Num
		d.Shape = d.Shape.With(0, d.Dim(0)/int64(c.Num))
		b = b[c.Index*part : (c.Index+1)*part]
	}
	return d, b
}

// graph computes a graph inside; what it does to its inputs it does to those of
// the node.
func (x *interpreter) graph(r *recipe, s *step, mem [][]byte) {
	x.Helper()
	var in [][]byte
	for _, i := range s.in {
		in = append(in, mem[i])
	}
	got := x.run(s.graph, in)
	for j, i := range s.in {
		mem[i] = got[len(s.out)+j]
	}
	for j, i := range s.out {
		mem[i] = got[j]
	}
}
