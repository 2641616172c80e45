package vec

// ScoreRows computes the inner products of rows of q with rows of k:
//
//	dst[r*ldd+j] = Σ_i q[r*ldq+i]*k[j*ldk+i]   r < rows, j < cols, i < d
//
// Every sum adds rounded products in the order of i, starting from +0, so an
// element does not depend on how many rows and columns are asked for at once.
func ScoreRows(dst []float32, ldd int, q []float32, ldq, rows int, k []float32, ldk, cols, d int) {
	r := 0
	for ; r+2 <= rows; r += 2 {
		scoreTwo(dst[r*ldd:], dst[(r+1)*ldd:], q[r*ldq:][:d], q[(r+1)*ldq:][:d], k, ldk, cols)
	}
	if r < rows {
		scoreOne(dst[r*ldd:], q[r*ldq:][:d], k, ldk, cols)
	}
}

func scoreTwo(dst0, dst1, q0, q1, k []float32, ldk, cols int) {
	d := len(q0)
	q1 = q1[:d]
	dst0, dst1 = dst0[:cols], dst1[:cols]
	j := 0
	for ; j+4 <= cols; j += 4 {
		k0, k1, k2, k3 := k[j*ldk:][:d], k[(j+1)*ldk:][:d], k[(j+2)*ldk:][:d], k[(j+3)*ldk:][:d]
		var a0, a1, a2, a3, b0, b1, b2, b3 float32
		for i, x := range q0 {
			y := q1[i]
			a0 += float32(x * k0[i])
			b0 += float32(y * k0[i])
			a1 += float32(x * k1[i])
			b1 += float32(y * k1[i])
			a2 += float32(x * k2[i])
			b2 += float32(y * k2[i])
			a3 += float32(x * k3[i])
			b3 += float32(y * k3[i])
		}
		dst0[j], dst0[j+1], dst0[j+2], dst0[j+3] = a0, a1, a2, a3
		dst1[j], dst1[j+1], dst1[j+2], dst1[j+3] = b0, b1, b2, b3
	}
	for ; j < cols; j++ {
		k0 := k[j*ldk:][:d]
		var a, b float32
		for i, x := range q0 {
			a += float32(x * k0[i])
			b += float32(q1[i] * k0[i])
		}
		dst0[j], dst1[j] = a, b
	}
}

func scoreOne(dst, q, k []float32, ldk, cols int) {
	d := len(q)
	dst = dst[:cols]
	j := 0
	for ; j+8 <= cols; j += 8 {
		k0, k1, k2, k3 := k[j*ldk:][:d], k[(j+1)*ldk:][:d], k[(j+2)*ldk:][:d], k[(j+3)*ldk:][:d]
		k4, k5, k6, k7 := k[(j+4)*ldk:][:d], k[(j+5)*ldk:][:d], k[(j+6)*ldk:][:d], k[(j+7)*ldk:][:d]
		var a0, a1, a2, a3, a4, a5, a6, a7 float32
		for i, x := range q {
			a0 += float32(x * k0[i])
			a1 += float32(x * k1[i])
			a2 += float32(x * k2[i])
			a3 += float32(x * k3[i])
			a4 += float32(x * k4[i])
			a5 += float32(x * k5[i])
			a6 += float32(x * k6[i])
			a7 += float32(x * k7[i])
		}
		out := dst[j : j+8]
		out[0], out[1], out[2], out[3] = a0, a1, a2, a3
		out[4], out[5], out[6], out[7] = a4, a5, a6, a7
	}
	for ; j < cols; j++ {
		k0 := k[j*ldk:][:d]
		var a float32
		for i, x := range q {
			a += float32(x * k0[i])
		}
		dst[j] = a
	}
}

// MixRows adds weighted rows of v to rows of acc:
//
//	acc[r*lda+i] += Σ_j p[r*ldp+j]*v[j*ldv+i]   r < rows, j < cols, i < d
//
// The rounded products are added one after the other in the order of j, so
// mixing columns in several calls gives the same bits as in one.
func MixRows(acc []float32, lda int, p []float32, ldp, rows int, v []float32, ldv, cols, d int) {
	j := 0
	for ; j+4 <= cols; j += 4 {
		v0, v1, v2, v3 := v[j*ldv:][:d], v[(j+1)*ldv:][:d], v[(j+2)*ldv:][:d], v[(j+3)*ldv:][:d]
		r := 0
		for ; r+2 <= rows; r += 2 {
			mixTwo(acc[r*lda:][:d], acc[(r+1)*lda:][:d], p[r*ldp+j:][:4], p[(r+1)*ldp+j:][:4], v0, v1, v2, v3)
		}
		if r < rows {
			mixOne(acc[r*lda:][:d], p[r*ldp+j:][:4], v0, v1, v2, v3)
		}
	}
	for ; j < cols; j++ {
		v0 := v[j*ldv:][:d]
		for r := range rows {
			Axpy(p[r*ldp+j], v0, acc[r*lda:][:d])
		}
	}
}

func mixTwo(acc0, acc1, p, q, v0, v1, v2, v3 []float32) {
	d := len(acc0)
	acc1, v0, v1, v2, v3 = acc1[:d], v0[:d], v1[:d], v2[:d], v3[:d]
	p0, p1, p2, p3 := p[0], p[1], p[2], p[3]
	q0, q1, q2, q3 := q[0], q[1], q[2], q[3]
	for i, a := range acc0 {
		b := acc1[i]
		x := v0[i]
		a += float32(p0 * x)
		b += float32(q0 * x)
		x = v1[i]
		a += float32(p1 * x)
		b += float32(q1 * x)
		x = v2[i]
		a += float32(p2 * x)
		b += float32(q2 * x)
		x = v3[i]
		a += float32(p3 * x)
		b += float32(q3 * x)
		acc0[i], acc1[i] = a, b
	}
}

func mixOne(acc, p, v0, v1, v2, v3 []float32) {
	d := len(acc)
	v0, v1, v2, v3 = v0[:d], v1[:d], v2[:d], v3[:d]
	p0, p1, p2, p3 := p[0], p[1], p[2], p[3]
	for i, a := range acc {
		a += float32(p0 * v0[i])
		a += float32(p1 * v1[i])
		a += float32(p2 * v2[i])
		a += float32(p3 * v3[i])
		acc[i] = a
	}
}

// ScaleMax replaces s by s*scale and returns the largest result. NaN elements
// are passed over by the maximum, which is -Inf when there is no other.
func ScaleMax(s []float32, scale float32) float32 {
	Scale(s, s, scale)
	return Max(s)
}

// ScaleAddMax replaces s by s*scale+bias, the product rounded before the sum,
// and returns the maximum as ScaleMax does. s and bias have equal lengths.
func ScaleAddMax(s []float32, scale float32, bias []float32) float32 {
	bias = bias[:len(s)]
	for i, v := range s {
		s[i] = float32(v*scale) + bias[i]
	}
	return Max(s)
}

// Blend replaces y by a*y+b*x, both products rounded before the sum. x and y
// have equal lengths.
func Blend(a float32, y []float32, b float32, x []float32) {
	x = x[:len(y)]
	for i, v := range y {
		y[i] = float32(a*v) + float32(b*x[i])
	}
}

// Int8Floats widens len(dst) elements of src.
func Int8Floats(dst []float32, src []int8) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = float32(v)
	}
}
