package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"goatb/atb"
	"goatb/device"
	"goatb/device/trace"
	"goatb/mempool"
	"goatb/model/llama"
)

// generateCmd runs a model.
type generateCmd struct {
	place
	Model     string   `help:"Folder with a llama2.c model (*.bin) and its tokenizer (tok*.bin). Without it a small seeded random Llama runs." placeholder:"DIR"`
	Shape     string   `help:"Run a seeded random Llama of this shape: a name or a config.json." placeholder:"NAME"`
	Prompt    string   `help:"Text to go on from." placeholder:"TEXT"`
	PromptIds []int32  `help:"Token ids to go on from. Repeats or takes commas." placeholder:"ID"`
	Steps     int      `help:"Tokens to generate." default:"64"`
	Prefill   int      `help:"Prompt tokens per prefill call." default:"64"`
	Batch     int      `help:"Sequences that run together, all on the same prompt." default:"1"`
	BlockSize int      `help:"Positions in a block of the paged KV cache." default:"16"`
	Compiled  string   `help:"Run what atb compile has written for the model, under policy device-sink alone." placeholder:"FILE"`
	Policy    []string `help:"Tiling policies to run, or all; several are compared. Repeats or takes commas." default:"all" placeholder:"P" aliases:"policies"`
	sinkFlags
	Solver      *int    `help:"Workspace solver, 0 to 4; the variable's when left out." placeholder:"0..4"`
	Caches      string  `help:"Tiling caches and setup reuse: on or off; the variables' when left out." enum:"on,off," default:"" placeholder:"on|off"`
	Checks      string  `help:"Profile of checks: native or 910b." enum:"native,910b" default:"native"`
	Dtype       string  `help:"Element type of weights and activations: f32, f16 or bf16." enum:"f32,f16,bf16" default:"f32"`
	Weights     string  `help:"Format of the matrices: int8 or int4; --dtype when left out." enum:"int8,int4," default:"" placeholder:"int8|int4"`
	Temperature float64 `help:"Sampling temperature; 0 takes the most likely token." default:"0"`
	TopP        float64 `help:"Keep the most likely tokens up to this probability." default:"1"`
	Seed        uint64  `help:"Seed of sampling and of the random model." default:"1"`
	Ids         bool    `help:"Print the generated ids on one line and nothing else."`
	Logits      []int   `help:"Positions whose logits to report. Repeats or takes commas." placeholder:"POS"`
	Trace       string  `help:"Write a timeline for chrome://tracing and ui.perfetto.dev." placeholder:"FILE"`
	JSON        bool    `help:"Print one JSON object." name:"json"`
}

// job is what a generate runs under each policy.
type job struct {
	source   llama.Source
	file     *llama.File // the source that is a file, or nil
	config   llama.Config
	compiled *compiledFile    // nil for none
	tok      *llama.Tokenizer // nil for a random model
	prompt   []int32
	progress *progress
}

// Run runs the model under each policy and prints the report.
func (g *generateCmd) Run(ctx context.Context, out output) (err error) {
	if err := g.validate(); err != nil {
		return err
	}
	j := &job{prompt: []int32{llama.BOS}}
	defer func() { err = errors.Join(err, j.file.Close()) }()
	if err := g.load(j); err != nil {
		return err
	}
	policies, err := g.policies()
	if err != nil {
		return err
	}
	timeline, err := createOut("--trace", g.Trace)
	if err != nil {
		return err
	}
	defer func() { err = timeline.end(err) }()
	j.progress = newProgress(out.stderr)
	r := report{Schema: 1, Command: "generate", IDsAgree: true}
	var recorders []*trace.Recorder
	for _, policy := range policies {
		rec := trace.New(policy, 0)
		recorders = append(recorders, rec)
		one, err := g.runPolicy(ctx, policy, j, rec)
		if err != nil {
			return fmt.Errorf("policy %s: %w", policy, err)
		}
		r.Runs = append(r.Runs, *one)
		r.IDsAgree = r.IDsAgree && r.Runs[0].agrees(one)
	}
	if timeline != nil {
		if err := timeline.end(trace.Write(timeline, recorders...)); err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
	}
	return g.finish(out.stdout, &r)
}

