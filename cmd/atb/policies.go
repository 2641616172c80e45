package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goatb/bench/compare"
	"goatb/device/sim/profile"
	shapes "goatb/model/decoder"
	"goatb/tensor"
	"goatb/tiling"
)

// policiesCmd compares the tiling policies.
type policiesCmd struct {
	Profile     string   `help:"Cost profile: ascend910b, ascend910b4, ascend310p, gpu, or a file; cpu measures the CPU device." default:"ascend910b" placeholder:"NAME"`
	SetCost     []string `help:"Set a cost of the profile: NAME=VALUE. Repeats or takes commas." placeholder:"NAME=VALUE"`
	ListCosts   bool     `help:"Print the costs of the profile with their sources, and nothing else."`
	Model       string   `help:"Model shape: a name, a config.json or a folder with one." default:"qwen3-0.6b" placeholder:"NAME"`
	TP          int      `help:"Tensor-parallel degree: the part of one of so many devices." name:"tp" default:"1"`
	Batch       int      `help:"Sequences that decode together." default:"1"`
	Context     int      `help:"Positions that each sequence has before the first step." default:"1024"`
	Prompt      int      `help:"New tokens of each sequence in a step; more than 1 is a prompt without a context." default:"1"`
	Steps       int      `help:"Steps to measure." default:"8"`
	Dtype       string   `help:"Element type of weights and activations: f32, f16 or bf16." enum:"f32,f16,bf16" default:"f16"`
	Policies    []string `help:"Policies to compare, or all. Repeats or takes commas." default:"all" placeholder:"P" name:"policy" aliases:"policies"`
	Numerics    string   `help:"Compute values on the simulated device: on or off." enum:"on,off" default:"off"`
	Caches      string   `help:"Tiling caches: on or off; the variable's when left out." enum:"on,off," default:"" placeholder:"on|off"`
	Whole       bool     `help:"Make one operation of a whole step, for every policy."`
	Sensitivity bool     `help:"Measure again with each estimated cost halved and doubled."`
	Workers     int      `help:"Workers of the CPU device; 0 takes all processors." default:"0"`
	Set         []string `help:"Set a variable: NAME=VALUE. Repeats or takes commas; \\, is a comma in a value." placeholder:"VAR=VALUE"`
	Trace       string   `help:"Write a timeline for chrome://tracing and ui.perfetto.dev." placeholder:"FILE"`
	HTML        string   `help:"Write a page with tables, bars, the workspace plan and a timeline; it needs no network." name:"html" placeholder:"FILE"`
	JSON        bool     `help:"Print one JSON object." name:"json"`
}

// policiesReport is what policies prints as JSON.
type policiesReport struct {
	Schema  int    `json:"schema"`
	Command string `json:"command"`
	*compare.Result
}

// Run compares and prints.
func (p *policiesCmd) Run(ctx context.Context, out output) (err error) {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if p.ListCosts {
		return p.listCosts(out.stdout, cfg.Profile)
	}
	files, err := p.create()
	if err != nil {
		return err
	}
	defer func() { err = files.end(err) }()
	progress := newProgress(out.stderr)
	cfg.Progress = func(what string) {
		if progress.due() {
			progress.printf("policies: %s", what)
		}
	}
	r, err := compare.Run(ctx, *cfg)
	if err != nil {
		return err
	}
	if err := files.write(r); err != nil {
		return err
	}
	if n := dropped(r); n > 0 {
		fmt.Fprintf(out.stderr, "policies: the timeline is %d entries short: measure fewer steps for a whole one\n", n)
	}
	if p.JSON {
		return writeJSON(out.stdout, policiesReport{1, "policies", r})
	}
	return printComparison(out.stdout, r)
}

