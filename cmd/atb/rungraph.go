package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"goatb/atb"
	"goatb/operation/catalog"
	"goatb/tensor"
	"goatb/tiling"
)

// runCmd runs a graph file.
type runCmd struct {
	place
	File     string `arg:"" optional:"" help:"Graph in JSON; that of --compiled when left out."`
	Compiled string `help:"Run what atb compile has written, under policy device-sink." placeholder:"FILE"`
	Inputs   string `help:"Inputs by name, a .safetensors file." required:"" placeholder:"FILE"`
	Outputs  string `help:"Where to write the outputs, a .safetensors file." required:"" placeholder:"FILE"`
	Policy   string `help:"Tiling policy; the variable's when left out." placeholder:"NAME"`
	sinkFlags
	Checks string `help:"Profile of checks: native or 910b." enum:"native,910b" default:"native"`
	Repeat int    `help:"How often to run." default:"1"`
	JSON   bool   `help:"Print one JSON object." name:"json"`
}

// runResult is what run prints as JSON. RunNs is the mean time of one run,
// from Setup to the end of the device's work.
type runResult struct {
	Schema         int      `json:"schema"`
	Command        string   `json:"command"`
	Policy         string   `json:"policy"`
	Device         string   `json:"device"`
	Repeat         int      `json:"repeat"`
	RunNs          int64    `json:"run_ns"`
	WorkspaceBytes int64    `json:"workspace_bytes"`
	HostTilings    int64    `json:"host_tilings"`
	DeviceTilings  int64    `json:"device_tilings"`
	Outputs        []string `json:"outputs"`
}

