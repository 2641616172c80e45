package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// gateFuncs are the functions that take another way where an element nearby is
// large or not a number.
var gateFuncs = map[string]func(dst, src []float32){
	"sigmoid": Sigmoid, "silu": Silu, "gelu tanh": GeluTanh,
	"swish 1.702":  func(dst, src []float32) { Swish(dst, src, 1.702) },
	"swish 2^60":   func(dst, src []float32) { Swish(dst, src, 1<<60) },
	"swish 2^-60":  func(dst, src []float32) { Swish(dst, src, 1.0/(1<<60)) },
	"swiglu twice": func(dst, src []float32) { SwiGLU(dst, src, src) },
}

// TestGatesAlone checks that an element's result depends on that element alone,
// and is the same with all assembly.
func TestGatesAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	outliers := []float32{86.9, -87.1, -100, 300, -1e30, 3e38, float32(math.Inf(-1)), float32(math.Inf(1)),
		float32(math.NaN()), math.Float32frombits(0x7f800001), math.Float32frombits(0xff800001), 1e-41}
	src, dst := make([]float32, 1000), make([]float32, 1000)
	for i := range src {
		if src[i] = float32(r.NormFloat64()) * float32(1+i/100); i > 300 && r.IntN(60) == 0 {
			src[i] = outliers[r.IntN(len(outliers))]
		}
	}
	for name, f := range gateFuncs {
		first := map[int]float32{}
		for _, level := range cpu.Levels(cpu.Detected()) {
			if level == cpu.None {
				continue
			}
			restore := cpu.Limit(level)
			f(dst, src)
			for i, x := range src {
				one := []float32{x}
				f(one, one)
				require.True(t, sameBits(dst[i], one[0]), "%s of %v, cpu=%s: want %v, got %v", name, x, level, one[0], dst[i])
				if other, ok := first[i]; ok {
					require.True(t, sameBits(other, one[0]), "%s of %v, cpu=%s: want %v, got %v", name, x, level, other, one[0])
				}
				first[i] = one[0]
			}
			restore()
		}
	}
}
