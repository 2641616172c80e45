package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/mempool"
	"goatb/model/llama"
	"goatb/tensor"
	"goatb/tiling"
)

// generateCmd runs a model.
type generateCmd struct {
	place
	Model       string   `help:"Folder with a llama2.c model (*.bin) and its tokenizer (tok*.bin). Without it a small seeded random Llama runs." placeholder:"DIR"`
	Prompt      string   `help:"Text to go on from." placeholder:"TEXT"`
	PromptIds   []int32  `help:"Token ids to go on from." placeholder:"ID,..."`
	Steps       int      `help:"Tokens to generate." default:"64"`
	Prefill     int      `help:"Prompt tokens per prefill call." default:"64"`
	Batch       int      `help:"Sequences that run together." default:"1"`
	BlockSize   int      `help:"Positions in a block of the paged KV cache." default:"16"`
	Policy      []string `help:"Tiling policies to run, or all to compare them." default:"all"`
	Checks      string   `help:"Profile of checks." enum:"native,910b" default:"native"`
	Solver      int      `help:"Workspace solver, 0 to 4." default:"4"`
	Caches      string   `help:"Tiling caches and setup reuse." enum:"on,off" default:"on"`
	Dtype       string   `help:"Element type of weights and activations." enum:"f32,f16,bf16" default:"f32"`
	Temperature float64  `help:"Sampling temperature; 0 takes the most likely token." default:"0"`
	TopP        float64  `help:"Keep the most likely tokens up to this probability." default:"1"`
	Seed        uint64   `help:"Seed of sampling and of the random model." default:"1"`
	Ids         bool     `help:"Print the generated ids on one line and nothing else."`
	Logits      []int    `help:"Positions whose logits to report." placeholder:"POS,..."`
	Trace       string   `help:"Write a timeline for chrome://tracing or Perfetto." placeholder:"FILE"`
	JSON        bool     `help:"Print one JSON object." name:"json"`
}

// report is what generate prints as JSON.
type report struct {
	Schema   int         `json:"schema"`
	Command  string      `json:"command"`
	Runs     []runReport `json:"runs"`
	IDsAgree bool        `json:"ids_agree"`
}

// runReport is the run of one policy. Times are nanoseconds, sizes bytes.
type runReport struct {
	Policy          string               `json:"policy"`
	Device          string               `json:"device"`
	DType           string               `json:"dtype"`
	IDs             []int32              `json:"ids"`
	Text            string               `json:"text"`
	TokensPerSecond float64              `json:"tokens_per_s"`
	PrefillNs       int64                `json:"prefill_ns"`
	SetupNs         int64                `json:"setup_ns"`
	ExecuteNs       int64                `json:"execute_ns"`
	KernelsPerStep  int64                `json:"kernels_per_step"`
	HostTilings     int64                `json:"host_tilings"`
	DeviceTilings   int64                `json:"device_tilings"`
	Cache           cacheReport          `json:"cache"`
	SetupHits       int64                `json:"setup_hits"`
	RingStalls      int64                `json:"ring_stalls"`
	BytesMoved      int64                `json:"bytes_moved"`
	WorkspaceBytes  int64                `json:"workspace_bytes"`
	ArenaLowerBound int64                `json:"arena_lower_bound"`
	AllocsPerStep   float64              `json:"allocs_per_step"`
	Logits          map[string][]float32 `json:"logits,omitempty"`
}

// cacheReport counts tiling lookups.
type cacheReport struct {
	LocalHits  int64 `json:"local_hits"`
	GlobalHits int64 `json:"global_hits"`
	Misses     int64 `json:"misses"`
}

// Run runs the model under each policy and prints the report.
func (g *generateCmd) Run(ctx context.Context, out output) error {
	if err := g.validate(); err != nil {
		return err
	}
	w, tok, prompt, err := g.load()
	if err != nil {
		return err
	}
	line := newTimeline(g.Trace)
	dev, err := g.open(line.observe()...)
	if err != nil {
		return err
	}
	defer dev.Close()
	r := report{Schema: 1, Command: "generate", IDsAgree: true}
	for _, policy := range g.policies() {
		fmt.Fprintf(out.stderr, "generate: %s, %d steps\n", policy, g.Steps)
		one, err := g.runPolicy(ctx, dev, policy, w, tok, prompt, line)
		if err != nil {
			return fmt.Errorf("policy %s: %w", policy, err)
		}
		r.Runs = append(r.Runs, *one)
	}
	for i := range r.Runs[1:] {
		r.IDsAgree = r.IDsAgree && equalIDs(r.Runs[0].IDs, r.Runs[i+1].IDs)
	}
	if err := line.write(); err != nil {
		return err
	}
	if err := g.print(out, &r); err != nil {
		return err
	}
	if !r.IDsAgree {
		return fmt.Errorf("the policies disagree on the ids: %w", errFailed)
	}
	return nil
}

