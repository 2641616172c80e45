package kernel

import (
	"math"

	"goatb/internal/cpu"
)

// MinBlockNanos is the work below which a block is not worth a worker: waking
// one costs about this much.
const MinBlockNanos = 3000

// BlocksFor chooses a block dim for `items` independent items that take about
// `nanos` in all on one core: at most one block per item and per core, and no
// block below MinBlockNanos.
func BlocksFor(m Machine, items int64, nanos float64) int {
	n := min(int64(max(m.Cores, 1)), items)
	if nanos < math.MaxInt32 {
		n = min(n, int64(nanos/MinBlockNanos))
	}
	return int(max(n, 1))
}

// Nanos returns the estimate of a time: that of assembly where this machine has
// it, otherwise that of plain Go.
func Nanos(assembly, plain float64) float64 {
	if cpu.Active().Has(cpu.AVX2) {
		return assembly
	}
	return plain
}

// Share returns the part [lo, hi) of n items that block `block` of `blocks`
// does: contiguous, all parts within one item of each other.
func Share(n int64, block, blocks int) (lo, hi int64) {
	q, r := n/int64(blocks), n%int64(blocks)
	b := int64(block)
	lo = b*q + min(b, r)
	hi = lo + q
	if b < r {
		hi++
	}
	return lo, hi
}
