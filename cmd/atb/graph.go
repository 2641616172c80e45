package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"goatb/atb"
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/model/llama"
	"goatb/operation/catalog"
	"goatb/tensor"
)

// graphCmd shows the kernel graph and the workspace plan of a graph.
type graphCmd struct {
	place
	File   string `arg:"" optional:"" help:"Graph in JSON; inputs with dtype and shape." type:"existingfile"`
	Model  string `help:"Show one layer of a model instead." placeholder:"DIR"`
	Checks string `help:"Profile of checks." enum:"native,910b" default:"native"`
	Solver int    `help:"Workspace solver, 0 to 4." default:"4"`
	Format string `help:"Output format." enum:"text,dot,svg,json" default:"text"`
	JSON   bool   `help:"Same as --format json." name:"json"`
}

// graphReport is what graph prints as JSON. Sizes are bytes.
type graphReport struct {
	Schema     int              `json:"schema"`
	Command    string           `json:"command"`
	Operations []operationEntry `json:"operations"`
	Kernels    []kernelEntry    `json:"kernels"`
	Plan       planEntry        `json:"plan"`
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
}

type planEntry struct {
	Arena      int64         `json:"arena"`
	Scratch    int64         `json:"scratch"`
	LowerBound int64         `json:"lower_bound"`
	Buffers    []bufferEntry `json:"buffers"`
}

