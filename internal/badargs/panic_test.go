package badargs

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"goatb/atb"
	"goatb/operation"
	"goatb/tiling"
)

// calls is how many combinations of arguments a function with many is called
// with.
const calls = 400

// hooks are the interfaces that the library calls and other types implement: it
// makes the arguments of their methods and has checked them.
var hooks = []reflect.Type{
	reflect.TypeFor[operation.ValueChecker](), reflect.TypeFor[operation.Dynamic](), reflect.TypeFor[operation.Spec](), reflect.TypeFor[tiling.Policy](),
}

// hook reports whether a method is called by the library alone: one of a hook that
// takes arguments.
func hook(p reflect.Type, m reflect.Method) bool {
	if m.Type.NumIn() == 1 {
		return false
	}
	for _, h := range hooks {
		if _, ok := h.MethodByName(m.Name); ok && p.Implements(h) {
			return true
		}
	}
	return false
}

// claims are the methods of a Context with which the operation package holds its
// sides: unbalanced calls leave a context that cannot be closed.
var claims = []string{"Enter", "Leave", "Lend", "Reclaim"}

func TestNothingPanics(t *testing.T) {
	apis := tables()
	for _, a := range apis {
		t.Run(a.dir, func(t *testing.T) {
			for name, f := range a.funcs {
				hammer(t, apis, a.dir+"."+name, reflect.ValueOf(f), nil)
			}
			for _, x := range a.types {
				p := reflect.TypeOf(x)
				for i := range p.NumMethod() {
					if m := p.Method(i); !hook(p, m) {
						hammer(t, apis, fmt.Sprintf("%s.%s.%s", a.dir, p.Elem().Name(), m.Name), m.Func, &m)
					}
				}
			}
		})
	}
}

// receivers returns what method m is called on: good values, nil where the method
// takes a pointer, and zeros.
func receivers(v *values, m *reflect.Method) []reflect.Value {
	p := m.Type.In(0)
	zero := reflect.New(p.Elem())
	if p == reflect.TypeFor[*atb.Context]() && slices.Contains(claims, m.Name) {
		return []reflect.Value{reflect.Zero(p), zero}
	}
	if _, byValue := p.Elem().MethodByName(m.Name); !byValue {
		return append(slices.Clone(v.samples[p]), reflect.Zero(p), zero)
	}
	rs := []reflect.Value{zero} // of nil the caller would take the value
	for _, s := range v.of(p.Elem()) {
		q := reflect.New(p.Elem())
		q.Elem().Set(s)
		rs = append(rs, q)
	}
	return rs
}

// hammer calls f with every combination of arguments, or with some of them.
func hammer(t *testing.T, apis []api, name string, f reflect.Value, method *reflect.Method) {
	t.Helper()
	v, done := bed(t, apis)
	defer done()
	ft := f.Type()
	choices := make([][]reflect.Value, ft.NumIn())
	total := 1
	for i := range choices {
		if i == 0 && method != nil {
			choices[i] = receivers(v, method)
		} else {
			choices[i] = v.of(ft.In(i))
		}
		total = min(total*len(choices[i]), 1<<20)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range min(total, calls) {
		args, k := make([]reflect.Value, len(choices)), n
		for i, c := range choices {
			if total <= calls {
				args[i], k = c[k%len(c)], k/len(c)
			} else {
				args[i] = c[rng.IntN(len(c))]
			}
		}
		if p := call(f, args); p != "" {
			t.Errorf("%s%s panics: %s", name, describe(args), p)
			return
		}
	}
}

// call reports the panic of f, "" when there is none.
func call(f reflect.Value, args []reflect.Value) (panicked string) {
	defer func() {
		if r := recover(); r != nil {
			panicked = fmt.Sprintf("%v %s", r, place(string(debug.Stack())))
		}
	}()
	if f.Type().IsVariadic() {
		f.CallSlice(args)
	} else {
		f.Call(args)
	}
	return ""
}

// place finds the line of this module that panicked.
func place(stack string) string {
	_, after, _ := strings.Cut(stack, "panic(")
	for line := range strings.Lines(after) {
		if i := strings.Index(line, ".go:"); i >= 0 && !strings.Contains(line, "/libexec/") && !strings.Contains(line, "/src/runtime/") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func describe(args []reflect.Value) string {
	var s []string
	for _, a := range args {
		s = append(s, short(a))
	}
	return "(" + strings.Join(s, ", ") + ")"
}

func short(a reflect.Value) string {
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Map, reflect.Chan:
		if a.IsNil() {
			return "nil " + a.Type().String()
		}
		return a.Type().String()
	case reflect.Struct:
		if a.IsZero() {
			return a.Type().String() + "{}"
		}
		return a.Type().String() + "{...}"
	}
	s := fmt.Sprint(a)
	return s[:min(len(s), 60)]
}
