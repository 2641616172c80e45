package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"goatb/atb"
	"goatb/device"
	"goatb/kernelgraph"
)

// graphReport is what graph prints as JSON. Sizes are bytes.
type graphReport struct {
	Schema     int              `json:"schema"`
	Command    string           `json:"command"`
	Operations []operationEntry `json:"operations"`
	Kernels    []kernelEntry    `json:"kernels"`
	Plan       planEntry        `json:"plan"`
	// Gates and Tasks are there with --tasks.
	Gates []gateEntry `json:"gates,omitempty"`
	Tasks []taskEntry `json:"tasks,omitempty"`
}

type operationEntry struct {
	ID    int             `json:"id"`
	Op    string          `json:"op"`
	Param json.RawMessage `json:"param"`
	In    []string        `json:"in"`
	Out   []string        `json:"out"`
}

type kernelEntry struct {
	ID        int      `json:"id"`
	Operation string   `json:"operation"`
	Kernel    string   `json:"kernel"`
	TilingKey uint64   `json:"tiling_key"`
	BlockDim  int      `json:"block_dim"`
	Scratch   int64    `json:"scratch"`
	Reads     []string `json:"reads"`
	Writes    []string `json:"writes"`
	// Refused lists the kernels that would have come first, Slower what of the
	// kernel the node turns off.
	Refused []refusedEntry `json:"refused"`
	Slower  []string       `json:"slower"`
}

type refusedEntry struct {
	Kernel string `json:"kernel"`
	Reason string `json:"reason"`
}

type planEntry struct {
	Arena      int64         `json:"arena"`
	Scratch    int64         `json:"scratch"`
	LowerBound int64         `json:"lower_bound"`
	Optimal    bool          `json:"optimal"`
	Method     string        `json:"method"`
	Nodes      int64         `json:"nodes"`
	Peak       peakReport    `json:"peak"`
	Buffers    []bufferEntry `json:"buffers"`
	Shared     []sharedEntry `json:"shared"`
}

// sharedEntry is an intermediate that lies in the memory of a buffer.
type sharedEntry struct {
	ID     string `json:"id"`
	In     string `json:"in"`
	Size   int64  `json:"size"`
	Offset int64  `json:"offset"`
}

type bufferEntry struct {
	ID     string `json:"id"`
	Size   int64  `json:"size"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
	Offset int64  `json:"offset"`
}

func reportGraph(op *atb.Op, in []atb.Tensor) (*graphReport, error) {
	kg, w := op.Graph(), op.Workspace()
	r := &graphReport{Schema: 1, Command: "graph", Kernels: []kernelEntry{}}
	var err error
	if r.Operations, err = operationEntries(op); err != nil {
		return nil, err
	}
	for i := range kg.Nodes {
		k, err := kernelOf(kg, i, in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kg.Nodes[i].Path, err)
		}
		r.Kernels = append(r.Kernels, k)
	}
	r.Plan = planEntries(kg, w)
	return r, nil
}

// planEntries describes a workspace plan.
func planEntries(kg *kernelgraph.Graph, w *kernelgraph.Workspace) planEntry {
	p := planEntry{Arena: w.Arena, Scratch: w.Scratch, LowerBound: w.LowerBound, Optimal: w.Optimal, Method: w.Method, Nodes: w.Nodes,
		Peak: peakReport{At: int64(w.PeakAt), IDs: []string{}}, Buffers: []bufferEntry{}, Shared: []sharedEntry{}}
	for _, l := range w.Lives {
		x := &kg.Tensors[l.Ref]
		p.Buffers = append(p.Buffers, bufferEntry{x.Name, x.Desc.Bytes(), l.First, l.Last, w.Offset[l.Ref]})
		if l.First <= w.PeakAt && w.PeakAt <= l.Last {
			p.Peak.IDs = append(p.Peak.IDs, x.Name)
		}
	}
	for _, s := range w.Within {
		x := &kg.Tensors[s.Ref]
		p.Shared = append(p.Shared, sharedEntry{x.Name, kg.Tensors[s.In].Name, x.Desc.Bytes(), w.Offset[s.Ref]})
	}
	return p
}

// operationEntries lists the operations that the user put together: the nodes
// of a graph, or the operation itself.
func operationEntries(op *atb.Op) ([]operationEntry, error) {
	param, err := json.Marshal(op.Params())
	if err != nil {
		return nil, err
	}
	var g struct {
		Nodes []struct {
			Op    string          `json:"opType"`
			Param json.RawMessage `json:"param"`
			In    []string        `json:"inTensorNames"`
			Out   []string        `json:"outTensorNames"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(param, &g); err != nil || g.Nodes == nil {
		return []operationEntry{{Op: op.Name(), Param: param, In: []string{}, Out: []string{}}}, nil
	}
	list := []operationEntry{}
	for i, n := range g.Nodes {
		list = append(list, operationEntry{i, n.Op, n.Param, n.In, n.Out})
	}
	return list, nil
}

// kernelOf describes node i; its tiling is computed for the inputs' host values.
func kernelOf(kg *kernelgraph.Graph, i int, in []atb.Tensor) (kernelEntry, error) {
	n := &kg.Nodes[i]
	operation, _, _ := strings.Cut(n.Path, "/")
	k := kernelEntry{ID: i, Operation: operation, Kernel: n.What(), Scratch: n.Scratch, Reads: present(kg, n.In), Writes: present(kg, n.Out), Refused: []refusedEntry{}, Slower: append([]string{}, n.Slower()...)}
	for _, r := range n.Refused {
		k.Refused = append(k.Refused, refusedEntry{r.Kernel, r.Reason.Error()})
	}
	if n.Kernel == nil {
		return k, nil
	}
	p := n.Problem
	p.Values = nil
	for _, r := range n.Val {
		base, _ := kg.Base(r)
		t := &kg.Tensors[base]
		if t.Kind != kernelgraph.Input {
			return k, nil // made by a kernel: no tiling before that has run
		}
		if t.Index >= len(in) {
			return k, fmt.Errorf("host values of %s: want input %d of the graph", t.Name, t.Index)
		}
		v, err := in[t.Index].AppendValues(nil)
		if err != nil {
			return k, fmt.Errorf("host values of %s: %w", t.Name, err)
		}
		p.Values = append(p.Values, v)
	}
	tiling := device.BytesOf(make([]uint64, (n.TilingSize+7)/8))
	grid, err := n.Kernel.Tile(&p, tiling[:n.TilingSize])
	k.TilingKey, k.BlockDim = grid.Key, grid.Blocks
	return k, err
}

// present names the operands that are there.
func present(kg *kernelgraph.Graph, refs []kernelgraph.Ref) []string {
	names := []string{}
	for _, r := range refs {
		if r != kernelgraph.Absent {
			names = append(names, kg.Tensors[r].Name)
		}
	}
	return names
}
