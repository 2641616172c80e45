// Package vecmath holds functions of arrays in assembly: elementary functions,
// arithmetic, sums, products with rows, conversions and quantisation.
//
// Every function exists for AVX2 with FMA and F16C and for AVX-512, and gives
// the same bits at both, but for the gates (Sigmoid, Silu, Swish, GeluTanh, SwiGLU)
// of f16 and bf16, which use tables and the processor's reciprocal at AVX-512, and
// the softmaxes of such rows. Elements are float32, or f16 or bf16 as uint16, which
// are computed in float32 and rounded once to nearest even.
//
// A function that returns false, or that says that it did 0 elements, did
// nothing: there is no assembly for this machine or these operands, and the
// caller computes in plain Go; package internal/vec does so. Slices in one call
// have equal lengths unless the comment says otherwise. An output may be
// exactly the memory of an input of the same element type, and overlaps nothing
// else.
package vecmath

// Func names a function of one array.
type Func uint8

// Functions of one array; internal/vec says what they compute. RoundF16 and Exp
// exist for float32 only.
const (
	Neg Func = iota
	Relu
	Sigmoid
	Tanh
	Silu
	GeluTanh
	GeluErf
	RoundF16
	Exp
	numFuncs
)

// Func2 names a function of two arrays.
type Func2 uint8

// Functions of two arrays.
const (
	Add    Func2 = iota // a+b
	Sub                 // a-b
	Mul                 // a·b
	Div                 // a/b
	SwiGLU              // silu(a)·b
	numFuncs2
)

// ScalarFunc names a function of an array and a number.
type ScalarFunc uint8

// Functions of an array x and a number s.
const (
	AddScalar ScalarFunc = iota // x+s
	SubScalar                   // x-s
	ScalarSub                   // s-x
	MulScalar                   // x·s
	DivScalar                   // x/s
	ScalarDiv                   // s/x
	numScalarFuncs
)

// PartFunc names a function of one float32 array that is not computed for all
// arguments.
type PartFunc uint8

// Functions with a range.
const (
	Sin PartFunc = iota // |x| < 2^20
	Cos                 // |x| < 2^20
	Log                 // positive, finite, normal
)

// Reduction names a function of one array whose result is one number.
type Reduction uint8

// Reductions.
const (
	Sum Reduction = iota
	SumSquares
	Max    // of the elements other than NaN, -Inf when there are none
	MaxAbs // largest magnitude other than NaN, 0 when there is none
	numReductions
)

// Rotation names a rotation of pairs: a and b become a·cos - b·sin and
// b·cos + a·sin, every product rounded before the sum.
type Rotation uint8

// Rotations: of pairs half a vector apart and of neighbours; with steps, every
// product and sum is rounded to f16, for float32 and f16 only.
const (
	Halves Rotation = iota
	Pairs
	HalvesSteps
	PairsSteps
	numRotations
)

// Element is the element type of an array.
type Element uint8

// Element types; F16 and BF16 are uint16. Rows of Dots and Mix may be I8.
const (
	F32 Element = iota
	F16
	BF16
	I8
	numFloats = I8
)

// Row holds the Go types of Element.
type Row interface{ float32 | uint16 | int8 }

// widest is the largest magnitude of the exponents that the gates take.
const widest = 174

// SwishScale reports whether Swish takes a scale for elements of a type.
func SwishScale(e Element, scale float32) bool {
	least := float32(0x1p-64)
	if e == BF16 {
		least = 0x1p-6
	}
	return scale >= least && scale <= 0x1p64
}
