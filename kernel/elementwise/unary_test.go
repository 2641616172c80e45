package elementwise

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/kernel"
	"goatb/tensor"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// unaryScale is the factor of Muls and Swish in tests.
const unaryScale = float32(1.702)

// unaryRefs are the functions by their definition; negative infinity has its
// limit.
var unaryRefs = [numUnary]func(float64) float64{
	Muls: func(x float64) float64 { return x * float64(unaryScale) },
	Cos:  math.Cos,
	Sin:  math.Sin,
	Neg:  func(x float64) float64 { return -x },
	Tanh: math.Tanh,
	Relu: func(x float64) float64 { return max(x, 0) },
	GeluTanh: func(x float64) float64 {
		if x < -30 {
			return math.Copysign(0, -1)
		}
		z := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		return x / (1 + math.Exp(-2*z))
	},
	GeluErf: func(x float64) float64 {
		if x < -30 {
			return math.Copysign(0, -1)
		}
		return 0.5 * x * math.Erfc(-x/math.Sqrt2)
	},
	Swish: func(x float64) float64 {
		if x < -400 {
			return math.Copysign(0, -1)
		}
		return x * sigmoid(float64(unaryScale)*x)
	},
	Sigmoid: sigmoid,
	Log:     math.Log,
}

// unaryPlaces are the largest errors in last places of float32, those of
// package vec; they are small in the other types. The exponent of GeluTanh is
// off far out in its tail.
var unaryPlaces = [numUnary]float64{
	Muls: 0.5, Cos: 2.2, Sin: 2.2, Neg: 0, Tanh: 2.6, Relu: 0, GeluTanh: 165, GeluErf: 5.2, Swish: 3.5, Sigmoid: 2.5, Log: 0.9,
}

func TestUnary(t *testing.T) {
	for _, d := range floatTypes {
		for op, ref := range unaryRefs {
			for i, n := range lengths {
				data, x := normals(uint64(i), d, n, 5)
				want := make([]float64, n)
				for j := range x {
					want[j] = ref(x[j])
				}
				desc := []tensor.Desc{tensor.Of(d, n)}
				p := kernel.Problem{In: desc, Out: desc, Params: UnaryParams{Op: UnaryOp(op), Scale: unaryScale}}
				out := run(t, Unary, p, [][]byte{data}, nil)
				slack := halfSlack(d)
				if d == tensor.Float32 {
					slack = unaryPlaces[op] - 0.5
				}
				requireRounded(t, d, want, decode(d, out[0]), slack, fmt.Sprintf("op %d %s", op, d))
				assert.Equal(t, out, run(t, Unary, p, [][]byte{data}, map[int]int{0: 0}), "in place")
			}
		}
	}
}

func TestUnaryRefuses(t *testing.T) {
	desc := func(d tensor.DType, n int64) []tensor.Desc { return []tensor.Desc{tensor.Of(d, n)} }
	for _, p := range []kernel.Problem{
		{In: desc(tensor.Int32, 3), Out: desc(tensor.Int32, 3), Params: UnaryParams{}},
		{In: desc(tensor.Float32, 3), Out: desc(tensor.Float16, 3), Params: UnaryParams{}},
		{In: desc(tensor.Float32, 3), Out: desc(tensor.Float32, 4), Params: UnaryParams{}},
		{In: desc(tensor.Float32, 3), Out: desc(tensor.Float32, 3), Params: UnaryParams{Op: numUnary}},
		{In: desc(tensor.Float32, 3), Params: UnaryParams{}},
	} {
		assert.Error(t, unaryFloat.Supports(&p), "%v -> %v", p.In, p.Out)
	}
}

func TestSmallWorkStaysOnOneBlock(t *testing.T) {
	blocks := func(n int64) int {
		desc := []tensor.Desc{tensor.Of(tensor.Float16, n)}
		p := kernel.Problem{In: desc, Out: desc, Params: UnaryParams{Op: Muls}, Machine: kernel.Machine{Cores: 8}}
		g, err := unaryFloat.Tile(&p, make([]byte, unaryFloat.TilingSize(&p)))
		assert.NoError(t, err)
		return g.Blocks
	}
	assert.Equal(t, 1, blocks(512))
	assert.Equal(t, 8, blocks(1<<20))
}
