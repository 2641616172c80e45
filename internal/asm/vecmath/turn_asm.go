//go:build amd64 && !noasm

package vecmath

import "unsafe"

const (
	// lineBytes is the edge of the squares that turns do.
	lineBytes = 64
	// turnSide is the number of lines of a row of src that are turned together.
	turnSide = 2
	// halfSquare is half of a square of 16-bit elements, in bytes.
	halfSquare = lineBytes * lineBytes / 4
)

// Turn writes the transpose of a matrix of elements of 1, 2, 4 or 8 bytes:
// element (r, c) of dst, whose rows are dstStride bytes apart, is element (c, r)
// of src. It does the squares of 64 bytes that fit and returns how many rows and
// columns it did.
func Turn(size int, dst, src []byte, dstStride, srcStride, rows, cols int) (doneRows, doneCols int) {
	edge := lineBytes / size
	doneRows, doneCols = rows&^(edge-1), cols&^(edge-1)
	if active() == none || doneRows == 0 || doneCols == 0 {
		return 0, 0
	}
	_ = dst[(doneRows-1)*dstStride+doneCols*size-1]
	_ = src[(doneCols-1)*srcStride+doneRows*size-1]
	var rest [halfSquare]byte
	for r := 0; r < doneRows; r += turnSide * edge {
		d, s := unsafe.SliceData(dst[r*dstStride:]), unsafe.SliceData(src[r*size:])
		down, side := doneCols/edge, min(turnSide, (doneRows-r)/edge)
		switch wide := active() == avx512; {
		case size == 1:
			turn1AVX2(d, s, dstStride, srcStride, down, side)
		case size == 2 && wide:
			turn2AVX512(d, s, dstStride, srcStride, down, side, &rest[0])
		case size == 2:
			turn2AVX2(d, s, dstStride, srcStride, down, side)
		case size == 4 && wide:
			turn4AVX512(d, s, dstStride, srcStride, down, side)
		case size == 4:
			turn4AVX2(d, s, dstStride, srcStride, down, side)
		default:
			turn8AVX2(d, s, dstStride, srcStride, down, side)
		}
	}
	return doneRows, doneCols
}
