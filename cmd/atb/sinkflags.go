package main

import (
	"fmt"

	"goatb/atb"
	"goatb/tiling/sink"
)

// sinkFlags say how policy device-sink makes graphs.
type sinkFlags struct {
	Form                   string  `help:"How device-sink makes graphs: update, ffts, superkernel or v2; the variable's when left out." placeholder:"FORM"`
	Soc                    string  `help:"Chip that task lists are made for; the variable's when left out." placeholder:"SOC"`
	TilingScheduleOptimize *string `help:"Tile on the device what can be: 1, or 0 for not; empty leaves it to the session." name:"tiling_schedule_optimize" placeholder:"0|1"`
}

// options are those of a context; what is wrong with a value is its error.
func (f *sinkFlags) options() []atb.Option {
	var opts []atb.Option
	if f.Form != "" {
		opts = append(opts, atb.WithSinkForm(f.Form))
	}
	if f.Soc != "" {
		opts = append(opts, atb.WithSoc(f.Soc))
	}
	if f.TilingScheduleOptimize != nil {
		opts = append(opts, atb.WithTilingScheduleOptimize(*f.TilingScheduleOptimize))
	}
	return opts
}

// validate checks the flags alone.
func (f *sinkFlags) validate() error {
	if f.Form != "" {
		if _, err := sink.ParseForm(f.Form); err != nil {
			return fmt.Errorf("--form: %w", err)
		}
	}
	if f.Soc != "" {
		if _, err := sink.ProfileOf(f.Soc); err != nil {
			return fmt.Errorf("--soc: %w", err)
		}
	}
	if f.TilingScheduleOptimize != nil {
		if _, err := sink.ParseSetting(*f.TilingScheduleOptimize); err != nil {
			return fmt.Errorf("--tiling_schedule_optimize: %w", err)
		}
	}
	return nil
}

// besides refuses flags that a compilation has decided about.
func (f *sinkFlags) besides(compiled string) error {
	if compiled != "" && f.TilingScheduleOptimize != nil {
		return fmt.Errorf("--tiling_schedule_optimize: %s was compiled with a value of it; give it to atb compile", compiled)
	}
	return nil
}
