package vec

import "encoding/binary"

// DotI8 returns the inner product of a and b, which have equal lengths, as an
// int32. The sum wraps beyond int32, which needs more than 131071 elements.
func DotI8(a, b []int8) int32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 int32
	for len(a) >= 8 && len(b) >= 8 {
		s0 += int32(a[0])*int32(b[0]) + int32(a[4])*int32(b[4])
		s1 += int32(a[1])*int32(b[1]) + int32(a[5])*int32(b[5])
		s2 += int32(a[2])*int32(b[2]) + int32(a[6])*int32(b[6])
		s3 += int32(a[3])*int32(b[3]) + int32(a[7])*int32(b[7])
		a, b = a[8:], b[8:]
	}
	for i, v := range a {
		s0 += int32(v) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

// Dots4I8 returns the inner products of x with four rows of its length. The
// sums wrap as DotI8's does.
func Dots4I8(x, w0, w1, w2, w3 []int8) (s0, s1, s2, s3 int32) {
	n := len(x)
	w0, w1, w2, w3 = w0[:n], w1[:n], w2[:n], w3[:n]
	for k, v := range x {
		s0 += int32(v) * int32(w0[k])
		s1 += int32(v) * int32(w1[k])
		s2 += int32(v) * int32(w2[k])
		s3 += int32(v) * int32(w3[k])
	}
	return s0, s1, s2, s3
}

// A pair is two int8 numbers a and b as a + b<<32. Its product with a third
// number is a pair of products, so one multiplication does the work of two;
// sums of pairs stay exact while the lower sum fits int32: up to MaxPairTerms
// terms.
const MaxPairTerms = 1<<31/(128*128) - 1

// Pairs stores the pairs of a and b in dst. The three have equal lengths.
func Pairs(dst []int64, a, b []int8) {
	a, b = a[:len(dst)], b[:len(dst)]
	for k := range dst {
		dst[k] = int64(a[k]) + int64(b[k])<<32
	}
}

// Unpair splits a sum of pairs into its two sums.
func Unpair(p int64) (a, b int32) {
	a = int32(p)
	return a, int32((p - int64(a)) >> 32)
}

// PairDots4 returns the inner products of a row of pairs with four rows of its
// length.
func PairDots4(x []int64, w0, w1, w2, w3 []int8) (s0, s1, s2, s3 int64) {
	n := len(x)
	w0, w1, w2, w3 = w0[:n], w1[:n], w2[:n], w3[:n]
	for k, v := range x {
		s0 += v * int64(w0[k])
		s1 += v * int64(w1[k])
		s2 += v * int64(w2[k])
		s3 += v * int64(w3[k])
	}
	return s0, s1, s2, s3
}

// PairTile4 adds the product of a row of pairs and a panel of four columns to a
// tile of two rows: b holds 4 elements for each k.
func PairTile4(c0, c1 *[4]int32, a, b []int64) {
	var s0, s1, s2, s3 int64
	for len(a) >= 4 && len(b) >= 16 {
		v := a[0]
		s0 += v * b[0]
		s1 += v * b[1]
		s2 += v * b[2]
		s3 += v * b[3]
		v = a[1]
		s0 += v * b[4]
		s1 += v * b[5]
		s2 += v * b[6]
		s3 += v * b[7]
		v = a[2]
		s0 += v * b[8]
		s1 += v * b[9]
		s2 += v * b[10]
		s3 += v * b[11]
		v = a[3]
		s0 += v * b[12]
		s1 += v * b[13]
		s2 += v * b[14]
		s3 += v * b[15]
		a, b = a[4:], b[16:]
	}
	for len(a) >= 1 && len(b) >= 4 {
		v := a[0]
		s0 += v * b[0]
		s1 += v * b[1]
		s2 += v * b[2]
		s3 += v * b[3]
		a, b = a[1:], b[4:]
	}
	for j, s := range [4]int64{s0, s1, s2, s3} {
		lo, hi := Unpair(s)
		c0[j] += lo
		c1[j] += hi
	}
}

// Widen4 stores four rows as a panel of 64-bit integers: the elements of one
// position side by side. dst holds four times a row's length.
func Widen4(dst []int64, r0, r1, r2, r3 []int8) {
	n := len(r0)
	r1, r2, r3, dst = r1[:n], r2[:n], r3[:n], dst[:4*n]
	for k, v := range r0 {
		d := dst[4*k : 4*k+4 : 4*k+4]
		d[0], d[1], d[2], d[3] = int64(v), int64(r1[k]), int64(r2[k]), int64(r3[k])
	}
}

// MaxFoldTerms is the largest length of a folded row.
const MaxFoldTerms = 1 << 16

// Fold prepares a row x for FoldedDots4, which does two multiplications at
// once: it stores x[k+4+i] + x[k+i]<<32 for i = 0 to 3 and every k that is a
// multiple of 8, and returns the sum of x. len(x) is a multiple of 8, at most
// MaxFoldTerms, and dst has half that length.
func Fold(dst []int64, x []int8) (sum int32) {
	for len(x) >= 8 && len(dst) >= 4 {
		for i, v := range x[:4] {
			dst[i] = int64(x[4+i]) + int64(v)<<32
			sum += int32(v) + int32(x[4+i])
		}
		x, dst = x[8:], dst[4:]
	}
	return sum
}

// FoldedDots4 returns the inner products of a folded row, whose sum is given,
// with four rows of int8 numbers as bytes. Eight bytes become pairs a + b<<32
// with masks, their sign moved up by 128; the upper half of a pair's product
// with a folded pair is a sum of two products.
func FoldedDots4(x []int64, sum int32, w0, w1, w2, w3 []byte) (s0, s1, s2, s3 int32) {
	const low, up = 0x000000ff000000ff, 0x8080808080808080
	n := len(x) / 4 * 8
	w0, w1, w2, w3, x = w0[:n], w1[:n], w2[:n], w3[:n], x[:n/2]
	var t0, t1, t2, t3 uint64
	for k := 0; k+8 <= n; k += 8 {
		x0, x1, x2, x3 := uint64(x[k/2]), uint64(x[k/2+1]), uint64(x[k/2+2]), uint64(x[k/2+3])
		a := binary.LittleEndian.Uint64(w0[k:]) ^ up
		t0 += a&low*x0 + a>>8&low*x1 + a>>16&low*x2 + a>>24&low*x3
		a = binary.LittleEndian.Uint64(w1[k:]) ^ up
		t1 += a&low*x0 + a>>8&low*x1 + a>>16&low*x2 + a>>24&low*x3
		a = binary.LittleEndian.Uint64(w2[k:]) ^ up
		t2 += a&low*x0 + a>>8&low*x1 + a>>16&low*x2 + a>>24&low*x3
		a = binary.LittleEndian.Uint64(w3[k:]) ^ up
		t3 += a&low*x0 + a>>8&low*x1 + a>>16&low*x2 + a>>24&low*x3
	}
	_, s0 = Unpair(int64(t0))
	_, s1 = Unpair(int64(t1))
	_, s2 = Unpair(int64(t2))
	_, s3 = Unpair(int64(t3))
	return s0 - 128*sum, s1 - 128*sum, s2 - 128*sum, s3 - 128*sum
}
