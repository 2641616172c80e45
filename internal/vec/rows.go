package vec

import (
	"goatb/internal/asm/vecmath"
	"goatb/tensor"
)

// Element is an element type of the rows of Dots and Mix. F16 and BF16 are bits
// in uint16.
type Element = vecmath.Element

// Element types: float32, uint16, uint16 and int8.
const (
	F32  = vecmath.F32
	F16  = vecmath.F16
	BF16 = vecmath.BF16
	I8   = vecmath.I8
)

// Dots stores the inner products of x with len(dst) rows of type e, each as long
// as x and stride elements behind the one before, in the package's lane order.
func Dots[T vecmath.Row](e Element, dst, x []float32, rows []T, stride int) {
	if vecmath.Dots(e, dst, x, rows, stride) {
		return
	}
	for j := range dst {
		dst[j] = dot(e, x, rows[j*stride:][:len(x)])
	}
}

// dot does one row: the lanes of a group over the whole row, group after group.
func dot[T vecmath.Row](e Element, x []float32, row []T) float32 {
	var s [lanes]float32
	var wide [laneGroup]float32
	for g := 0; g < min(lanes, len(x)); g += laneGroup {
		p := (*[laneGroup]float32)(s[g:])
		i := g
		for ; i+laneGroup <= len(x); i += lanes {
			a, b := (*[laneGroup]float32)(x[i:]), widened(e, &wide, row[i:])
			p[0] += float32(a[0] * b[0])
			p[1] += float32(a[1] * b[1])
			p[2] += float32(a[2] * b[2])
			p[3] += float32(a[3] * b[3])
			p[4] += float32(a[4] * b[4])
			p[5] += float32(a[5] * b[5])
			p[6] += float32(a[6] * b[6])
			p[7] += float32(a[7] * b[7])
		}
		if i < len(x) {
			for l, v := range x[i:] {
				p[l] += float32(v * widen(e, row[i+l]))
			}
		}
	}
	return foldLanes(&s, len(x))
}

// widened returns the first laneGroup elements of row as float32.
func widened[T vecmath.Row](e Element, buf *[laneGroup]float32, row []T) *[laneGroup]float32 {
	if r, ok := any(row).([]float32); ok {
		return (*[laneGroup]float32)(r)
	}
	for l, v := range row[:laneGroup] {
		buf[l] = widen(e, v)
	}
	return buf
}

// widen returns an element of type e as float32.
func widen[T vecmath.Row](e Element, v T) float32 {
	switch e {
	case F16:
		return tensor.F16(v).Float32()
	case BF16:
		return tensor.BF16(v).Float32()
	}
	return float32(v)
}

// Mix adds rows of type e, each as long as acc and stride elements behind the
// one before, to acc, each times its weight, one after the other. Every product
// is rounded before it is added, so mixing rows in several calls gives the bits
// of one.
func Mix[T vecmath.Row](e Element, acc, weights []float32, rows []T, stride int) {
	if vecmath.Mix(e, acc, weights, rows, stride) {
		return
	}
	for j, w := range weights {
		row := rows[j*stride:][:len(acc)]
		if r, ok := any(row).([]float32); ok {
			axpy(w, r, acc)
			continue
		}
		for i, v := range row {
			acc[i] += float32(w * widen(e, v))
		}
	}
}

func axpy(alpha float32, x, y []float32) {
	y = y[:len(x)]
	for len(x) >= 4 && len(y) >= 4 {
		y[0] += float32(alpha * x[0])
		y[1] += float32(alpha * x[1])
		y[2] += float32(alpha * x[2])
		y[3] += float32(alpha * x[3])
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		y[i] += float32(alpha * v)
	}
}
