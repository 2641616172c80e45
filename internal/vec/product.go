package vec

import "math"

// Dots4 returns the inner products of x with four rows of its length.
func Dots4(x, w0, w1, w2, w3 []float32) (s0, s1, s2, s3 float32) {
	n := len(x)
	w0, w1, w2, w3 = w0[:n], w1[:n], w2[:n], w3[:n]
	for k, v := range x {
		s0 += float32(v * w0[k])
		s1 += float32(v * w1[k])
		s2 += float32(v * w2[k])
		s3 += float32(v * w3[k])
	}
	return s0, s1, s2, s3
}

// Dots4BF16 is Dots4 with rows of bfloat16 numbers as bits.
func Dots4BF16(x []float32, w0, w1, w2, w3 []uint16) (s0, s1, s2, s3 float32) {
	n := len(x)
	w0, w1, w2, w3 = w0[:n], w1[:n], w2[:n], w3[:n]
	for k, v := range x {
		s0 += float32(v * math.Float32frombits(uint32(w0[k])<<16))
		s1 += float32(v * math.Float32frombits(uint32(w1[k])<<16))
		s2 += float32(v * math.Float32frombits(uint32(w2[k])<<16))
		s3 += float32(v * math.Float32frombits(uint32(w3[k])<<16))
	}
	return s0, s1, s2, s3
}

// Axpy4 adds a[0]*w0, then a[1]*w1, a[2]*w2 and a[3]*w3 to y, element by
// element. The rows have y's length.
func Axpy4(y []float32, a *[4]float32, w0, w1, w2, w3 []float32) {
	n := len(y)
	w0, w1, w2, w3 = w0[:n], w1[:n], w2[:n], w3[:n]
	a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
	for j, v := range y {
		v += float32(a0 * w0[j])
		v += float32(a1 * w1[j])
		v += float32(a2 * w2[j])
		v += float32(a3 * w3[j])
		y[j] = v
	}
}

// Tile2x4 adds the product of a panel of two rows and a panel of four columns
// to a tile: c0 and c1 are its rows, a holds 2 and b 4 elements for each k.
func Tile2x4(c0, c1 *[4]float32, a, b []float32) {
	var s0, s1, s2, s3, t0, t1, t2, t3 float32
	for len(a) >= 8 && len(b) >= 16 {
		u, v := a[0], a[1]
		w := b[0]
		s0 += float32(u * w)
		t0 += float32(v * w)
		w = b[1]
		s1 += float32(u * w)
		t1 += float32(v * w)
		w = b[2]
		s2 += float32(u * w)
		t2 += float32(v * w)
		w = b[3]
		s3 += float32(u * w)
		t3 += float32(v * w)
		u, v = a[2], a[3]
		w = b[4]
		s0 += float32(u * w)
		t0 += float32(v * w)
		w = b[5]
		s1 += float32(u * w)
		t1 += float32(v * w)
		w = b[6]
		s2 += float32(u * w)
		t2 += float32(v * w)
		w = b[7]
		s3 += float32(u * w)
		t3 += float32(v * w)
		u, v = a[4], a[5]
		w = b[8]
		s0 += float32(u * w)
		t0 += float32(v * w)
		w = b[9]
		s1 += float32(u * w)
		t1 += float32(v * w)
		w = b[10]
		s2 += float32(u * w)
		t2 += float32(v * w)
		w = b[11]
		s3 += float32(u * w)
		t3 += float32(v * w)
		u, v = a[6], a[7]
		w = b[12]
		s0 += float32(u * w)
		t0 += float32(v * w)
		w = b[13]
		s1 += float32(u * w)
		t1 += float32(v * w)
		w = b[14]
		s2 += float32(u * w)
		t2 += float32(v * w)
		w = b[15]
		s3 += float32(u * w)
		t3 += float32(v * w)
		a, b = a[8:], b[16:]
	}
	for len(a) >= 2 && len(b) >= 4 {
		u, v := a[0], a[1]
		s0 += float32(u * b[0])
		t0 += float32(v * b[0])
		s1 += float32(u * b[1])
		t1 += float32(v * b[1])
		s2 += float32(u * b[2])
		t2 += float32(v * b[2])
		s3 += float32(u * b[3])
		t3 += float32(v * b[3])
		a, b = a[2:], b[4:]
	}
	c0[0] += s0
	c0[1] += s1
	c0[2] += s2
	c0[3] += s3
	c1[0] += t0
	c1[1] += t1
	c1[2] += t2
	c1[3] += t3
}

// Interleave2 stores two rows as a panel: the elements of one position side by
// side. dst holds twice a row's length.
func Interleave2(dst, r0, r1 []float32) {
	n := len(r0)
	r1, dst = r1[:n], dst[:2*n]
	for k, v := range r0 {
		d := dst[2*k : 2*k+2 : 2*k+2]
		d[0], d[1] = v, r1[k]
	}
}

// Interleave4 stores four rows as a panel. dst holds four times a row's length.
func Interleave4(dst, r0, r1, r2, r3 []float32) {
	n := len(r0)
	r1, r2, r3, dst = r1[:n], r2[:n], r3[:n], dst[:4*n]
	for k, v := range r0 {
		d := dst[4*k : 4*k+4 : 4*k+4]
		d[0], d[1], d[2], d[3] = v, r1[k], r2[k], r3[k]
	}
}
