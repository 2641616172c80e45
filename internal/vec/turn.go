package vec

import (
	"encoding/binary"

	"goatb/internal/asm/vecmath"
)

// Turn writes the transpose of a matrix of elements of 1, 2, 4 or 8 bytes:
// element (r, c) of dst, whose rows are dstStride bytes apart, is element (c, r)
// of src.
func Turn(size int, dst, src []byte, dstStride, srcStride, rows, cols int) {
	r, c := vecmath.Turn(size, dst, src, dstStride, srcStride, rows, cols)
	if r > 0 && c < cols {
		turnPlain(size, dst[c*size:], src[c*srcStride:], dstStride, srcStride, r, cols-c)
	}
	if r < rows {
		turnPlain(size, dst[r*dstStride:], src[r*size:], dstStride, srcStride, rows-r, cols)
	}
}

func turnPlain(size int, dst, src []byte, dstStride, srcStride, rows, cols int) {
	switch size {
	case 1:
		turn1(dst, src, dstStride, srcStride, rows, cols)
	case 2:
		turn2(dst, src, dstStride, srcStride, rows, cols)
	case 4:
		turn4(dst, src, dstStride, srcStride, rows, cols)
	default:
		turn8(dst, src, dstStride, srcStride, rows, cols)
	}
}

// The functions below are turn in plain Go. They work on squares of 8 bytes
// that are turned inside 64-bit words, and element by element along the edges.

var le = binary.LittleEndian

// turn1 moves elements of one byte, squares of 8 x 8.
func turn1(dst, src []byte, dstStride, srcStride, rows, cols int) {
	r8, c8 := rows&^7, cols&^7
	for r := 0; r < r8; r += 8 {
		for c := 0; c < c8; c += 8 {
			s := src[c*srcStride+r:]
			x0, x1 := le.Uint64(s), le.Uint64(s[srcStride:])
			x2, x3 := le.Uint64(s[2*srcStride:]), le.Uint64(s[3*srcStride:])
			x4, x5 := le.Uint64(s[4*srcStride:]), le.Uint64(s[5*srcStride:])
			x6, x7 := le.Uint64(s[6*srcStride:]), le.Uint64(s[7*srcStride:])
			x0, x4 = swap32(x0, x4)
			x1, x5 = swap32(x1, x5)
			x2, x6 = swap32(x2, x6)
			x3, x7 = swap32(x3, x7)
			x0, x2 = swap16(x0, x2)
			x1, x3 = swap16(x1, x3)
			x4, x6 = swap16(x4, x6)
			x5, x7 = swap16(x5, x7)
			x0, x1 = swap8(x0, x1)
			x2, x3 = swap8(x2, x3)
			x4, x5 = swap8(x4, x5)
			x6, x7 = swap8(x6, x7)
			d := dst[r*dstStride+c:]
			le.PutUint64(d, x0)
			le.PutUint64(d[dstStride:], x1)
			le.PutUint64(d[2*dstStride:], x2)
			le.PutUint64(d[3*dstStride:], x3)
			le.PutUint64(d[4*dstStride:], x4)
			le.PutUint64(d[5*dstStride:], x5)
			le.PutUint64(d[6*dstStride:], x6)
			le.PutUint64(d[7*dstStride:], x7)
		}
	}
	for r := range rows {
		c := c8
		if r >= r8 {
			c = 0
		}
		for ; c < cols; c++ {
			dst[r*dstStride+c] = src[c*srcStride+r]
		}
	}
}

// turn2 moves elements of two bytes, squares of 4 x 4.
func turn2(dst, src []byte, dstStride, srcStride, rows, cols int) {
	r4, c4 := rows&^3, cols&^3
	for r := 0; r < r4; r += 4 {
		for c := 0; c < c4; c += 4 {
			s := src[c*srcStride+2*r:]
			x0, x1 := le.Uint64(s), le.Uint64(s[srcStride:])
			x2, x3 := le.Uint64(s[2*srcStride:]), le.Uint64(s[3*srcStride:])
			x0, x2 = swap32(x0, x2)
			x1, x3 = swap32(x1, x3)
			x0, x1 = swap16(x0, x1)
			x2, x3 = swap16(x2, x3)
			d := dst[r*dstStride+2*c:]
			le.PutUint64(d, x0)
			le.PutUint64(d[dstStride:], x1)
			le.PutUint64(d[2*dstStride:], x2)
			le.PutUint64(d[3*dstStride:], x3)
		}
	}
	for r := range rows {
		c := c4
		if r >= r4 {
			c = 0
		}
		for ; c < cols; c++ {
			le.PutUint16(dst[r*dstStride+2*c:], le.Uint16(src[c*srcStride+2*r:]))
		}
	}
}

// turn4 moves elements of four bytes, squares of 2 x 2.
func turn4(dst, src []byte, dstStride, srcStride, rows, cols int) {
	r2, c2 := rows&^1, cols&^1
	for r := 0; r < r2; r += 2 {
		for c := 0; c < c2; c += 2 {
			s := src[c*srcStride+4*r:]
			x0, x1 := swap32(le.Uint64(s), le.Uint64(s[srcStride:]))
			d := dst[r*dstStride+4*c:]
			le.PutUint64(d, x0)
			le.PutUint64(d[dstStride:], x1)
		}
	}
	for r := range rows {
		c := c2
		if r >= r2 {
			c = 0
		}
		for ; c < cols; c++ {
			le.PutUint32(dst[r*dstStride+4*c:], le.Uint32(src[c*srcStride+4*r:]))
		}
	}
}

// turn8 moves elements of eight bytes.
func turn8(dst, src []byte, dstStride, srcStride, rows, cols int) {
	for r := range rows {
		d, s := dst[r*dstStride:r*dstStride+8*cols], src[8*r:]
		for c := range cols {
			le.PutUint64(d[8*c:], le.Uint64(s[c*srcStride:]))
		}
	}
}

// swap32, swap16 and swap8 exchange the upper halves of a's 64, 32 or 16 bit
// fields with the lower halves of b's.
func swap32(a, b uint64) (uint64, uint64) {
	return a&0xffffffff | b<<32, a>>32 | b&^0xffffffff
}

func swap16(a, b uint64) (uint64, uint64) {
	const low = 0x0000ffff0000ffff
	return a&low | b&low<<16, a>>16&low | b&^low
}

func swap8(a, b uint64) (uint64, uint64) {
	const low = 0x00ff00ff00ff00ff
	return a&low | b&low<<8, a>>8&low | b&^low
}