// finish prints the report and fails when the policies disagree.
func (g *generateCmd) finish(w io.Writer, r *report) error {
	if err := g.print(w, r); err != nil {
		return err
	}
	if !r.IDsAgree {
		return fmt.Errorf("the policies disagree: %w", errFailed)
	}
	return nil
}

// validate checks what can be told before the model is read.
func (g *generateCmd) validate() error {
	if err := atLeast(limit{"steps", int64(g.Steps), 1}, limit{"prefill", int64(g.Prefill), 1},
		limit{"batch", int64(g.Batch), 1}, limit{"block-size", int64(g.BlockSize), 1}); err != nil {
		return err
	}
	if err := checkSolver(g.Solver); err != nil {
		return err
	}
	if g.Prompt != "" && len(g.PromptIds) > 0 {
		return fmt.Errorf("--prompt and --prompt-ids exclude each other")
	}
	if g.Prompt != "" && g.Model == "" {
		return fmt.Errorf("--prompt wants --model: the random model has no tokenizer; use --prompt-ids")
	}
	if _, err := llama.NewSampler(g.Temperature, g.TopP, g.Seed); err != nil {
		return fmt.Errorf("--temperature, --top-p: %w", err)
	}
	if _, err := g.policies(); err != nil {
		return err
	}
	if g.Shape != "" && g.Model != "" {
		return fmt.Errorf("--shape and --model exclude each other")
	}
	if g.Compiled != "" && g.Weights != "" {
		return fmt.Errorf("--weights: what was compiled has weights of --dtype")
	}
	if g.Compiled != "" && g.Model == "" {
		return fmt.Errorf("--compiled wants --model: the random model cannot be compiled")
	}
	if err := g.sinkFlags.besides(g.Compiled); err != nil {
		return err
	}
	if err := g.sinkFlags.validate(); err != nil {
		return err
	}
	return g.place.validate()
}

// policies are those to run: what was compiled runs under device-sink alone.
func (g *generateCmd) policies() ([]string, error) {
	list, err := policyNames(g.Policy, "--policy")
	if g.Compiled == "" || err != nil {
		return list, err
	}
	if !slices.Contains(list, "device-sink") || len(list) > 1 && !slices.Contains(g.Policy, "all") {
		return nil, fmt.Errorf("--policy: what was compiled runs under device-sink, got %s", strings.Join(list, ","))
	}
	return []string{"device-sink"}, nil
}

// shapes are those of the steps to run.
func (g *generateCmd) shapes(j *job) []llama.Shape {
	out := prefillShapes(len(j.prompt), g.Prefill, func(pos int) bool { return slices.Contains(g.Logits, pos) })
	if g.Batch > 1 {
		out = append(out, prefillShapes(len(j.prompt), g.Prefill, func(int) bool { return false })...)
	}
	if g.Steps > 1 {
		out = append(out, llama.Shape{Rows: g.Batch, Want: g.Batch, Sequences: g.Batch})
	}
	return out
}

func checkSolver(s *int) error {
	if s != nil && (*s < 0 || *s >= mempool.SolverTypes) {
		return fmt.Errorf("--solver: want 0 to %d, got %d", mempool.SolverTypes-1, *s)
	}
	return nil
}

// randomConfig is the shape of the model that runs without --model.
func randomConfig() llama.Config {
	return llama.Config{Dim: 256, Hidden: 688, Layers: 6, Heads: 8, KVHeads: 4, Vocab: 2048, MaxSeq: 512,
		Epsilon: 1e-5, RopeBase: 10000, SharedClassifier: true}
}

// readModel reads or makes the model. One of a given shape has room for the prompt
// and the steps.
func (g *generateCmd) readModel(j *job) (err error) {
	switch {
	case g.Model != "":
		if j.file, j.tok, err = llama.OpenDir(g.Model); err != nil {
			return err
		}
		j.source = j.file
	case g.Shape != "":
		var c llama.Config
		if c, err = llamaConfig(g.Shape, max(len(g.PromptIds), 1)+g.Steps); err != nil {
			return fmt.Errorf("--shape: %w", err)
		}
		j.source, err = llama.NewSeeded(c, g.Seed)
	default:
		j.source, err = llama.NewSeeded(randomConfig(), g.Seed)
	}
	if err == nil {
		j.config = j.source.Model()
	}
	return err
}

