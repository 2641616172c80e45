package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"goatb/atb"
	"goatb/operation/catalog"
	"goatb/tensor"
)

// runCmd runs a graph file.
type runCmd struct {
	place
	File    string `arg:"" help:"Graph in JSON." type:"existingfile"`
	Inputs  string `help:"Inputs by name, a .safetensors file." required:"" type:"existingfile"`
	Outputs string `help:"Where to write the outputs, a .safetensors file." required:""`
	Policy  string `help:"Tiling policy." default:"kernel-follow"`
	Checks  string `help:"Profile of checks." enum:"native,910b" default:"native"`
	Repeat  int    `help:"How often to run." default:"1"`
}

// Run reads the inputs, runs the graph and writes the outputs.
func (r *runCmd) Run(ctx context.Context, out output) error {
	if r.Repeat < 1 {
		return fmt.Errorf("--repeat: want at least 1, got %d", r.Repeat)
	}
	data, err := os.ReadFile(r.File)
	if err != nil {
		return err
	}
	f, err := catalog.ReadGraph(data)
	if err != nil {
		return err
	}
	in, err := tensor.OpenSafetensors(r.Inputs)
	if err != nil {
		return err
	}
	defer in.Close()
	dev, err := r.open()
	if err != nil {
		return err
	}
	defer dev.Close()
	opts, err := r.options()
	if err != nil {
		return err
	}
	c, err := atb.NewContext(dev, append(opts, atb.WithPolicy(r.Policy), atb.WithChecks(r.Checks), atb.WithStreams(graphStreams))...)
	if err != nil {
		return err
	}
	defer c.Close()
	op, err := f.Build()
	if err != nil {
		return err
	}
	defer op.Close()
	pack, err := r.pack(c, f, op, in)
	if err != nil {
		return err
	}
	if err := r.execute(ctx, c, op, pack, out); err != nil {
		return err
	}
	return r.write(ctx, c, f, pack)
}

// pack uploads the inputs and makes room for the outputs. Inputs keep their
// file's bytes as host data, for operations that read values on the host.
func (r *runCmd) pack(c *atb.Context, f *catalog.GraphFile, op *atb.Op, in *tensor.File) (atb.VariantPack, error) {
	var pack atb.VariantPack
	descs := make([]atb.Desc, len(f.Inputs))
	for i := range f.Inputs {
		e := in.Entry(f.Inputs[i].Name)
		if e == nil {
			return pack, fmt.Errorf("%s has no tensor %q", r.Inputs, f.Inputs[i].Name)
		}
		t := atb.Tensor{Desc: e.Desc, Host: e.AlignedData()}
		if !e.Desc.Empty() {
			x, err := atb.NewTensor(c, e.Desc)
			if err != nil {
				return pack, err
			}
			if err := atb.Write(context.Background(), c, &x, t.Host); err != nil {
				return pack, err
			}
			t.Data = x.Data
		}
		descs[i] = t.Desc
		pack.In = append(pack.In, t)
	}
	outs, err := op.InferShape(descs)
	if err != nil {
		return pack, err
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

// execute runs the graph as often as asked and reports the time of one run.
func (r *runCmd) execute(ctx context.Context, c *atb.Context, op *atb.Op, pack atb.VariantPack, out output) error {
	start := time.Now()
	for range r.Repeat {
		size, err := op.Setup(pack, c)
		if err != nil {
			return err
		}
		ws, err := c.Workspace(size)
		if err != nil {
			return err
		}
		if err := op.Execute(pack, ws, c); err != nil {
			return err
		}
	}
	if err := c.Synchronize(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out.stderr, "run: %d times, %v each\n", r.Repeat, time.Since(start)/time.Duration(r.Repeat))
	return nil
}

// write reads the outputs back and writes them by name.
func (r *runCmd) write(ctx context.Context, c *atb.Context, f *catalog.GraphFile, pack atb.VariantPack) error {
	var entries []tensor.Entry
	for i := range pack.Out {
		t := &pack.Out[i]
		b := make([]byte, t.Desc.Bytes())
		if err := atb.Read(ctx, c, b, t); err != nil {
			return err
		}
		entries = append(entries, tensor.Entry{Name: f.Outputs[i], Desc: t.Desc, Data: b})
	}
	w, err := os.Create(r.Outputs)
	if err != nil {
		return err
	}
	return errors.Join(tensor.WriteSafetensors(w, entries, nil), w.Close())
}
