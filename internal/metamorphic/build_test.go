package metamorphic

import (
	"encoding/binary"
	"math/rand/v2"

	"goatb/device"
	"goatb/kernel"
	"goatb/operation"
	"goatb/tensor"
)

// build makes the graph operation of a recipe with the given events.
func (r *recipe) build(events []device.Event) (*operation.Op, error) {
	if r.named {
		return r.buildNamed(events)
	}
	return r.buildNumbered(events)
}

// buildNumbered makes the graph from tensor ids, its nodes in the recipe's order.
func (r *recipe) buildNumbered(events []device.Event) (*operation.Op, error) {
	ids := make([]int, len(r.values))
	for i := range ids {
		ids[i] = -2
	}
	p := operation.GraphParam{Inputs: len(r.inputs()), Outputs: len(r.outputs)}
	next := 0
	give := func(list []int) {
		for _, i := range list {
			ids[i] = next
			next++
		}
	}
	give(r.inputs())
	give(r.outputs)
	for i := range ids {
		if ids[i] < 0 && r.values[i].writer >= 0 {
			give([]int{i})
			p.Internals++
		}
	}
	for i := range r.steps {
		s := &r.steps[i]
		op, err := r.operation(s, events)
		if err != nil {
			return nil, err
		}
		n := operation.Node{Op: op, Reshape: s.reshape, Chunk: s.chunk}
		for _, i := range s.in {
			n.In = append(n.In, ids[i])
		}
		for _, i := range s.out {
			n.Out = append(n.Out, ids[i])
		}
		p.Nodes = append(p.Nodes, n)
	}
	return operation.NewGraph(p)
}

// operation makes the operation of a node, on its stream.
func (r *recipe) operation(s *step, events []device.Event) (op *operation.Op, err error) {
	switch {
	case s.graph != nil:
		op, err = s.graph.build(events)
	case s.make != nil:
		op, err = operation.New(s.make())
	default:
		op, err = operation.New(operation.Event{Event: events[s.event], Action: s.action})
	}
	if err == nil && r.depth == 0 {
		err = op.SetStream(s.stream)
	}
	return op, err
}

// dataset is what a graph is run on: bytes for each input.
type dataset struct {
	n     int64
	descs []tensor.Desc
	bytes [][]byte
	host  []bool
}

// dataset draws the data of a run with n rows.
func (r *recipe) dataset(n int64, seed uint64) *dataset {
	rng := rand.New(rand.NewPCG(seed, r.seed))
	d := &dataset{n: n}
	for _, i := range r.inputs() {
		v := &r.values[i]
		desc := v.desc(n)
		d.descs = append(d.descs, desc)
		d.bytes = append(d.bytes, v.fill(rng, desc))
		d.host = append(d.host, v.role == contexts)
	}
	return d
}

func (v *value) fill(rng *rand.Rand, d tensor.Desc) []byte {
	b := device.BytesOf(make([]uint64, (d.Bytes()+7)/8))[:d.Bytes()]
	if v.role == data {
		x := make([]float32, d.Numel())
		for i := range x {
			x[i] = rng.Float32() - 0.5
		}
		kernel.StoreFloats(b, x, d.DType)
		return b
	}
	order := rng.Perm(blocks * blockSize)
	for i := range int(d.Numel()) {
		var x int64
		switch v.role {
		case index:
			x = rng.Int64N(d.Dim(0))
		case slots:
			x = int64(order[i])
		case table:
			x = rng.Int64N(blocks)
		case contexts:
			x = 1 + rng.Int64N(2*blockSize)
		case halves:
			x = 1 + rng.Int64N(blockSize)
		}
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return b
}
