package mempool

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestUpperBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 1))
	var p Planner
	for range 40 {
		base := randomItems(rng, 3+rng.IntN(40), 1000, 30, 12)
		var u UpperBound
		largest := slices.Clone(base)
		reuses := 0
		for call := range 30 {
			items := slices.Clone(base)
			grown := call == 0
			for i := range items {
				items[i].Size = rng.Int64N(1000)
				grown = grown || items[i].Size > largest[i].Size
				largest[i].Size = max(largest[i].Size, items[i].Size)
				if call == 0 {
					largest[i].Size = items[i].Size
				}
			}
			r, reused, err := u.Plan(&p, items, Options{Solver: Optimal, Align: 8})
			require.NoError(t, err)
			require.Equal(t, !grown, reused)
			require.NoError(t, naiveClash(items, r.Offsets), "the sizes at hand")
			require.NoError(t, naiveClash(largest, r.Offsets), "the largest sizes")
			for i := range largest {
				if largest[i].Size > 0 {
					require.LessOrEqual(t, r.Offsets[i]+largest[i].Size, r.Arena)
				}
			}
			if reused {
				reuses++
			}
		}
		if len(base) < 10 {
			assert.Positive(t, reuses)
		}
	}
}

func TestUpperBoundStartsAnew(t *testing.T) {
	var p Planner
	var u UpperBound
	items := []Item{{Size: 100, First: 0, Last: 2}, {Size: 50, First: 1, Last: 3}}
	plan := func(o Options, items ...Item) (Result, bool) {
		t.Helper()
		r, reused, err := u.Plan(&p, items, o)
		require.NoError(t, err)
		return r, reused
	}
	o := Options{Solver: Optimal, Align: 1}
	r, reused := plan(o, items...)
	assert.False(t, reused)
	assert.Equal(t, int64(150), r.Arena)
	for _, c := range []struct {
		name   string
		change func(o *Options, items []Item)
		reused bool
		arena  int64
	}{
		{"the same", func(*Options, []Item) {}, true, 150},
		{"smaller", func(_ *Options, items []Item) { items[0].Size = 10 }, true, 150},
		{"larger", func(_ *Options, items []Item) { items[1].Size = 70 }, false, 170},
		{"between", func(_ *Options, items []Item) { items[1].Size = 60 }, true, 170},
		{"other life", func(_ *Options, items []Item) { items[1].First = 3 }, false, 100},
		{"other alignment", func(_ *Options, items []Item) { items[0].Align = 32 }, false, 150},
		{"other solver", func(o *Options, _ []Item) { o.Solver = BruteForce }, false, 150},
		{"fixed", func(_ *Options, items []Item) { items[1].Fixed, items[1].Offset = true, 200 }, false, 250},
	} {
		o, changed := o, slices.Clone(items)
		c.change(&o, changed)
		r, reused := plan(o, changed...)
		assert.Equal(t, c.reused, reused, c.name)
		assert.Equal(t, c.arena, r.Arena, c.name)
	}
	_, reused = plan(o, items[0])
	assert.False(t, reused, "one item less")

	_, _, err := u.Plan(&p, []Item{{Size: -1}}, o)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	_, reused = plan(o, items[0])
	assert.True(t, reused, "the plan before the error")

	u = UpperBound{Waste: 50}
	plan(o, items...)
	items[0].Size, items[1].Size = 60, 40
	r, reused = plan(o, items...)
	assert.True(t, reused, "150 bytes for 100")
	assert.Equal(t, int64(150), r.Arena)
	items[0].Size = 59
	r, reused = plan(o, items...)
	assert.False(t, reused, "150 bytes for 99")
	assert.Equal(t, int64(99), r.Arena)
	assert.True(t, within(1<<61, 1<<61, 0))
	assert.False(t, within(1<<61, 1<<60, 99))
}
