package norm

import (
	"math"

	"goatb/operation"
	"goatb/status"
)

// RMSNorm divides rows by their root mean square. With
// r(s) = 1/√(mean(s²)+epsilon) over a row:
//
//	kind                      inputs                                 outputs
//	Plain                     x, gamma                               y = x·r(x)·gamma
//	  Rstd                    x, gamma                               y, rstd f32 = r(x)
//	  QuantInt8               x, gamma, beta, scale, offset          q = int8((x·r(x)·gamma + beta)/scale + offset)
//	    DynamicSymmetric      x, gamma, beta                         q, scale f32 = max|t|/127, t = x·r(x)·gamma + beta
//	Pre                       x, [bias], residual, gamma             y = s·r(s)·gamma, sum = s
//	  QuantInt8               x, residual, gamma, beta, scale,       q = int8((s·r(s)·gamma + beta)/scale + offset), sum
//	                          offset
//	Post                      x, [bias], residual, gamma             y = s·r(s)·gamma
//	  QuantInt8               x, residual, gamma, scale, offset      q = int8(y/scale + offset), y
//
// where s = x (+ bias) + residual, bias being there with HasBias. x, residual,
// y, sum and q have one shape. gamma, bias and beta are as long as the last axis
// of x, with leading axes of 1; with Rstd gamma has the trailing axes of x, a row
// is all of them and rstd has 1 in their place. scale and offset (int8) have one
// element; the scale that DynamicSymmetric returns lacks the last axis of x.
//
// Types: x, residual, y and sum share one of f32, f16 and bf16, and so do
// gamma, bias and beta. Rows are computed in float32 and rounded once: sum does
// not lose the bits that y is computed from. PrecisionHalf rounds x·r(x) to f16
// before it is multiplied by gamma. The quantised kinds round half to even and
// clamp to -128..127 (-127..127 under the option QuantMinNeg127), in a second
// kernel; a row of zeros has the dynamic scale 0.
//
// Errors at InferShape, in this order: ErrInvalidTensorDType for PrecisionHalf
// without f16 and, in profile 910b, Rstd without f32; ErrInvalidTensorDim for
// shapes; under profile 910b ErrInvalidTensorSize for the alignment and the
// length of the last axis, which Post with QuantInt8 reports as
// ErrInvalidTensorDim; ErrInvalidParam for parameters that exclude each other:
// ModelGemma with QuantInt8, PrecisionHalf or Rstd, PrecisionHalf with QuantInt8
// or Rstd, QuantInt8 with HasBias or Rstd. Setup gives ErrInvalidTensorSize for
// an output of another rank and ErrInvalidTensorDim for other dimensions.
//
// Source: ATB operation RmsNorm.
type RMSNorm struct {
	// LayerType selects the kind, and with it the parameters that are read.
	LayerType LayerType `json:"layerType"`
	// Norm holds the parameters of Plain.
	Norm RMSPlainParam `json:"normParam"`
	// PreNorm and PostNorm hold the parameters of Pre and Post.
	PreNorm  RMSResidualParam `json:"preNormParam"`
	PostNorm RMSResidualParam `json:"postNormParam"`
}

// LayerType says where a normalisation stands in a layer.
type LayerType int64

// Layer types.
const (
	// Plain normalises x.
	Plain LayerType = iota + 1
	// Pre adds the residual, normalises and returns both.
	Pre
	// Post adds the residual and normalises.
	Post
)

// QuantType says whether the result is quantised.
type QuantType int64

// Quantisations.
const (
	QuantNone QuantType = 0
	QuantInt8 QuantType = 2
)

// DynamicQuantType says whether the scale of a quantisation is computed.
type DynamicQuantType int64

// Dynamic quantisations. Asymmetric has ATB's number and is refused.
const (
	DynamicNone DynamicQuantType = iota
	DynamicSymmetric
	DynamicAsymmetric
)

// PrecisionMode says how the normalised row is rounded.
type PrecisionMode int64

// Precision modes.
const (
	PrecisionFloat PrecisionMode = iota
	PrecisionHalf
)

// ModelType says what gamma stands for.
type ModelType int64

// Model types.
const (
	ModelLlama ModelType = iota // gamma
	ModelGemma                  // 1 + gamma
)

