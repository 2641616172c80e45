package mempool

// orderer sorts numbers by 64-bit keys. Sorts are stable, so several keys are
// sorted one after the other, the most important one last.
type orderer struct {
	key   []uint64 // by number; filled by the user
	spare []int32
	count [256]int32
}

// insertionMax is the length up to which insertion sort is faster.
const insertionMax = 48

// sort orders the numbers by ascending key.
func (o *orderer) sort(order []int32) {
	if len(order) <= insertionMax {
		for i := 1; i < len(order); i++ {
			n := order[i]
			key, at := o.key[n], i
			for ; at > 0 && o.key[order[at-1]] > key; at-- {
				order[at] = order[at-1]
			}
			order[at] = n
		}
		return
	}
	o.radix(order)
}

// radix sorts byte by byte, leaving out bytes in which all keys agree.
func (o *orderer) radix(order []int32) {
	var ones uint64
	zeros := ^uint64(0)
	for _, n := range order {
		ones |= o.key[n]
		zeros &= o.key[n]
	}
	o.spare = grow(o.spare, len(order))
	from, to := order, o.spare
	swapped := false
	for shift := 0; shift < 64; shift += 8 {
		if byte((ones^zeros)>>shift) == 0 {
			continue
		}
		o.count = [256]int32{}
		for _, n := range from {
			o.count[byte(o.key[n]>>shift)]++
		}
		at := int32(0)
		for b, c := range o.count {
			o.count[b] = at
			at += c
		}
		for _, n := range from {
			b := byte(o.key[n] >> shift)
			to[o.count[b]] = n
			o.count[b]++
		}
		from, to = to, from
		swapped = !swapped
	}
	if swapped {
		copy(order, from)
	}
}
