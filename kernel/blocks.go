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

const (
	// MinStreamBytes is the memory below which a block of a kernel that reads its
	// operands once is too small: so much is read while a block is begun.
	MinStreamBytes = 64 << 10
	// streamBlocks is the most blocks for each of BlocksFor.
	streamBlocks = 64
)

// StreamBlocks turns a block dim of BlocksFor into that of a kernel that does
// little but read some bytes of memory: more blocks where each stays long enough,
// for cores do not get memory equally fast at every moment and take blocks as they
// are done. An accelerator's block dim stays.
func StreamBlocks(m Machine, blocks int, items, bytes int64) int {
	if blocks < 2 || m.Accelerator {
		return blocks
	}
	return int(max(int64(blocks), min(int64(blocks)*streamBlocks, items, bytes/MinStreamBytes)))
}

const (
	// minEvenNanos is the time below which cutting a block only costs.
	minEvenNanos = 20000
	// evenBlocks is the most blocks of EvenBlocksFor for each core.
	evenBlocks = 4
)

// MostEvenBlocks is the most that EvenBlocksFor returns, for kernels with memory for
// every block.
func MostEvenBlocks(m Machine) int {
	n := max(m.Cores, 1)
	if n < 2 || m.Accelerator {
		return n
	}
	return n * evenBlocks
}

// EvenBlocksFor is BlocksFor with more blocks than cores where each takes long enough,
// for cores are not equally fast at every moment and take blocks as they are done. An
// accelerator's block dim stays.
func EvenBlocksFor(m Machine, items int64, nanos float64) int {
	blocks := BlocksFor(m, items, nanos)
	if blocks < 2 || m.Accelerator {
		return blocks
	}
	most := min(int64(blocks)*evenBlocks, items)
	if nanos < math.MaxInt32 {
		most = min(most, int64(nanos/minEvenNanos))
	}
	return max(blocks, int(most))
}

// Shares returns the part [lo, hi) of n items that the blocks [first, end) of
// `blocks` do.
func Shares(n int64, first, end, blocks int) (lo, hi int64) {
	lo, _ = Share(n, first, blocks)
	_, hi = Share(n, end-1, blocks)
	return lo, hi
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
