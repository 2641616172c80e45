package tensor

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

var (
	floatTypes   = []DType{Float16, BFloat16, Float32, Float64}
	intTypes     = []DType{Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64}
	complexTypes = []DType{Complex64, Complex128}
)

// element makes the bytes of one element from its bits.
func element(t DType, bits uint64) []byte {
	return binary.LittleEndian.AppendUint64(nil, bits)[:t.Size()]
}

// elementBits is the reverse, with zeros above the element.
func elementBits(b []byte) uint64 {
	return binary.LittleEndian.Uint64(append(append([]byte(nil), b...), make([]byte, 8)...))
}

// converted returns the bits of one converted element.
func converted(t *testing.T, to, from DType, bits uint64) uint64 {
	t.Helper()
	dst := make([]byte, to.Size())
	require.NoError(t, Convert(dst, to, element(from, bits), from), "%s to %s", from, to)
	return elementBits(dst)
}

func f32bits(f float32) uint64 { return uint64(math.Float32bits(f)) }
func f64bits(f float64) uint64 { return math.Float64bits(f) }

func TestConvertByRule(t *testing.T) {
	neg := func(v int64) uint64 { return uint64(v) }
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		name     string
		from, to DType
		in, want uint64
	}{
		{"widening is exact", Float16, Float64, 0x3c01, f64bits(1 + 0x1p-10)},
		{"negative zero", Float64, BFloat16, f64bits(math.Copysign(0, -1)), 0x8000},
		{"f64 to f16 rounds once", Float64, Float16, f64bits(1 + 0x1p-11 + 0x1p-40), 0x3c01},
		{"f64 to bf16 rounds once", Float64, BFloat16, f64bits(1 + 0x1p-8 - 0x1p-40), 0x3f80},
		{"f64 to f32", Float64, Float32, f64bits(1 + 0x1p-24), f32bits(1)},
		{"overflow to infinity", Float32, Float16, f32bits(65520), 0x7c00},
		{"f64 far out of range", Float64, Float16, f64bits(-1e300), 0xfc00},
		{"f64 below every subnormal", Float64, BFloat16, f64bits(-1e-300), 0x8000},
		{"infinity stays", Float64, BFloat16, f64bits(-inf), 0xff80},

		{"truncation", Float32, Int32, f32bits(2.9), 2},
		{"negative truncation", Float32, Int32, f32bits(-2.9), 0xfffffffe},
		{"to unsigned", Float32, Uint8, f32bits(200.9), 200},
		{"negative fraction to unsigned", Float32, Uint8, f32bits(-0.9), 0},
		{"above int8", Float32, Int8, f32bits(128), 127},
		{"below int8", Float32, Int8, f32bits(-129), 0x80},
		{"lowest int8", Float32, Int8, f32bits(-128.9), 0x80},
		{"above int64", Float64, Int64, f64bits(0x1p63), math.MaxInt64},
		{"largest below 2^63", Float64, Int64, f64bits(0x1p63 - 1024), math.MaxInt64 - 1023},
		{"infinite to int64", Float64, Int64, f64bits(-inf), 1 << 63},
		{"above uint64", Float64, Uint64, f64bits(inf), math.MaxUint64},
		{"largest below 2^64", Float64, Uint64, f64bits(0x1p64 - 2048), math.MaxUint64 - 2047},
		{"above uint32", Float64, Uint32, f64bits(0x1p32), math.MaxUint32},
		{"negative to unsigned", Float64, Uint32, f64bits(-5), 0},
		{"NaN to signed", Float64, Int16, f64bits(nan), 0},
		{"NaN to unsigned", Float16, Uint16, 0x7e00, 0},
		{"NaN to uint64", Float64, Uint64, f64bits(nan), 0},

		{"wraps down", Int32, Int8, 0x1ff, 0xff},
		{"sign extends", Int8, Int64, 0x80, neg(-128)},
		{"sign extends into unsigned", Int8, Uint16, 0xff, 0xffff},
		{"zero extends", Uint8, Int64, 0xff, 255},
		{"unsigned to signed wraps", Uint64, Int64, math.MaxUint64, neg(-1)},

		{"int to f16", Int32, Float16, 2049, 0x6800},
		{"int beyond f16", Int32, Float16, 65520, 0x7c00},
		{"int beyond f16, negative", Int64, Float16, neg(math.MinInt64), 0xfc00},
		{"int64 to bf16 rounds once", Int64, BFloat16, 1<<62 + 1<<54 + 1, 0x5e81},
		{"int64 tie to bf16", Int64, BFloat16, 1<<62 + 1<<54, 0x5e80},
		{"int64 to f32 rounds once", Int64, Float32, 1<<62 + 1<<38 + 1, f32bits(0x1p62 + 0x1p39)},
		{"int64 to f64", Int64, Float64, 1<<53 + 1, f64bits(0x1p53)},
		{"uint64 to f64", Uint64, Float64, math.MaxUint64, f64bits(0x1p64)},
		{"uint64 to f32", Uint64, Float32, 1 << 63, f32bits(0x1p63)},
		{"negative int to f64", Int16, Float64, 0xfffe, f64bits(-2)},

		{"float to bool", Float32, Bool, f32bits(0.1), 1},
		{"negative zero to bool", Float32, Bool, f32bits(float32(math.Copysign(0, -1))), 0},
		{"NaN to bool", Float16, Bool, 0x7e00, 1},
		{"int to bool", Int32, Bool, 0x100, 1},
		{"bool to int", Bool, Int32, 1, 1},
		{"any set bool is 1", Bool, Int64, 0x80, 1},
		{"bool to f16", Bool, Float16, 7, 0x3c00},

		{"float to complex", Float16, Complex64, 0x3c00, f32bits(1)},
		{"int to complex", Int32, Complex64, 0xffffffff, f32bits(-1)},
		{"bool to complex", Bool, Complex64, 2, f32bits(1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, converted(t, tt.to, tt.from, tt.in))
		})
	}
}

