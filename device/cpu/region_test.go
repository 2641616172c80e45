package cpu

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizeClass(t *testing.T) {
	for pages, want := range map[int]int{1: 1, 2: 2, 3: 4, 9: 16, 16: 16, 17: 20, 20: 20, 21: 24, 33: 40, 250: 256, 256: 256} {
		assert.Equal(t, want, sizeClass(pages), "%d pages", pages)
	}
	for pages := 1; pages <= 256; pages++ {
		c := sizeClass(pages)
		assert.GreaterOrEqual(t, c, pages)
		assert.Equal(t, c, sizeClass(c), "a class is its own")
		if pages > smallPages {
			assert.LessOrEqual(t, 4*c, 5*pages+4, "%d pages", pages)
		}
	}
}

// place is where a region begins.
func place(g region) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(g.mem))) }

// Regions of up to half a huge page lie in chunks of huge pages and come back as
// zeros; they neither overlap nor take more than the bound.
func TestMediumRegions(t *testing.T) {
	r := newRegions()
	var all []region
	for _, size := range []int{1, 5000, 100 << 10, 300 << 10, hugePage / 2} {
		g, err := r.take(size, true)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(g.mem), size)
		assert.Same(t, &r.huge, g.from)
		assert.Zero(t, place(g)%uintptr(r.page))
		for i := range g.mem {
			require.Zero(t, g.mem[i])
			g.mem[i] = 1
		}
		all = append(all, g)
	}
	assert.Len(t, r.huge.raw, 1)
	for i := 1; i < len(all); i++ {
		assert.GreaterOrEqual(t, place(all[i]), place(all[i-1])+uintptr(len(all[i-1].mem)))
	}
	require.NoError(t, r.give(all[2]))
	again, err := r.take(99<<10, true)
	require.NoError(t, err)
	assert.Equal(t, place(all[2]), place(again), "a piece serves its size again")
	for _, b := range again.mem {
		require.Zero(t, b)
	}
	for len(r.huge.raw)*chunkBytes < mediumBytes || r.huge.holds(hugePage/2) {
		_, err := r.take(hugePage/2, true)
		require.NoError(t, err)
	}
	g, err := r.take(hugePage/2, true)
	require.NoError(t, err)
	assert.Nil(t, g.from, "more is mapped apart")
	require.NoError(t, r.give(g))
	small, err := r.take(1, true)
	require.NoError(t, err)
	assert.Same(t, &r.huge, small.from, "small ones have no bound")
	require.NoError(t, r.close())
}

func TestRegionsInSmallPages(t *testing.T) {
	r := newRegions()
	small, err := r.take(1, false)
	require.NoError(t, err)
	assert.Same(t, &r.small, small.from)
	large, err := r.take(100<<10, false)
	require.NoError(t, err)
	assert.Nil(t, large.from)
	own, err := r.take(hugePage, true)
	require.NoError(t, err)
	assert.Zero(t, place(own)%hugePage)
	for _, g := range []region{small, large, own} {
		require.NoError(t, r.give(g))
	}
	again, err := r.take(1, false)
	require.NoError(t, err)
	assert.Equal(t, place(small), place(again))
	require.NoError(t, r.close())
}
