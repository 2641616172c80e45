package main

import (
	"fmt"
	"strings"

	"goatb/atb"
	"goatb/device/cpu"
)

// place are the flags that say where and how a command runs operations.
type place struct {
	Device  string   `help:"Device to run on." enum:"cpu" default:"cpu"`
	Workers int      `help:"Workers of the CPU device; 0 takes all processors." default:"0"`
	Inline  bool     `help:"Run kernels inside the enqueue call."`
	Set     []string `help:"Set a variable: NAME=VALUE." placeholder:"VAR=VALUE"`
}

// open makes the device.
func (p *place) open(opts ...cpu.Option) (*cpu.Device, error) {
	if p.Workers < 0 {
		return nil, fmt.Errorf("--workers: want at least 0, got %d", p.Workers)
	}
	if p.Workers > 0 {
		opts = append(opts, cpu.WithWorkers(p.Workers))
	}
	if p.Inline {
		opts = append(opts, cpu.WithInline())
	}
	return cpu.New(opts...)
}

// options turns the --set flags into options of a context.
func (p *place) options() ([]atb.Option, error) {
	var opts []atb.Option
	for _, s := range p.Set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--set %q: want NAME=VALUE", s)
		}
		opts = append(opts, atb.WithVariable(name, value))
	}
	return opts, nil
}
