package mempool

import "math/rand/v2"

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

// packing cuts a rectangle of nodes and bytes into n items, which fill an arena
// of its height without a hole.
func packing(rng *rand.Rand, n int, nodes, height int64) []Item {
	items := []Item{{Size: height, Last: nodes - 1}}
	for len(items) < n {
		// the larger one of two
		i, j := rng.IntN(len(items)), rng.IntN(len(items))
		if a, b := items[i], items[j]; (b.Last-b.First+1)*b.Size > (a.Last-a.First+1)*a.Size {
			i = j
		}
		rest := items[i]
		switch life := rest.Last - rest.First + 1; {
		case rng.IntN(2) == 0 && life > 1:
			rest.First += 1 + rng.Int64N(life-1)
			items[i].Last = rest.First - 1
		case rest.Size > 1:
			items[i].Size = 1 + rng.Int64N(rest.Size-1)
			rest.Size -= items[i].Size
		default:
			continue
		}
		items = append(items, rest)
	}
	rng.Shuffle(n, func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

// graphs makes about n items in the shapes of real graphs: a decoder's layers,
// equal ones and some whose number of tokens changes; training, whose
// activations live until the way back; branches that are joined, as in image
// models; skips from the way down to the way up, as in U-nets.
func graphs(rng *rand.Rand, n int) map[string][]Item {
	varied := func() (items []Item) {
		for k := 0; len(items) < n; k++ {
			for _, it := range layers(1, 1<<rng.IntN(5)*64) {
				it.First, it.Last = it.First+int64(20*k), it.Last+int64(20*k)
				items = append(items, it)
			}
		}
		return items
	}
	return map[string][]Item{
		"decoder": layers(n/26+1, 512), "varied": varied(), "training": training(rng, n), "branches": branches(rng, n), "skips": skips(rng, n),
	}
}

func training(rng *rand.Rand, n int) (items []Item) {
	end := int64(n)
	for k := range end / 3 {
		size := (1 + rng.Int64N(8)) << (20 - 3*(k/max(end/15, 1))) // five stages, each smaller than the one before
		back := end - 1 - k
		items = append(items,
			Item{Size: size, First: k, Last: back},            // activation
			Item{Size: size / 2, First: k, Last: k + 1},       // forward scratch
			Item{Size: size, First: back - 1, Last: back + 1}, // gradient
		)
	}
	return items
}

func branches(rng *rand.Rand, n int) (items []Item) {
	for node := int64(0); len(items) < n; {
		size := (1 + rng.Int64N(16)) << 14
		const length = 3
		joined := node + 4*length
		for b := range int64(4) {
			at := node + b*length // one branch after the other, all kept for the join
			items = append(items, Item{Size: size, First: at, Last: at + 1}, Item{Size: size / 2, First: at + 1, Last: at + 2}, Item{Size: size / 4, First: at + 2, Last: joined})
		}
		items = append(items, Item{Size: size, First: joined, Last: joined + 4*length})
		node = joined
	}
	return items
}

func skips(rng *rand.Rand, n int) (items []Item) {
	const depth = 6
	for node := int64(0); len(items) < n; node += 4 * depth {
		size := (1 + rng.Int64N(32)) << 16
		for d := range int64(depth) {
			down, up := node+2*d, node+4*depth-2*d
			items = append(items,
				Item{Size: size >> d, First: down, Last: down + 1}, Item{Size: size >> d, First: down + 1, Last: up}, // kept for the way up
				Item{Size: size >> d, First: up - 2, Last: up}, Item{Size: 2 * size >> d, First: up, Last: up})
		}
	}
	return items
}