// Run reads the inputs, runs the graph and writes the outputs.
func (r *runCmd) Run(ctx context.Context, out output) (err error) {
	if err := r.validate(); err != nil {
		return err
	}
	f, compiled, err := r.graph()
	if err != nil {
		return err
	}
	in, err := tensor.OpenSafetensors(r.Inputs)
	if err != nil {
		return fmt.Errorf("--inputs: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	to, err := createOut("--outputs", r.Outputs, r.File, r.Compiled, r.Inputs)
	if err != nil {
		return err
	}
	defer func() { err = to.end(err) }()
	c, closeAll, err := r.openContext(compiled)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	op, err := f.BuildOrdered(c.Device().NewEvent)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name(), err)
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	warnUnused(out.stderr, r.name(), op)
	pack, err := r.pack(ctx, c, f, op, in)
	if err != nil {
		return err
	}
	res, err := r.execute(ctx, c, op, pack, newProgress(out.stderr))
	if err != nil {
		return fmt.Errorf("%s: %w", r.name(), err)
	}
	if err := to.end(writeOutputs(ctx, c, to, f.Outputs, pack)); err != nil {
		return fmt.Errorf("--outputs %s: %w", r.Outputs, err)
	}
	res.Outputs = f.Outputs
	return r.print(out.stdout, res)
}

// validate checks the flags alone.
func (r *runCmd) validate() error {
	if err := atLeast(limit{"repeat", int64(r.Repeat), 1}); err != nil {
		return err
	}
	if r.Policy != "" {
		if _, err := tiling.ByName(r.Policy); err != nil {
			return fmt.Errorf("--policy: %w", err)
		}
	}
	if r.File == "" && r.Compiled == "" {
		return fmt.Errorf("want a graph file or --compiled")
	}
	if err := errors.Join(r.sinkFlags.validate(), r.sinkFlags.besides(r.Compiled)); err != nil {
		return err
	}
	return r.place.validate()
}

// name is the file that the graph comes from.
func (r *runCmd) name() string { return cmp.Or(r.File, r.Compiled) }

// graph reads the graph, and what it was compiled to.
func (r *runCmd) graph() (*catalog.GraphFile, *compiledFile, error) {
	if r.Compiled == "" {
		f, err := readGraph(r.File)
		return f, nil, err
	}
	c, err := readCompiled(r.Compiled)
	if err != nil {
		return nil, nil, err
	}
	f, err := c.graph()
	if err != nil || r.File == "" {
		return f, c, err
	}
	own, err := readGraph(r.File)
	if err == nil && own.Name != f.Name {
		err = fmt.Errorf("%s: it was compiled from graph %q, %s has %q: compile that", r.Compiled, f.Name, r.File, own.Name)
	}
	return own, c, err
}

// openContext makes a device and a context on it, which closeAll closes.
func (r *runCmd) openContext(compiled *compiledFile) (c *atb.Context, closeAll func() error, err error) {
	var decided []string
	if r.Policy != "" {
		decided = append(decided, policyVariable)
	}
	opts, err := r.place.options(decided...)
	if err != nil {
		return nil, nil, err
	}
	opts = append(append(opts, r.sinkFlags.options()...), atb.WithChecks(r.Checks), atb.WithStreams(graphStreams))
	opts = append(opts, compiled.options()...)
	if r.Policy != "" {
		opts = append(opts, atb.WithPolicy(r.Policy))
	}
	dev, err := r.open(nil)
	if err != nil {
		return nil, nil, err
	}
	if c, err = atb.NewContext(dev, opts...); err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return c, func() error { return errors.Join(c.Close(), dev.Close()) }, nil
}

// pack uploads the inputs and makes room for the outputs. Inputs keep their
// file's bytes as host data, for operations that read values on the host. The
// device frees it all when it closes.
func (r *runCmd) pack(ctx context.Context, c *atb.Context, f *catalog.GraphFile, op *atb.Op, in *tensor.File) (atb.VariantPack, error) {
	var pack atb.VariantPack
	descs := make([]atb.Desc, len(f.Inputs))
	for i := range f.Inputs {
		t, err := r.input(ctx, c, &f.Inputs[i], in)
		if err != nil {
			return pack, err
		}
		descs[i] = t.Desc
		pack.In = append(pack.In, t)
	}
	outs, err := op.InferShape(descs)
	if err != nil {
		return pack, fmt.Errorf("%s: %w", r.name(), err)
	}
	for _, d := range outs {
		x, err := atb.NewTensor(c, d)
		if err != nil {
			return pack, err
		}
		pack.Out = append(pack.Out, x)
	}
	return pack, nil
}

// input uploads one input, which must be what the graph file says of it.
func (r *runCmd) input(ctx context.Context, c *atb.Context, entry *catalog.InputEntry, in *tensor.File) (atb.Tensor, error) {
	e := in.Entry(entry.Name)
	if e == nil {
		return atb.Tensor{}, fmt.Errorf("%s: there is no tensor %q", r.Inputs, entry.Name)
	}
	want, ok, err := entry.Desc()
	if err != nil {
		return atb.Tensor{}, fmt.Errorf("%s: %w", r.name(), err)
	}
	if ok && want != e.Desc {
		return atb.Tensor{}, fmt.Errorf("%s: tensor %q: the graph wants %s, got %s", r.Inputs, entry.Name, want, e.Desc)
	}
	t := atb.Tensor{Desc: e.Desc, Host: e.AlignedData()}
	if e.Desc.Empty() {
		return t, nil
	}
	x, err := atb.NewTensor(c, e.Desc)
	if err != nil {
		return atb.Tensor{}, fmt.Errorf("%s: tensor %q: %w", r.Inputs, entry.Name, err)
	}
	t.Data = x.Data
	return t, atb.Write(ctx, c, &x, t.Host)
}

// execute runs the graph as often as asked and waits for every stream.
func (r *runCmd) execute(ctx context.Context, c *atb.Context, op *atb.Op, pack atb.VariantPack, p *progress) (*runResult, error) {
	start := time.Now()
	res := &runResult{Schema: 1, Command: "run", Policy: c.Policy(), Device: c.Device().Props().Name, Repeat: r.Repeat}
	for i := range r.Repeat {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p.due() {
			p.printf("run: %d of %d", i, r.Repeat)
		}
		size, err := op.Setup(pack, c)
		if err != nil {
			return nil, err
		}
		ws, err := c.Workspace(size)
		if err != nil {
			return nil, err
		}
		if err := op.Execute(pack, ws, c); err != nil {
			return nil, err
		}
		res.WorkspaceBytes = size
	}
	err := c.Synchronize(ctx)
	res.RunNs = time.Since(start).Nanoseconds() / int64(r.Repeat)
	st := c.Stats()
	res.HostTilings, res.DeviceTilings = st.HostTilings, st.DeviceTilings
	return res, err
}

// writeOutputs reads the outputs back and writes them by name.
func writeOutputs(ctx context.Context, c *atb.Context, to io.Writer, names []string, pack atb.VariantPack) error {
	var entries []tensor.Entry
	for i := range pack.Out {
		t := &pack.Out[i]
		b := make([]byte, t.Desc.Bytes())
		if err := atb.Read(ctx, c, b, t); err != nil {
			return err
		}
		entries = append(entries, tensor.Entry{Name: names[i], Desc: t.Desc, Data: b})
	}
	return tensor.WriteSafetensors(to, entries, nil)
}

func (r *runCmd) print(w io.Writer, res *runResult) error {
	if r.JSON {
		return writeJSON(w, res)
	}
	_, err := fmt.Fprintf(w, "ran %d times under %s, %v each, workspace %d bytes; wrote %d tensors to %s\n",
		res.Repeat, res.Policy, time.Duration(res.RunNs), res.WorkspaceBytes, len(res.Outputs), r.Outputs)
	return err
}
