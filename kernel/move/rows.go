package move

import (
	"encoding/binary"
	"math"

	"goatb/kernel"
)

// copyRows copies n rows of width bytes; row i lies at i*stride in dst and src.
// Narrow rows, such as the columns of an interleave, are copied as words.
func copyRows(dst []byte, dstStride int64, src []byte, srcStride, n, width int64) {
	if n <= 0 || width <= 0 {
		return
	}
	if &dst[0] == &src[0] && (n == 1 || dstStride == srcStride) {
		return // there already: the plan lays one over the other
	}
	if dstStride == width && srcStride == width {
		copy(dst[:n*width], src[:n*width])
		return
	}
	dst, src = dst[:(n-1)*dstStride+width], src[:(n-1)*srcStride+width]
	var d, s int64
	switch width {
	case 1:
		for range n {
			dst[d] = src[s]
			d, s = d+dstStride, s+srcStride
		}
	case 2:
		for range n {
			binary.LittleEndian.PutUint16(dst[d:], binary.LittleEndian.Uint16(src[s:]))
			d, s = d+dstStride, s+srcStride
		}
	case 4:
		for range n {
			binary.LittleEndian.PutUint32(dst[d:], binary.LittleEndian.Uint32(src[s:]))
			d, s = d+dstStride, s+srcStride
		}
	case 8:
		for range n {
			binary.LittleEndian.PutUint64(dst[d:], binary.LittleEndian.Uint64(src[s:]))
			d, s = d+dstStride, s+srcStride
		}
	default:
		for range n {
			copy(dst[d:d+width], src[s:s+width])
			d, s = d+dstStride, s+srcStride
		}
	}
}

// cut says how the blocks of a launch share rows.
type cut uint64

const (
	// byRows gives each block whole rows, byLines a range of 64-byte lines of
	// every row, for few long rows.
	byRows cut = iota
	byLines
)

// chooseCut picks a cut and a number of blocks for rows of width bytes in all.
func chooseCut(m kernel.Machine, rows, width int64) kernel.Grid {
	nanos := float64(rows) * (float64(width)*nanosPerByte + nanosPerRow)
	want := kernel.BlocksFor(m, math.MaxInt64, nanos)
	if rows < evenShare*int64(want) && width >= evenShare*lineBytes*int64(want) {
		return kernel.Grid{Key: uint64(byLines), Blocks: want}
	}
	return kernel.Grid{Key: uint64(byRows), Blocks: int(min(int64(want), rows))}
}

// evenShare is the number of items per block from which on blocks of whole
// items are even enough.
const evenShare = 4

// part returns the rows [row, row+n) and the bytes [from, to) of each that a
// block moves.
func part(a *kernel.Args, block int, rows, width int64) (row, n, from, to int64) {
	if cut(a.Key) == byRows {
		lo, hi := kernel.Share(rows, block, a.Blocks)
		return lo, hi - lo, 0, width
	}
	lo, hi := kernel.Share((width+lineBytes-1)/lineBytes, block, a.Blocks)
	return 0, rows, min(lo*lineBytes, width), min(hi*lineBytes, width)
}

// nanosPerRow estimates what a row costs besides its bytes.
const nanosPerRow = 2
