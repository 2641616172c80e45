package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"goatb/atb"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/model/llama"
	"goatb/tensor"
)

// graphCmd shows the kernel graph and the workspace plan of a graph.
type graphCmd struct {
	place
	File   string `arg:"" optional:"" help:"Graph in JSON; inputs with dtype and shape, and values where the host reads them."`
	Model  string `help:"Show the first layer of a model instead, as it decodes one token." placeholder:"DIR"`
	Checks string `help:"Profile of checks: native or 910b." enum:"native,910b" default:"native"`
	Solver *int   `help:"Workspace solver, 0 to 4; the variable's when left out." placeholder:"0..4"`
	Format string `help:"Output format: text, dot, svg (a drawing of the workspace plan) or json." enum:"text,dot,svg,json" default:"text"`
	Plan   bool   `help:"Add the workspace plan to the text; json always has it."`
	Why    bool   `help:"Add why kernels that come first were not chosen, and what of those chosen is turned off; json always has it."`
	Tasks  bool   `help:"Show the task lists of policy device-sink, with what its gates decided; json has both then."`
	sinkFlags
	JSON bool `help:"Same as --format json." name:"json"`
}

// Run sets the graph up and prints it.
func (g *graphCmd) Run(ctx context.Context, out output) (err error) {
	if err := g.validate(); err != nil {
		return err
	}
	opts, err := g.place.options()
	if err != nil {
		return err
	}
	opts = append(opts, g.sinkFlags.options()...)
	opts = append(opts, atb.WithStreams(graphStreams), atb.WithChecks(g.Checks))
	if g.Solver != nil {
		opts = append(opts, atb.WithSolver(mempool.SolverType(*g.Solver)))
	}
	dev, err := g.open(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	c, err := atb.NewContext(dev, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if g.Model != "" {
		return g.showModel(ctx, c, out.stdout)
	}
	op, pack, err := loadGraph(dev, g.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	warnUnused(out.stderr, g.File, op)
	if _, err := op.Setup(pack, c); err != nil {
		return fmt.Errorf("%s: %w", g.File, err)
	}
	return g.show(out.stdout, op, pack.In)
}

func (g *graphCmd) validate() error {
	switch {
	case g.Tasks && (g.Format == "dot" || g.Format == "svg" || g.Plan):
		return fmt.Errorf("--tasks: want --format text or json, without --plan")
	case g.Why && (g.Tasks || g.Format == "dot" || g.Format == "svg"):
		return fmt.Errorf("--why: want --format text or json, without --tasks")
	case (g.File == "") == (g.Model == ""):
		return fmt.Errorf("want either a graph file or --model")
	case g.JSON && g.Format != "text" && g.Format != "json":
		return fmt.Errorf("--json and --format %s exclude each other", g.Format)
	case g.Plan && (g.Format == "dot"):
		return fmt.Errorf("--plan: --format dot shows kernels and tensors only; use text, json or svg")
	}
	if err := checkSolver(g.Solver); err != nil {
		return err
	}
	if err := g.sinkFlags.validate(); err != nil {
		return err
	}
	return g.place.validate()
}

// showModel decodes one token and shows the first layer.
func (g *graphCmd) showModel(ctx context.Context, c *atb.Context, w io.Writer) (err error) {
	weights, _, err := llama.OpenDir(g.Model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, weights.Close()) }()
	m, err := llama.Upload(c, weights, tensor.Float32)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, err := llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 16})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.Forward(ctx, []llama.Row{{Token: llama.BOS}}, []int32{0}); err != nil {
		return err
	}
	op, in := s.Layer(0)
	return g.show(w, op, in)
}

// show prints a graph that was set up with inputs.
func (g *graphCmd) show(w io.Writer, op *atb.Op, in []atb.Tensor) error {
	kg, ws := op.Graph(), op.Workspace()
	switch {
	case g.JSON || g.Format == "json":
		r, err := reportGraph(op, in)
		if err != nil {
			return err
		}
		if g.Tasks {
			p, err := op.PlanCapture("", false)
			if err != nil {
				return err
			}
			r.Gates, r.Tasks = gateEntries(p), taskEntries(p)
		}
		return writeJSON(w, r)
	case g.Tasks:
		p, err := op.PlanCapture("", false)
		if err != nil {
			return err
		}
		return writeTasks(w, p)
	case g.Format == "dot":
		return kg.WriteDot(w)
	case g.Format == "svg":
		t, r := planTable(kg, ws)
		return mempool.WriteSVG(w, t, r)
	}
	if !g.Plan {
		ws = nil
	}
	if err := kg.WriteText(w, ws); err != nil || !g.Why {
		return err
	}
	return kg.WriteReasons(w)
}

// planTable turns a workspace plan into what the drawing reads.
func planTable(kg *kernelgraph.Graph, w *kernelgraph.Workspace) (mempool.Table, mempool.Result) {
	var t mempool.Table
	r := mempool.Result{Arena: w.Arena, LowerBound: w.LowerBound, Method: w.Method, Optimal: w.Optimal, PeakAt: int64(w.PeakAt)}
	for _, l := range w.Lives {
		x := &kg.Tensors[l.Ref]
		t.IDs = append(t.IDs, x.Name)
		t.Items = append(t.Items, mempool.Item{Size: x.Desc.Bytes(), First: int64(l.First), Last: int64(l.Last)})
		r.Offsets = append(r.Offsets, w.Offset[l.Ref]-w.Scratch)
	}
	return t, r
}
