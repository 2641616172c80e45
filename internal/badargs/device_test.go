package badargs

import (
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/device/sim"
	"goatb/device/sim/profile"
)

func deviceAPI() []api {
	return []api{
		{dir: "device/cpu", funcs: funcs{
			"New":             cpu.New,
			"WithDeadline":    cpu.WithDeadline,
			"WithHost":        cpu.WithHost,
			"WithInline":      cpu.WithInline,
			"WithMemoryLimit": cpu.WithMemoryLimit,
			"WithObserver":    cpu.WithObserver,
			"WithPrefetch":    cpu.WithPrefetch,
			"WithQueueDepth":  cpu.WithQueueDepth,
			"WithSpin":        cpu.WithSpin,
			"WithTaskUpdate":  cpu.WithTaskUpdate,
			"WithWorkers":     cpu.WithWorkers,
		}, types: types{
			new(cpu.Device),
			new(cpu.Event),
			new(cpu.Option),
			new(cpu.Stream),
		}, made: types{
			new(cpu.Model),
		}},
		{dir: "device/sim", funcs: funcs{
			"New":          sim.New,
			"WithDeadline": sim.WithDeadline,
			"WithNumerics": sim.WithNumerics,
			"WithRecorder": sim.WithRecorder,
		}, types: types{
			new(sim.Device),
			new(sim.Event),
			new(sim.Option),
			new(sim.Stream),
		}, made: types{
			new(sim.Model),
		}},
		{dir: "device/sim/profile", funcs: funcs{
			"Builtin": profile.Builtin,
			"ByName":  profile.ByName,
			"Names":   profile.Names,
			"Parse":   profile.Parse,
		}, types: types{
			new(profile.Basis),
			new(profile.Costs),
			new(profile.Group),
			new(profile.Meaning),
			new(profile.Param),
			new(profile.Profile),
		}},
		{dir: "device/checked", funcs: funcs{
			"New":       checked.New,
			"WithGrace": checked.WithGrace,
			"WithLeaks": checked.WithLeaks,
			"WithStale": checked.WithStale,
		}, types: types{
			new(checked.Device),
			new(checked.Event),
			new(checked.Finding),
			new(checked.Kind),
			new(checked.Option),
			new(checked.Stream),
		}, made: types{
			new(checked.Model),
		}},
	}
}
