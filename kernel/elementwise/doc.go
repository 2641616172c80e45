// Package elementwise holds the kernels that compute element by element:
// functions of one tensor, the gated unit SwiGLU with its gradient, arithmetic
// and comparisons of two tensors with broadcasting, conversions of the element
// type, and quantisation.
//
// Floats are computed in float32 and rounded once; integers wrap. The work is
// cut into lines of 64 elements that blocks share, and walked in pieces, or in
// chunks that stay in the first-level cache. Results never depend on the number
// of blocks.
//
// # Broadcasting
//
// Operands are aligned at their last dimension; a dimension of 1, or one that
// is missing, is repeated. The tiling joins neighbouring dimensions that an
// operand walks alike, so that equal shapes are one long vector, and a bias per
// column or a scale per row is a matrix of two dimensions.
package elementwise

import (
	"goatb/device"
	"goatb/kernel"
)

const (
	// lineElements is the share that blocks divide: at least a cache line.
	lineElements = 64
	// chunkElements is what is loaded, computed and stored at a time where
	// operands are copied or converted first.
	chunkElements = 1024
	// pieceElements is what is done in a call where they are not: some
	// microseconds.
	pieceElements = 16 << 10
)

// blocksFor chooses the block dim for n elements of nanos each.
func blocksFor(m kernel.Machine, n int64, nanos float64) int {
	return kernel.BlocksFor(m, (n+lineElements-1)/lineElements, float64(n)*nanos)
}

// span returns the elements [lo, hi) of n that a block does.
func span(n int64, block, blocks int) (lo, hi int64) {
	lo, hi = kernel.Share((n+lineElements-1)/lineElements, block, blocks)
	return min(lo*lineElements, n), min(hi*lineElements, n)
}

// scratchFor returns the scratch bytes of buffers of chunkElements 32-bit
// words for every block of blocksFor.
func scratchFor(p *kernel.Problem, buffers int64) int64 {
	return int64(max(p.Machine.Cores, 1)) * buffers * chunkElements * 4
}

// scratchForEven is scratchFor for every block of kernel.EvenBlocksFor.
func scratchForEven(p *kernel.Problem, buffers int64) int64 {
	return int64(kernel.MostEvenBlocks(p.Machine)) * buffers * chunkElements * 4
}

// buffers returns the block's own buffers of float32.
func buffers(a *kernel.Args, block, count int) []float32 {
	size := count * chunkElements
	return device.View[float32](a.Scratch.Bytes())[block*size:][:size:size]
}
