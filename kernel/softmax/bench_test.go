package softmax

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

func TestRunsDoNotAllocate(t *testing.T) {
	for _, v := range []View{{4, 100, 1}, {2, 50, 7}} {
		assert.Zero(t, testing.AllocsPerRun(10, kerneltest.Launch(t, Whole, problem(tensor.Float16, v), nil)), "%v", v)
	}
}

// BenchmarkBandwidth reports bytes moved by one core beside a copy.
func BenchmarkBandwidth(b *testing.B) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		for _, v := range []View{{0, 64, 1}, {0, 4096, 1}, {0, 100000, 1}, {0, 1024, 64}} {
			kerneltest.Bandwidths(b, fmt.Sprintf("softmax/%s/length=%d/inner=%d", d, v.Length, v.Inner), Whole, func(n int64) kernel.Problem {
				return problem(d, View{max(n/(v.Length*v.Inner), 1), v.Length, v.Inner})
			})
		}
	}
}
