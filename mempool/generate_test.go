package mempool

import (
	"math/rand/v2"
)

// layers makes the intermediates of a stack of unfused Llama-like layers for
// some tokens: the residual stream, norms, projections, rotated heads, scores,
// gate and up; about 26 items per layer.
func layers(n, tokens int) []Item {
	const hidden, kv, inter, heads = 4096, 1024, 14336, 32
	t := int64(tokens)
	var items []Item
	node := int64(0)
	add := func(size, first, last int64) { items = append(items, Item{Size: 2 * size, First: first, Last: last}) }
	for range n {
		at := func(k int64) int64 { return node + k }
		add(t*hidden, at(0), at(1))   // norm: sums
		add(t*hidden, at(1), at(4))   // norm: out
		add(t*hidden, at(2), at(5))   // q
		add(t*kv, at(3), at(6))       // k
		add(t*kv, at(4), at(7))       // v
		add(t*hidden, at(5), at(8))   // q rotated
		add(t*kv, at(6), at(7))       // k rotated
		add(2*t*kv, at(7), at(10))    // cache view
		add(t*t*heads, at(8), at(9))  // scores
		add(t*t*heads, at(9), at(10)) // softmax
		add(t*hidden, at(10), at(11)) // context
		add(t*hidden, at(11), at(12)) // output projection
		add(t*hidden, at(12), at(20)) // residual
		add(t*hidden, at(13), at(14)) // norm
		add(t*hidden, at(14), at(16)) // norm out
		add(t*inter, at(15), at(17))  // gate
		add(t*inter, at(16), at(18))  // up
		add(t*inter, at(17), at(18))  // silu
		add(t*inter, at(18), at(19))  // product
		add(t*hidden, at(19), at(20)) // down
		add(t*hidden, at(20), at(32)) // residual: read by the next layer's norm and sum
		add(t*4, at(0), at(1))        // norm: scale
		add(t*4, at(13), at(14))      // norm: scale
		add(t*heads*4, at(9), at(10)) // softmax: sums
		add(t*128, at(5), at(6))      // cos
		add(t*128, at(5), at(6))      // sin
		node += 20
	}
	return items
}

// randomItems makes n items with sizes up to maxSize that start anywhere on a
// time line of the given length and live for up to maxLife nodes.
func randomItems(rng *rand.Rand, n int, maxSize, length, maxLife int64) []Item {
	items := make([]Item, n)
	for i := range items {
		first := rng.Int64N(length)
		items[i] = Item{Size: rng.Int64N(maxSize) + 1, First: first, Last: first + rng.Int64N(maxLife)}
	}
	return items
}
