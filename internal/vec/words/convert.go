package words

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// Convert stores src as another type as Go converts it: integers wrap, and
// become the nearest float32.
func Convert[D, S Number](dst []D, src []S) {
	done := 0
	if c, ok := conversionOf[D, S](); ok {
		done = vecmath.Convert(c, dst, src)
	}
	src = src[done:len(dst)]
	dst = dst[done:]
	for i, v := range src {
		dst[i] = D(v)
	}
}

// conversionOf is the assembly's name of a conversion.
func conversionOf[D, S Number]() (c vecmath.Conversion, ok bool) {
	from, to := numberOf[S](), numberOf[D]()
	wide := to == vecmath.Int32 || to == vecmath.Uint32
	long := to == vecmath.Int64 || to == vecmath.Uint64
	word := from == vecmath.Int32 || from == vecmath.Uint32
	switch {
	case wide && from == vecmath.Int8:
		return vecmath.Int8ToInt32, true
	case wide && from == vecmath.Uint8:
		return vecmath.Uint8ToInt32, true
	case wide && from == vecmath.Int16:
		return vecmath.Int16ToInt32, true
	case wide && from == vecmath.Uint16:
		return vecmath.Uint16ToInt32, true
	case wide && (from == vecmath.Int64 || from == vecmath.Uint64):
		return vecmath.Int64ToInt32, true
	case long && from == vecmath.Int32:
		return vecmath.Int32ToInt64, true
	case long && from == vecmath.Uint32:
		return vecmath.Uint32ToInt64, true
	case word && (to == vecmath.Int16 || to == vecmath.Uint16):
		return vecmath.Int32ToInt16, true
	case word && (to == vecmath.Int8 || to == vecmath.Uint8):
		return vecmath.Int32ToInt8, true
	case from == vecmath.Int32 && to == vecmath.Float32:
		return vecmath.Int32ToFloat32, true
	}
	return 0, false
}

// Ints stores src rounded toward zero and limited to low..high; NaN gives 0.
func Ints(dst []int32, src []float32, low, high int32) {
	done := vecmath.FloatInts(dst, src, float32(low), float32(high))
	src = src[done:len(dst)]
	dst = dst[done:]
	below, above := float32(low), float32(high)
	for i, v := range src {
		switch {
		case v > below && v < above:
			dst[i] = int32(v)
		case v >= above:
			dst[i] = high
		case v <= below:
			dst[i] = low
		default:
			dst[i] = 0
		}
	}
}

// Range returns the ends of an integer type of up to 32 bits but uint32.
func Range(bits int, unsigned bool) (low, high int32) {
	if unsigned {
		return 0, 1<<bits - 1
	}
	return math.MinInt32 >> (32 - bits), math.MaxInt32 >> (32 - bits)
}