func TestConvertComplex(t *testing.T) {
	wide := append(element(Float64, f64bits(1+0x1p-30)), element(Float64, f64bits(-3))...)
	narrow := append(element(Float32, f32bits(1)), element(Float32, f32bits(-3))...)
	got := make([]byte, 8)
	require.NoError(t, Convert(got, Complex64, wide, Complex128))
	assert.Equal(t, narrow, got)
	got = make([]byte, 16)
	require.NoError(t, Convert(got, Complex128, narrow, Complex64))
	assert.Equal(t, append(element(Float64, f64bits(1)), element(Float64, f64bits(-3))...), got)

	got = []byte{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}
	require.NoError(t, Convert(got, Complex128, element(Int8, 5), Int8))
	assert.Equal(t, append(element(Float64, f64bits(5)), make([]byte, 8)...), got)
	assert.Equal(t, append(element(Float32, f32bits(5)), make([]byte, 4)...), FromFloat64s(Complex64, []float64{5}))
}

// TestConvertFloatsAgainstNearest feeds float64 values beside every cut of the
// 16-bit formats, nearer to it than float32 can say.
func TestConvertFloatsAgainstNearest(t *testing.T) {
	for to, ref := range map[DType]*nearest{Float16: nearestF16, BFloat16: nearestBF16} {
		t.Run(to.String(), func(t *testing.T) {
			var in []float64
			ref.cuts(func(x float32) {
				v := float64(x)
				in = append(in, v, math.Nextafter(v, math.Inf(1)), math.Nextafter(v, math.Inf(-1)))
			})
			r := rand.New(rand.NewPCG(7, 8))
			for range 100_000 {
				in = append(in, math.Float64frombits(r.Uint64()), r.NormFloat64(), math.Ldexp(r.Float64(), r.IntN(320)-160))
			}
			got := FromFloat64s(to, in)
			for i, v := range in {
				want, got := ref.round(v), binary.LittleEndian.Uint16(got[2*i:])
				if want != got && !(ref.isNaN(want) && ref.isNaN(got)) {
					require.Failf(t, "wrong rounding", "%v (%#016x): want %#04x, got %#04x", v, math.Float64bits(v), want, got)
				}
			}
		})
	}
}

// TestConvertIntegersAgainstBig rounds integers of every length with math/big.
func TestConvertIntegersAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	precision := map[DType]uint{Float16: 11, BFloat16: 8, Float32: 24, Float64: 53}
	for range 20_000 {
		bits := r.Uint64() >> r.IntN(64)
		if r.IntN(2) == 0 {
			bits = 1<<r.IntN(64) + 1<<r.IntN(64) + r.Uint64N(3) - 1
		}
		for _, to := range floatTypes {
			for _, from := range []DType{Int64, Uint64} {
				exact := new(big.Float).SetPrec(64)
				if from == Int64 {
					exact.SetInt64(int64(bits))
				} else {
					exact.SetUint64(bits)
				}
				want, _ := new(big.Float).SetPrec(precision[to]).SetMode(big.ToNearestEven).Set(exact).Float64()
				if to == Float16 && math.Abs(want) > 65504 {
					want = math.Inf(int(math.Copysign(1, want)))
				}
				got, err := Float64s(element(to, converted(t, to, from, bits)), to)
				require.NoError(t, err)
				require.Equal(t, []float64{want}, got, "%s %#x to %s", from, bits, to)
			}
		}
	}
}

