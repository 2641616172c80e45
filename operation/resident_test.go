package operation_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tiling"
)

// TestLaunchesAgain launches one plan again and again: at the same addresses,
// where the stream keeps its launches, and at others, in one call or two, before
// the last launch is done and after, and under policies that change meanwhile.
func TestLaunchesAgain(t *testing.T) {
	b := newBed(t)
	g := operation.BuildGraph("again", []string{"x", "one"}, []string{"y"})
	g.AddSpec(elementwise.Elewise{Type: elementwise.Add}, []string{"x", "one"}, []string{"sum"})
	g.AddSpec(shape.Split{SplitDim: 1, SplitNum: 2}, []string{"sum"}, []string{"left", "right"})
	g.AddSpec(elementwise.Elewise{Type: elementwise.Mul}, []string{"left", "right"}, []string{"y"})
	o, err := g.Build()
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	var packs []operation.VariantPack
	for range 2 {
		packs = append(packs, b.pack(o, b.f32(make([]float32, 32), 1, 32), b.f32(make([]float32, 32), 1, 32)))
	}
	ws := b.setup(o, packs[0])
	rng := rand.New(rand.NewPCG(5, 6))
	policies := tiling.Policies()
	last, kernels := 0, int64(0)
	for n := range 1500 {
		if rng.IntN(12) == 0 {
			last = 1 - last
		}
		if rng.IntN(40) == 0 {
			b.sync()
			require.NoError(t, b.c.SetPolicy(policies[rng.IntN(len(policies))].Name()))
		}
		p := packs[last]
		b.sync()
		x, one := device.View[float32](p.In[0].Data.Bytes()), device.View[float32](p.In[1].Data.Bytes())
		for i := range x {
			x[i], one[i] = float32(n+i), 1
		}
		clear(p.Out[0].Data.Bytes())
		kernels = b.c.Stats().Kernels
		times := 1 + rng.IntN(3) // several in flight
		for range times {
			if rng.IntN(10) == 0 {
				require.NoError(t, o.PreLaunch(p, ws, b.c))
				require.NoError(t, o.Launch(b.c))
			} else {
				require.NoError(t, o.Execute(p, ws, b.c))
			}
		}
		b.sync()
		require.EqualValues(t, 2*times, b.c.Stats().Kernels-kernels)
		for i, v := range b.values(p.Out[0]) {
			require.Equal(t, float32(n+i+1)*float32(n+i+17), v, "launch %d, element %d, %s", n, i, b.c.Policy())
		}
	}
}

// TestSameLaunchMovesNothing: where a tiling travels with its launch and the stream
// keeps it, only what has changed travels again.
func TestSameLaunchMovesNothing(t *testing.T) {
	for policy, moves := range map[string]bool{"kernel-follow": false, "overall": true, "multi-stream": true} {
		b := newBed(t)
		require.NoError(t, b.c.SetPolicy(policy))
		o := b.op(elementwise.Elewise{Type: elementwise.Add})
		p := b.pack(o, b.f32([]float32{1, 2}), b.f32([]float32{3, 4}))
		ws := b.setup(o, p)
		for range 4 {
			require.NoError(t, o.Execute(p, ws, b.c))
			b.sync()
		}
		before := b.c.Stats()
		require.NoError(t, o.Execute(p, ws, b.c))
		b.sync()
		after := b.c.Stats()
		require.Equal(t, moves, after.BytesMoved > before.BytesMoved, policy)
		require.Equal(t, before.LocalHits+1, after.LocalHits, policy)
		require.Equal(t, before.Kernels+1, after.Kernels, policy)
		require.Equal(t, []float32{4, 6}, b.values(p.Out[0]))
	}
}

// TestFreedMemoryAgain refuses a repeated launch whose memory is gone.
func TestFreedMemoryAgain(t *testing.T) {
	b := newBed(t)
	o := b.op(elementwise.Elewise{Type: elementwise.Add})
	x := b.f32([]float32{1, 2})
	p := b.pack(o, x, b.f32([]float32{3, 4}))
	ws := b.setup(o, p)
	for range 4 {
		require.NoError(t, o.Execute(p, ws, b.c))
		b.sync()
	}
	require.NoError(t, b.c.Free(x.Data))
	for range 2 {
		require.ErrorIs(t, o.Execute(operation.VariantPack{}, ws, b.c), status.ErrInvalidTensorAddr)
	}
	b.sync()
}