func equalIDs(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (g *generateCmd) validate() error {
	for _, f := range [...]struct {
		name string
		v    int
	}{{"steps", g.Steps}, {"prefill", g.Prefill}, {"batch", g.Batch}, {"block-size", g.BlockSize}} {
		if f.v < 1 {
			return fmt.Errorf("--%s: want at least 1, got %d", f.name, f.v)
		}
	}
	switch {
	case g.Solver < 0 || g.Solver > int(mempool.Optimal):
		return fmt.Errorf("--solver: want 0 to %d, got %d", mempool.Optimal, g.Solver)
	case g.Prompt != "" && len(g.PromptIds) > 0:
		return fmt.Errorf("--prompt and --prompt-ids exclude each other")
	case g.Temperature < 0 || !(g.TopP > 0 && g.TopP <= 1):
		return fmt.Errorf("want --temperature of at least 0 and --top-p in (0,1], got %g and %g", g.Temperature, g.TopP)
	}
	for _, p := range g.Policy {
		if p == "all" {
			continue
		}
		if _, err := tiling.ByName(p); err != nil {
			return fmt.Errorf("--policy: %w", err)
		}
	}
	return nil
}

func (g *generateCmd) policies() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range g.Policy {
		if p, err := tiling.ByName(name); err == nil {
			add(p.Name())
			continue
		}
		for _, p := range tiling.Policies() {
			add(p.Name())
		}
	}
	return names
}

// randomConfig is the shape of the model that runs without --model.
func randomConfig() llama.Config {
	return llama.Config{Dim: 256, Hidden: 688, Layers: 6, Heads: 8, KVHeads: 4, Vocab: 2048, MaxSeq: 512,
		Epsilon: 1e-5, RopeBase: 10000, SharedClassifier: true}
}

// load reads or makes the model and the prompt, and checks that the steps fit.
func (g *generateCmd) load() (*llama.Weights, *llama.Tokenizer, []int32, error) {
	w, tok, prompt, err := g.read()
	if err != nil {
		return nil, nil, nil, err
	}
	if n := len(prompt) + g.Steps - 1; n > w.Config.MaxSeq {
		return nil, nil, nil, fmt.Errorf("a prompt of %d tokens and %d steps need %d positions, the model has %d", len(prompt), g.Steps, n, w.Config.MaxSeq)
	}
	return w, tok, prompt, nil
}

// read reads or makes the model and the prompt.
func (g *generateCmd) read() (*llama.Weights, *llama.Tokenizer, []int32, error) {
	prompt := []int32{llama.BOS}
	if len(g.PromptIds) > 0 {
		prompt = g.PromptIds
	}
	if g.Model == "" {
		if g.Prompt != "" {
			return nil, nil, nil, fmt.Errorf("--prompt wants --model: the random model has no tokenizer; use --prompt-ids")
		}
		w, err := llama.Random(randomConfig(), g.Seed)
		return w, nil, prompt, err
	}
	w, tok, err := llama.LoadDir(g.Model)
	if err != nil {
		return nil, nil, nil, err
	}
	if g.Prompt != "" {
		prompt = tok.Encode(g.Prompt)
	}
	return w, tok, prompt, nil
}

// runPolicy runs the model in a context of its own.
func (g *generateCmd) runPolicy(ctx context.Context, dev *cpu.Device, policy string, w *llama.Weights, tok *llama.Tokenizer, prompt []int32, line *timeline) (*runReport, error) {
	opts, err := g.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, atb.WithPolicy(policy), atb.WithSolver(mempool.SolverType(g.Solver)), atb.WithChecks(g.Checks))
	if g.Caches == "off" {
		opts = append(opts, atb.WithTilingCaches(0), atb.WithSetupReuse(false))
	}
	c, err := atb.NewContext(dev, opts...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	dtype, err := tensor.ParseDType(g.Dtype)
	if err != nil {
		return nil, err
	}
	m, err := llama.Upload(c, w, dtype)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	s, err := llama.NewSession(c, m, llama.Options{Sequences: g.Batch, BlockSize: g.BlockSize})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	d := decoder{cmd: g, c: c, s: s, line: line, sampler: llama.NewSampler(g.Temperature, g.TopP, g.Seed)}
	r, err := d.run(ctx, prompt)
	if err != nil {
		return nil, err
	}
	r.Policy, r.Device, r.DType = c.Policy(), dev.Props().Name, g.Dtype
	if tok != nil {
		r.Text = tok.Decode(append(append([]int32(nil), prompt...), r.IDs...))
	}
	return r, nil
}

// print prints ids, JSON, or a text with a table.
func (g *generateCmd) print(out output, r *report) error {
	if g.Ids {
		s := make([]string, len(r.Runs[0].IDs))
		for i, id := range r.Runs[0].IDs {
			s[i] = strconv.Itoa(int(id))
		}
		_, err := fmt.Fprintln(out.stdout, strings.Join(s, " "))
		return err
	}
	if g.JSON {
		e := json.NewEncoder(out.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	if t := r.Runs[0].Text; t != "" {
		fmt.Fprintf(out.stdout, "%s\n\n", t)
	}
	fmt.Fprintf(out.stdout, "%-14s %12s %10s %10s %8s %9s %10s %7s\n", "policy", "tokens/s", "setup us", "exec us", "kernels", "tilings", "moved KB", "stalls")
	for i := range r.Runs {
		x := &r.Runs[i]
		fmt.Fprintf(out.stdout, "%-14s %12.0f %10.1f %10.1f %8d %9d %10.1f %7d\n", x.Policy, x.TokensPerSecond, float64(x.SetupNs)/1e3, float64(x.ExecuteNs)/1e3,
			x.KernelsPerStep, x.HostTilings, float64(x.BytesMoved)/1024, x.RingStalls)
	}
	_, err := fmt.Fprintf(out.stdout, "\nids agree: %v; setup and exec are host microseconds per step (median)\n", r.IDsAgree)
	return err
}
