package operation

import "reflect"

// equaler is implemented by specs that hold more than data: Equal tells whether
// operations of both do the same.
type equaler interface{ Equal(Spec) bool }

// equalSpecs compares parameters of one type.
func equalSpecs(a, b Spec) bool {
	if e, ok := a.(equaler); ok {
		return e.Equal(b)
	}
	return reflect.DeepEqual(a, b)
}

// cloneSpec copies parameters with the slices and numbers that they refer to,
// so that a caller who goes on using them does not change an operation. A pointer
// to parameters that need none becomes a copy of them, and an If becomes another
// If. A user's own type that only its pointer makes a spec is shared.
func cloneSpec(s Spec) Spec {
	if f, ok := s.(*If); ok {
		c := *f
		return &c
	}
	v := reflect.ValueOf(s)
	if v.Kind() == reflect.Pointer {
		if own, ok := v.Elem().Interface().(Spec); ok {
			return cloneSpec(own)
		}
	}
	if v.Kind() != reflect.Struct || !refers(v.Type()) {
		return s
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	cloneFields(c)
	return c.Interface().(Spec)
}

// refers reports whether values of a type may hold slices or pointers.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		return true
	case reflect.Array:
		return refers(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if refers(f.Type) {
				return true
			}
		}
	}
	return false
}

// cloneFields gives v slices and numbers of its own.
func cloneFields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() {
				cloneFields(f)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			cloneFields(v.Index(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		s := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(s, v)
		v.Set(s)
		for i := range v.Len() {
			cloneFields(v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() || !basic(v.Type().Elem().Kind()) {
			return
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(v.Elem())
		v.Set(p)
	}
}

func basic(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Complex128 || k == reflect.String
}

// kindOf names the type of parameters in errors.
func kindOf(s Spec) string {
	switch s.(type) {
	case nil:
		return "nil"
	case *graph:
		return "a graph"
	}
	return reflect.TypeOf(s).String()
}