// refuseIdle refuses flags of a comparison beside --list-costs, which makes none,
// those of the device that does not run, and a context before a prompt.
func (p *policiesCmd) refuseIdle(given givenFlags) error {
	if p.Prompt > 1 {
		if err := given.refuse("a step of --prompt tokens has no context", "context"); err != nil {
			return err
		}
	}
	switch {
	case !p.ListCosts && p.Profile == "cpu":
		return given.refuse("the CPU device always computes values", "numerics")
	case !p.ListCosts:
		return given.refuse("it is for --profile cpu", "workers")
	}
	return given.refuse("--list-costs prints the costs and compares nothing", slices.DeleteFunc(slices.Clone(given), func(f string) bool {
		return f == "list-costs" || f == "profile" || f == "set-cost"
	})...)
}

// config turns the flags into a comparison.
func (p *policiesCmd) config() (*compare.Config, error) {
	c := &compare.Config{
		Workers: p.Workers, Numerics: p.Numerics == "on", Sensitivity: p.Sensitivity, Timeline: p.Trace != "" || p.HTML != "",
		Load: shapes.Load{Batch: p.Batch, Context: p.Context, Prompt: p.Prompt, Steps: p.Steps, Whole: p.Whole},
	}
	if p.Prompt > 1 {
		c.Load.Context = 0
	}
	if err := atLeast(limit{"steps", int64(p.Steps), 1}, limit{"batch", int64(p.Batch), 1}, limit{"context", int64(p.Context), 0},
		limit{"prompt", int64(p.Prompt), 1}, limit{"tp", int64(p.TP), 1}, limit{"workers", int64(p.Workers), 0}); err != nil {
		return nil, err
	}
	var err error
	if c.Profile, err = p.costs(); err != nil {
		return nil, err
	}
	if c.Shape, err = shapes.ByName(p.Model); err != nil {
		return nil, fmt.Errorf("--model: %w", err)
	}
	if c.Shape, err = c.Shape.Sharded(p.TP); err != nil {
		return nil, fmt.Errorf("--tp: %w", err)
	}
	if c.DType, err = tensor.ParseDType(p.Dtype); err != nil {
		return nil, err
	}
	if c.Policies, err = policyNames(p.Policies, "--policy"); err != nil {
		return nil, err
	}
	return c, p.configure(c)
}

// configure gives a comparison the variables of the --set flags and of the
// environment, but for those that --policy and --caches decide about.
func (p *policiesCmd) configure(c *compare.Config) error {
	lookup, cfg, err := effective(p.Set)
	if err != nil {
		return err
	}
	levels, err := cacheLevels(p.Caches, p.Set)
	if err != nil {
		return err
	}
	c.NoCaches = levels == 0
	for _, v := range cfg.Variables() {
		for _, name := range spellings(&v) {
			value, ok := lookup(name)
			if ok && (name != cacheVariable || p.Caches != "on" || cfg.CacheType > 0) {
				c.Variables = append(c.Variables, compare.Variable{Name: name, Value: value})
			}
		}
	}
	return nil
}

// costs reads the profile and changes it, nil for the CPU device.
func (p *policiesCmd) costs() (*profile.Profile, error) {
	if p.Profile == "cpu" {
		if len(p.SetCost) > 0 || p.ListCosts {
			return nil, fmt.Errorf("--profile cpu has no costs to set or to list: it measures the CPU device")
		}
		return nil, nil
	}
	c, err := profile.ByName(p.Profile)
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	for _, s := range p.SetCost {
		name, text, ok := strings.Cut(s, "=")
		v, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("--set-cost %q: want NAME=NUMBER", s)
		}
		if c, err = c.With(name, v); err != nil {
			return nil, fmt.Errorf("--set-cost: %w; --list-costs has all", err)
		}
	}
	return c, nil
}

// policyNames lists the policies that a flag names, each once.
func policyNames(wanted []string, flag string) ([]string, error) {
	var all, names []string
	for _, p := range tiling.Policies() {
		all = append(all, p.Name())
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("%s: want at least one policy, or all", flag)
	}
	for _, name := range wanted {
		if name == "all" {
			return all, nil
		}
		p, err := tiling.ByName(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w, or all", flag, err)
		}
		if !slices.Contains(names, p.Name()) {
			names = append(names, p.Name())
		}
	}
	return names, nil
}