type bufferEntry struct {
	ID     string `json:"id"`
	Size   int64  `json:"size"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
	Offset int64  `json:"offset"`
}

// Run sets the graph up and prints it.
func (g *graphCmd) Run(ctx context.Context, out output) error {
	if (g.File == "") == (g.Model == "") {
		return fmt.Errorf("graph: want a file or --model")
	}
	if g.Solver < 0 || g.Solver >= mempool.SolverTypes {
		return fmt.Errorf("--solver: want 0 to %d, got %d", mempool.SolverTypes-1, g.Solver)
	}
	dev, err := g.open()
	if err != nil {
		return err
	}
	defer dev.Close()
	opts, err := g.options()
	if err != nil {
		return err
	}
	c, err := atb.NewContext(dev, append(opts, atb.WithStreams(graphStreams), atb.WithChecks(g.Checks), atb.WithSolver(mempool.SolverType(g.Solver)))...)
	if err != nil {
		return err
	}
	defer c.Close()
	if g.Model != "" {
		return g.showModel(ctx, c, out)
	}
	op, pack, err := loadGraph(g.File)
	if err != nil {
		return err
	}
	defer op.Close()
	if _, err := op.Setup(pack, c); err != nil {
		return err
	}
	return g.show(out, op, pack.In)
}

// graphStreams is the number of streams that graph files may use.
const graphStreams = 8

// loadGraph reads a graph file whose inputs have descriptors and infers its
// outputs.
func loadGraph(file string) (*atb.Op, atb.VariantPack, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, atb.VariantPack{}, err
	}
	f, err := catalog.ReadGraph(data)
	if err != nil {
		return nil, atb.VariantPack{}, err
	}
	op, err := f.Build()
	if err != nil {
		return nil, atb.VariantPack{}, err
	}
	pack := atb.VariantPack{In: make([]atb.Tensor, len(f.Inputs))}
	descs := make([]atb.Desc, len(f.Inputs))
	for i := range f.Inputs {
		d, ok, err := f.Inputs[i].Desc()
		if err == nil && !ok {
			err = fmt.Errorf("input %q: want dtype and shape", f.Inputs[i].Name)
		}
		if err != nil {
			return nil, atb.VariantPack{}, errors.Join(err, op.Close())
		}
		descs[i], pack.In[i].Desc = d, d
		if v := f.Inputs[i].Values; v != nil {
			if pack.In[i].Host, err = hostValues(d, v); err != nil {
				return nil, atb.VariantPack{}, errors.Join(fmt.Errorf("input %q: %w", f.Inputs[i].Name, err), op.Close())
			}
		}
	}
	outs, err := op.InferShape(descs)
	if err != nil {
		return nil, atb.VariantPack{}, errors.Join(err, op.Close())
	}
	for _, d := range outs {
		pack.Out = append(pack.Out, atb.Tensor{Desc: d})
	}
	return op, pack, nil
}

// hostValues writes integers as a tensor's bytes.
func hostValues(d atb.Desc, v []int64) ([]byte, error) {
	if int64(len(v)) != d.Numel() {
		return nil, fmt.Errorf("want %d values for %s, got %d", d.Numel(), d, len(v))
	}
	b := make([]byte, d.Bytes())
	return b, tensor.Convert(b, d.DType, device.BytesOf(v), tensor.Int64)
}

// showModel decodes one token and shows the first layer.
func (g *graphCmd) showModel(ctx context.Context, c *atb.Context, out output) error {
	w, _, err := llama.LoadDir(g.Model)
	if err != nil {
		return err
	}
	m, err := llama.Upload(c, w, tensor.Float32)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 16})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Forward(ctx, []llama.Row{{Token: llama.BOS}}, []int32{0}); err != nil {
		return err
	}
	op, in := s.Layer(0)
	return g.show(out, op, in)
}

// show prints a graph that was set up with inputs.
func (g *graphCmd) show(out output, op *atb.Op, in []atb.Tensor) error {
	kg, w := op.Graph(), op.Workspace()
	switch {
	case g.JSON || g.Format == "json":
		r, err := reportGraph(op, kg, w, in)
		if err != nil {
			return err
		}
		e := json.NewEncoder(out.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case g.Format == "dot":
		return kg.WriteDot(out.stdout)
	case g.Format == "svg":
		t, r := planTable(kg, w)
		return mempool.WriteSVG(out.stdout, t, r)
	}
	return kg.WriteText(out.stdout, w)
}

// planTable turns a workspace plan into what the drawing reads.
func planTable(kg *kernelgraph.Graph, w *kernelgraph.Workspace) (mempool.Table, mempool.Result) {
	var t mempool.Table
	r := mempool.Result{Arena: w.Arena, LowerBound: w.LowerBound, Method: w.Method, Optimal: w.Optimal}
	for _, l := range w.Lives {
		x := &kg.Tensors[l.Ref]
		t.IDs = append(t.IDs, x.Name)
		t.Items = append(t.Items, mempool.Item{Size: x.Desc.Bytes(), First: int64(l.First), Last: int64(l.Last)})
		r.Offsets = append(r.Offsets, w.Offset[l.Ref]-w.Scratch)
	}
	return t, r
}

func reportGraph(op *atb.Op, kg *kernelgraph.Graph, w *kernelgraph.Workspace, in []atb.Tensor) (*graphReport, error) {
	r := &graphReport{Schema: 1, Command: "graph"}
	var err error
	if r.Operations, err = operationEntries(op); err != nil {
		return nil, err
	}
	for i := range kg.Nodes {
		k, err := kernelOf(kg, i, in)
		if err != nil {
			return nil, err
		}
		r.Kernels = append(r.Kernels, k)
	}
	r.Plan = planEntry{Arena: w.Arena, Scratch: w.Scratch, LowerBound: w.LowerBound, Buffers: []bufferEntry{}}
	for _, l := range w.Lives {
		x := &kg.Tensors[l.Ref]
		r.Plan.Buffers = append(r.Plan.Buffers, bufferEntry{x.Name, x.Desc.Bytes(), l.First, l.Last, w.Offset[l.Ref]})
	}
	return r, nil
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
		return []operationEntry{{Op: op.Name(), Param: param}}, nil
	}
	var list []operationEntry
	for i, n := range g.Nodes {
		list = append(list, operationEntry{i, n.Op, n.Param, n.In, n.Out})
	}
	return list, nil
}

// kernelOf describes node i; its tiling is computed for the inputs' host values.
func kernelOf(kg *kernelgraph.Graph, i int, in []atb.Tensor) (kernelEntry, error) {
	n := &kg.Nodes[i]
	operation, _, _ := strings.Cut(n.Path, "/")
	k := kernelEntry{ID: i, Operation: operation, Kernel: n.What(), Scratch: n.Scratch, Reads: kg.Names(n.In), Writes: kg.Names(n.Out)}
	if n.Kernel == nil {
		return k, nil
	}
	p := n.Problem
	for _, r := range n.Val {
		v, err := in[kg.Tensors[r].Index].AppendValues(nil)
		if err != nil {
			return k, err
		}
		p.Values = append(p.Values, v)
	}
	tiling := device.BytesOf(make([]uint64, (n.TilingSize+7)/8))
	grid, err := n.Kernel.Tile(&p, tiling[:n.TilingSize])
	k.TilingKey, k.BlockDim = grid.Key, grid.Blocks
	return k, err
}
