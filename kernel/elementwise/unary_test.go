package elementwise

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/kernel"
	"goatb/tensor"
)

func TestUnary(t *testing.T) {
	const scale = float32(0.37)
	refs := [numUnary]func(float64) float64{
		Muls: func(x float64) float64 { return x * float64(scale) },
		Cos:  math.Cos,
		Sin:  math.Sin,
		Neg:  func(x float64) float64 { return -x },
		Tanh: math.Tanh,
	}
	for _, d := range floatTypes {
		for op, ref := range refs {
			for i, n := range lengths {
				data, x := floats(uint64(i), d, n, 5)
				want := make([]float64, n)
				for j := range x {
					want[j] = ref(x[j])
				}
				desc := []tensor.Desc{tensor.Of(d, n)}
				p := kernel.Problem{In: desc, Out: desc, Params: UnaryParams{Op: UnaryOp(op), Scale: scale}}
				out := run(t, Unary, p, [][]byte{data}, nil)
				// Package vec's largest error, 2.6 ulp of float32, is small in
				// the other types.
				slack := 0.03
				if d == tensor.Float32 {
					slack = 2.1
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
