package norm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
)

func TestRMSDoesNotAllocate(t *testing.T) {
	for _, d := range floatTypes {
		c := &rmsCase{x: d, gamma: d, y: d, rows: 3, width: 100, residual: true, bias: true, beta: true, sum: true, std: true}
		assert.Zero(t, testing.AllocsPerRun(10, kerneltest.Launch(t, RMS, c.problem(), nil)), "%s", d)
	}
}

// BenchmarkBandwidth reports bytes moved by one core beside a copy.
func BenchmarkBandwidth(b *testing.B) {
	const width = 4096
	for _, d := range floatTypes {
		for _, residual := range []bool{false, true} {
			kerneltest.Bandwidths(b, fmt.Sprintf("rms/%s/residual=%v", d, residual), RMS, func(n int64) kernel.Problem {
				c := &rmsCase{params: RMSParams{Eps: 1e-5}, x: d, gamma: d, y: d, rows: max(n/width, 1), width: width, residual: residual, sum: residual}
				return c.problem()
			})
		}
	}
}
