package paged

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/internal/cpu"
	"goatb/tensor"
)

// TestSlower asks for what block sizes and widths turn off.
func TestSlower(t *testing.T) {
	of := func(block, width int64, kv tensor.DType, quant Quant) []string {
		s := plain()
		s.bs, s.dk, s.dv, s.kv, s.params.Quant = block, width, width, kv, quant
		p := s.build().p
		return attendGo.Slower(&p)
	}
	assert.Empty(t, of(8, 8, tensor.Float32, NoQuant))
	assert.Equal(t, []string{
		"keys are gathered: want blocks of 8 positions or more, got 4",
		"values are gathered: want blocks of 8 positions or more, got 4",
	}, of(4, 8, tensor.Float32, NoQuant))
	for _, level := range cpu.Levels(cpu.Detected()) {
		restore := cpu.Limit(level)
		odd := of(8, 20, tensor.Float16, NoQuant)
		integer := of(16, 20, tensor.Int8, Dequant)
		restore()
		if level.Has(cpu.AVX2) && !level.Has(cpu.AVX512) {
			assert.Equal(t, []string{
				"keys are widened: this processor has no loop over f16 rows of 20 elements",
				"values are widened: this processor has no loop over f16 rows of 20 elements",
			}, odd)
			continue
		}
		assert.Empty(t, odd, "%s", level)
		assert.Equal(t, []string{"keys are not multiplied as integers: this processor has no loop over int8 rows of 20 elements"}, integer, "%s", level)
	}
	s := plain()
	p := s.build().p
	p.In[InKey] = tensor.Desc{}
	assert.Empty(t, attendGo.Slower(&p), "a problem that is not taken has no ways")
}
