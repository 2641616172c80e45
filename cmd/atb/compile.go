package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/tensor"
)

// compileCmd captures a graph or the steps of a model ahead of time.
type compileCmd struct {
	place
	File    string `arg:"" optional:"" help:"Graph in JSON; inputs with dtype and shape, and values where the host reads them."`
	Model   string `help:"Compile the steps of a model instead: a folder with a llama2.c model (*.bin) and its tokenizer (tok*.bin)." placeholder:"DIR"`
	Output  string `help:"Where to write the compiled graph." short:"o" required:"" placeholder:"FILE"`
	Offline bool   `help:"Do not ask the device whether it updates queued tasks; the default." xor:"asked"`
	Online  bool   `help:"Ask the device, and keep on the host what it cannot do." xor:"asked"`
	sinkFlags
	Checks       string `help:"Profile of checks: native or 910b." enum:"native,910b" default:"native"`
	Dtype        string `help:"Element type of a model's weights and activations: f32, f16 or bf16." enum:"f32,f16,bf16" default:"f32"`
	Batch        int    `help:"Sequences of a model that run together." default:"1"`
	BlockSize    int    `help:"Positions in a block of a model's paged KV cache." default:"16"`
	Prefill      int    `help:"Prompt tokens per prefill call of a model." default:"64"`
	PromptTokens []int  `help:"Lengths of a model's prompts, in tokens. Repeats or takes commas." default:"1" placeholder:"N"`
	Tasks        bool   `help:"Show the task lists too."`
	JSON         bool   `help:"Print one JSON object." name:"json"`
}

// Run compiles and writes the file.
func (c *compileCmd) Run(_ context.Context, out output) (err error) {
	if err := c.validate(); err != nil {
		return err
	}
	opts, err := c.contextOptions()
	if err != nil {
		return err
	}
	to, err := createOut("--output", c.Output, c.File)
	if err != nil {
		return err
	}
	defer func() { err = to.end(err) }()
	dev, err := c.open(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	ctx, err := atb.NewContext(dev, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ctx.Close()) }()
	compiler, err := atb.NewCompiler(ctx, c.compileOptions())
	if err != nil {
		return err
	}
	source, err := c.compile(ctx, compiler, out)
	if err != nil {
		return err
	}
	size, err := writeCompiled(to, compiler.File(), source)
	if err := to.end(err); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return c.report(out, compiler.File(), size)
}

func (c *compileCmd) validate() error {
	if (c.File == "") == (c.Model == "") {
		return fmt.Errorf("want either a graph file or --model")
	}
	limits := []limit{{"batch", int64(c.Batch), 1}, {"block-size", int64(c.BlockSize), 1}, {"prefill", int64(c.Prefill), 1}}
	for _, n := range c.PromptTokens {
		limits = append(limits, limit{"prompt-tokens", int64(n), 1})
	}
	if err := atLeast(limits...); err != nil {
		return err
	}
	if err := c.sinkFlags.validate(); err != nil {
		return err
	}
	return c.place.validate()
}

// refuseIdle refuses flags of a model beside a graph file.
func (c *compileCmd) refuseIdle(given givenFlags) error {
	if c.File != "" {
		if err := given.refuse("it is for --model, a graph file has its own", "dtype", "batch", "block-size", "prefill", "prompt-tokens"); err != nil {
			return err
		}
	}
	return c.place.refuseIdle(given)
}

// contextOptions are those of the context that is compiled for. The option of the
// command is the compilation's, not the session's.
func (c *compileCmd) contextOptions() ([]atb.Option, error) {
	opts, err := c.place.options()
	if err != nil {
		return nil, err
	}
	session := c.sinkFlags
	session.TilingScheduleOptimize = nil
	opts = append(opts, session.options()...)
	return append(opts, atb.WithPolicy("device-sink"), atb.WithStreams(graphStreams), atb.WithChecks(c.Checks)), nil
}

func (c *compileCmd) compileOptions() atb.CompileOptions {
	o := atb.CompileOptions{Online: c.Online}
	if v := c.TilingScheduleOptimize; v != nil {
		o.TilingScheduleOptimize = *v
	}
	return o
}

// compile compiles what was asked for and says from what.
func (c *compileCmd) compile(ctx *atb.Context, to *atb.Compiler, out output) (*compileSource, error) {
	if c.Model != "" {
		return c.compileModel(ctx, to)
	}
	return c.compileGraph(ctx, to, out)
}

func (c *compileCmd) compileGraph(ctx *atb.Context, to *atb.Compiler, out output) (s *compileSource, err error) {
	op, pack, err := loadGraph(ctx.Device(), c.File)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	warnUnused(out.stderr, c.File, op)
	if _, err := op.Setup(pack, ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	if err := to.Add(op); err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	data, err := os.ReadFile(c.File)
	return &compileSource{Graph: data}, err
}

// compileModel compiles the steps that prompts of the lengths asked for, and the
// tokens after them, are made of.
func (c *compileCmd) compileModel(ctx *atb.Context, to *atb.Compiler) (s *compileSource, err error) {
	w, _, err := llama.OpenDir(c.Model)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	dtype, err := tensor.ParseDType(c.Dtype)
	if err != nil {
		return nil, err
	}
	m, err := llama.Upload(ctx, w, dtype)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	session, err := llama.NewSession(ctx, m, llama.Options{Sequences: c.Batch, BlockSize: c.BlockSize})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	s = &compileSource{Model: &modelSource{Config: w.Model(), DType: c.Dtype, Checks: c.Checks, Batch: c.Batch, BlockSize: c.BlockSize}}
	s.Model.Shapes = append(s.Model.Shapes, llama.Shape{Rows: c.Batch, Want: c.Batch, Sequences: c.Batch})
	for _, n := range c.PromptTokens {
		if most := w.Model().MaxSeq; n > most {
			return nil, fmt.Errorf("--prompt-tokens: want at most the model's %d positions, got %d", most, n)
		}
		for _, shape := range prefillShapes(n, c.Prefill, func(int) bool { return false }) {
			s.Model.add(shape)
		}
	}
	for _, shape := range s.Model.Shapes {
		ops, err := session.SetUp(shape)
		for i := 0; i < len(ops) && err == nil; i++ {
			err = to.Add(ops[i])
		}
		if err != nil {
			return nil, fmt.Errorf("a step of %d rows: %w", shape.Rows, err)
		}
	}
	return s, nil
}

// writeCompiled writes a file that says what it was made from, and returns its size.
func writeCompiled(w io.Writer, f *atb.Compiled, source *compileSource) (int, error) {
	text, err := json.Marshal(source)
	if err != nil {
		return 0, err
	}
	f.Source = string(text)
	data, err := f.Encode()
	if err != nil {
		return 0, err
	}
	return w.Write(data)
}

// report prints what is in the file.
func (c *compileCmd) report(out output, f *atb.Compiled, size int) error {
	r, err := reportCompiled(f, c.Output, size, c.Tasks)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, r)
	}
	return r.print(out.stdout)
}
