package mempool

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// randomOrder makes an order and its closure by definition.
func randomOrder(t *testing.T, rng *rand.Rand, streams, nodes int) (*Order, [][]bool) {
	t.Helper()
	o := NewOrder(streams)
	before := make([][]bool, nodes)
	latest := make([]int, streams)
	for s := range latest {
		latest[s] = -1
	}
	for j := range nodes {
		before[j] = make([]bool, nodes)
		s := rng.IntN(streams)
		var after []int
		for j > 0 && rng.IntN(4) == 0 {
			after = append(after, rng.IntN(j))
		}
		got, err := o.Add(s, after...)
		require.NoError(t, err)
		require.Equal(t, j, got)
		if latest[s] >= 0 {
			after = append(after, latest[s])
		}
		latest[s] = j
		for _, i := range after {
			before[i][j] = true
			for k := range i {
				before[k][j] = before[k][j] || before[k][i]
			}
		}
	}
	return o, before
}

func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 7))
	for range 60 {
		nodes := 1 + rng.IntN(40)
		o, before := randomOrder(t, rng, 1+rng.IntN(4), nodes)
		require.Equal(t, nodes, o.Len())
		for i := range nodes {
			for j := range nodes {
				require.Equal(t, before[i][j], o.Before(i, j), "%d before %d", i, j)
			}
		}
		uses := randomUses(rng, nodes)
		end := o.LinearEnd(uses)
		for j := end + 1; j < nodes; j++ {
			for _, u := range uses {
				require.True(t, before[u][j], "node %d after the end at %d", j, end)
			}
		}
		if end > uses[len(uses)-1] {
			free := false
			for _, u := range uses {
				free = free || !before[u][end]
			}
			require.True(t, free, "the end is no later than it must be")
		}
	}
	o := NewOrder(2)
	_, err := o.Add(2)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	_, err = o.Add(-1)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	_, err = o.Add(0, 0)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "node 0: want one of 0 earlier nodes to follow, got 0")
}

// randomUses draws some nodes in ascending order, at least one.
func randomUses(rng *rand.Rand, nodes int) []int {
	var uses []int
	first := rng.IntN(nodes)
	for j := first; j < min(nodes, first+8); j++ {
		if j == first || rng.IntN(3) == 0 {
			uses = append(uses, j)
		}
	}
	return uses
}
