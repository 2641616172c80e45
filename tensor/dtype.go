package tensor

import (
	"fmt"
	"strconv"
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

var dtypeInfo = [numDTypes]struct {
	name string
	size int64
	acl  int
}{
	Undefined:  {"undefined", 0, -1},
	Float32:    {"f32", 4, 0},
	Float16:    {"f16", 2, 1},
	BFloat16:   {"bf16", 2, 27},
	Float64:    {"f64", 8, 11},
	Int8:       {"int8", 1, 2},
	Int16:      {"int16", 2, 6},
	Int32:      {"int32", 4, 3},
	Int64:      {"int64", 8, 9},
	Uint8:      {"uint8", 1, 4},
	Uint16:     {"uint16", 2, 7},
	Uint32:     {"uint32", 4, 8},
	Uint64:     {"uint64", 8, 10},
	Bool:       {"bool", 1, 12},
	Complex64:  {"complex64", 8, 16},
	Complex128: {"complex128", 16, 17},
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

// DTypeFromACL returns the type with ATB's numeric id.
func DTypeFromACL(id int) (DType, error) {
	for d := range numDTypes {
		if dtypeInfo[d].acl == id {
			return d, nil
		}
	}
	return Undefined, fmt.Errorf("unknown dtype id %d", id)
}

// dtypeAliases maps the long spellings of ATB's test rows and of safetensors.
var dtypeAliases = map[string]DType{
	"float": Float32, "float32": Float32, "F32": Float32,
	"float16": Float16, "F16": Float16, "half": Float16,
	"bfloat16": BFloat16, "BF16": BFloat16,
	"double": Float64, "float64": Float64, "F64": Float64,
	"I8": Int8, "I16": Int16, "I32": Int32, "I64": Int64,
	"U8": Uint8, "U16": Uint16, "U32": Uint32, "U64": Uint64,
	"BOOL": Bool,
}

// ParseDType reads a type name: the short names of String, ATB's long names
// ("float", "float16", "double") and the names of safetensors ("BF16", "I8").
func ParseDType(name string) (DType, error) {
	for d := range numDTypes {
		if dtypeInfo[d].name == name {
			return d, nil
		}
	}
	if d, ok := dtypeAliases[name]; ok {
		return d, nil
	}
	return Undefined, fmt.Errorf("unknown dtype %q", name)
}

// MarshalJSON writes ATB's numeric id.
func (d DType) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(d.ACL()), 10), nil
}

// UnmarshalJSON reads ATB's numeric id. Ids of types that the library does not
// have are an error.
func (d *DType) UnmarshalJSON(b []byte) error {
	id, err := strconv.Atoi(string(b))
	if err != nil {
		return fmt.Errorf("dtype id %s: %w", b, err)
	}
	*d, err = DTypeFromACL(id)
	return err
}
