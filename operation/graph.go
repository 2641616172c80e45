package operation

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"goatb/status"
	"goatb/tensor"
)

// graph is the spec of a graph operation. It is immutable but for the nodes'
// operations, which keep their own state.
type graph struct {
	p   GraphParam
	sig Signature
	// conds are the nodes with conditions in them.
	conds []*Op
}

func (g *graph) tensors() int { return g.p.Inputs + g.p.Outputs + g.p.Internals }

// tensorName names a tensor for people.
func (g *graph) tensorName(id int) string {
	p := &g.p
	if id < len(p.names) {
		return strconv.Quote(p.names[id])
	}
	switch {
	case id < p.Inputs:
		return "input " + strconv.Itoa(id)
	case id < p.Inputs+p.Outputs:
		return "output " + strconv.Itoa(id-p.Inputs)
	}
	return "internal tensor " + strconv.Itoa(id)
}

// shortName names a tensor in dumps and workspace plans.
func (g *graph) shortName(id int) string {
	if id < len(g.p.names) {
		return g.p.names[id]
	}
	return "t" + strconv.Itoa(id)
}

func (g *graph) shortNames(ids []int) []string {
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = "-"
		if id != Absent {
			s[i] = g.shortName(id)
		}
	}
	return s
}

// nodeName names a node: its own name, or its number and type.
func (g *graph) nodeName(i int) string {
	n := &g.p.Nodes[i]
	switch {
	case n.Name != "":
		return n.Name
	case status.IsNil(n.Op):
		return "node " + strconv.Itoa(i)
	}
	return strconv.Itoa(i) + "_" + n.Op.Name()
}

// unusedInputs names the inputs that no node reads or writes.
func (g *graph) unusedInputs() []string {
	used := make([]bool, g.tensors())
	for i := range g.p.Nodes {
		for _, id := range slices.Concat(g.p.Nodes[i].In, g.p.Nodes[i].Out) {
			if id != Absent {
				used[id] = true
			}
		}
	}
	var names []string
	for id := range g.p.Inputs {
		if !used[id] {
			names = append(names, g.tensorName(id))
		}
	}
	return names
}

// place names a node in errors: its name and its type.
func (g *graph) place(i int) string {
	if n := &g.p.Nodes[i]; n.Name != "" {
		return n.Name + " (" + n.Op.Name() + ")"
	}
	return g.nodeName(i)
}

// findConditions finds the nodes with conditions in them: parameters may be
// updated, but not to those of another type, and those of a graph not at all. So a
// Setup visits conditions, not nodes.
func (g *graph) findConditions() {
	for i := range g.p.Nodes {
		o, ok := g.p.Nodes[i].Op.(*Op)
		if !ok {
			continue
		}
		if inner, ok := o.spec.(*graph); ok && len(inner.conds) == 0 {
			continue
		}
		if _, ok := o.spec.(conditional); ok {
			g.conds = append(g.conds, o)
		}
	}
}

