package badargs

import (
	atbctx "goatb/context"
	"goatb/kernelgraph"
	"goatb/runner"
	"goatb/tiling"
)

func planAPI() []api {
	return []api{
		{dir: "kernelgraph", funcs: funcs{
			"New":        kernelgraph.New,
			"NewSharing": kernelgraph.NewSharing,
		}, types: types{
			new(kernelgraph.Kind),
			new(kernelgraph.Life),
			new(kernelgraph.NodeKind),
			new(kernelgraph.Ref),
			new(kernelgraph.Scope),
			new(kernelgraph.Within),
			new(kernelgraph.WorkspaceOptions),
		}, made: types{
			new(kernelgraph.Builder),
			new(kernelgraph.Call),
			new(kernelgraph.Env),
			new(kernelgraph.Graph),
			new(kernelgraph.Node),
			new(kernelgraph.Sharing),
			new(kernelgraph.Tensor),
			new(kernelgraph.Workspace),
		}},
		{dir: "tiling", funcs: funcs{
			"ByName":       tiling.ByName,
			"NewEventRing": tiling.NewEventRing,
			"Policies":     tiling.Policies,
		}, types: types{
			new(tiling.Constant),
		}, made: types{
			new(tiling.DeviceSink),
			new(tiling.EventRing),
			new(tiling.Job),
			new(tiling.KernelFollow),
			new(tiling.MultiStream),
			new(tiling.Overall),
			new(tiling.Slot),
			new(tiling.Wired),
		}},
		{dir: "runner", funcs: funcs{
			"NewKey":  runner.NewKey,
			"NewPlan": runner.NewPlan,
			"NewPool": runner.NewPool,
		}, types: types{
			new(runner.Fallback),
			new(runner.OverflowHit),
		}, made: types{
			new(runner.Capture),
			new(runner.Counters),
			new(runner.Env),
			new(runner.Fallbacks),
			new(runner.Key),
			new(runner.Overflow),
			new(runner.Plan),
			new(runner.Pool),
			new(runner.Runner),
			new(runner.Sinking),
		}},
		{dir: "context", funcs: funcs{
			"ConfigFromEnv":              atbctx.ConfigFromEnv,
			"DTypeOf":                    atbctx.DTypeOf[float32],
			"DefaultConfig":              atbctx.DefaultConfig,
			"FromFloats":                 atbctx.FromFloats,
			"FromSlice":                  atbctx.FromSlice[float32],
			"Host":                       atbctx.Host[float32],
			"New":                        atbctx.New,
			"NewTensor":                  atbctx.NewTensor,
			"Read":                       atbctx.Read,
			"ToFloats":                   atbctx.ToFloats,
			"ToSlice":                    atbctx.ToSlice[float32],
			"WithChecks":                 atbctx.WithChecks,
			"WithCompiled":               atbctx.WithCompiled,
			"WithConfig":                 atbctx.WithConfig,
			"WithEnv":                    atbctx.WithEnv,
			"WithGlobalCache":            atbctx.WithGlobalCache,
			"WithHostTilingAllocator":    atbctx.WithHostTilingAllocator,
			"WithID":                     atbctx.WithID,
			"WithKernelFilter":           atbctx.WithKernelFilter,
			"WithLogger":                 atbctx.WithLogger,
			"WithOverflowCheck":          atbctx.WithOverflowCheck,
			"WithPolicy":                 atbctx.WithPolicy,
			"WithRequireSink":            atbctx.WithRequireSink,
			"WithSetupReuse":             atbctx.WithSetupReuse,
			"WithSinkDeadline":           atbctx.WithSinkDeadline,
			"WithSinkForm":               atbctx.WithSinkForm,
			"WithSoc":                    atbctx.WithSoc,
			"WithSolver":                 atbctx.WithSolver,
			"WithMachine":                atbctx.WithMachine,
			"WithStreams":                atbctx.WithStreams,
			"WithTilingAllocator":        atbctx.WithTilingAllocator,
			"WithTilingCaches":           atbctx.WithTilingCaches,
			"WithTilingScheduleOptimize": atbctx.WithTilingScheduleOptimize,
			"WithTilingLog":              atbctx.WithTilingLog,
			"WithVariable":               atbctx.WithVariable,
			"Wrap":                       atbctx.Wrap[float32],
			"Write":                      atbctx.Write,
		}, types: types{
			new(atbctx.Config),
			new(atbctx.Context),
			new(atbctx.Option),
			new(atbctx.Side),
			new(atbctx.Stats),
			new(atbctx.Variable),
		}},
	}
}
