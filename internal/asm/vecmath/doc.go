// Package vecmath holds functions of arrays in assembly: elementary functions,
// arithmetic, sums, products with rows, conversions and quantisation.
//
// Every function exists for AVX2 with FMA and F16C and for AVX-512, and gives
// the same bits at both. A function whose first result is false, or that says
// it did 0 elements, did nothing: there is no assembly for this machine or
// these operands, and the caller computes in plain Go; package internal/vec
// does so. Slices in one call have equal lengths unless the comment says
// otherwise. An output may be exactly the memory of an input of the same
// element type, and overlaps nothing else.
package vecmath

// Func names a function of one array.
type Func uint8

// Functions of one array; internal/vec says what they compute.
const (
	Neg Func = iota
	Relu
	RoundF16
	Exp
	Sigmoid
	Tanh
	Silu
	GeluTanh
	GeluErf
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
)

// PartFunc names a function of one array that is not computed for all
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
	Sum    Reduction = iota
	Max              // of the elements other than NaN, -Inf when there are none
	MaxAbs           // largest magnitude other than NaN, 0 when there is none
)

// Element is an element type of the rows of Dots and Mix, F16 and BF16 being
// uint16.
type Element uint8

// Element types.
const (
	F32 Element = iota
	F16
	BF16
	I8
)

// Row holds the Go types of Element.
type Row interface{ float32 | uint16 | int8 }
