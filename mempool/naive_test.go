package mempool

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// naiveClash looks at every pair of items that live together.
func naiveClash(items []Item, offsets []int64) error {
	var byStart []int
	for i, it := range items {
		if it.Size > 0 && it.First <= it.Last {
			byStart = append(byStart, i)
		}
	}
	slices.SortFunc(byStart, func(i, j int) int { return cmp.Compare(items[i].First, items[j].First) })
	for k, i := range byStart {
		a, end := items[i], offsets[i]+items[i].Size
		for _, j := range byStart[k+1:] {
			b := &items[j]
			if b.First > a.Last {
				break
			}
			if offsets[i] < offsets[j]+b.Size && offsets[j] < end {
				return fmt.Errorf("items %d and %d share bytes", j, i)
			}
		}
	}
	return nil
}

// naivePeak adds up the items that live at each node.
func naivePeak(items []Item, align int64) (peak, at int64) {
	for i := range items {
		node, live := items[i].First, int64(0)
		for _, k := range Live(items, node) {
			live += (items[k].Size + align - 1) / align * align
		}
		if live > peak || live == peak && live > 0 && node < at {
			peak, at = live, node
		}
	}
	return peak, at
}

// smallestArena tries all orders in which items can rest on each other, for an
// arena below a limit. It returns the limit when there is none.
func smallestArena(items []Item, align, limit int64) int64 {
	var placed []int
	offsets := make([]int64, len(items))
	done := make([]bool, len(items))
	fixedTop := int64(0)
	for i, it := range items {
		if it.Fixed {
			offsets[i], done[i] = it.Offset, true
			placed = append(placed, i)
			fixedTop = max(fixedTop, it.Offset+it.Size)
		}
	}
	best := limit
	near := make([]Item, len(items))
	var place func(top int64)
	place = func(top int64) {
		if top >= best {
			return
		}
		if len(placed) == len(items) {
			best = top
			return
		}
		for i, it := range items {
			if done[i] {
				continue
			}
			near = near[:0]
			for _, j := range placed {
				if o := items[j]; o.First <= it.Last && it.First <= o.Last {
					o.Offset = offsets[j]
					near = append(near, o)
				}
			}
			a := align
			if it.Align > 0 {
				a = it.Align
			}
			offsets[i] = lowestAligned(near, it.Size, a)
			done[i] = true
			placed = append(placed, i)
			place(max(top, offsets[i]+it.Size))
			placed = placed[:len(placed)-1]
			done[i] = false
		}
	}
	place(fixedTop)
	return best
}

// lowestAligned finds by trial the lowest aligned offset that meets no item.
func lowestAligned(near []Item, size, align int64) int64 {
	best := int64(noPlan)
	try := func(at int64) {
		for _, o := range near {
			if at < o.Offset+o.Size && o.Offset < at+size {
				return
			}
		}
		best = min(best, at)
	}
	try(0)
	for _, o := range near {
		try((o.Offset + o.Size + align - 1) / align * align)
	}
	return best
}

func readTable(t testing.TB, path string) Table {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	table, err := ReadCSV(f)
	require.NoError(t, err, path)
	return table
}
