package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/asm/gemm"
)

// streamed is a launch of blocks that go through a quarter of mem each, and tell which
// of them were asked for.
func streamed(mem []byte, blocks int, asked *[]int) device.Launch {
	return device.Launch{Blocks: blocks, Inline: []byte{1}, Buffers: []device.Buffer{device.Wrap(mem)}, Program: &device.Program{
		Name: "streamed", Run: func(*device.Args, int) error { return nil },
		Ahead: func(a *device.Args, block int) []byte {
			*asked = append(*asked, block)
			if len(a.Mem(0)) == 0 {
				return nil
			}
			return a.Mem(0)[len(a.Mem(0))/4*block:]
		},
	}}
}

// Kept launches know what workers fetch for the next launch that tells it, and workers
// fetch every other piece of it once for each run.
func TestAhead(t *testing.T) {
	d, err := New(WithWorkers(2))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	x, err := d.NewStream()
	require.NoError(t, err)
	s := x.(*Stream)
	var asked []int
	mem := make([]byte, 40*aheadPiece)
	silent := device.Launch{Blocks: 4, Program: &device.Program{Name: "silent", Run: func(*device.Args, int) error { return nil }}, Inline: []byte{1}}
	held, err := s.Keep([]device.Launch{silent, streamed(mem, 4, &asked), silent, streamed(nil, 4, &asked), silent})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 2, 0, 2}, asked, "the blocks that the workers begin with")
	k := held.(*kept)
	first, second := k.launches[1].ahead, k.launches[3].ahead
	for i, want := range []*ahead{first, second, second, first, first} {
		require.Same(t, want, k.launches[i].next, "launch %d", i)
	}
	for w, pieces := range []int{20, 10} {
		assert.Equal(t, gemm.Address(mem[w*20*aheadPiece:]), (*first)[w].from.Load())
		for range 2 {
			n := 0
			for first.fetch(w) {
				n++
			}
			assert.Equal(t, pieces, n, "worker %d", w)
			first.again()
		}
		assert.False(t, second.fetch(w), "an empty operand")
	}
	asked = nil
	changed := streamed(mem, 3, &asked)
	require.NoError(t, k.Set(1, &changed))
	assert.Equal(t, []int{0, 2}, asked)
	for range 3 {
		require.NoError(t, k.Run(0, 5))
		require.NoError(t, s.Synchronize(t.Context()))
	}
	assert.Same(t, first, s.run.ahead.Load(), "the first launch that tells comes after the last one")
}
