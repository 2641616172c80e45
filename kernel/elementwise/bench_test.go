package elementwise

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// benchCase is a launch with about n elements.
type benchCase struct {
	name  string
	table kernel.Table
	make  func(n int64) kernel.Problem
}

// oneOperand is a case with one input and one output.
func oneOperand(name string, table kernel.Table, from, to tensor.DType, params any) benchCase {
	return benchCase{name, table, func(n int64) kernel.Problem {
		return kernel.Problem{In: []tensor.Desc{tensor.Of(from, n)}, Out: []tensor.Desc{tensor.Of(to, n)}, Params: params}
	}}
}

// rowLength is the length of rows in benchmarks.
const rowLength = 4096

// twoOperands is a case with rows and a second operand whose shape second
// returns.
func twoOperands(name string, table kernel.Table, from, to tensor.DType, params any, second func(rows int64) []int64) benchCase {
	return benchCase{name, table, func(n int64) kernel.Problem {
		rows := max(n/rowLength, 1)
		return kernel.Problem{
			In:  []tensor.Desc{tensor.Of(from, rows, rowLength), tensor.Of(from, second(rows)...)},
			Out: []tensor.Desc{tensor.Of(to, rows, rowLength)}, Params: params,
		}
	}}
}

// Shapes of second operands.
func likeFirst(rows int64) []int64 { return []int64{rows, rowLength} }
func perRow(rows int64) []int64    { return []int64{rows, 1} }
func oneRow(int64) []int64         { return []int64{rowLength} }