func TestConvertKeepsNaN(t *testing.T) {
	for _, from := range floatTypes {
		nan := FromFloat64s(from, []float64{math.NaN()})
		for _, to := range floatTypes {
			got := make([]byte, to.Size())
			require.NoError(t, Convert(got, to, nan, from))
			v, err := Float64s(got, to)
			require.NoError(t, err)
			assert.True(t, math.IsNaN(v[0]), "%s to %s", from, to)
		}
	}
}

// TestConvertBetweenAllTypes sends values that every type holds through every
// pair of types.
func TestConvertBetweenAllTypes(t *testing.T) {
	want := []float64{0, 1, 1, 0, 1}
	all := append(append(append([]DType{Bool}, floatTypes...), intTypes...), complexTypes...)
	for _, from := range all {
		src := FromFloat64s(from, want)
		require.Len(t, src, len(want)*int(from.Size()))
		for _, to := range all {
			dst := make([]byte, len(want)*int(to.Size()))
			err := Convert(dst, to, src, from)
			if from.IsComplex() && !to.IsComplex() {
				require.ErrorIs(t, err, status.ErrInvalidTensorDType, "%s to %s", from, to)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, FromFloat64s(to, want), dst, "%s to %s", from, to)
		}
	}
}

func TestConvertToTheSameTypeCopies(t *testing.T) {
	bools := []byte{0, 1, 2, 255}
	got := make([]byte, 4)
	require.NoError(t, Convert(got, Bool, bools, Bool))
	assert.Equal(t, bools, got)
	require.NoError(t, Convert(bools, Bool, bools, Bool))
}

func TestConvertErrors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		dst      int
		dt       DType
		src      int
		st       DType
		wantCode status.Code
		wantText string
	}{
		{"undefined source", 4, Float32, 4, Undefined, status.ErrInvalidTensorDType, "cannot convert undefined to f32"},
		{"unknown target", 4, DType(99), 4, Float32, status.ErrInvalidTensorDType, "cannot convert f32 to dtype(99)"},
		{"complex to real", 4, Float32, 8, Complex64, status.ErrInvalidTensorDType, "cannot convert complex64 to f32"},
		{"part of an element", 4, Float32, 3, Float16, status.ErrInvalidTensorSize, "want a whole number of f16 elements, got 3 bytes"},
		{"short target", 4, Float32, 4, Float16, status.ErrInvalidTensorSize, "want 2 f32 elements to write to, got 4 bytes"},
		{"long target", 9, Float32, 4, Float16, status.ErrInvalidTensorSize, "want 2 f32 elements to write to, got 9 bytes"},
		{"same type, other length", 4, Float16, 2, Float16, status.ErrInvalidTensorSize, "want 1 f16 elements to write to, got 4 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Convert(make([]byte, tt.dst), tt.dt, make([]byte, tt.src), tt.st)
			assert.Equal(t, tt.wantCode, status.CodeOf(err))
			assert.ErrorContains(t, err, tt.wantText)
		})
	}
	assert.NoError(t, Convert(nil, Float32, nil, Int8))
}

func TestFloat64s(t *testing.T) {
	for _, tt := range []struct {
		t    DType
		in   []byte
		want []float64
	}{
		{Float16, []byte{0x00, 0x3c, 0x01, 0x80}, []float64{1, -0x1p-24}},
		{BFloat16, []byte{0x80, 0x3f}, []float64{1}},
		{Float32, element(Float32, f32bits(0.1)), []float64{float64(float32(0.1))}},
		{Float64, element(Float64, f64bits(0.1)), []float64{0.1}},
		{Int8, []byte{0xff, 0x7f}, []float64{-1, 127}},
		{Uint8, []byte{0xff}, []float64{255}},
		{Int64, element(Int64, 1<<63), []float64{-0x1p63}},
		{Uint64, element(Uint64, 1<<63), []float64{0x1p63}},
		{Bool, []byte{0, 1, 2}, []float64{0, 1, 1}},
		{Int32, nil, []float64{}},
	} {
		got, err := Float64s(tt.in, tt.t)
		require.NoError(t, err, tt.t)
		assert.Equal(t, tt.want, got, tt.t)
	}
	_, err := Float64s(make([]byte, 3), Int16)
	assert.ErrorIs(t, err, status.ErrInvalidTensorSize)
	for _, bad := range []DType{Undefined, Complex64, DType(50)} {
		_, err := Float64s(nil, bad)
		assert.ErrorIs(t, err, status.ErrInvalidTensorDType, bad)
	}
}

func TestFromFloat64s(t *testing.T) {
	assert.Equal(t, []byte{0xfe, 0x7f, 0x80, 0}, FromFloat64s(Int8, []float64{-2.5, 300, -300, math.NaN()}))
	assert.Equal(t, []byte{0x00, 0x3c}, FromFloat64s(Float16, []float64{1}))
	assert.Nil(t, FromFloat64s(Undefined, []float64{1}))
	assert.Empty(t, FromFloat64s(Float32, nil))
}
