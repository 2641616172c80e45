package gemm

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/internal/cpu"
)

func TestPeaks(t *testing.T) {
	assert.Empty(t, Peaks(cpu.None))
	assert.GreaterOrEqual(t, len(Peaks(cpu.Detected())), len(Peaks(cpu.Detected().Level())))
	for _, p := range Peaks(cpu.Detected()) {
		p.Run(3)
		assert.Positive(t, p.Ops, p.Name)
	}
}

// BenchmarkPeak reports the multiply-add peaks of one core.
func BenchmarkPeak(b *testing.B) {
	for _, p := range Peaks(cpu.Detected()) {
		b.Run("loop="+p.Name, func(b *testing.B) {
			const turns = 10000
			for b.Loop() {
				p.Run(turns)
			}
			b.ReportMetric(float64(p.Ops)*turns*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gop/s")
		})
	}
}
