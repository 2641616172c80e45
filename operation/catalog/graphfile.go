package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"goatb/device"
	"goatb/internal/spelling"
	"goatb/internal/strictjson"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// GraphFile is a graph in JSON: names, operations by type and parameters.
//
//	{"name": "mlp",
//	 "inputs": [{"name": "x", "dtype": "f32", "shape": [2, 4]}, "w"],
//	 "outputs": ["y"],
//	 "nodes": [{"op": "LinearOperation", "param": {"hasBias": false}, "in": ["x", "w"], "out": ["y"]}]}
//
// Nodes may come in any order. An empty name in "in" is an absent optional
// input.
type GraphFile struct {
	Name    string       `json:"name"`
	Inputs  []InputEntry `json:"inputs"`
	Outputs []string     `json:"outputs"`
	Nodes   []NodeEntry  `json:"nodes"`
}

// InputEntry is an input: its name alone, or with type, dimensions and, for
// tensors whose values are read on the host, values.
type InputEntry struct {
	Name   string  `json:"name"`
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	Values []int64 `json:"values"`
}

// UnmarshalJSON reads a string or an object.
func (e *InputEntry) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &e.Name)
	}
	type plain InputEntry
	return json.Unmarshal(b, (*plain)(e))
}

// NodeEntry is a node. Reshape gives inputs of the node other dimensions: 0
// keeps the dimension at its place and one -1 takes what is left.
type NodeEntry struct {
	Name    string             `json:"name"`
	Op      string             `json:"op"`
	Param   json.RawMessage    `json:"param"`
	In      []string           `json:"in"`
	Out     []string           `json:"out"`
	Stream  *int               `json:"stream"`
	Reshape map[string][]int64 `json:"reshape"`
}

// ReadGraph reads a graph file. Errors: ErrInvalidGraph for malformed JSON and
// for keys that are unknown or there twice.
func ReadGraph(data []byte) (*GraphFile, error) {
	var f GraphFile
	if err := strictjson.Decode(data, &f); err != nil {
		return nil, status.Errorf(status.ErrInvalidGraph, "graph file: %w", err)
	}
	return &f, nil
}

// Build makes the graph operation. Nodes of different streams that share a
// tensor are not ordered: see BuildOrdered. Errors are ErrInvalidGraph and
// ErrInvalidParam, and name the node.
func (f *GraphFile) Build() (*operation.Op, error) { return f.BuildOrdered(nil) }

// BuildOrdered is Build with events between nodes of different streams that
// share a tensor; see GraphBuilder.OrderStreams.
func (f *GraphFile) BuildOrdered(newEvent func() (device.Event, error)) (*operation.Op, error) {
	in := make([]string, len(f.Inputs))
	for i := range f.Inputs {
		in[i] = f.Inputs[i].Name
	}
	b := operation.BuildGraph(f.Name, in, f.Outputs).OrderStreams(newEvent)
	var made []*operation.Op
	fail := func(err error) (*operation.Op, error) {
		for _, op := range made {
			_ = op.Close() // an operation that was never set up has nothing to lose
		}
		return nil, err
	}
	for i := range f.Nodes {
		if err := f.Nodes[i].checkReshape(i); err != nil {
			return fail(err)
		}
		op, err := f.Nodes[i].make(i)
		if err != nil {
			return fail(err)
		}
		made = append(made, op)
		names := f.Nodes[i].views(b, i)
		b.AddNamed(f.Nodes[i].Name, op, names, f.Nodes[i].Out)
	}
	g, err := b.Build()
	if err != nil {
		return fail(err)
	}
	return g, nil
}

// place names node i in errors.
func (n *NodeEntry) place(i int) string {
	if n.Name == "" {
		return fmt.Sprintf("%d_%s", i, n.Op)
	}
	return n.Name
}

// checkReshape refuses other dimensions for what is no input of node i.
func (n *NodeEntry) checkReshape(i int) error {
	for _, name := range slices.Sorted(maps.Keys(n.Reshape)) {
		if !slices.Contains(n.In, name) {
			err := status.Errorf(status.ErrInvalidGraph, "reshape: want inputs of the node (%s), got %q", spelling.List(name, n.In), name)
			return status.Place(err, status.ErrInvalidGraph, "", "", n.place(i))
		}
	}
	return nil
}

func (n *NodeEntry) make(i int) (*operation.Op, error) {
	place := n.place(i)
	s, err := New(n.Op, n.Param)
	if err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, "", "", place)
	}
	op, err := operation.New(s)
	if err == nil && n.Stream != nil {
		err = op.SetStream(*n.Stream)
	}
	return op, status.Place(err, status.ErrInvalidParam, "", "", place)
}

// views names the reshaped inputs of node i.
func (n *NodeEntry) views(b *operation.GraphBuilder, i int) []string {
	in := append([]string(nil), n.In...)
	for j, name := range in {
		dims, ok := n.Reshape[name]
		if !ok {
			continue
		}
		in[j] = fmt.Sprintf("%s@%d.%d", name, i, j)
		b.Reshape(name, func(old tensor.Shape) tensor.Shape { return fit(old, dims) }, in[j])
	}
	return in
}

// fit fills in the dimensions 0 and -1. What does not fit has another number of
// elements, which the graph refuses.
func fit(old tensor.Shape, dims []int64) tensor.Shape {
	out := append([]int64(nil), dims...)
	known, rest := int64(1), -1
	for i, d := range out {
		switch {
		case d == 0 && i < old.Rank():
			out[i] = old.Dim(i)
		case d == -1 && rest < 0:
			rest = i
			continue
		}
		known *= out[i]
	}
	if rest >= 0 && known > 0 {
		out[rest] = old.Numel() / known
	}
	return tensor.ShapeOf(out...)
}

// Desc returns the entry's descriptor, and false when it has no dimensions.
func (e *InputEntry) Desc() (tensor.Desc, bool, error) {
	if e.DType == "" && len(e.Shape) == 0 {
		return tensor.Desc{}, false, nil
	}
	t, err := tensor.ParseDType(e.DType)
	if err != nil {
		return tensor.Desc{}, false, status.Errorf(status.ErrInvalidTensorDType, "input %q: %w", e.Name, err)
	}
	d := tensor.Of(t, e.Shape...)
	if err := tensor.CheckDesc(&d); err != nil {
		return tensor.Desc{}, false, err.On(e.Name)
	}
	return d, true, nil
}
