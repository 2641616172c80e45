package tensor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/status"
)

func TestDescSizes(t *testing.T) {
	for _, tt := range []struct {
		d            Desc
		numel, bytes int64
		empty        bool
	}{
		{Desc{}, 0, 0, true},
		{Of(Float32), 0, 0, true},
		{Of(Float32, 0), 0, 0, true},
		{Of(Float32, 3, 0), 0, 0, true},
		{Of(Float32, 0, -1), 0, 0, true},
		{Of(Float16, 2, 3), 6, 12, false},
		{Of(Complex128, 2), 2, 32, false},
		{Of(Undefined, 2), 2, 0, false},
		{Of(DType(99), 2), 2, 0, false},
		{Of(Float32, -2), 0, 0, false},
		{Of(Float32, 8388609, 8, 64), 4294967808, 17179871232, false},
		{Of(Int8, math.MaxInt64), math.MaxInt64, math.MaxInt64, false},
		{Of(Float16, math.MaxInt64), math.MaxInt64, 0, false},
		{Of(Float16, 1<<62-1), 1<<62 - 1, math.MaxInt64 - 1, false},
		{Of(Float32, math.MaxInt64, math.MaxInt64), 0, 0, false},
		{Of(Float32, 1, 1, 1, 1, 1, 1, 1, 1, 1), 0, 0, false},
	} {
		t.Run(tt.d.String(), func(t *testing.T) {
			assert.Equal(t, tt.numel, tt.d.Numel())
			assert.Equal(t, tt.bytes, tt.d.Bytes())
			assert.Equal(t, tt.empty, tt.d.Empty())
		})
	}
}

func TestDescString(t *testing.T) {
	assert.Equal(t, "f16[2,3]", Of(Float16, 2, 3).String())
	assert.Equal(t, "int8@fractal_nz[1,2,16,32]", Desc{Int8, FractalNZ, ShapeOf(1, 2, 16, 32)}.String())
	assert.Equal(t, "undefined[]", Desc{}.String())
}

func TestDescIsAValue(t *testing.T) {
	d := Of(Float16, 2, 3)
	assert.True(t, d == Desc{DType: Float16, Format: ND, Shape: ShapeOf(2, 3)})
	assert.True(t, d.WithShape(6) == Of(Float16, 6))
	assert.True(t, d == Of(Float16, 2, 3), "WithShape makes a new one")
	assert.Equal(t, []int64{2, 3, 3}, []int64{int64(d.Rank()), d.Dim(1), d.Dim(-1)})
}

// Same must say what == says, for every pair.
func TestSameIsEquality(t *testing.T) {
	nz := Of(Float16, 1, 2, 16, 32)
	nz.Format = FractalNZ
	list := []Desc{
		{}, Of(Float32), Of(Float16), Of(Float32, 0), Of(Float32, 2), Of(Float32, 2, 3), Of(Float32, 3, 2), Of(Float32, 2, 3, 1), Of(Float16, 2, 3),
		Of(Float16, 1, 2, 16, 32), nz, Of(Float32, 1, 1, 1, 1, 1, 1, 1, 1), Of(Float32, 1, 1, 1, 1, 1, 1, 1, 2),
		Of(Float32, 1, 1, 1, 1, 1, 1, 1, 1, 1), Of(Float32, 1, 1, 1, 1, 1, 1, 1, 1, 2), Of(Float32, 2, 3).WithShape(2),
	}
	for i := range list {
		for j := range list {
			assert.Equal(t, list[i] == list[j], list[i].Same(&list[j]), "%s and %s", list[i], list[j])
		}
	}
}

func TestCheckDesc(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    Desc
		code status.Code
		text string
	}{
		{"rank 0", Of(Float32), status.ErrInvalidTensorDim, "want rank 1 to 8, got 0"},
		{"rank 9", Of(Float32, 1, 1, 1, 1, 1, 1, 1, 1, 1), status.ErrInvalidTensorDim, "want rank 1 to 8, got 9"},
		{"rank before type", Of(Undefined), status.ErrInvalidTensorDim, "want rank 1 to 8, got 0"},
		{"no type", Of(Undefined, 2), status.ErrInvalidTensorSize, "dtype undefined has no size"},
		{"unknown type", Of(DType(99), 2), status.ErrInvalidTensorSize, "dtype dtype(99) has no size"},
		{"dimension 0", Of(Float32, 2, 0), status.ErrInvalidTensorSize, "got f32[2,0]"},
		{"negative dimension", Of(Float32, 2, -1), status.ErrInvalidTensorSize, "got f32[2,-1]"},
		{"two negative dimensions", Of(Float32, -2, -1), status.ErrInvalidTensorSize, "got f32[-2,-1]"},
		{"elements leave int64", Of(Int8, math.MaxInt64, 2), status.ErrInvalidTensorSize, "within int64"},
		{"bytes leave int64", Of(Float16, math.MaxInt64), status.ErrInvalidTensorSize, "within int64"},
		{"one byte too many", Of(Int8, MaxBytes+1), status.ErrInvalidTensorSize, "want at most 274877906944 bytes, got 274877906945 for int8[274877906945]"},
		{"one element too many", Of(Float32, MaxBytes/4+1), status.ErrInvalidTensorSize, "got 274877906948"},
		{"largest", Of(Int8, MaxBytes), status.OK, ""},
		{"largest f32", Of(Float32, MaxBytes/8, 2), status.OK, ""},
		{"above int32", Of(Float32, 8388609, 8, 64), status.OK, ""},
		{"smallest", Of(Bool, 1), status.OK, ""},
		{"rank 8", Of(Complex128, 1, 1, 1, 1, 1, 1, 1, 1), status.OK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckDesc(&tt.d)
			if tt.code == status.OK {
				assert.Nil(t, err)
				return
			}
			if assert.NotNil(t, err) {
				assert.Equal(t, tt.code, err.Code)
				assert.ErrorContains(t, err, tt.text)
			}
		})
	}
}
