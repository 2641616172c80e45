package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"goatb/atb"
	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/device/trace"
)

// place are the flags that say where and how a command runs operations.
type place struct {
	Device  string   `help:"Device to run on: cpu, or sim, which computes the same values on a virtual clock." default:"cpu"`
	Profile string   `help:"Cost profile of the device sim: ascend910b, ascend910b4, ascend310p, gpu, or a file." default:"ascend910b" placeholder:"NAME"`
	Workers int      `help:"Workers of the CPU device; 0 takes all processors." default:"0"`
	Inline  bool     `help:"Run kernels inside the enqueue call."`
	Set     []string `help:"Set a variable: NAME=VALUE. Repeats or takes commas; \\, is a comma in a value." placeholder:"VAR=VALUE"`
}

// validate checks the flags alone.
func (p *place) validate() error {
	if p.Device != "cpu" && p.Device != "sim" {
		return fmt.Errorf("--device: want cpu or sim, got %q", p.Device)
	}
	if err := atLeast(limit{"workers", int64(p.Workers), 0}); err != nil {
		return err
	}
	if _, err := profile.ByName(p.Profile); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	_, err := checkedVariables(p.Set)
	return err
}

// refuseIdle refuses flags of the device that does not run.
func (p *place) refuseIdle(given givenFlags) error {
	if p.Device == "cpu" {
		return given.refuse("it is for --device sim", "profile")
	}
	return given.refuse("it is for --device cpu", "workers", "inline")
}

// open makes the device. A recorder, where there is one, writes its timeline.
func (p *place) open(rec *trace.Recorder) (device.Device, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	if p.Device == "sim" {
		costs, err := profile.ByName(p.Profile)
		if err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
		return sim.New(costs, sim.WithRecorder(rec))
	}
	var opts []cpu.Option
	if p.Workers > 0 {
		opts = append(opts, cpu.WithWorkers(p.Workers))
	}
	if p.Inline {
		opts = append(opts, cpu.WithInline())
	}
	if rec != nil {
		opts = append(opts, cpu.WithObserver(rec.Task), cpu.WithHost(trace.NewAccount(rec)))
	}
	dev, err := cpu.New(opts...)
	if err != nil && p.Workers > 0 {
		err = fmt.Errorf("--workers: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return dev, nil
}

// options turns the --set flags into options of a context, but for those that say
// the same thing as a variable that a flag of the command has decided about.
func (p *place) options(decided ...string) ([]atb.Option, error) {
	vars, err := variables(p.Set)
	if err != nil {
		return nil, err
	}
	var opts []atb.Option
	for _, v := range undecided(vars, decided) {
		opts = append(opts, atb.WithVariable(v.name, v.value))
	}
	return opts, nil
}

// assignment is one --set.
type assignment struct{ name, value string }

// undecided leaves out what says the same thing as one of the variables decided.
func undecided(vars []assignment, decided []string) []assignment {
	def := atbctx.DefaultConfig()
	known := def.Variables()
	var taken []string
	for _, name := range decided {
		taken = append(taken, sameThing(&known[indexOfVariable(known, name)])...)
	}
	return slices.DeleteFunc(slices.Clone(vars), func(a assignment) bool { return slices.Contains(taken, a.name) })
}

func variables(set []string) ([]assignment, error) {
	var vars []assignment
	for _, s := range set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--set %q: want NAME=VALUE", s)
		}
		if slices.ContainsFunc(vars, func(a assignment) bool { return a.name == name }) {
			return nil, fmt.Errorf("--set %s: it is set twice", name)
		}
		vars = append(vars, assignment{name, value})
	}
	return vars, nil
}

// checkedVariables is variables with values that the variables can have.
func checkedVariables(set []string) ([]assignment, error) {
	vars, err := variables(set)
	if err != nil {
		return nil, err
	}
	def := atbctx.DefaultConfig()
	known := def.Variables()
	for _, a := range vars {
		if err := knownVariable(known, a.name); err != nil {
			return nil, err
		}
	}
	_, err = atbctx.ConfigFromEnv(func(name string) (string, bool) {
		i := slices.IndexFunc(vars, func(a assignment) bool { return a.name == name })
		if i < 0 {
			return "", false
		}
		return vars[i].value, true
	})
	if err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	return vars, nil
}

// writeJSON writes one object for scripts.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