var benchCases = []benchCase{
	twoOperands("add/f32", Binary, tensor.Float32, tensor.Float32, BinaryParams{Add}, likeFirst),
	twoOperands("add/f16", Binary, tensor.Float16, tensor.Float16, BinaryParams{Add}, likeFirst),
	twoOperands("add/bf16", Binary, tensor.BFloat16, tensor.BFloat16, BinaryParams{Add}, likeFirst),
	twoOperands("div/f32", Binary, tensor.Float32, tensor.Float32, BinaryParams{Div}, likeFirst),
	twoOperands("mul-per-row/f32", Binary, tensor.Float32, tensor.Float32, BinaryParams{Mul}, perRow),
	twoOperands("add-bias/f16", Binary, tensor.Float16, tensor.Float16, BinaryParams{Add}, oneRow),
	twoOperands("add/int8", Binary, tensor.Int8, tensor.Int8, BinaryParams{Add}, likeFirst),
	twoOperands("mul/int32", Binary, tensor.Int32, tensor.Int32, BinaryParams{Mul}, likeFirst),
	twoOperands("mul/int64", Binary, tensor.Int64, tensor.Int64, BinaryParams{Mul}, likeFirst),
	twoOperands("less/f32", Compare, tensor.Float32, tensor.Int8, CompareParams{Less}, likeFirst),
	twoOperands("equal/int64", Compare, tensor.Int64, tensor.Int8, CompareParams{Equal}, likeFirst),
	twoOperands("and/int8", Logic, tensor.Int8, tensor.Int8, LogicParams{And}, likeFirst),
	oneOperand("muls/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: Muls, Scale: 2}),
	oneOperand("relu/f16", Unary, tensor.Float16, tensor.Float16, UnaryParams{Op: Relu}),
	oneOperand("tanh/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: Tanh}),
	oneOperand("cos/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: Cos}),
	oneOperand("log/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: Log}),
	oneOperand("swish/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: Swish, Scale: 1}),
	oneOperand("swish/f16", Unary, tensor.Float16, tensor.Float16, UnaryParams{Op: Swish, Scale: 1}),
	oneOperand("sigmoid/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: Sigmoid}),
	oneOperand("gelu-tanh/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: GeluTanh}),
	oneOperand("gelu-tanh/bf16", Unary, tensor.BFloat16, tensor.BFloat16, UnaryParams{Op: GeluTanh}),
	oneOperand("gelu-erf/f32", Unary, tensor.Float32, tensor.Float32, UnaryParams{Op: GeluErf}),
	oneOperand("gelu-erf/bf16", Unary, tensor.BFloat16, tensor.BFloat16, UnaryParams{Op: GeluErf}),
	swigluCase("swiglu/f32", tensor.Float32),
	swigluCase("swiglu/f16", tensor.Float16),
	{"swiglu-grad/f32", SwiGLUGrad, func(n int64) kernel.Problem {
		wide := tensor.Of(tensor.Float32, max(n/rowLength, 1), 2*rowLength)
		return kernel.Problem{In: []tensor.Desc{tensor.Of(tensor.Float32, wide.Dim(0), rowLength), wide}, Out: []tensor.Desc{wide}, Params: struct{}{}}
	}},
	oneOperand("cast/f32-f16", Cast, tensor.Float32, tensor.Float16, struct{}{}),
	oneOperand("cast/f16-f32", Cast, tensor.Float16, tensor.Float32, struct{}{}),
	oneOperand("cast/f32-bf16", Cast, tensor.Float32, tensor.BFloat16, struct{}{}),
	oneOperand("cast/bf16-f32", Cast, tensor.BFloat16, tensor.Float32, struct{}{}),
	oneOperand("cast/f16-bf16", Cast, tensor.Float16, tensor.BFloat16, struct{}{}),
	oneOperand("cast/int32-int64", Cast, tensor.Int32, tensor.Int64, struct{}{}),
	oneOperand("cast/f32-int32", Cast, tensor.Float32, tensor.Int32, struct{}{}),
	oneOperand("cast/int8-f16", Cast, tensor.Int8, tensor.Float16, struct{}{}),
	oneOperand("quantize-mul/f32", QuantMul, tensor.Float32, tensor.Int8, QuantMulParams{Scale: 3}),
	oneOperand("quantize-mul/f16", QuantMul, tensor.Float16, tensor.Int8, QuantMulParams{Scale: 3}),
	quantDivCase("quantize-div/f16", tensor.Float16),
	{"quantize-dynamic/f16", QuantDynamic, func(n int64) kernel.Problem {
		rows := max(n/rowLength, 1)
		return kernel.Problem{In: []tensor.Desc{tensor.Of(tensor.Float16, rows, rowLength)},
			Out: []tensor.Desc{tensor.Of(tensor.Int8, rows, rowLength), tensor.Of(tensor.Float32, rows)}, Params: struct{}{}}
	}},
	{"dequantize/f16", Dequantize, func(n int64) kernel.Problem {
		rows := max(n/rowLength, 1)
		return kernel.Problem{In: []tensor.Desc{tensor.Of(tensor.Int8, rows, rowLength), tensor.Of(tensor.Float16, rowLength), tensor.Of(tensor.Int8, rowLength)},
			Out: []tensor.Desc{tensor.Of(tensor.Float16, rows, rowLength)}, Params: struct{}{}}
	}},
}

func swigluCase(name string, t tensor.DType) benchCase {
	return benchCase{name, SwiGLU, func(n int64) kernel.Problem {
		rows := max(n/rowLength, 1)
		return kernel.Problem{In: []tensor.Desc{tensor.Of(t, rows, 2*rowLength)}, Out: []tensor.Desc{tensor.Of(t, rows, rowLength)}, Params: struct{}{}}
	}}
}

func quantDivCase(name string, t tensor.DType) benchCase {
	return benchCase{name, QuantDiv, func(n int64) kernel.Problem {
		rows := max(n/rowLength, 1)
		return kernel.Problem{In: []tensor.Desc{tensor.Of(t, rows, rowLength), tensor.Of(t, rowLength), tensor.Of(tensor.Int8, rowLength)},
			Out: []tensor.Desc{tensor.Of(tensor.Int8, rows, rowLength)}, Params: struct{}{}}
	}}
}

func TestRunsDoNotAllocate(t *testing.T) {
	for _, c := range benchCases {
		assert.Zero(t, testing.AllocsPerRun(10, kerneltest.Launch(t, c.table, c.make(2048), nil)), c.name)
	}
}

// BenchmarkBandwidth reports bytes moved by one core beside a copy.
func BenchmarkBandwidth(b *testing.B) {
	for _, c := range benchCases {
		kerneltest.Bandwidths(b, c.name, c.table, c.make)
	}
}
