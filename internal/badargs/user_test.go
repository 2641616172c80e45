package badargs

import (
	"goatb/atb"
	"goatb/model/decoder"
	"goatb/model/llama"
)

func userAPI() []api {
	return []api{
		{dir: "atb", funcs: funcs{
			"BuildGraph":                 atb.BuildGraph,
			"FromFloats":                 atb.FromFloats,
			"FromSlice":                  atb.FromSlice[float32],
			"Host":                       atb.Host[float32],
			"New":                        atb.New,
			"NewContext":                 atb.NewContext,
			"NewGlobalCache":             atb.NewGlobalCache,
			"NewGraph":                   atb.NewGraph,
			"NewTensor":                  atb.NewTensor,
			"Of":                         atb.Of,
			"Read":                       atb.Read,
			"ShapeOf":                    atb.ShapeOf,
			"ToFloats":                   atb.ToFloats,
			"ToSlice":                    atb.ToSlice[float32],
			"WithChecks":                 atb.WithChecks,
			"WithCompiled":               atb.WithCompiled,
			"NewCompiler":                atb.NewCompiler,
			"DecodeCompiled":             atb.DecodeCompiled,
			"WithConfig":                 atb.WithConfig,
			"WithEnv":                    atb.WithEnv,
			"WithGlobalCache":            atb.WithGlobalCache,
			"WithHostTilingAllocator":    atb.WithHostTilingAllocator,
			"WithID":                     atb.WithID,
			"WithKernelFilter":           atb.WithKernelFilter,
			"WithLogger":                 atb.WithLogger,
			"WithOverflowCheck":          atb.WithOverflowCheck,
			"WithPolicy":                 atb.WithPolicy,
			"WithRequireSink":            atb.WithRequireSink,
			"WithSetupReuse":             atb.WithSetupReuse,
			"WithSinkDeadline":           atb.WithSinkDeadline,
			"WithSinkForm":               atb.WithSinkForm,
			"WithSoc":                    atb.WithSoc,
			"WithSolver":                 atb.WithSolver,
			"WithStreams":                atb.WithStreams,
			"WithTilingAllocator":        atb.WithTilingAllocator,
			"WithTilingCaches":           atb.WithTilingCaches,
			"WithTilingScheduleOptimize": atb.WithTilingScheduleOptimize,
			"WithTilingLog":              atb.WithTilingLog,
			"WithVariable":               atb.WithVariable,
			"Wrap":                       atb.Wrap[float32],
			"Write":                      atb.Write,
		}, types: types{}},
		{dir: "model/llama", funcs: funcs{
			"LoadDir":       llama.LoadDir,
			"LoadFile":      llama.LoadFile,
			"LoadTokenizer": llama.LoadTokenizer,
			"NewSampler":    llama.NewSampler,
			"NewSession":    llama.NewSession,
			"Random":        llama.Random,
			"Upload":        llama.Upload,
		}, types: types{
			new(llama.Config),
			new(llama.LayerWeights),
			new(llama.Model),
			new(llama.Options),
			new(llama.Row),
			new(llama.Sampler),
			new(llama.Session),
			new(llama.Span),
			new(llama.Timing),
			new(llama.Tokenizer),
			new(llama.Weights),
		}},
		{dir: "model/decoder", funcs: funcs{
			"ByName":     decoder.ByName,
			"Names":      decoder.Names,
			"NewSession": decoder.NewSession,
			"Parse":      decoder.Parse,
		}, types: types{
			new(decoder.Experts),
			new(decoder.Latent),
			new(decoder.Load),
			new(decoder.Session),
			new(decoder.Shape),
			new(decoder.Span),
		}},
	}
}