// RMSPlainParam are the parameters of a Plain RMSNorm.
type RMSPlainParam struct {
	QuantType QuantType `json:"quantType"`
	Epsilon   float32   `json:"epsilon"`
	// LayerNormEps has no effect; its range is checked.
	LayerNormEps float32 `json:"layerNormEps"`
	// Rstd returns r(x), and lets gamma cover several trailing axes.
	Rstd          bool             `json:"rstd"`
	PrecisionMode PrecisionMode    `json:"precisionMode"`
	ModelType     ModelType        `json:"modelType"`
	DynamicQuant  DynamicQuantType `json:"dynamicQuantType"`
}

// RMSResidualParam are the parameters of a Pre or Post RMSNorm.
type RMSResidualParam struct {
	QuantType QuantType `json:"quantType"`
	Epsilon   float32   `json:"epsilon"`
	// HasBias adds the input bias.
	HasBias bool `json:"hasBias"`
}

// defaultEpsilon is ATB's default of every epsilon.
const defaultEpsilon = 1e-5

// DefaultRMSNorm returns ATB's defaults; the layer type is to be set.
func DefaultRMSNorm() RMSNorm {
	return RMSNorm{
		Norm:     RMSPlainParam{Epsilon: defaultEpsilon, LayerNormEps: defaultEpsilon},
		PreNorm:  RMSResidualParam{Epsilon: defaultEpsilon},
		PostNorm: RMSResidualParam{Epsilon: defaultEpsilon},
	}
}

// RMS returns an RMSNorm of a kind with an epsilon and ATB's defaults.
func RMS(kind LayerType, epsilon float32) RMSNorm {
	n := DefaultRMSNorm()
	n.LayerType = kind
	n.Norm.Epsilon, n.PreNorm.Epsilon, n.PostNorm.Epsilon = epsilon, epsilon, epsilon
	return n
}

// residual returns the parameters of Pre or Post.
func (n *RMSNorm) residual() *RMSResidualParam {
	if n.LayerType == Pre {
		return &n.PreNorm
	}
	return &n.PostNorm
}

// quantised reports whether the kind's result is int8.
func (n *RMSNorm) quantised() bool {
	if n.LayerType == Plain {
		return n.Norm.QuantType != QuantNone
	}
	return n.residual().QuantType != QuantNone
}

func (n *RMSNorm) dynamic() bool {
	return n.LayerType == Plain && n.quantised() && n.Norm.DynamicQuant != DynamicNone
}

func (n *RMSNorm) rstd() bool { return n.LayerType == Plain && n.Norm.Rstd }

func (n *RMSNorm) biased() bool { return n.LayerType != Plain && n.residual().HasBias }

// leastEpsilon is the smallest magnitude of an epsilon.
const leastEpsilon = 2e-38

// Validate checks the parameters, those of the kinds not selected too where
// their epsilon is concerned.
func (n RMSNorm) Validate() error {
	bad := func(format string, args ...any) error { return status.Errorf(status.ErrInvalidParam, format, args...) }
	if n.LayerType < Plain || n.LayerType > Post {
		return bad("layerType: want %d to %d, got %d", Plain, Post, n.LayerType)
	}
	for _, e := range [...]struct {
		key string
		v   float32
	}{
		{"normParam.epsilon", n.Norm.Epsilon}, {"normParam.layerNormEps", n.Norm.LayerNormEps},
		{"preNormParam.epsilon", n.PreNorm.Epsilon}, {"postNormParam.epsilon", n.PostNorm.Epsilon},
	} {
		if !(math.Abs(float64(e.v)) >= leastEpsilon) {
			return bad("%s: want a magnitude of at least %g, got %g", e.key, leastEpsilon, e.v)
		}
	}
	if n.LayerType != Plain {
		return validQuant(n.residual().QuantType)
	}
	p := &n.Norm
	switch {
	case p.DynamicQuant != DynamicNone && p.DynamicQuant != DynamicSymmetric:
		return bad("normParam.dynamicQuantType: want %d or %d, got %d", DynamicNone, DynamicSymmetric, p.DynamicQuant)
	case p.PrecisionMode != PrecisionFloat && p.PrecisionMode != PrecisionHalf:
		return bad("normParam.precisionMode: want %d or %d, got %d", PrecisionFloat, PrecisionHalf, p.PrecisionMode)
	case p.ModelType != ModelLlama && p.ModelType != ModelGemma:
		return bad("normParam.modelType: want %d or %d, got %d", ModelLlama, ModelGemma, p.ModelType)
	}
	return validQuant(p.QuantType)
}

