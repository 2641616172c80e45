package badargs

import (
	"goatb/operation"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/catalog"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
)

func operationAPI() []api {
	return []api{
		{dir: "operation", funcs: funcs{
			"Board910B":     operation.Board910B,
			"BuildGraph":    operation.BuildGraph,
			"CheckSetup":    operation.CheckSetup,
			"Decode":        operation.Decode[shape.Softmax],
			"InferShape":    operation.InferShape,
			"Lower":         operation.Lower,
			"Native":        operation.Native,
			"New":           operation.New,
			"NewGraph":      operation.NewGraph,
			"NewCompiler":   operation.NewCompiler,
			"ParseCombos":   operation.ParseCombos,
			"Ports":         operation.Ports,
			"ProfileByName": operation.ProfileByName,
		}, types: types{
			new(operation.Cell),
			new(operation.CompileOptions),
			new(operation.Compiler),
			new(operation.Chunk),
			new(operation.Combo),
			new(operation.Event),
			new(operation.EventAction),
			new(operation.GraphBuilder),
			new(operation.GraphParam),
			new(operation.If),
			new(operation.InferShapeFunc),
			new(operation.Node),
			new(operation.Launched), new(operation.Op),
			new(operation.Port),
			new(operation.Profile),
			new(operation.Query),
			new(operation.ReshapeFunc),
			new(operation.Signature),
			new(operation.Stage),
			new(operation.VariantPack),
		}},
		{dir: "operation/activation", funcs: funcs{
			"DefaultActivation": activation.DefaultActivation,
			"Of":                activation.Of,
		}, types: types{
			new(activation.Activation),
			new(activation.GeluMode),
			new(activation.Type),
		}},
		{dir: "operation/attention", funcs: funcs{
			"DefaultPagedAttention": attention.DefaultPagedAttention,
			"DefaultSelfAttention":  attention.DefaultSelfAttention,
			"Matrix":                attention.Matrix,
			"PagedMatrix":           attention.PagedMatrix,
		}, types: types{
			new(attention.CacheType),
			new(attention.ClampType),
			new(attention.Combination),
			new(attention.InputLayout),
			new(attention.KVCacheConfig),
			new(attention.KernelType),
			new(attention.PagedAttention),
			new(attention.PagedCalcType),
			new(attention.PagedCompressType),
			new(attention.PagedMaskType),
			new(attention.QuantType),
			new(attention.ScaleType),
			new(attention.SelfAttention),
			new(attention.SelfCalcType),
			new(attention.SelfMaskType),
		}},
		{dir: "operation/cache", funcs: funcs{
			"DefaultReshapeAndCache": cache.DefaultReshapeAndCache,
		}, types: types{
			new(cache.CompressType),
			new(cache.KVCacheConfig),
			new(cache.ReshapeAndCache),
		}},
		{dir: "operation/catalog", funcs: funcs{
			"Has":       catalog.Has,
			"Names":     catalog.Names,
			"Known":     catalog.Known,
			"New":       catalog.New,
			"ReadGraph": catalog.ReadGraph,
		}, types: types{}, made: types{
			new(catalog.GraphFile),
			new(catalog.InputEntry),
			new(catalog.NodeEntry),
		}},
		{dir: "operation/elementwise", funcs: funcs{
			"DefaultElewise": elementwise.DefaultElewise,
			"Of":             elementwise.Of,
		}, types: types{
			new(elementwise.Elewise),
			new(elementwise.MulsParam),
			new(elementwise.QuantParam),
			new(elementwise.Type),
		}},
		{dir: "operation/linear", funcs: funcs{
			"DefaultLinear":  linear.DefaultLinear,
			"Multiply":       linear.Multiply,
			"PackInt4Weight": linear.PackInt4Weight,
			"PackWeight":     linear.PackWeight,
		}, types: types{
			new(linear.Int4Linear),
			new(linear.Linear),
			new(linear.MatmulType),
			new(linear.Pack),
			new(linear.PackInt4),
			new(linear.PackedRows),
			new(linear.Product),
			new(linear.QuantMode),
		}},
		{dir: "operation/norm", funcs: funcs{
			"DefaultRMSNorm": norm.DefaultRMSNorm,
			"RMS":            norm.RMS,
		}, types: types{
			new(norm.DynamicQuantType),
			new(norm.LayerType),
			new(norm.ModelType),
			new(norm.PrecisionMode),
			new(norm.QuantType),
			new(norm.RMSNorm),
			new(norm.RMSPlainParam),
			new(norm.RMSResidualParam),
		}},
		{dir: "operation/rope", funcs: funcs{
			"DefaultRope": rope.DefaultRope,
		}, types: types{
			new(rope.Rope),
		}},
		{dir: "operation/shape", funcs: funcs{
			"DefaultConcat":    shape.DefaultConcat,
			"DefaultGather":    shape.DefaultGather,
			"DefaultIndexAdd":  shape.DefaultIndexAdd,
			"DefaultSlice":     shape.DefaultSlice,
			"DefaultSoftmax":   shape.DefaultSoftmax,
			"DefaultSort":      shape.DefaultSort,
			"DefaultSplit":     shape.DefaultSplit,
			"DefaultTranspose": shape.DefaultTranspose,
		}, types: types{
			new(shape.Concat),
			new(shape.Gather),
			new(shape.IndexAdd),
			new(shape.IndexType),
			new(shape.Slice),
			new(shape.Softmax),
			new(shape.Sort),
			new(shape.Split),
			new(shape.Transpose),
		}},
	}
}
