package order

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

var types = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}

// problem keeps num elements of rows of n.
func problem(dt tensor.DType, rows, n, num int64) kernel.Problem {
	return kernel.Problem{
		In:     []tensor.Desc{tensor.Of(dt, rows, n)},
		Out:    []tensor.Desc{tensor.Of(dt, rows, num), tensor.Of(tensor.Int32, rows, num)},
		Params: Largest{Num: num},
	}
}

// encode rounds values to a type, in aligned memory.
func encode(dt tensor.DType, v []float32) []byte {
	b := device.BytesOf(make([]uint64, len(v)))[:int64(len(v))*dt.Size()]
	kernel.StoreFloats(b, v, dt)
	return b
}

// want returns the positions of a row in the order that the package promises, by
// comparing float64 values.
func want(row []float32) []int32 {
	order := make([]int32, len(row))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := float64(row[a]), float64(row[b])
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(truth(math.IsNaN(y)), truth(math.IsNaN(x)))
		}
		return cmp.Compare(y, x)
	})
	return order
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// check runs the kernel on rows of the given type and compares bits.
func check(t *testing.T, dt tensor.DType, rows, n, num int64, x []float32) {
	t.Helper()
	data := encode(dt, x)
	exact := make([]float32, len(x))
	kernel.LoadFloats(exact, data, dt)
	out := kerneltest.Run(t, kerneltest.Case{Kernel: topRadix, Problem: problem(dt, rows, n, num), In: [][]byte{data}})
	size := dt.Size()
	var values []byte
	var indices []int32
	for r := range rows {
		for _, i := range want(exact[r*n : (r+1)*n])[:num] {
			at := (r*n + int64(i)) * size
			values, indices = append(values, data[at:at+size]...), append(indices, i)
		}
	}
	require.Equal(t, indices, slices.Clone(device.View[int32](out[1])), "%s [%d,%d] num %d", dt, rows, n, num)
	require.Equal(t, values, out[0], "%s [%d,%d] num %d", dt, rows, n, num)
}

func TestTop(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 1))
	draws := map[string]func(i int) float32{
		"normal":  func(int) float32 { return float32(rng.NormFloat64()) },
		"uniform": func(int) float32 { return float32(200*rng.Float64() - 100) },
		"ties":    func(int) float32 { return float32(rng.IntN(5) - 2) },
		"equal":   func(int) float32 { return 1 },
		"rising":  func(i int) float32 { return float32(i) },
		"falling": func(i int) float32 { return float32(-i) },
		"close":   func(int) float32 { return 1 + float32(rng.IntN(1000))/4096 },
		"wild": func(int) float32 {
			return math.Float32frombits(rng.Uint32())
		},
	}
	for name, draw := range draws {
		for _, dt := range types {
			t.Run(fmt.Sprintf("%s/%s", name, dt), func(t *testing.T) {
				for _, c := range [][3]int64{{1, 1, 1}, {3, 7, 7}, {5, 64, 8}, {2, 511, 511}, {2, 513, 512}, {1, 2049, 2000}, {3, 5003, 17}, {3, 5003, 16}, {1, 5003, 5003}} {
					x := make([]float32, c[0]*c[1])
					for i := range x {
						x[i] = draw(i)
					}
					check(t, dt, c[0], c[1], c[2], x)
				}
			})
		}
	}
}

func TestTopOfSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	zero := float32(math.Copysign(0, -1))
	tiny := math.Float32frombits(1) // 0 as a half
	x := []float32{0, zero, -inf, nan, 1, inf, -nan, zero, 0, -1, tiny, -tiny, 65504, -65504, nan, inf}
	for _, dt := range types {
		for num := range int64(len(x)) {
			check(t, dt, 1, int64(len(x)), num+1, x)
		}
	}
	// Many of them, so that they are counted.
	var long []float32
	for range 100 {
		long = append(long, x...)
	}
	for _, dt := range types {
		check(t, dt, 1, int64(len(long)), int64(len(long)), long)
	}
}

