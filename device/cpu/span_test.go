package cpu

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Large regions that share a span lie one behind the other, each of zeros; what was
// given back is out of reach while others stay, and a span goes with its last region.
func TestSpans(t *testing.T) {
	r := newRegions()
	sizes := []int{hugePage + hugePage/2, hugePage/2 + 4096, 3 * hugePage}
	var all []region
	for _, size := range sizes {
		g, err := r.take(size, true)
		require.NoError(t, err)
		require.Len(t, g.mem, (size+r.page-1)/r.page*r.page)
		for i := 0; i < len(g.mem); i += 512 {
			require.Zero(t, g.mem[i])
			g.mem[i] = 1
		}
		all = append(all, g)
	}
	assert.Zero(t, place(all[0])%hugePage)
	shared := spanBytes > 0
	for i := 1; i < len(all); i++ {
		assert.Equal(t, shared, all[i].span == all[i-1].span)
		if shared {
			assert.Equal(t, place(all[i-1])+uintptr(len(all[i-1].mem)), place(all[i]))
		}
	}
	require.NoError(t, r.give(all[1]))
	for _, g := range []region{all[0], all[2]} {
		assert.EqualValues(t, 1, g.mem[0], "others stay")
		assert.EqualValues(t, 1, g.mem[len(g.mem)-512], "others stay")
	}
	if shared {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		assert.Panics(t, func() { all[1].mem[0] = 2 })
	}
	require.NoError(t, r.give(all[0]))
	next, err := r.take(hugePage, true)
	require.NoError(t, err)
	assert.Zero(t, next.mem[0])
	require.NoError(t, r.give(all[2]))
	assert.Equal(t, shared, next.span == all[2].span)
	require.NoError(t, r.give(next))
	assert.Nil(t, r.large.newest)
	require.NoError(t, r.close())
}

// A region that is longer than a span has one of its own, and what is left of the
// others serves on.
func TestLongRegions(t *testing.T) {
	r := newRegions()
	first, err := r.take(hugePage, true)
	require.NoError(t, err)
	long, err := r.take(spanBytes+hugePage, true)
	require.NoError(t, err)
	assert.NotSame(t, first.span, long.span)
	second, err := r.take(hugePage, true)
	require.NoError(t, err)
	assert.Equal(t, spanBytes > 0, first.span == second.span)
	for _, g := range []region{first, long, second} {
		require.NoError(t, r.give(g))
	}
	require.NoError(t, r.close())
}
