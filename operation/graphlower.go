package operation

import (
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// Lower lowers the nodes one after the other into scopes of one kernel graph.
func (g *graph) Lower(b *kernelgraph.Builder, q *Query) error {
	w := &graphWalk{g: g, b: b, q: q, refs: make([]kernelgraph.Ref, g.tensors()), ds: make([]tensor.Desc, g.tensors())}
	for id := range w.refs {
		w.refs[id] = kernelgraph.Absent
	}
	for i := range g.p.Inputs {
		w.refs[i], w.ds[i] = b.In(i), q.In[i]
	}
	for i := range g.p.Outputs {
		w.refs[g.p.Inputs+i] = b.Out(i)
	}
	for i := range g.p.Nodes {
		if err := w.node(i); err != nil {
			return status.Place(err, status.ErrInvalidParam, "", "", g.nodeName(i))
		}
	}
	return nil
}

// graphWalk is the state of one lowering of a graph.
type graphWalk struct {
	g    *graph
	b    *kernelgraph.Builder
	q    *Query
	refs []kernelgraph.Ref
	ds   []tensor.Desc
}

func (w *graphWalk) node(i int) error {
	g, n := w.g, &w.g.p.Nodes[i]
	inDescs, err := g.nodeInputs(i, w.ds)
	if err != nil {
		return err
	}
	outDescs, err := g.inferNode(i, inDescs, w.q)
	if err != nil {
		return err
	}
	in, err := w.inputRefs(n, inDescs)
	if err != nil {
		return err
	}
	out, err := w.outputRefs(n, outDescs)
	if err != nil {
		return err
	}
	o, ok := n.Op.(*Op)
	if !ok {
		return w.foreign(i, in, out, inDescs, outDescs)
	}
	return w.lower(i, o, in, out, inDescs, outDescs)
}

// inputRefs makes the views that the node sees.
func (w *graphWalk) inputRefs(n *Node, descs []tensor.Desc) ([]kernelgraph.Ref, error) {
	refs := make([]kernelgraph.Ref, len(n.In))
	for j, id := range n.In {
		refs[j] = kernelgraph.Absent
		if id == Absent || w.refs[id] == kernelgraph.Absent {
			continue
		}
		refs[j] = w.refs[id]
		if descs[j] == w.ds[id] && w.b.Desc(refs[j]) == descs[j] {
			continue
		}
		var offset int64
		if n.Chunk != nil && n.Chunk[j] != (Chunk{}) {
			offset = int64(n.Chunk[j].Index) * descs[j].Bytes()
		}
		v, err := w.b.View(refs[j], descs[j], offset)
		if err != nil {
			return nil, err
		}
		refs[j] = v
	}
	return refs, nil
}

// outputRefs finds or makes the tensors that the node writes.
func (w *graphWalk) outputRefs(n *Node, descs []tensor.Desc) ([]kernelgraph.Ref, error) {
	refs := make([]kernelgraph.Ref, len(n.Out))
	for j, id := range n.Out {
		switch {
		case descs[j].Empty():
			refs[j] = kernelgraph.Absent
		case w.refs[id] == kernelgraph.Absent:
			w.refs[id] = w.b.Temp(w.g.shortName(id), descs[j])
			refs[j] = w.refs[id]
		case byteSize(w.b.Desc(w.refs[id])) != descs[j].Bytes():
			return nil, status.Errorf(status.ErrInvalidGraph, "it writes %s to %s, which is %s", descs[j], w.g.tensorName(id), w.b.Desc(w.refs[id]))
		default:
			refs[j] = w.refs[id]
			if w.b.Desc(refs[j]) != descs[j] {
				v, err := w.b.View(refs[j], descs[j], 0)
				if err != nil {
					return nil, err
				}
				refs[j] = v
			}
		}
		w.ds[id] = descs[j]
	}
	return refs, nil
}

func byteSize(d tensor.Desc) int64 { return d.Bytes() }

// lower checks a node as Setup does and lowers it.
func (w *graphWalk) lower(i int, o *Op, in, out []kernelgraph.Ref, inDescs, outDescs []tensor.Desc) error {
	c, err := o.checker(w.q.Profile)
	if err != nil {
		return err
	}
	n := &w.g.p.Nodes[i]
	values, from := w.nodeValues(n, o)
	q := c.query(StageSetup, inDescs, outDescs, values)
	q.low, q.from = w.q.low, from
	if err := c.check(o.spec, q); err != nil {
		return status.Place(err, status.ErrInvalidParam, "", "", "")
	}
	q.low.remember(o.spec, q, from)
	stream := w.b.Stream()
	if o.streamSet {
		stream = o.stream
	}
	return o.spec.Lower(w.b.Scope(w.g.nodeName(i), o.sig.Name, in, out, stream), q)
}

// nodeValues maps the host values of the graph's inputs to those of a node. A
// host port that is fed by anything but an input of the graph has none.
func (w *graphWalk) nodeValues(n *Node, o *Op) (values [][]int64, from []int) {
	values, from = make([][]int64, len(n.In)), make([]int, len(n.In))
	for j, id := range n.In {
		from[j] = -1
		if id < 0 || id >= w.g.p.Inputs || !o.sig.In[j].Host {
			continue
		}
		values[j], _ = w.q.Values(id)
		from[j] = id
		if w.q.from != nil {
			from[j] = w.q.from[id]
		}
	}
	return values, from
}

// foreign adds a user's own operation.
func (w *graphWalk) foreign(i int, in, out []kernelgraph.Ref, inDescs, outDescs []tensor.Desc) error {
	n := &w.g.p.Nodes[i]
	low := w.q.low
	if low == nil {
		return status.Errorf(status.ErrInvalidParam, "an operation of a user's own type wants a context to be lowered in")
	}
	f := foreignNode{op: n.Op, pack: VariantPack{In: tensorsOf(inDescs), Out: tensorsOf(outDescs)}}
	for _, id := range n.In {
		from := -1
		if id >= 0 && id < w.g.p.Inputs {
			from = id
			if w.q.from != nil {
				from = w.q.from[id]
			}
		}
		f.from = append(f.from, from)
		if from >= 0 {
			f.pack.In[len(f.from)-1].Host = low.host[from]
		}
	}
	size, err := f.setup(low.c)
	if err != nil {
		return err
	}
	if size < 0 {
		return status.Errorf(status.ErrInvalidWorkspaceSize, "its setup asks for %d bytes of workspace", size)
	}
	f.size = size
	low.foreign = append(low.foreign, f)
	return w.b.Scope(w.g.nodeName(i), n.Op.Name(), in, out, w.b.Stream()).Foreign(&foreignCall{n.Op, low.c}, in, out, size)
}
