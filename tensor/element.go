package tensor

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// part is the type of the parts of a complex type.
func part(t DType) DType {
	if t == Complex64 {
		return Float32
	}
	return Float64
}

// loadFloat reads an element of a float type.
func loadFloat(t DType, b []byte) float64 {
	switch t {
	case Float16:
		return float64(F16(binary.LittleEndian.Uint16(b)).Float32())
	case BFloat16:
		return float64(BF16(binary.LittleEndian.Uint16(b)).Float32())
	case Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// storeFloat writes an element of a float type, rounding v once.
func storeFloat(t DType, b []byte, v float64) {
	switch t {
	case Float16:
		binary.LittleEndian.PutUint16(b, uint16(F16From(oddFloat32(v))))
	case BFloat16:
		binary.LittleEndian.PutUint16(b, uint16(BF16From(oddFloat32(v))))
	case Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	default:
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	}
}

// storeFrom writes v as an element of any type.
func storeFrom(t DType, b []byte, v float64) {
	switch {
	case t.IsFloat():
		storeFloat(t, b, v)
	case t.IsComplex():
		storeFloat(part(t), b[:len(b)/2], v)
		clear(b[len(b)/2:])
	case t == Bool:
		b[0] = boolByte(v != 0)
	default:
		storeBits(b, truncate(t, v))
	}
}

// loadInt reads an element of an integer type or a bool, extended to 64 bits.
func loadInt(t DType, b []byte) uint64 {
	switch t {
	case Bool:
		return uint64(boolByte(b[0] != 0))
	case Int8:
		return uint64(int8(b[0]))
	case Int16:
		return uint64(int16(binary.LittleEndian.Uint16(b)))
	case Int32:
		return uint64(int32(binary.LittleEndian.Uint32(b)))
	}
	return loadBits(b)
}

// storeInt writes the integer v, whose upper bit is a sign when signed is set,
// as an element of a real type.
func storeInt(t DType, b []byte, v uint64, signed bool) {
	switch {
	case t == Bool:
		b[0] = boolByte(v != 0)
	case !t.IsFloat():
		storeBits(b, v)
	case t == Float64 && signed:
		storeFloat(t, b, float64(int64(v)))
	case t == Float64:
		storeFloat(t, b, float64(v))
	case signed && int64(v) < 0:
		storeFloat(t, b, -oddFloat64(-v))
	default:
		storeFloat(t, b, oddFloat64(v))
	}
}

func loadBits(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func storeBits(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// truncate returns the integer of type t next to v toward zero, held to t's
// range, as its low bits.
func truncate(t DType, v float64) uint64 {
	width := int(8 * t.Size())
	if t.IsSigned() {
		limit := math.Ldexp(1, width-1)
		switch {
		case v >= limit:
			return 1<<(width-1) - 1
		case v <= -limit:
			return 1 << (width - 1)
		case v != v:
			return 0
		}
		return uint64(int64(v))
	}
	switch {
	case v >= math.Ldexp(1, width):
		return math.MaxUint64
	case !(v >= 1):
		return 0
	}
	return uint64(v)
}

// oddFloat32 rounds v to odd: exact where float32 holds v, else the neighbour
// with an odd significand, and never infinite unless v is. Rounding the result
// to a shorter type gives what rounding v itself would.
func oddFloat32(v float64) float32 {
	f := float32(v)
	if float64(f) == v || v != v {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(v) {
		b--
	}
	return math.Float32frombits(b | 1)
}

// oddFloat64 is v rounded to odd, as oddFloat32 does.
func oddFloat64(v uint64) float64 {
	shift := max(bits.Len64(v)-53, 0)
	m := v >> shift
	if m<<shift != v {
		m |= 1
	}
	return math.Ldexp(float64(m), shift)
}