// ports derives the graph's operands from those of its nodes.
func (g *graph) ports() {
	p := &g.p
	g.sig = Signature{Name: p.Name, In: make([]Port, p.Inputs), Out: make([]Port, p.Outputs)}
	for id := range p.Inputs + p.Outputs {
		if id >= len(p.names) {
			break
		}
		if id < p.Inputs {
			g.sig.In[id].Name = p.names[id]
		} else {
			g.sig.Out[id-p.Inputs].Name = p.names[id]
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		in := portsOf(n.Op)
		for j, id := range n.In {
			if id >= 0 && id < p.Inputs {
				g.sig.In[id].join(&in[j])
			}
		}
	}
}

// portsOf returns the inputs of an operation. Those of a user's own, which has
// no signature to ask, may be absent, and on the device or the host.
func portsOf(op Operation) []Port {
	if o, ok := op.(interface{ Signature() Signature }); ok {
		if in := o.Signature().In; len(in) == op.InputNum() {
			return in
		}
	}
	in := make([]Port, op.InputNum())
	for i := range in {
		in[i] = Port{Optional: true, either: true}
	}
	return in
}

// adopt makes the graph operation the owner of its nodes.
func (g *graph) adopt(owner *Op) {
	for i := range g.p.Nodes {
		if o, ok := g.p.Nodes[i].Op.(*Op); ok {
			o.owner = owner
		}
	}
}

func (g *graph) close() error {
	var errs []error
	for i := range g.p.Nodes {
		errs = append(errs, closeNode(g.p.Nodes[i].Op))
	}
	return errors.Join(errs...)
}

// Signature describes the graph's operands: an input is optional when some node
// lets it be, and needs host data when some node reads its values.
func (g *graph) Signature() Signature {
	g.ports()
	return g.sig
}

// Validate has nothing to add: NewGraph validates.
func (g *graph) Validate() error { return nil }

// Check has nothing of its own to check: nodes are checked one by one when
// shapes are inferred.
func (g *graph) Check(*Query) error { return nil }

// conditions evaluates the conditions of the nodes.
func (g *graph) conditions(words []uint64, outcome map[*If]bool) ([]uint64, error) {
	for _, o := range g.conds {
		var err error
		if words, err = o.spec.(conditional).conditions(words, outcome); err != nil {
			return words, inNode(err, o.name)
		}
	}
	return words, nil
}

// Infer walks the nodes, or calls the user's function: at Setup both, and they
// must agree.
func (g *graph) Infer(q *Query) ([]tensor.Desc, error) {
	if g.p.InferShape == nil {
		return g.walk(q)
	}
	user, err := g.userInfer(q.In)
	if err != nil || q.Stage == StageInfer {
		return user, err
	}
	own, err := g.walk(q)
	if err != nil {
		return nil, err
	}
	for i := range own {
		if user[i] != own[i] {
			return nil, status.Errorf(status.ErrGraphInferShapeFail, "the graph's shape function gives %s, its nodes give %s", user[i], own[i]).On(portName("output", i, g.sig.Out))
		}
	}
	return own, nil
}

// userInfer calls the user's function and looks at its result.
func (g *graph) userInfer(in []tensor.Desc) (out []tensor.Desc, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, status.Errorf(status.ErrGraphInferShapeFail, "the graph's shape function panicked: %v", r)
		}
	}()
	if out, err = g.p.InferShape(append([]tensor.Desc(nil), in...)); err != nil {
		if _, ok := errors.AsType[*status.OpError](err); ok {
			return nil, err
		}
		return nil, status.Errorf(status.ErrGraphInferShapeFail, "the graph's shape function failed: %w", err)
	}
	if len(out) != g.p.Outputs {
		return nil, status.Errorf(status.ErrGraphInferShapeFail, "the graph's shape function gives %d outputs, want %d", len(out), g.p.Outputs)
	}
	for i, d := range out {
		if d.Rank() == 0 || d.DType == tensor.Undefined || d.Format == tensor.FormatUndefined {
			return nil, status.Errorf(status.ErrGraphInferShapeFail, "the graph's shape function leaves %s undefined", d).On(portName("output", i, g.sig.Out))
		}
	}
	return out, nil
}

// walk infers node by node and returns the outputs.
func (g *graph) walk(q *Query) ([]tensor.Desc, error) {
	ds := make([]tensor.Desc, g.tensors())
	copy(ds, q.In)
	for i := range g.p.Nodes {
		in, err := g.nodeInputs(i, ds)
		if err != nil {
			return nil, inNode(err, g.place(i))
		}
		out, err := g.inferNode(i, in, q)
		if err != nil {
			return nil, inNode(err, g.place(i))
		}
		for j, id := range g.p.Nodes[i].Out {
			ds[id] = out[j]
		}
	}
	return ds[g.p.Inputs : g.p.Inputs+g.p.Outputs], nil
}

// nodeInputs returns the descriptors that node i sees: reshaped, then chunked.
func (g *graph) nodeInputs(i int, ds []tensor.Desc) ([]tensor.Desc, error) {
	n := &g.p.Nodes[i]
	in := make([]tensor.Desc, len(n.In))
	for j, id := range n.In {
		if id == Absent {
			continue
		}
		in[j] = ds[id]
		if in[j].Empty() {
			continue
		}
		if err := n.view(j, &in[j]); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// view applies the reshape function and the chunk of input j to d.
func (n *Node) view(j int, d *tensor.Desc) error {
	if d.Format == tensor.Panels && (n.Reshape != nil && n.Reshape[j] != nil || n.Chunk != nil && n.Chunk[j] != (Chunk{})) {
		return status.Errorf(status.ErrGraphNodeReshapeFail, "input %d is %s: that layout can be neither reshaped nor cut", j, d)
	}
	if n.Reshape != nil && n.Reshape[j] != nil {
		s, err := callReshape(n.Reshape[j], d.Shape)
		if err != nil {
			return err
		}
		if s.Numel() != d.Numel() || s.Rank() > tensor.MaxRank {
			return status.Errorf(status.ErrGraphNodeReshapeFail, "the reshape function of input %d gives %s for %s: the number of elements differs", j, s, d.Shape)
		}
		d.Shape = s
	}
	if n.Chunk == nil || n.Chunk[j] == (Chunk{}) {
		return nil
	}
	c := n.Chunk[j]
	if err := c.check(); err != nil {
		return err.On(portName("input", j, portsOf(n.Op)))
	}
	if d0 := d.Dim(0); d0%int64(c.Num) != 0 {
		return status.Errorf(status.ErrInvalidGraphNodeChunk, "chunk %d of %d: want a number of parts that divides dimension 0 of %s, which is %d", c.Index, c.Num, d.Shape, d0).On(portName("input", j, portsOf(n.Op)))
	}
	d.Shape = d.Shape.With(0, d.Dim(0)/int64(c.Num))
	return nil
}

func callReshape(f ReshapeFunc, old tensor.Shape) (s tensor.Shape, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = status.Errorf(status.ErrGraphNodeReshapeFail, "the reshape function panicked: %v", r)
		}
	}()
	return f(old), nil
}

