// Package words computes with arrays of integers, truth values and comparisons:
// assembly of package vecmath where there is some, and plain Go, with the same
// results. Slices in one call have equal lengths; an output may be exactly the
// memory of an input of its type.
package words

import "goatb/internal/asm/vecmath"

// Integer types; unsigned types stand for both signs where results wrap.
type Integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// Number types are those that Compare takes.
type Number interface{ Integer | float32 }

// Func names a function of two arrays of integers.
type Func = vecmath.WordFunc

// Functions of two arrays, whose results wrap.
const (
	Add = vecmath.AddWords
	Sub = vecmath.SubWords
	Mul = vecmath.MulWords
)

// Apply stores f(x, y).
func Apply[T Integer](f Func, z, x, y []T) {
	done := vecmath.Words(f, z, x, y)
	z, x, y = z[done:], x[done:len(z)], y[done:len(z)]
	switch f {
	case Add:
		for i := range z {
			z[i] = x[i] + y[i]
		}
	case Sub:
		for i := range z {
			z[i] = x[i] - y[i]
		}
	default:
		for i := range z {
			z[i] = x[i] * y[i]
		}
	}
}

// Greater stores 1 where x > y and 0 elsewhere; NaN is not greater.
func Greater[T Number](z []int8, x, y []T) {
	done := vecmath.Greater(numberOf[T](), z, x, y)
	z, x, y = z[done:], x[done:len(z)], y[done:len(z)]
	for i := range z {
		z[i] = truth(x[i] > y[i])
	}
}

// Equal stores 1 where x equals y and 0 elsewhere; NaN equals nothing.
func Equal[T Number](z []int8, x, y []T) {
	done := vecmath.Equal(numberOf[T](), z, x, y)
	z, x, y = z[done:], x[done:len(z)], y[done:len(z)]
	for i := range z {
		z[i] = truth(x[i] == y[i])
	}
}

// numberOf is the assembly's name of a type.
func numberOf[T Number]() vecmath.Number {
	switch any(*new(T)).(type) {
	case int8:
		return vecmath.Int8
	case int16:
		return vecmath.Int16
	case int32:
		return vecmath.Int32
	case int64:
		return vecmath.Int64
	case uint8:
		return vecmath.Uint8
	case uint16:
		return vecmath.Uint16
	case uint32:
		return vecmath.Uint32
	case uint64:
		return vecmath.Uint64
	}
	return vecmath.Float32
}

// And stores 1 where neither x nor y is 0, and 0 elsewhere.
func And(z, x, y []uint8) {
	done := vecmath.Logic(vecmath.And, z, x, y)
	z, x, y = z[done:], x[done:len(z)], y[done:len(z)]
	for i := range z {
		z[i] = uint8(truth(x[i] != 0) & truth(y[i] != 0))
	}
}

// Or stores 1 where x or y is not 0, and 0 elsewhere.
func Or(z, x, y []uint8) {
	done := vecmath.Logic(vecmath.Or, z, x, y)
	z, x, y = z[done:], x[done:len(z)], y[done:len(z)]
	for i := range z {
		z[i] = uint8(truth(x[i]|y[i] != 0))
	}
}

// Not stores 1 where x is 0, and 0 elsewhere.
func Not(z, x []uint8) {
	done := vecmath.Not(z, x)
	z, x = z[done:], x[done:len(z)]
	for i := range z {
		z[i] = uint8(truth(x[i] == 0))
	}
}

// truth is 1 for true; the compiler makes it a flag without a jump.
func truth(b bool) int8 {
	if b {
		return 1
	}
	return 0
}
