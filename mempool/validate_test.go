package mempool

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestValidateNamesWhatIsWrong(t *testing.T) {
	items := []Item{
		{Size: 100, First: 0, Last: 4},
		{Size: 50, First: 4, Last: 9},
		{Size: 50, First: 5, Last: 9},
		{Size: 0, First: 0, Last: 9},
		{Size: 70, First: 3, Last: 2},
		{Size: 8, First: 20, Last: 21, Align: 8},
		{Size: 8, First: 20, Last: 21, Fixed: true, Offset: 64},
	}
	good := []int64{0, 100, 0, 10, 20, 8, 64}
	require.NoError(t, Validate(items, good))
	for _, c := range []struct {
		name string
		item int
		off  int64
		want string
	}{
		{"last byte of an earlier item", 1, 99, "items 1 and 0 overlap: bytes 99 to 148 at nodes 4 to 9, and bytes 0 to 99 at nodes 0 to 4"},
		{"same start", 2, 100, "overlap: bytes 100 to 149"},
		{"inside", 0, 60, "overlap"},
		{"negative", 2, -1, "item 2: want an offset of at least 0"},
		{"misaligned", 5, 12, "item 5: want an offset of at least 0 that is a multiple of 8, got 12"},
		{"moved", 6, 72, "item 6: want fixed offset 64, got 72"},
		{"overflow", 0, math.MaxInt64 - 50, "item 0: want a size that fits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := slices.Clone(good)
			bad[c.item] = c.off
			err := Validate(items, bad)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, c.want)
		})
	}
	assert.ErrorContains(t, Validate(items, good[:3]), "7 items, got 3")
	assert.ErrorContains(t, Validate([]Item{{Size: 1, Last: math.MaxInt64}}, []int64{0}), "item 0: want a lifetime")
	assert.ErrorContains(t, Validate([]Item{{Size: -1}}, []int64{0}), "item 0: want a size")
	require.NoError(t, Validate(nil, nil))
}

// Random placements: both ways to validate agree with a look at every pair.
func TestValidateAgreesWithAllPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 43))
	good, bad := 0, 0
	for c := range 4000 {
		n := 1 + rng.IntN(12)
		items := randomItems(rng, n, 6, 20, 6)
		if c%2 == 0 {
			for i := range items {
				items[i].First, items[i].Last = items[i].First<<30, items[i].Last<<30
			}
		}
		offsets := make([]int64, n)
		for i := range offsets {
			offsets[i] = rng.Int64N(int64(8 * n))
		}
		want := naiveClash(items, offsets)
		var v validator
		got := v.check(items, offsets)
		swept := v.stack(items, offsets)
		if want == nil {
			good++
			require.NoError(t, got)
			require.NoError(t, swept)
			continue
		}
		bad++
		require.ErrorIs(t, got, status.ErrInvalidParam, "%v", want)
		require.ErrorIs(t, swept, status.ErrInvalidParam, "%v", want)
	}
	assert.Greater(t, good, 500)
	assert.Greater(t, bad, 500)
}
