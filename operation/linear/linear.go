package linear

import (
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// MatmulType chooses where the batch axis of a Linear lies.
type MatmulType int64

// Matmul types.
const (
	// MatmulNormal is x [b,m,k] and output [b,m,n].
	MatmulNormal MatmulType = iota
	// MatmulEinSum is x [m,b,k] and output [m,b,n].
	MatmulEinSum
)

// QuantMode says which scales an int8 product has.
type QuantMode int64

// Quantisation modes.
const (
	// QuantDefault means one scale per column, as QuantPerChannel does.
	QuantDefault QuantMode = iota
	// QuantPerChannel means one scale per column.
	QuantPerChannel
	// QuantPerToken means one scale per column and one per row.
	QuantPerToken
)

// Linear is a matrix product with what usually follows it. With x seen as
// [b,m,k], the weight as [b,k,n] and [n] short for [n] or [b,n]:
//
//	mode         inputs                              output
//	float        x, weight                           x·w
//	bias         x, weight, bias [n]                 x·w + bias
//	accumulate   x, weight, acc f32 [b,m,n]          acc + x·w, written in acc's place
//	dequantise   x, weight int8, scale [n]           (x·w) * scale
//	  and bias   x, weight int8, bias int32 [n],     (x·w + bias) * scale
//	             scale [n]
//	per token    x, weight int8, scale f32 [n],      (x·w) * scale[n] * tokenScale[m]
//	             tokenScale f32 [m]
//
// x is [m,k] or [b,m,k], with TransposeA [k,m] or [b,k,m], and with MatmulEinSum
// [m,b,k]. The weight is [k,n] or [b,k,n], with TransposeB [n,k] or [b,n,k]; one
// matrix [k,n] serves every batch of x. A weight of layout FractalNZ is either
// one of these shapes, row-major, or the rank 4 stored form [b, cols/c, rows, c]
// of the matrix [rows, cols], c being tensor.NZBlock of its type. The output has
// x's shape with the last two axes m and n ([m,b,n] with MatmulEinSum).
//
// A constant weight is best packed once, with PackWeight or the operation Pack: a
// weight of layout Panels has shape [n,k] or [b,n,k] and goes with TransposeB.
// Products with it give the same bits and cost neither time for packing nor
// memory besides the weight's own; that layout is of profile native only.
//
// Element types: f32, f16 and bf16 with sums in f32 and one rounding to x's
// type; before a bias of a half-precision type is added, the product is rounded
// to that type. Int8 products have exact int32 sums and OutDataType's type. A
// scale is f32, or int64 or uint64 whose low 32 bits are those of an f32.
//
// A row of x gives the same result in every batch: package matmul says in which
// order products are added.
//
// Errors of InferShape, in this order: ErrInvalidTensorDimNum for a rank of x or
// weight; ErrInvalidTensorDim for their batches, for K and for the blocks of a
// stored weight; then, for bias, acc and scales in turn, ErrInvalidTensorDimNum
// for the rank and ErrInvalidTensorDim for batch and lengths. Setup repeats them
// and gives the same codes for the output. Profile 910b takes f32 operands with
// TransposeB and without TransposeA only: ErrInvalidParam at Setup. So is a
// weight of layout Panels without TransposeB.
//
// Source: ATB operation Linear.
type Linear struct {
	// TransposeA says that x is stored [k,m].
	TransposeA bool `json:"transposeA"`
	// TransposeB says that the weight is stored [n,k].
	TransposeB bool `json:"transposeB"`
	// HasBias adds the input bias.
	HasBias bool `json:"hasBias"`
	// OutDataType is Undefined for float products, and the output's type of
	// int8 products: f16, bf16, or f32 in profile native.
	OutDataType tensor.DType `json:"outDataType"`
	// EnAccum adds the product to the input acc, in place.
	EnAccum bool `json:"enAccum"`
	// MatmulType tells where the batch axis lies.
	MatmulType MatmulType `json:"matmulType"`
	// QuantMode says which scales an int8 product has.
	QuantMode QuantMode `json:"quantMode"`
}

// DefaultLinear returns ATB's defaults: a weight [n,k] and a bias.
func DefaultLinear() Linear { return Linear{TransposeB: true, HasBias: true} }

// Positions of the first two inputs; the others depend on the mode.
const (
	xIn = iota
	weightIn
	thirdIn
	fourthIn
)

// quantised reports whether the operands are int8.
func (l Linear) quantised() bool { return l.OutDataType != tensor.Undefined }

func (l Linear) einSum() bool { return l.MatmulType == MatmulEinSum }

func (l Linear) perToken() bool { return l.QuantMode == QuantPerToken }

// scaleIn is the position of the scale of an int8 product.
func (l Linear) scaleIn() int {
	if l.HasBias {
		return fourthIn
	}
	return thirdIn
}

// Validate checks the parameters.
func (l Linear) Validate() error {
	bad := func(format string, args ...any) error { return status.Errorf(status.ErrInvalidParam, format, args...) }
	switch l.OutDataType {
	case tensor.Undefined, tensor.Float16, tensor.BFloat16, tensor.Float32:
	default:
		return bad("outDataType: want undefined, f16, bf16 or f32, got %s", l.OutDataType)
	}
	if l.MatmulType < MatmulNormal || l.MatmulType > MatmulEinSum {
		return bad("matmulType: want 0 or 1, got %d", l.MatmulType)
	}
	if l.QuantMode < QuantDefault || l.QuantMode > QuantPerToken {
		return bad("quantMode: want 0 to 2, got %d", l.QuantMode)
	}
	switch {
	case l.einSum() && (l.EnAccum || l.TransposeA || l.HasBias || l.quantised()):
		return bad("matmulType 1 goes with none of enAccum, transposeA, hasBias and outDataType")
	case !l.quantised() && l.QuantMode != QuantDefault:
		return bad("quantMode %d needs an outDataType", l.QuantMode)
	case l.EnAccum && l.HasBias:
		return bad("enAccum and hasBias exclude each other")
	case l.EnAccum && l.quantised():
		return bad("enAccum goes with float operands only, got outDataType %s", l.OutDataType)
	case l.perToken() && l.HasBias:
		return bad("quantMode 2 and hasBias exclude each other")
	}
	return nil
}

// Signature lists the operands of the mode.
func (l Linear) Signature() operation.Signature {
	s := operation.Signature{Name: "LinearOperation", Out: operation.Ports("output")}
	const mm, floats = "LinearOperationMatmul", " | T=f32,f16,bf16"
	out := l.OutDataType.String()
	switch {
	case l.perToken():
		s.In = operation.Ports("x", "weight", "scale", "tokenScale")
		s.Variant = mm + "DequantPerToken" + l.outName() + "Atlas800IA2"
		s.Native = weights("int8,", "int8", ",f32,f32->"+out)
	case l.quantised() && l.HasBias:
		s.In = operation.Ports("x", "weight", "bias", "scale")
		s.Variant = mm + "DequantWithBias" + l.outName() + "Atlas800IA2"
		s.Native = weights("int8,", "int8", ",int32,S->"+out) + " | S=f32,int64,uint64"
	case l.quantised():
		s.In = operation.Ports("x", "weight", "scale")
		s.Variant = mm + "Dequant" + l.outName() + "Atlas800IA2"
		s.Native = weights("int8,", "int8", ",S->"+out) + " | S=f32,int64,uint64"
	case l.EnAccum:
		s.In = operation.Ports("x", "weight", "acc")
		s.Variant = mm + "Accum"
		s.Native = weights("T,", "T", ",f32->f32") + floats
	case l.HasBias:
		s.In = operation.Ports("x", "weight", "bias")
		s.Variant = mm + "WithBiasAtlas800IA2"
		s.Native = weights("T,", "T", ",T->T") + " ; " + weights("T,", "T", ",f32->T") + floats
	default:
		s.In = operation.Ports("x", "weight")
		s.Variant = mm + "Atlas800IA2"
		if l.einSum() {
			s.Variant = mm + "EinSum"
		}
		s.Native = weights("T,", "T", "->T") + floats
	}
	return s
}

// weights lists a combination for each layout that a weight of a type may have.
func weights(before, weight, after string) string {
	row := before + weight
	return row + after + " ; " + row + "@fractal_nz" + after + " ; " + row + "@panels" + after
}

// outName is OutDataType in the names of profile tables.
func (l Linear) outName() string {
	switch l.OutDataType {
	case tensor.Float16:
		return "Float16"
	case tensor.BFloat16:
		return "Bf16"
	}
	return "Float32"
}