// TestKeysOrder checks the keys of every half against its value.
func TestKeysOrder(t *testing.T) {
	for _, c := range []struct {
		inf   uint32
		value func(uint16) float32
	}{
		{0x7c000000, func(b uint16) float32 { return tensor.F16(b).Float32() }},
		{0x7f800000, func(b uint16) float32 { return tensor.BF16(b).Float32() }},
	} {
		rng := rand.New(rand.NewPCG(1, 15))
		for range 200_000 {
			a, b := uint16(rng.Uint32()), uint16(rng.Uint32())
			x, y := c.value(a), c.value(b)
			order := cmp.Compare(y, x)
			if x != x || y != y {
				order = cmp.Compare(truth(y != y), truth(x != x))
			}
			require.Equal(t, order, cmp.Compare(key(uint32(a)<<16, c.inf), key(uint32(b)<<16, c.inf)), "%g and %g", x, y)
		}
	}
}

func TestTopRefuses(t *testing.T) {
	f := func(dims ...int64) tensor.Desc { return tensor.Of(tensor.Float32, dims...) }
	i := func(dims ...int64) tensor.Desc { return tensor.Of(tensor.Int32, dims...) }
	good := problem(tensor.Float32, 2, 5, 3)
	require.NoError(t, topRadix.Supports(&good))
	for name, p := range map[string]kernel.Problem{
		"none":          {Params: Largest{1}},
		"one output":    {In: []tensor.Desc{f(5)}, Out: []tensor.Desc{f(1)}, Params: Largest{1}},
		"integers":      {In: []tensor.Desc{i(5)}, Out: []tensor.Desc{i(1), i(1)}, Params: Largest{1}},
		"zero":          {In: []tensor.Desc{f(5)}, Out: []tensor.Desc{f(0), i(0)}, Params: Largest{0}},
		"more":          {In: []tensor.Desc{f(5)}, Out: []tensor.Desc{f(6), i(6)}, Params: Largest{6}},
		"values":        {In: []tensor.Desc{f(5)}, Out: []tensor.Desc{f(2), i(3)}, Params: Largest{3}},
		"indices":       {In: []tensor.Desc{f(5)}, Out: []tensor.Desc{f(3), i(2)}, Params: Largest{3}},
		"type of index": {In: []tensor.Desc{f(5)}, Out: []tensor.Desc{f(3), f(3)}, Params: Largest{3}},
		"long":          {In: []tensor.Desc{f(1 << 31)}, Out: []tensor.Desc{f(3), i(3)}, Params: Largest{3}},
		"params":        {In: good.In, Out: good.Out, Params: 3},
	} {
		assert.Error(t, topRadix.Supports(&p), name)
	}
}

func TestTopAllocatesNothing(t *testing.T) {
	for _, num := range []int64{10, 3000} {
		run := kerneltest.Launch(t, Top, problem(tensor.Float32, 4, 4096, num), nil)
		assert.Zero(t, testing.AllocsPerRun(10, run))
	}
}

func BenchmarkTop(b *testing.B) {
	rng := rand.New(rand.NewPCG(2, 15))
	for _, dt := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		for _, c := range [][3]int64{{22, 4096, 3000}, {8, 25000, 512}, {1000, 64, 8}} {
			x := make([]float32, c[0]*c[1])
			for i := range x {
				x[i] = float32(200*rng.Float64() - 100)
			}
			b.Run(fmt.Sprintf("type=%s/rows=%d/n=%d/num=%d", dt, c[0], c[1], c[2]), func(b *testing.B) {
				run := kerneltest.Launch(b, Top, problem(dt, c[0], c[1], c[2]), map[int][]byte{0: encode(dt, x)})
				for b.Loop() {
					run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c[0]*c[1]), "ns/element")
			})
		}
	}
}
