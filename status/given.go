package status

import (
	"reflect"
	"strings"
)

// Given is the check of a call's arguments for nil. Arguments alternate between
// name and value, as in
//
//	err := status.Given("write", "ctx", ctx, "tensor", t)
//
// It returns ErrInvalidParam, which names call and argument, for the first value
// that is nil or an interface around a nil pointer, function, map, channel or
// slice, and nil when there is none.
func Given(call string, arguments ...any) error {
	for i := 0; i+1 < len(arguments); i += 2 {
		if IsNil(arguments[i+1]) {
			return Errorf(ErrInvalidParam, "%s: want argument %s, got nil", call, arguments[i])
		}
	}
	return nil
}

// Unmade is the error of an argument that its constructor has not made: typ is the
// name of its type, isNil tells a nil pointer from a zero value, and how says what
// to call instead.
func Unmade(code Code, typ string, isNil bool, how string) error {
	name := strings.ToLower(typ)
	if isNil {
		return Errorf(code, "the %s is nil: %s", name, how)
	}
	return Errorf(code, "the %s is a zero %s: %s", name, typ, how)
}

// IsNil reports whether v is nil, or holds something that is.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice, reflect.UnsafePointer:
		return r.IsNil()
	}
	return false
}
