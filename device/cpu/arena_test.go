package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArenaNeverOverlaps hands out random pieces and takes them back in order;
// every piece is filled with its number and must be intact when it comes back.
func TestArenaNeverOverlaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	type piece struct {
		start uint64
		mem   []int
		value int
	}
	var a arena[int]
	a.grow(make([]int, 64), 0)
	var live []piece
	refused := 0
	for i := range 20000 {
		oldest := a.next
		if len(live) > 0 {
			oldest = live[0].start
		}
		start := a.next
		mem := a.take(rng.IntN(20), oldest)
		if mem == nil {
			refused++
			require.NotEmpty(t, live, "an empty arena refuses nothing that fits")
		} else {
			for j := range mem {
				mem[j] = i
			}
			live = append(live, piece{start, mem, i})
		}
		for len(live) > 0 && (mem == nil || rng.IntN(3) == 0) {
			for _, v := range live[0].mem {
				require.Equal(t, live[0].value, v)
			}
			live = live[1:]
			mem = []int{}
		}
	}
	require.Positive(t, refused, "the arena was full now and then")
}

func TestAlignedBytes(t *testing.T) {
	for _, n := range []int{64, 128, 4096, 1 << 20} {
		require.Len(t, alignedBytes(n), n)
		require.Equal(t, n, cap(alignedBytes(n)))
	}
}
