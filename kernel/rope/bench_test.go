package rope

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

var floatTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}

func TestRunDoesNotAllocate(t *testing.T) {
	for _, d := range floatTypes {
		for _, coeff := range []int64{2, 4, 64} {
			c := &ropeCase{x: d, angle: d, tokens: 3, headsQ: 4, headsK: 2, head: 64, width: 64, coef: coeff}
			assert.Zero(t, testing.AllocsPerRun(10, kerneltest.Launch(t, Apply, c.problem(), nil)), "%s %d", d, coeff)
		}
	}
}

// BenchmarkBandwidth reports bytes moved by one core beside a copy.
func BenchmarkBandwidth(b *testing.B) {
	const heads, width = 40, 128
	for _, d := range floatTypes {
		for _, coeff := range []int64{2, width} {
			kerneltest.Bandwidths(b, fmt.Sprintf("rope/%s/coeff=%d", d, coeff), Apply, func(n int64) kernel.Problem {
				c := &ropeCase{x: d, angle: d, tokens: max(n/(heads*width), 1), headsQ: 32, headsK: 8, head: width, width: width, coef: coeff}
				return c.problem()
			})
		}
	}
}
