package attention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/operation/attention"
	"goatb/tensor"
)

// TestStepsInPartsAllocateNothing decodes over a growing cache that is done in
// parts: every Setup is a hit, only what depends on lengths is tiled, and
// nothing is allocated.
func TestStepsInPartsAllocateNothing(t *testing.T) {
	const slots, size = 2048, 8
	dev, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	c, err := atb.NewContext(dev, atb.WithEnv(func(string) (string, bool) { return "", false }))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	p := attention.DefaultSelfAttention()
	p.HeadNum, p.CalcType = 1, attention.SelfDecoder
	op, err := atb.New(p)
	require.NoError(t, err)
	defer func() { require.NoError(t, op.Close()) }()

	floats := func(dims ...int64) atb.Tensor {
		d := tensor.Of(tensor.Float32, dims...)
		m, err := c.Alloc(d.Bytes())
		require.NoError(t, err)
		clear(m.Bytes())
		return atb.Tensor{Desc: d, Data: m}
	}
	ints := func(v int32) atb.Tensor {
		return atb.Tensor{Desc: tensor.Of(tensor.Int32, 1), Host: device.BytesOf([]int32{v})}
	}
	row, store := []int64{1, size}, []int64{1, 1, slots, size}
	pack := atb.VariantPack{
		In:  []atb.Tensor{floats(row...), floats(row...), floats(row...), floats(store...), floats(store...), ints(1), ints(1), ints(0)},
		Out: []atb.Tensor{floats(row...)},
	}
	n, err := op.Setup(pack, c)
	require.NoError(t, err)
	require.Positive(t, n)
	ws, err := c.Alloc(n)
	require.NoError(t, err)
	require.Len(t, op.Graph().Nodes, 3, "write, parts, merge")

	offset := device.View[int32](pack.In[5].Host)
	steps := int32(0)
	step := func() {
		steps++
		offset[0] = 600 + steps
		if _, err := op.Setup(pack, c); err != nil {
			t.Error(err)
		}
		if err := op.Execute(pack, ws, c); err != nil {
			t.Error(err)
		}
		if err := c.Synchronize(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for range 400 { // every ring block has its event by then
		step()
	}
	before := c.Stats()
	assert.Zero(t, testing.AllocsPerRun(99, step))
	after := c.Stats()
	assert.Equal(t, int64(100), after.SetupHits-before.SetupHits)
	assert.Equal(t, int64(200), after.HostTilings-before.HostTilings, "write and parts, but not merge")
}
