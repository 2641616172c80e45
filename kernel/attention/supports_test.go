package attention

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
	"goatb/tensor"
)

// TestSupportsRefuses changes a call that is supported in one place at a time.
func TestSupportsRefuses(t *testing.T) {
	for _, x := range []struct {
		name   string
		source int
		change func(c *call)
	}{
		{"inputs", 2, func(c *call) { c.problem.In = c.problem.In[:3] }},
		{"outputs", 2, func(c *call) { c.problem.Out = nil }},
		{"heads", 2, func(c *call) { c.a.KeyHeads = 3 }},
		{"no key heads", 2, func(c *call) { c.a.KeyHeads = 0 }},
		{"query type", 2, func(c *call) { c.problem.In[InQuery].DType = tensor.Int32 }},
		{"int8 without quantisation", 2, func(c *call) { c.problem.In[InKey].DType = tensor.Int8 }},
		{"float with quantisation", 2, func(c *call) { c.a.Quant = Online }},
		{"output type", 2, func(c *call) { c.problem.Out[0].DType = tensor.Int8 }},
		{"query rows", 2, func(c *call) { c.a.Rows++ }},
		{"key slots", 2, func(c *call) { c.a.Slots++ }},
		{"layers", 2, func(c *call) { c.a.Layers++ }},
		{"batch", 3, func(c *call) { c.a.Batch++ }},
		{"value size", 2, func(c *call) { c.a.ValueSize++ }},
		{"table type", 4, func(c *call) { c.problem.In[InTable].DType = tensor.Int64 }},
		{"table columns", 4, func(c *call) { c.a.Columns++ }},
		{"blocks", 4, func(c *call) { c.a.Blocks++ }},
		{"ring without a window", 5, func(c *call) { c.a.Window = 0 }},
		{"ring of tokens", 0, func(c *call) { c.a.Ring, c.a.Window = true, 3 }},
		{"new keys", 6, func(c *call) { c.problem.In[InNewValue] = tensor.Of(tensor.Float32, 3) }},
		{"new keys of another type", 6, func(c *call) { c.problem.In[InNewKey].DType = tensor.Int8 }},
		{"mask", 2, func(c *call) { c.a.Bias, c.a.Mask = MaskBias, Mask{Rows: 3, Cols: 3, Row: 3} }},
		{"mask size", 2, func(c *call) { c.addMaskOf(4, 9); c.a.Mask.Rows++ }},
		{"blocked mask size", 2, func(c *call) { c.addMaskOf(4, 32); c.a.Mask = Mask{Rows: 4, Cols: 33, Row: 16, Block: 64} }},
		{"slopes", 2, func(c *call) { c.addMaskOf(4, 9); c.a.Bias = Distance }},
		{"scales", 2, func(c *call) {
			c.a.Quant = Offline
			for _, i := range []int{InQuery, InKey, InValue} {
				c.problem.In[i].DType = tensor.Int8
			}
			c.putFloats(InKeyScale, []float64{1, 1}, tensor.Float32)
			c.putFloats(InValueScale, []float64{1, 1}, tensor.Float32)
		}},
		{"factors", 2, func(c *call) { c.a.Factor, c.a.FactorLen = BatchFactor, 2 }},
		{"too few factors", 2, func(c *call) {
			c.a.Factor, c.a.FactorLen = BatchFactor, 1
			c.putFloats(InFactor, []float64{1}, tensor.Float32)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCall(1, tensor.Float32, 2, 1, 8, 8, []int64{2, 1}, []int64{4, 3}).build(sources[x.source].layout)
			require.NoError(t, attend.Supports(&c.problem))
			x.change(c)
			c.problem.Params = c.a
			assert.ErrorIs(t, attend.Supports(&c.problem), status.ErrInvalidParam)
		})
	}
}

// TestPartsRefuse changes a call that can be done in parts.
func TestPartsRefuse(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(c *call)
		text   string
	}{
		{"inputs", func(c *call) { c.problem.In = c.problem.In[:3] }, "want 12 inputs and 1 output"},
		{"output type", func(c *call) { c.problem.Out[0].DType = tensor.Float16 }, "want an output f32[12,1,10]"},
		{"parts", func(c *call) { c.problem.Out[0] = tensor.Of(tensor.Float32, 12, 2, 10) }, "want an output f32[12,1,10]"},
		{"more keys", func(c *call) { c.a.Bias, c.a.Mask.Cols, c.a.Slots = NoBias, 0, 0 }, "want an output f32[12,0,10]"},
		{"gaps", func(c *call) { c.a.Out.Row = 32 }, "want output rows side by side"},
		{"odd gaps", func(c *call) { c.a.Out.Row = 17 }, "want output rows side by side"},
		{"quantised", func(c *call) {
			c.a.Quant = Online
			for _, i := range []int{InQuery, InKey, InValue} {
				c.problem.In[i].DType = tensor.Int8
			}
			c.putFloats(InKeyScale, []float64{1, 1}, tensor.Float32)
			c.putFloats(InValueScale, []float64{1, 1}, tensor.Float32)
		}, "keys are not done in parts"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCall(1, tensor.Float32, 2, 1, 8, 8, []int64{2, 1}, []int64{4, 3}).build(sources[2].layout)
			c.problem.Out[0] = c.a.PartsDesc()
			require.NoError(t, attendParts.Supports(&c.problem))
			x.change(c)
			c.problem.Params = c.a
			err := attendParts.Supports(&c.problem)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, x.text)
		})
	}
}
