package mempool

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/status"
)

// bytesReader hands out the bytes of a fuzz input, zeros behind its end.
type bytesReader struct{ data []byte }

func (r *bytesReader) next() int64 {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return int64(b)
}

// itemsFrom reads items from fuzz input, 5 bytes each: sizes from a few bytes
// to more than fits, lifetimes that are empty, far away or wrong, alignments and
// fixed offsets.
func itemsFrom(r *bytesReader, most int) []Item {
	var items []Item
	for len(r.data) > 0 && len(items) < most {
		size, shift, first, life, flags := r.next(), r.next(), r.next(), r.next(), r.next()
		it := Item{Size: size << (shift % 58), First: first - 128, Last: first - 128 + life%24 - 1}
		if flags&1 != 0 {
			it.Align = 1 << (flags >> 4 % 12)
		}
		if flags&6 == 6 {
			it.Fixed, it.Offset = true, size<<(flags>>4)
		}
		if flags&8 != 0 && shift&1 != 0 {
			it.First, it.Last = it.First<<50, it.Last<<50
		}
		items = append(items, it)
	}
	return items
}

func optionsFrom(r *bytesReader) Options {
	flags := r.next()
	return Options{Align: 1 << (flags % 10), Nodes: 500 + flags}
}

// Whatever the items, a plan is valid, no worse than those of the online
// solvers, proven optimal only at the bound or by a search, and the same again.
func FuzzItems(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{3, 10, 0, 128, 5, 0, 20, 0, 130, 5, 0, 30, 0, 131, 9, 0})
	f.Add([]byte{9, 1, 4, 3, 9, 15, 1, 1, 3, 9, 7, 200, 60, 3, 9, 8})
	f.Add(slices.Repeat([]byte{5, 17, 1, 128, 3, 0, 40, 2, 129, 7, 1, 90, 1, 131, 2, 33}, 6))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &bytesReader{data}
		o := optionsFrom(r)
		items := itemsFrom(r, 60)
		var p Planner
		o.Solver = Optimal
		best, err := p.Plan(items, o)
		if err != nil {
			require.NotErrorIs(t, err, status.ErrInternal)
			return
		}
		best.Offsets = slices.Clone(best.Offsets)
		require.NoError(t, Validate(items, best.Offsets))
		require.NoError(t, naiveClash(items, best.Offsets))
		require.GreaterOrEqual(t, best.Arena, best.LowerBound)
		if best.Arena == best.LowerBound {
			require.True(t, best.Optimal)
		}
		for i, it := range items {
			if it.Size > 0 && it.First <= it.Last {
				require.LessOrEqual(t, best.Offsets[i]+it.Size, best.Arena)
			}
		}
		again, err := new(Planner).Plan(items, o)
		require.NoError(t, err)
		require.Equal(t, best, again)
		for st := BruteForce; st < Optimal; st++ {
			o.Solver = st
			if r, err := p.Plan(items, o); err == nil {
				require.NoError(t, naiveClash(items, r.Offsets))
				require.LessOrEqual(t, best.Arena, r.Arena, st)
			}
		}
	})
}

// Whatever the program, only aliases share bytes at one time.
func FuzzProgram(f *testing.F) {
	f.Add([]byte{0, 0, 10, 0, 128, 5, 0, 20, 0, 130, 5, 0}, []byte{0, 1, 0, 4})
	f.Add(slices.Repeat([]byte{5, 17, 1, 128, 3, 0, 40, 2, 129, 7, 1}, 6), []byte{3, 9, 1, 5, 2, 1, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, data, shape []byte) {
		r := &bytesReader{data}
		o := optionsFrom(r)
		o.Solver = Optimal
		g := &Program{Items: itemsFrom(r, 30)}
		shapeFrom(t, &bytesReader{shape}, g)
		plan, err := new(Planner).PlanProgram(g, o)
		if err != nil {
			require.NotErrorIs(t, err, status.ErrInternal)
			return
		}
		same := joined(g)
		direct := map[[2]int]bool{}
		for k, a := range g.Maybe {
			if plan.Taken[k] {
				direct[[2]int{a.Item, a.In}], direct[[2]int{a.In, a.Item}] = true, true
			}
		}
		for i := range g.Items {
			for j := range i {
				if sharesBytes(g, plan.Offsets, i, j) && !apartInTime(g, i, j) {
					require.True(t, same(i, j) || direct[[2]int{i, j}], "items %d and %d", j, i)
				}
			}
		}
		again, err := new(Planner).PlanProgram(g, o)
		require.NoError(t, err)
		require.Equal(t, plan, again)
	})
}

// shapeFrom reads streams, uses and aliases from fuzz input.
func shapeFrom(t *testing.T, r *bytesReader, g *Program) {
	n := len(g.Items)
	if n == 0 {
		return
	}
	pick := func() int { return int(r.next()) % n }
	if streams := r.next() % 4; streams > 0 {
		g.Order = NewOrder(int(streams))
		nodes := 1 + int(r.next())%40
		for j := range nodes {
			var after []int
			if b := r.next(); j > 0 && b&3 == 0 {
				after = append(after, int(b>>2)%j)
			}
			_, err := g.Order.Add(int(r.next()%streams), after...)
			require.NoError(t, err)
		}
		for range n {
			first := int(r.next()) % nodes
			uses := []int{first}
			if last := first + int(r.next()%8); last > first && last < nodes {
				uses = append(uses, last)
			}
			g.Uses = append(g.Uses, uses)
		}
	}
	for range r.next() % 4 {
		g.Always = append(g.Always, Alias{Item: pick(), In: pick(), At: r.next()})
	}
	for range r.next() % 16 {
		g.Maybe = append(g.Maybe, Alias{Item: pick(), In: pick(), At: r.next() - 64})
	}
}