// load reads or makes the model and the prompt.
func (g *generateCmd) load(j *job) (err error) {
	if err := g.readModel(j); err != nil {
		return err
	}
	if len(g.PromptIds) > 0 {
		j.prompt = g.PromptIds
	}
	if g.Prompt != "" {
		if j.prompt, err = j.tok.Encode(g.Prompt); err != nil {
			return fmt.Errorf("--prompt: %w", err)
		}
	}
	c := &j.config
	for _, id := range j.prompt {
		if id < 0 || int(id) >= c.Vocab {
			return fmt.Errorf("--prompt-ids: want ids of 0 to %d, got %d", c.Vocab-1, id)
		}
	}
	computed := len(j.prompt) + g.Steps - 1
	if g.Steps > c.MaxSeq || computed > c.MaxSeq {
		return fmt.Errorf("--steps: a prompt of %d tokens leaves room for %d steps in the model's %d positions, got %d",
			len(j.prompt), max(c.MaxSeq-len(j.prompt)+1, 0), c.MaxSeq, g.Steps)
	}
	for _, pos := range g.Logits {
		if pos < 0 || pos >= computed {
			return fmt.Errorf("--logits: want positions of 0 to %d, got %d", computed-1, pos)
		}
	}
	if g.Compiled != "" {
		if j.compiled, err = readCompiled(g.Compiled); err != nil {
			return err
		}
		return j.compiled.checkModel(g, j)
	}
	return nil
}

// contextOptions are the options of a policy's context.
func (g *generateCmd) contextOptions(policy string, j *job) ([]atb.Option, error) {
	opts, err := g.place.options(policyVariable)
	if err != nil {
		return nil, err
	}
	opts = append(append(opts, g.sinkFlags.options()...), atb.WithPolicy(policy), atb.WithChecks(g.Checks))
	opts = append(opts, j.compiled.options()...)
	if g.Solver != nil {
		opts = append(opts, atb.WithSolver(mempool.SolverType(*g.Solver)))
	}
	levels, err := cacheLevels(g.Caches, g.Set)
	if err != nil {
		return nil, err
	}
	if g.Caches != "" {
		opts = append(opts, atb.WithTilingCaches(levels), atb.WithSetupReuse(g.Caches == "on"))
	}
	return opts, nil
}

// runPolicy runs the model on a device and in a context of its own. With a
// trace, rec records both.
func (g *generateCmd) runPolicy(ctx context.Context, policy string, j *job, rec *trace.Recorder) (r *runReport, err error) {
	session := llama.Options{Sequences: g.Batch, BlockSize: g.BlockSize, Whole: true}
	if g.Trace == "" {
		rec = nil
	} else {
		session.Observe = func(s llama.Span) {
			rec.Host(trace.Span{Name: s.Op, Category: s.Stage, Start: s.Start, End: s.End})
		}
	}
	dev, err := g.open(rec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	opts, err := g.contextOptions(policy, j)
	if err != nil {
		return nil, err
	}
	c, err := atb.NewContext(dev, opts...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	format, err := formatOf(cmp.Or(g.Weights, g.Dtype), g.Dtype)
	if err != nil {
		return nil, err
	}
	m, err := llama.UploadAs(c, j.source, format)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, err := llama.NewSession(c, m, session)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d := decoder{cmd: g, c: c, s: s, vocab: j.config.Vocab, progress: j.progress, now: device.Clock(device.HostOf(dev))}
	if d.sampler, err = llama.NewSampler(g.Temperature, g.TopP, g.Seed); err != nil {
		return nil, err
	}
	if r, err = d.run(ctx, j.prompt); err != nil {
		return nil, err
	}
	r.Policy, r.Device, r.DType, r.Weights = c.Policy(), dev.Props().Name, g.Dtype, g.Weights
	if j.tok != nil {
		r.Text = j.tok.Decode(slices.Concat(j.prompt, r.IDs))
	}
	return r, nil
}