// inferNode returns the output descriptors of node i; those of the last call
// are used again when its inputs are the same.
func (g *graph) inferNode(i int, in []tensor.Desc, q *Query) ([]tensor.Desc, error) {
	n := &g.p.Nodes[i]
	var out []tensor.Desc
	var err error
	if o, ok := n.Op.(*Op); ok {
		out, err = o.inferCached(in, q)
	} else {
		out, err = inferForeign(n.Op, in)
	}
	if err == nil && len(out) != len(n.Out) {
		err = status.Errorf(status.ErrInvalidParam, "inferred %d outputs, want %d", len(out), len(n.Out))
	}
	return out, err
}

// inNode names a node of a graph in an error, before the node inside it that the
// error names already.
func inNode(err error, node string) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*status.OpError)
	if !ok || e.Op != "" {
		return &status.OpError{Code: status.CodeOf(err), Node: node, Err: err} // of a user's own operation
	}
	placed := *e
	placed.Node = node
	if e.Node != "" {
		placed.Node += "/" + e.Node
	}
	return &placed
}

// inferCache holds the last shape inference of a node.
type inferCache struct {
	version uint64
	profile *Profile
	in, out []tensor.Desc
}

// inferCached infers the outputs of an operation inside a graph.
func (o *Op) inferCached(in []tensor.Desc, q *Query) ([]tensor.Desc, error) {
	if q.low == nil || !q.low.c.SetupReuse() {
		return o.inferUnder(q.Profile, in, q.low)
	}
	n := q.low.c.Counters()
	n.InferShapes.Add(1)
	c, v := &o.infer, o.version.Load()
	_, conditional := o.spec.(conditional)
	if len(in) > 0 && !conditional && c.version == v && c.profile == q.Profile && slices.Equal(c.in, in) {
		n.InferHits.Add(1)
		return c.out, nil
	}
	c.version = 0
	out, err := o.inferUnder(q.Profile, in, q.low)
	if err == nil {
		*c = inferCache{v, q.Profile, append([]tensor.Desc(nil), in...), out}
	}
	return out, err
}

// MarshalJSON writes the graph: name, counts and nodes with types, parameters
// and tensor ids.
func (g *graph) MarshalJSON() ([]byte, error) {
	type node struct {
		Name  string `json:"name,omitempty"`
		Op    string `json:"opType"`
		Param any    `json:"param,omitempty"`
		In    []int  `json:"inTensorIds"`
		Out   []int  `json:"outTensorIds"`
		// InNames and OutNames repeat the ids as names.
		InNames  []string `json:"inTensorNames"`
		OutNames []string `json:"outTensorNames"`
	}
	out := struct {
		Name      string `json:"opName"`
		In        int    `json:"inTensorNum"`
		Out       int    `json:"outTensorNum"`
		Internals int    `json:"internalTensorNum"`
		Nodes     []node `json:"nodes"`
	}{g.p.Name, g.p.Inputs, g.p.Outputs, g.p.Internals, nil}
	for i := range g.p.Nodes {
		n := &g.p.Nodes[i]
		x := node{Name: n.Name, Op: n.Op.Name(), In: n.In, Out: n.Out}
		if o, ok := n.Op.(*Op); ok {
			x.Op, x.Param = o.sig.Name, o.spec
		}
		x.InNames, x.OutNames = g.shortNames(n.In), g.shortNames(n.Out)
		out.Nodes = append(out.Nodes, x)
	}
	return json.Marshal(out)
}
