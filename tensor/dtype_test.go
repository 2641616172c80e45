package tensor

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestDTypes(t *testing.T) {
	for _, tt := range []struct {
		t                         DType
		name                      string
		acl                       int
		size                      int64
		float, complex, sgn, unsg bool
	}{
		{t: Undefined, name: "undefined", acl: -1},
		{t: Float32, name: "f32", acl: 0, size: 4, float: true},
		{t: Float16, name: "f16", acl: 1, size: 2, float: true},
		{t: BFloat16, name: "bf16", acl: 27, size: 2, float: true},
		{t: Float64, name: "f64", acl: 11, size: 8, float: true},
		{t: Int8, name: "int8", acl: 2, size: 1, sgn: true},
		{t: Int16, name: "int16", acl: 6, size: 2, sgn: true},
		{t: Int32, name: "int32", acl: 3, size: 4, sgn: true},
		{t: Int64, name: "int64", acl: 9, size: 8, sgn: true},
		{t: Uint8, name: "uint8", acl: 4, size: 1, unsg: true},
		{t: Uint16, name: "uint16", acl: 7, size: 2, unsg: true},
		{t: Uint32, name: "uint32", acl: 8, size: 4, unsg: true},
		{t: Uint64, name: "uint64", acl: 10, size: 8, unsg: true},
		{t: Bool, name: "bool", acl: 12, size: 1},
		{t: Complex64, name: "complex64", acl: 16, size: 8, complex: true},
		{t: Complex128, name: "complex128", acl: 17, size: 16, complex: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.name, tt.t.String())
			assert.Equal(t, tt.size, tt.t.Size())
			assert.Equal(t, tt.acl, tt.t.ACL())
			assert.Equal(t, []bool{tt.float, tt.complex, tt.sgn, tt.unsg},
				[]bool{tt.t.IsFloat(), tt.t.IsComplex(), tt.t.IsSigned(), tt.t.IsUnsigned()})

			byID, err := DTypeFromACL(tt.acl)
			require.NoError(t, err)
			assert.Equal(t, tt.t, byID)
			byName, err := ParseDType(tt.name)
			require.NoError(t, err)
			assert.Equal(t, tt.t, byName)
		})
	}
	assert.EqualValues(t, 16, numDTypes, "the table above covers every type")
}

func TestUnknownDType(t *testing.T) {
	unknown := DType(200)
	assert.Equal(t, "dtype(200)", unknown.String())
	assert.Zero(t, unknown.Size())
	assert.Equal(t, -1, unknown.ACL())
	assert.Empty(t, unknown.fileName())
	assert.False(t, unknown.IsFloat() || unknown.IsComplex() || unknown.IsSigned() || unknown.IsUnsigned())
}

func TestParseDTypeSpellings(t *testing.T) {
	for want, names := range map[DType][]string{
		Float32:  {"float", "float32", "F32"},
		Float16:  {"float16", "half", "F16"},
		BFloat16: {"bfloat16", "BF16"},
		Float64:  {"double", "float64", "F64"},
		Int8:     {"I8"}, Int16: {"I16"}, Int32: {"I32"}, Int64: {"I64"},
		Uint8: {"U8"}, Uint16: {"U16"}, Uint32: {"U32"}, Uint64: {"U64"},
		Bool: {"BOOL"}, Complex64: {"C64"},
	} {
		for _, name := range names {
			got, err := ParseDType(name)
			require.NoError(t, err, name)
			assert.Equal(t, want, got, name)
		}
	}
	for _, name := range []string{"", "Float", "f8", "string", "hifloat8", "INT8"} {
		_, err := ParseDType(name)
		assert.ErrorIs(t, err, status.ErrInvalidParam, name)
		assert.ErrorContains(t, err, "unknown dtype", name)
	}
}

func TestDTypeJSONIsTheNumber(t *testing.T) {
	text, err := json.Marshal(map[string]DType{"outDataType": BFloat16, "none": Undefined})
	require.NoError(t, err)
	assert.JSONEq(t, `{"outDataType":27,"none":-1}`, string(text))

	var back struct{ OutDataType DType }
	require.NoError(t, json.Unmarshal([]byte(`{"outDataType":1}`), &back))
	assert.Equal(t, Float16, back.OutDataType)
	require.NoError(t, json.Unmarshal([]byte(`{"outDataType":-1}`), &back))
	assert.Equal(t, Undefined, back.OutDataType)
	for _, bad := range []string{"13", "34", "99", "-2", "1.5", `"f16"`, "null", "true", "[1]", "99999999999999999999"} {
		err := json.Unmarshal([]byte(`{"outDataType":`+bad+`}`), &back)
		assert.ErrorIs(t, err, status.ErrInvalidParam, bad)
	}
}

func TestDTypeText(t *testing.T) {
	for d := range numDTypes {
		text, err := d.MarshalText()
		require.NoError(t, err)
		back := DType(99)
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, d, back)
	}
	var d DType
	assert.ErrorIs(t, d.UnmarshalText([]byte("f7")), status.ErrInvalidParam)
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		f    Format
		name string
		acl  int
	}{
		{FormatUndefined, "undefined", -1},
		{NCHW, "nchw", 0},
		{NHWC, "nhwc", 1},
		{ND, "nd", 2},
		{NC1HWC0, "nc1hwc0", 3},
		{FractalZ, "fractal_z", 4},
		{NC1HWC0C04, "nc1hwc0_c04", 12},
		{HWCN, "hwcn", 16},
		{NDHWC, "ndhwc", 27},
		{FractalNZ, "fractal_nz", 29},
		{NCDHW, "ncdhw", 30},
		{NDC1HWC0, "ndc1hwc0", 32},
		{FractalZ3D, "fractal_z_3d", 33},
		{Panels, "panels", -1},
	} {
		assert.Equal(t, tt.name, tt.f.String())
		assert.Equal(t, tt.acl, tt.f.ACL(), tt.name)
		back, err := ParseFormat(tt.name)
		require.NoError(t, err)
		assert.Equal(t, tt.f, back)
		text, err := json.Marshal(tt.f)
		require.NoError(t, err)
		assert.Equal(t, `"`+tt.name+`"`, string(text))
		back = 99
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, tt.f, back)
	}
	assert.EqualValues(t, 14, numFormats, "the table above covers every layout")
	assert.Equal(t, ND, Format(0))

	assert.Equal(t, "format(77)", Format(77).String())
	assert.Equal(t, -1, Format(77).ACL())
	for _, name := range []string{"", "ND", "nz"} {
		got, err := ParseFormat(name)
		assert.ErrorIs(t, err, status.ErrInvalidParam, name)
		assert.Equal(t, FormatUndefined, got)
	}
}
