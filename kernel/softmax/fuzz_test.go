package softmax

import (
	"math"
	"math/rand/v2"
	"testing"

	"goatb/internal/cpu"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// FuzzSoftmax compares softmaxes of any shape, type and level with float64, where
// special puts infinities, NaN and extreme numbers among the elements.
func FuzzSoftmax(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint8(0), uint8(2), uint16(40), uint8(0), float32(1), uint8(0))
	f.Add(uint64(2), uint8(1), uint8(2), uint8(0), uint16(4095), uint8(0), float32(8), uint8(0))
	f.Add(uint64(3), uint8(2), uint8(3), uint8(6), uint16(32), uint8(0), float32(90), uint8(7))
	f.Add(uint64(4), uint8(1), uint8(1), uint8(1), uint16(99), uint8(16), float32(1e-3), uint8(3))
	f.Add(uint64(5), uint8(2), uint8(2), uint8(0), uint16(9000), uint8(0), float32(-1e30), uint8(1))
	types := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}
	levels := cpu.Levels(cpu.Detected())
	f.Fuzz(func(t *testing.T, seed uint64, elem, level, outer uint8, length uint16, inner uint8, scale float32, special uint8) {
		defer cpu.Limit(levels[int(level)%len(levels)])()
		dt, r := types[int(elem)%len(types)], rand.New(rand.NewPCG(seed, 5))
		v := View{1 + int64(outer)%8, 1 + int64(length)%10000, 1 + int64(inner)%20}
		if v.Inner > 1 {
			v.Length = 1 + v.Length%200
		}
		compareKernels(t, dt, v, fuzzRows(r, v, scale, special))
	})
}

// fuzzRows makes normal numbers times scale, one of `special` of them extreme.
func fuzzRows(r *rand.Rand, v View, scale float32, special uint8) []float32 {
	inf := float32(math.Inf(1))
	extremes := []float32{-inf, -inf, -inf, -inf, 0, -65504, -3e38, 3e38, 6e-8, 1e-40, inf, float32(math.NaN())}
	x := make([]float32, v.Outer*v.Length*v.Inner)
	for i := range x {
		x[i] = float32(r.NormFloat64()) * scale
		if special > 0 && r.IntN(int(special)) == 0 {
			x[i] = extremes[r.IntN(len(extremes))]
		}
	}
	return x
}

// compareKernels runs every kernel that takes the problem.
func compareKernels(t *testing.T, dt tensor.DType, v View, x []float32) {
	in, p := encode(dt, x), problem(dt, v)
	want := reference(decode(dt, in), v)
	for _, k := range Whole {
		if k.Supports(&p) == nil {
			compare(t, dt, want, kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: [][]byte{in}, Workers: []int{1, 2}})[0])
		}
	}
}
