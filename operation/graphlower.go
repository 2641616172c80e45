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
			return inNode(err, g.place(i))
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
	values, from := w.nodeValues(&w.g.p.Nodes[i], o, inDescs)
	q := c.query(StageSetup, inDescs, outDescs, values)
	q.low, q.from = w.q.low, from
	if err := c.check(o.spec, q); err != nil {
		return err
	}
	q.low.remember(o.spec, q, from)
	stream := w.b.Stream()
	if o.streamSet {
		stream = o.stream
	}
	specs, foreign := q.low.mark()
	return w.b.Node(w.g.nodeName(i), o.sig.Name, in, out, stream, func(b *kernelgraph.Builder) error {
		q.low.forget(specs, foreign)
		return o.spec.Lower(b, q)
	})
}

// nodeValues maps the host values of the graph's inputs to those of a node. A
// host port that is fed by anything but an input of the graph has none.
func (w *graphWalk) nodeValues(n *Node, o *Op, descs []tensor.Desc) (values [][]int64, from []origin) {
	values, from = make([][]int64, len(n.In)), make([]origin, len(n.In))
	for j := range n.In {
		own := w.origin(n, j, descs)
		from[j] = own
		if w.q.from != nil && own.input >= 0 {
			from[j] = w.q.from[own.input].part(own)
		}
		if o.sig.In[j].Host {
			values[j] = own.values(w.q.values)
		}
	}
	return values, from
}

// origin tells which elements of which input of the graph input j of a node is.
func (w *graphWalk) origin(n *Node, j int, descs []tensor.Desc) origin {
	id := n.In[j]
	if id < 0 || id >= w.g.p.Inputs {
		return none
	}
	size := int(descs[j].Numel())
	o := origin{id, 0, size}
	if n.Chunk != nil && n.Chunk[j] != (Chunk{}) {
		o.first = n.Chunk[j].Index * size
	}
	return o
}

// part returns the origin of the elements p of what o is the origin of.
func (o origin) part(p origin) origin {
	if o.input < 0 {
		return none
	}
	return origin{o.input, o.first + p.first, p.n}
}

// foreign adds a user's own operation.
func (w *graphWalk) foreign(i int, in, out []kernelgraph.Ref, inDescs, outDescs []tensor.Desc) error {
	n := &w.g.p.Nodes[i]
	low := w.q.low
	if low == nil {
		return status.Errorf(status.ErrInvalidParam, "an operation of a user's own type wants a context to be lowered in")
	}
	stream, err := streamOf(n.Op, w.b.Stream())
	if err != nil {
		return err
	}
	b := w.b.Scope(w.g.nodeName(i), n.Op.Name(), in, out, stream)
	f := foreignNode{name: b.Path(), op: n.Op, pack: VariantPack{In: tensorsOf(inDescs), Out: tensorsOf(outDescs)}}
	for j := range n.In {
		own := w.origin(n, j, inDescs)
		if own.input >= 0 {
			own = w.q.from[own.input].part(own)
		}
		f.from = append(f.from, own)
	}
	size, err := f.setup(low)
	if err != nil {
		return err
	}
	if size < 0 {
		return status.Errorf(status.ErrInvalidWorkspaceSize, "its setup asks for %d bytes of workspace", size)
	}
	f.size = size
	low.foreign = append(low.foreign, f)
	return b.Foreign(&foreignCall{n.Op, low.c}, in, out, size)
}
