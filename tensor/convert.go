package tensor

import "goatb/status"

// Convert writes the elements of src, of type st, to dst as type dt. Both are
// little-endian and hold the same number of elements; they may not overlap
// unless they are the same slice and the types are equal. It serves tests,
// files and tools; kernels have their own loops.
//
//	from      to         rule
//	float     float      rounded once, to nearest even; beyond the range infinite; NaN stays NaN
//	float     integer    truncated toward zero; beyond the range the nearest end of it; NaN gives 0
//	integer   float      rounded once, to nearest even
//	integer   integer    the low bits (two's complement): wraps
//	any       bool       1 where the value is not zero (NaN is not)
//	bool      any        0 or 1
//	real      complex    the real part; the imaginary part is 0
//	complex   complex    each part as float to float
//	complex   real       refused
//	T         T          the bytes
//
// Errors: ErrInvalidTensorDType for a type without a size and for complex to
// real, ErrInvalidTensorSize for lengths that do not fit.
func Convert(dst []byte, dt DType, src []byte, st DType) error {
	ds, ss := int(dt.Size()), int(st.Size())
	if ds == 0 || ss == 0 || st.IsComplex() && !dt.IsComplex() {
		return status.Errorf(status.ErrInvalidTensorDType, "cannot convert %s to %s", st, dt)
	}
	if len(src)%ss != 0 {
		return status.Errorf(status.ErrInvalidTensorSize, "want a whole number of %s elements, got %d bytes", st, len(src))
	}
	n := len(src) / ss
	if len(dst)%ds != 0 || len(dst)/ds != n {
		return status.Errorf(status.ErrInvalidTensorSize, "want %d %s elements to write to, got %d bytes", n, dt, len(dst))
	}
	if dt == st {
		copy(dst, src)
		return nil
	}
	for ; n > 0; n-- {
		convertElement(dst[:ds], dt, src[:ss], st)
		dst, src = dst[ds:], src[ss:]
	}
	return nil
}

// Float64s returns the elements of b, of type t, rounded once to float64 (only
// 64-bit integers need it); false and true are 0 and 1. Errors:
// ErrInvalidTensorDType for a complex type or one without a size,
// ErrInvalidTensorSize when b ends inside an element.
func Float64s(b []byte, t DType) ([]float64, error) {
	size := int(t.Size())
	if size == 0 || t.IsComplex() {
		return nil, status.Errorf(status.ErrInvalidTensorDType, "cannot convert %s to %s", t, Float64)
	}
	if len(b)%size != 0 {
		return nil, status.Errorf(status.ErrInvalidTensorSize, "want a whole number of %s elements, got %d bytes", t, len(b))
	}
	out := make([]float64, len(b)/size)
	for i := range out {
		e := b[i*size : (i+1)*size]
		switch {
		case t.IsFloat():
			out[i] = loadFloat(t, e)
		case t.IsSigned():
			out[i] = float64(int64(loadInt(t, e)))
		default:
			out[i] = float64(loadInt(t, e))
		}
	}
	return out, nil
}

// FromFloat64s returns v as elements of type t by the rules of Convert. It is
// nil for a type without a size.
func FromFloat64s(t DType, v []float64) []byte {
	size := int(t.Size())
	if size == 0 {
		return nil
	}
	out := make([]byte, len(v)*size)
	for i, f := range v {
		storeFrom(t, out[i*size:(i+1)*size], f)
	}
	return out
}

func convertElement(dst []byte, dt DType, src []byte, st DType) {
	switch {
	case st.IsComplex():
		storeFloat(part(dt), dst[:len(dst)/2], loadFloat(part(st), src[:len(src)/2]))
		storeFloat(part(dt), dst[len(dst)/2:], loadFloat(part(st), src[len(src)/2:]))
	case st.IsFloat():
		storeFrom(dt, dst, loadFloat(st, src))
	case dt.IsComplex():
		storeInt(part(dt), dst[:len(dst)/2], loadInt(st, src), st.IsSigned())
		clear(dst[len(dst)/2:])
	default:
		storeInt(dt, dst, loadInt(st, src), st.IsSigned())
	}
}
