package mempool

import "math/bits"

// bitset is a set of small numbers that finds the next member on either side
// in a few steps: each level has a bit for every non-zero word of the level
// below.
type bitset struct {
	levels [6][]uint64
	depth  int
	n      int
}

// reset makes the set empty, for members 0 to n-1.
func (b *bitset) reset(n int) {
	b.n, b.depth = n, 0
	for {
		n = (n + 63) / 64
		b.levels[b.depth] = zeroed(b.levels[b.depth], n)
		b.depth++
		if n <= 1 {
			return
		}
	}
}

func (b *bitset) has(i int) bool { return b.levels[0][i>>6]>>(i&63)&1 != 0 }

func (b *bitset) add(i int) {
	for l := range b.depth {
		word := &b.levels[l][i>>6]
		old := *word
		*word |= 1 << (i & 63)
		if old != 0 {
			return
		}
		i >>= 6
	}
}

func (b *bitset) remove(i int) {
	for l := range b.depth {
		word := &b.levels[l][i>>6]
		*word &^= 1 << (i & 63)
		if *word != 0 {
			return
		}
		i >>= 6
	}
}

// from returns the first member at or after i, n when there is none.
func (b *bitset) from(i int) int {
	for l := range b.depth {
		w := i >> 6
		if w >= len(b.levels[l]) {
			return b.n
		}
		if word := b.levels[l][w] >> (i & 63); word != 0 {
			i += bits.TrailingZeros64(word)
			for l--; l >= 0; l-- {
				i = i<<6 + bits.TrailingZeros64(b.levels[l][i])
			}
			return i
		}
		i = w + 1
	}
	return b.n
}

// upTo returns the last member at or before i, -1 when there is none.
func (b *bitset) upTo(i int) int {
	for l := range b.depth {
		if i < 0 {
			return -1
		}
		w := i >> 6
		if word := b.levels[l][w] << (63 - i&63); word != 0 {
			i -= bits.LeadingZeros64(word)
			for l--; l >= 0; l-- {
				i = i<<6 + 63 - bits.LeadingZeros64(b.levels[l][i])
			}
			return i
		}
		i = w - 1
	}
	return -1
}
