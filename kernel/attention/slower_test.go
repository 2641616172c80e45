package attention

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/internal/cpu"
	"goatb/tensor"
)

// TestSlower asks for what sizes of heads turn off.
func TestSlower(t *testing.T) {
	of := func(dtype tensor.DType, key, value int64) []string {
		c := newCall(1, dtype, 2, 1, key, value, []int64{2, 1}, []int64{4, 3}).build(sources[0].layout)
		return attend.Slower(&c.problem)
	}
	for _, level := range cpu.Levels(cpu.Detected()) {
		restore := cpu.Limit(level)
		plain, odd := of(tensor.Float32, 20, 20), of(tensor.BFloat16, 64, 20)
		restore()
		assert.Empty(t, plain, "%s", level)
		if level.Has(cpu.AVX2) && !level.Has(cpu.AVX512) {
			assert.Equal(t, []string{"values are widened: this processor has no loop over bf16 rows of 20 elements"}, odd)
		} else {
			assert.Empty(t, odd, "%s", level)
		}
	}
}
