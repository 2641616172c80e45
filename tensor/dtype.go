package tensor

import (
	"strconv"

	"goatb/status"
)

// DType is an element type. The zero DType is Undefined.
type DType uint8

// Element types.
const (
	Undefined DType = iota
	Float32
	Float16
	BFloat16
	Float64
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Bool
	Complex64
	Complex128
	numDTypes
)

// dtypeInfo holds, for each type, the short name, the bytes of an element,
// ATB's numeric id and the name in safetensors files ("" where it has none).
var dtypeInfo = [numDTypes]struct {
	name string
	size int64
	acl  int
	file string
}{
	Undefined:  {"undefined", 0, -1, ""},
	Float32:    {"f32", 4, 0, "F32"},
	Float16:    {"f16", 2, 1, "F16"},
	BFloat16:   {"bf16", 2, 27, "BF16"},
	Float64:    {"f64", 8, 11, "F64"},
	Int8:       {"int8", 1, 2, "I8"},
	Int16:      {"int16", 2, 6, "I16"},
	Int32:      {"int32", 4, 3, "I32"},
	Int64:      {"int64", 8, 9, "I64"},
	Uint8:      {"uint8", 1, 4, "U8"},
	Uint16:     {"uint16", 2, 7, "U16"},
	Uint32:     {"uint32", 4, 8, "U32"},
	Uint64:     {"uint64", 8, 10, "U64"},
	Bool:       {"bool", 1, 12, "BOOL"},
	Complex64:  {"complex64", 8, 16, "C64"},
	Complex128: {"complex128", 16, 17, ""},
}

// Size returns the bytes of one element, 0 for Undefined or an unknown type.
func (d DType) Size() int64 {
	if d >= numDTypes {
		return 0
	}
	return dtypeInfo[d].size
}

// String returns the short name, such as "f32" or "bf16".
func (d DType) String() string {
	if d >= numDTypes {
		return "dtype(" + strconv.Itoa(int(d)) + ")"
	}
	return dtypeInfo[d].name
}

// ACL returns ATB's numeric id of the type (-1 for Undefined).
func (d DType) ACL() int {
	if d >= numDTypes {
		return -1
	}
	return dtypeInfo[d].acl
}

// IsFloat reports whether d is one of f32, f16, bf16 and f64.
func (d DType) IsFloat() bool {
	return d == Float32 || d == Float16 || d == BFloat16 || d == Float64
}

// IsComplex reports whether d is one of complex64 and complex128.
func (d DType) IsComplex() bool { return d == Complex64 || d == Complex128 }

// IsSigned reports whether d is a signed integer type.
func (d DType) IsSigned() bool { return d >= Int8 && d <= Int64 }

// IsUnsigned reports whether d is an unsigned integer type; bool is none.
func (d DType) IsUnsigned() bool { return d >= Uint8 && d <= Uint64 }

// DTypeFromACL returns the type with ATB's numeric id; -1 is Undefined. An id
// of a type that the library does not have is ErrInvalidParam.
func DTypeFromACL(id int) (DType, error) {
	for d := range numDTypes {
		if dtypeInfo[d].acl == id {
			return d, nil
		}
	}
	return Undefined, status.Errorf(status.ErrInvalidParam, "unknown dtype id %d", id)
}

// dtypeAliases maps the long spellings of ATB's test rows.
var dtypeAliases = map[string]DType{
	"float": Float32, "float32": Float32,
	"float16": Float16, "half": Float16,
	"bfloat16": BFloat16,
	"double":   Float64, "float64": Float64,
}

// ParseDType reads a type name: the short names of String, ATB's long names
// ("float", "float16", "double") and the names of safetensors ("BF16", "I8").
// Any other name is ErrInvalidParam.
func ParseDType(name string) (DType, error) {
	for d := range numDTypes {
		if dtypeInfo[d].name == name {
			return d, nil
		}
	}
	if d, ok := dtypeAliases[name]; ok {
		return d, nil
	}
	if d, ok := dtypeFromFile(name); ok {
		return d, nil
	}
	return Undefined, status.Errorf(status.ErrInvalidParam, "unknown dtype %.64q", name)
}

// fileName is the type's name in safetensors files, "" where it has none.
func (d DType) fileName() string {
	if d >= numDTypes {
		return ""
	}
	return dtypeInfo[d].file
}

// dtypeFromFile returns the type with a name of the safetensors format.
func dtypeFromFile(name string) (DType, bool) {
	for d := range numDTypes {
		if name != "" && dtypeInfo[d].file == name {
			return d, true
		}
	}
	return Undefined, false
}

// MarshalText writes the short name.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a name as ParseDType does.
func (d *DType) UnmarshalText(b []byte) (err error) {
	if err := status.Given("unmarshal dtype", "d", d); err != nil {
		return err
	}
	*d, err = ParseDType(string(b))
	return err
}

// MarshalJSON writes ATB's numeric id.
func (d DType) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(d.ACL()), 10), nil
}

// UnmarshalJSON reads ATB's numeric id. Ids of types that the library does not
// have are ErrInvalidParam.
func (d *DType) UnmarshalJSON(b []byte) error {
	if err := status.Given("unmarshal dtype", "d", d); err != nil {
		return err
	}
	id, err := strconv.Atoi(string(b))
	if err != nil {
		return status.Errorf(status.ErrInvalidParam, "dtype id %.64s: want an integer", b)
	}
	*d, err = DTypeFromACL(id)
	return err
}
