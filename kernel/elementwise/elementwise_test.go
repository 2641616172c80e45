package elementwise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

var floatTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}

var intTypes = []tensor.DType{
	tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
}

// special are values that every float kernel meets in its first elements.
var special = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-42, -1e-7, 6e-8}

// normals gives n values that type t holds exactly.
func normals(seed uint64, t tensor.DType, n int64, spread float64) ([]byte, []float64) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64() * spread
		if i < len(special) && n > 3*int64(len(special)) {
			v[i] = special[i]
		}
	}
	return encode(t, v)
}

// ints gives n random values over the whole range of type t.
func ints(seed uint64, t tensor.DType, n int64) []byte {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	b := make([]byte, n*t.Size())
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// encode rounds v to type t and returns the bytes and their values.
func encode(t tensor.DType, v []float64) ([]byte, []float64) {
	b := tensor.FromFloat64s(t, v)
	return b, decode(t, b)
}

func decode(t tensor.DType, b []byte) []float64 {
	v, err := tensor.Float64s(b, t)
	if err != nil {
		panic(err)
	}
	return v
}

// run runs every kernel of a table that takes the problem, checks that they
// agree, and returns the outputs.
func run(t *testing.T, table kernel.Table, p kernel.Problem, in [][]byte, inPlace map[int]int) [][]byte {
	t.Helper()
	var first [][]byte
	for _, k := range table {
		if k.Supports(&p) != nil {
			continue
		}
		place := inPlace
		for y, x := range inPlace {
			if !k.InPlace(y, x) {
				place = nil
			}
		}
		out := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: in, InPlace: place, Workers: workers(&p)})
		if first == nil {
			first = out
		}
		require.Equal(t, first, out, "%s", k.Name())
	}
	require.NotNil(t, first, "no kernel takes %v -> %v", p.In, p.Out)
	return first
}

// workers are the worker counts to try: fewer where one block does it all.
func workers(p *kernel.Problem) []int {
	if p.Out[0].Numel() < 1000 {
		return []int{1, 3}
	}
	return []int{1, 2, 16}
}

// requireRounded checks that got is want rounded to type t, with an error of
// `slack` last places on top of the half that rounding makes.
func requireRounded(t *testing.T, d tensor.DType, want, got []float64, slack float64, what string) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		g := got[i]
		rounded := decode(d, tensor.FromFloat64s(d, []float64{w}))[0]
		if math.IsNaN(w) || math.IsInf(rounded, 0) || math.IsInf(g, 0) {
			require.Equal(t, fmt.Sprint(rounded), fmt.Sprint(g), "%s: element %d", what, i)
			continue
		}
		require.LessOrEqual(t, math.Abs(g-w), (0.5+slack)*lastPlace(d, w), "%s: element %d: got %v, want %v", what, i, g, w)
	}
}

// halfSlack is the error of functions with results of 16 bits before they are
// rounded, in last places; package vec's gates have the largest.
func halfSlack(d tensor.DType) float64 {
	if d == tensor.Float16 {
		return 0.15
	}
	return 0.04
}

// lastPlace is the distance of neighbours of v in type d.
func lastPlace(d tensor.DType, v float64) float64 {
	bits, least := 23, -126
	switch d {
	case tensor.Float16:
		bits, least = 10, -14
	case tensor.BFloat16:
		bits = 7
	}
	exp := least
	if v != 0 {
		exp = max(exp, math.Ilogb(v))
	}
	return math.Ldexp(1, exp-bits)
}

// lengths are element counts around lines, chunks and blocks.
var lengths = []int64{1, 2, 63, 64, 65, 1000, 1024, 1025, 5000}
