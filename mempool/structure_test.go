package mempool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBitset(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var b bitset
	for _, n := range []int{1, 63, 64, 65, 4096, 4097, 300_000} {
		b.reset(n)
		members := map[int]bool{}
		for range 300 {
			i := rng.IntN(n)
			if rng.IntN(3) == 0 {
				b.remove(i)
				delete(members, i)
			} else {
				b.add(i)
				members[i] = true
			}
			at := rng.IntN(n)
			require.Equal(t, members[at], b.has(at))
			up, down := n, -1
			for m := range members {
				if m >= at {
					up = min(up, m)
				}
				if m <= at {
					down = max(down, m)
				}
			}
			require.Equal(t, up, b.from(at), "n %d, from %d", n, at)
			require.Equal(t, down, b.upTo(at), "n %d, up to %d", n, at)
		}
		require.Equal(t, n, b.from(n))
	}
}

func TestOutline(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var o outline
	for _, n := range []int{1, 7, 64, 200} {
		o.reset(n)
		heights := make([]int64, n)
		for range 400 {
			lo := rng.IntN(n)
			hi := lo + 1 + rng.IntN(n-lo)
			require.Equal(t, slices.Max(heights[lo:hi]), o.top(lo, hi))
			if rng.IntN(2) == 0 {
				h := rng.Int64N(50)
				o.set(lo, hi, h)
				for i := lo; i < hi; i++ {
					heights[i] = h
				}
			}
		}
		for i := 0; i < n; i = o.next(i) {
			for k := i; k < o.next(i); k++ {
				require.Equal(t, heights[k], o.height[i])
			}
		}
	}
}

func TestLoadTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var tree loadTree
	for _, n := range []int{1, 2, 3, 14, 15, 16, 100} {
		values := make([]int64, n)
		for i := range values {
			values[i] = rng.Int64N(100) - 50
		}
		tree.build(values)
		for range 300 {
			lo := rng.IntN(n)
			hi := lo + 1 + rng.IntN(n-lo)
			require.Equal(t, slices.Max(values[lo:hi]), tree.max(lo, hi), "n %d, %d to %d", n, lo, hi)
			v := rng.Int64N(40) - 20
			lo = rng.IntN(n)
			hi = lo + 1 + rng.IntN(n-lo)
			tree.add(lo, hi, v)
			for i := lo; i < hi; i++ {
				values[i] += v
			}
		}
	}
}

func TestMinTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var tree minTree
	for _, n := range []int{1, 2, 5, 64, 77} {
		tree.reset(n)
		values := make([]int32, tree.n)
		for i := range values {
			values[i] = none
		}
		for range 500 {
			i, v := rng.IntN(n), rng.Int32N(60)
			values[i] = v
			tree.set(i, v)
			at, most := rng.IntN(n), rng.Int32N(20)
			want := -1
			for k := at; k < n && want < 0; k++ {
				if values[k] <= most {
					want = k
				}
			}
			require.Equal(t, want, tree.first(at, most))
		}
		kept := tree
		kept.node = slices.Clone(tree.node)
		tree.build()
		require.Equal(t, kept, tree)
	}
}

func TestOrderer(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var o orderer
	for _, n := range []int{0, 1, 2, insertionMax, insertionMax + 1, 300, 5000} {
		for _, keys := range []uint64{1, 7, 1 << 20, 1 << 63} {
			o.key = make([]uint64, n)
			order := make([]int32, n)
			for i := range order {
				o.key[i], order[i] = rng.Uint64N(keys)<<(i%2), int32(i)
			}
			rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			want := slices.Clone(order)
			slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(o.key[a], o.key[b]) })
			o.sort(order)
			require.Equal(t, want, order, "n %d, keys below %d", n, keys)
		}
	}
}

func TestFreeTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	type pair struct {
		key, val int64
		block    int32
	}
	var tree freeTree
	for range 3 {
		tree.reset()
		var pairs []pair
		for step := range int32(2000) {
			if len(pairs) > 0 && rng.IntN(5) < 2 {
				i := rng.IntN(len(pairs))
				tree.remove(pairs[i].key, pairs[i].val)
				pairs = slices.Delete(pairs, i, i+1)
			} else {
				p := pair{rng.Int64N(1000), int64(step), step}
				if rng.IntN(2) == 0 {
					p.key, p.val = int64(step), rng.Int64N(1000)
				}
				tree.insert(p.key, p.val, p.block)
				pairs = append(pairs, p)
			}
			slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.val, b.val)) })
			least := rng.Int64N(1000)
			check := func(got int32, ok bool, holds func(pair) bool) {
				i := slices.IndexFunc(pairs, holds)
				require.Equal(t, i >= 0, ok)
				if ok {
					require.Equal(t, pairs[i].block, got)
				}
			}
			got, ok := tree.first(least)
			check(got, ok, func(p pair) bool { return p.val >= least })
			got, ok = tree.from(least)
			check(got, ok, func(p pair) bool { return p.key >= least })
		}
	}
}