func validQuant(t QuantType) error {
	if t != QuantNone && t != QuantInt8 {
		return status.Errorf(status.ErrInvalidParam, "quantType: want %d or %d, got %d", QuantNone, QuantInt8, t)
	}
	return nil
}

// rmsPorts are the positions of the inputs behind x, -1 for those that the kind
// does not have.
type rmsPorts struct{ bias, residual, gamma, beta, scale, offset int }

// rmsKind is the row set, the native combinations and the operands of a kind.
type rmsKind struct {
	variant, native string
	in, out         []operation.Port
	ports           rmsPorts
}

// Variables of native combinations: T for what has x's type, G for weights, S
// for scales.
const (
	rmsTypes      = " | T=f32,f16,bf16 G=f32,f16,bf16"
	rmsQuantTypes = rmsTypes + " S=f32,f16,bf16"
)

func (n *RMSNorm) kind() rmsKind {
	none := rmsPorts{-1, -1, -1, -1, -1, -1}
	switch {
	case n.dynamic():
		none.gamma, none.beta = 1, 2
		return rmsKind{"NORMAndSymmetricDynamicQuant", "T,G,G->int8,f32" + rmsTypes, operation.Ports("x", "gamma", "beta"), operation.Ports("q", "scale"), none}
	case n.LayerType == Plain && n.quantised():
		none.gamma, none.beta, none.scale, none.offset = 1, 2, 3, 4
		return rmsKind{"NORMAndQUANTParamInTensor", "T,G,G,S,int8->int8" + rmsQuantTypes, operation.Ports("x", "gamma", "beta", "scale", "offset"), operation.Ports("q"), none}
	case n.rstd():
		none.gamma = 1
		return rmsKind{"NORMAndQUANTUNDEFINEDWithRSTD", "T,G->T,f32" + rmsTypes, operation.Ports("x", "gamma"), operation.Ports("y", "rstd"), none}
	case n.LayerType == Plain:
		none.gamma = 1
		return rmsKind{"NORMAndQUANTUNDEFINEDWithoutRSTD", "T,G->T" + rmsTypes, operation.Ports("x", "gamma"), operation.Ports("y"), none}
	case n.LayerType == Pre && n.quantised():
		none.residual, none.gamma, none.beta, none.scale, none.offset = 1, 2, 3, 4, 5
		return rmsKind{"PRENORMAndQUANT", "T,T,G,G,S,int8->int8,T" + rmsQuantTypes, operation.Ports("x", "residual", "gamma", "beta", "scale", "offset"), operation.Ports("q", "sum"), none}
	case n.quantised():
		none.residual, none.gamma, none.scale, none.offset = 1, 2, 3, 4
		return rmsKind{"POSTNORMAndQUANT", "T,T,G,S,int8->int8,T" + rmsQuantTypes, operation.Ports("x", "residual", "gamma", "scale", "offset"), operation.Ports("q", "y"), none}
	}
	k := rmsKind{"POSTNORM", "T,G,T,G->T", operation.Ports("x", "bias", "residual", "gamma"), operation.Ports("y"), none}
	k.ports.bias, k.ports.residual, k.ports.gamma = 1, 2, 3
	if !n.biased() {
		k.variant, k.native, k.in = "POSTNORMNoBias", "T,T,G->T", operation.Ports("x", "residual", "gamma")
		k.ports.bias, k.ports.residual, k.ports.gamma = -1, 1, 2
	}
	if n.LayerType == Pre {
		k.variant, k.native, k.out = "PRE"+k.variant[len("POST"):], k.native+",T", operation.Ports("y", "sum")
	}
	k.native += rmsTypes
	return k
}

// Signature describes the operands.
func (n RMSNorm) Signature() operation.Signature {
	k := n.kind()
	return operation.Signature{Name: "RmsNormOperation", Variant: "RmsNormOperation" + k.variant, In: k.in, Out: k.out, Native: k.native}
}
