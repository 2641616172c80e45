// Package elementwise holds the operation that computes element by element.
package elementwise

import (
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Type selects an element-wise function.
type Type int64

// Element-wise functions, with ATB's numbers.
const (
	Cast              Type = iota + 1 // x as OutTensorType
	Muls                              // x·Muls.VarAttr
	Cos                               // cos x
	Sin                               // sin x
	Neg                               // -x
	Quant                             // int8 of x·InputScale + InputOffset
	LogicalNot                        // 1 where x is 0
	Add                               // x + y
	Mul                               // x·y
	RealDiv                           // x/y
	LogicalAnd                        // 1 where both are not 0
	LogicalOr                         // 1 where one is not 0
	Less                              // 1 where x < y
	Greater                           // 1 where x > y
	Sub                               // x - y
	Equal                             // 1 where x = y
	QuantPerChannel                   // int8 of x/scale + offset
	DequantPerChannel                 // (x - offset)·scale
	DynamicQuant                      // int8 of x·127/max|row|, and max|row|/127
	Tanh                              // tanh x
)

// Elewise is one element-wise function.
//
//	types                              inputs                    outputs
//	Cast, Muls, Cos, Sin, Neg, Tanh    x                         y like x
//	LogicalNot                         x                         y like x
//	Add, Sub, Mul, RealDiv,            x, y                      z of the broadcast shape
//	  LogicalAnd, LogicalOr
//	Less, Greater, Equal               x, y                      z int8 of the broadcast shape
//	Quant                              x                         q int8 like x
//	QuantPerChannel                    x, scale, offset int8     q int8 like x
//	DequantPerChannel                  x int8, scale,            y of scale's type, like x
//	                                   offset int8
//	DynamicQuant                       x [..., n]                q int8 like x, scale f32 [...]
//
// Two shapes broadcast when, aligned at the last axis, each pair of dimensions
// is equal or has a 1. scale and offset broadcast to x; offset may be absent.
//
// Floats are f32, f16 and bf16: computed in float32 and rounded once, by IEEE
// rules. Integers of any width wrap; RealDiv has none. The logic takes int8 and
// bool. Cast converts between all real types by the rules of tensor.Convert; an
// OutTensorType that is Undefined means f16 for f32 and f32 for everything else.
//
// Quantisation rounds half to even and clamps to -128..127, or to -127..127
// under the option QuantMinNeg127; NaN becomes 0. DynamicQuant is symmetric, and
// a row of zeros has scale 0. DequantPerChannel to f16 saturates at ±65504.
//
// Errors at InferShape: ErrInvalidTensorDim for shapes that do not broadcast,
// ErrInvalidTensorDimNum for a DynamicQuant of rank 1, ErrInvalidParam for a
// Cast to another type. Profile 910b narrows the types, wants Quant's last
// dimension to be a multiple of 32, bounds that of DynamicQuant
// (ErrInvalidTensorDim), and does not compare the outputs' shapes at Setup.
//
// Source: ATB operation Elewise.
type Elewise struct {
	Type Type `json:"elewiseType"`
	// OutTensorType is the target of Cast.
	OutTensorType tensor.DType `json:"outTensorType"`
	// Muls holds the parameter of Muls.
	Muls MulsParam `json:"mulsParam"`
	// Quant holds the parameters of Quant and DynamicQuant.
	Quant QuantParam `json:"quantParam"`
}

// MulsParam is the parameter of Muls.
type MulsParam struct {
	// VarAttr is the factor.
	VarAttr float32 `json:"varAttr"`
}

// QuantParam are the parameters of Quant and DynamicQuant.
type QuantParam struct {
	// InputScale multiplies and InputOffset is added, by Quant.
	InputScale  float32 `json:"inputScale"`
	InputOffset int64   `json:"inputOffset"`
	// Asymmetric must be false.
	Asymmetric bool `json:"asymmetric"`
}

// DefaultElewise returns ATB's defaults; the type is to be set.
func DefaultElewise() Elewise { return Elewise{Quant: QuantParam{InputScale: 1}} }

// Of returns the function of a type with ATB's defaults.
func Of(t Type) Elewise {
	e := DefaultElewise()
	e.Type = t
	return e
}

const (
	anyFloat   = " | T=f32,f16,bf16"
	anyInteger = "int8,int16,int32,int64,uint8,uint16,uint32,uint64"
	anyNumber  = anyFloat + "," + anyInteger
	anyTruth   = " | T=int8,bool"
	anyReal    = anyNumber + ",f64,bool"
)

// kind is what the types of one group share.
type kind struct {
	// variant is the row set without the operation's name; native the
	// combinations of profile native.
	variant, native string
	in, out         []operation.Port
}

// kindOf returns the group of a valid type.
func (e Elewise) kindOf() kind {
	unary := func(variant, native string) kind {
		return kind{variant, native, operation.Ports("x"), operation.Ports("y")}
	}
	binary := func(variant, native string) kind {
		return kind{variant, native, operation.Ports("x", "y"), operation.Ports("z")}
	}
	switch e.Type {
	case Cast:
		return unary("Cast", e.castNative())
	case Muls:
		return unary("Muls", "T->T"+anyFloat)
	case Cos:
		return unary("Cos", "T->T"+anyFloat)
	case Sin:
		return unary("Sin", "T->T"+anyFloat)
	case Neg:
		return unary("Neg", "T->T"+anyFloat)
	case Tanh:
		return unary("Tanh", "T->T"+anyFloat)
	case Quant:
		return unary("Quant", "T->int8"+anyFloat)
	case LogicalNot:
		return unary("LogicalNot", "T->T"+anyTruth)
	case Add:
		return binary("Add", "T,T->T"+anyNumber)
	case Sub:
		return binary("Sub", "T,T->T"+anyNumber)
	case Mul:
		return binary("Mul", "T,T->T"+anyNumber)
	case RealDiv:
		return binary("RealDiv", "T,T->T"+anyFloat)
	case LogicalAnd:
		return binary("LogicalAnd", "T,T->T"+anyTruth)
	case LogicalOr:
		return binary("LogicalOr", "T,T->T"+anyTruth)
	case Less:
		return binary("Less", "T,T->int8"+anyNumber)
	case Greater:
		return binary("Greater", "T,T->int8"+anyNumber)
	case Equal:
		return binary("Equal", "T,T->int8"+anyNumber)
	case QuantPerChannel:
		return kind{"QuantPerChannel", "T,S,int8->int8" + anyFloat + " S=f32,f16,bf16", operation.Ports("x", "scale", "offset?"), operation.Ports("q")}
	case DequantPerChannel:
		return kind{"DequantPerChannel", "int8,T,int8->T" + anyFloat, operation.Ports("x", "scale", "offset?"), operation.Ports("y")}
	case DynamicQuant:
		return kind{"DynamicQuant", "T->int8,f32" + anyFloat, operation.Ports("x"), operation.Ports("q", "scale")}
	}
	return kind{}
}

// castNative lists the pairs of types of a Cast.
func (e Elewise) castNative() string {
	if e.OutTensorType == tensor.Undefined {
		return "f32->f16 ; T->f32 | T=f16,bf16,f64,bool," + anyInteger
	}
	return "T->" + e.OutTensorType.String() + anyReal
}

// Signature describes the operands.
func (e Elewise) Signature() operation.Signature {
	k := e.kindOf()
	return operation.Signature{Name: "ElewiseOperation", Variant: "ElewiseOperation" + k.variant, In: k.in, Out: k.out, Native: k.native}
}

// Validate checks the parameters.
func (e Elewise) Validate() error {
	switch {
	case e.Type < Cast || e.Type > Tanh:
		return status.Errorf(status.ErrInvalidParam, "elewiseType: want %d to %d, got %d", Cast, Tanh, e.Type)
	case e.Type == DynamicQuant && e.Quant.Asymmetric:
		return status.Errorf(status.ErrInvalidParam, "quantParam.asymmetric: want false")
	case e.OutTensorType != tensor.Undefined && e.OutTensorType.Size() == 0:
		return status.Errorf(status.ErrInvalidParam, "outTensorType: unknown type %s", e.OutTensorType)
	}
	return nil
}
