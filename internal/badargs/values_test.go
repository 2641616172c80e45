package badargs

import (
	"context"
	"errors"
	"io"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/device/sim"
	"goatb/kernel"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/tensor"
)

// values makes arguments of any type: good ones from samples, and bad ones.
type values struct {
	samples map[reflect.Type][]reflect.Value
	// made are the types of which no zeros are arguments.
	made  map[reflect.Type]bool
	depth int
}

// add adds good values of their own types.
func (v *values) add(xs ...any) {
	for _, x := range xs {
		r := reflect.ValueOf(x)
		v.samples[r.Type()] = append(v.samples[r.Type()], r)
	}
}

// bed opens a device with a context and makes a sample of what users hold. close
// ends it, whatever calls have done to it.
func bed(t *testing.T, apis []api) (v *values, close func()) {
	t.Helper()
	dev, err := cpu.New()
	require.NoError(t, err)
	c, err := atb.NewContext(dev)
	require.NoError(t, err)
	x, err := atb.FromSlice(c, []float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	op, err := atb.New(elementwise.Of(elementwise.Add))
	require.NoError(t, err)
	s, err := c.Stream(0)
	require.NoError(t, err)
	e, err := dev.NewEvent()
	require.NoError(t, err)

	v = &values{samples: map[reflect.Type][]reflect.Value{}, made: map[reflect.Type]bool{}}
	v.made[reflect.TypeFor[*kernel.Kernel]()] = true
	for _, a := range apis {
		for _, x := range a.made {
			v.made[reflect.TypeOf(x)] = true
		}
	}
	v.add(c, op, x, &x, x.Desc, &x.Desc, x.Data, x.Desc.Shape, operation.Native(), operation.Board910B())
	v.add(atb.VariantPack{In: []atb.Tensor{x, x}, Out: []atb.Tensor{x}}, []tensor.Desc{x.Desc, x.Desc}, []int64{2, 2}, []float32{1, 2, 3, 4}, make([]byte, 16))
	v.addAs(func(to *[]reflect.Value) {
		*to = append(*to, reflect.ValueOf(dev), reflect.ValueOf((*cpu.Device)(nil)), reflect.ValueOf(&cpu.Device{}), reflect.ValueOf(&sim.Device{}), reflect.ValueOf(&checked.Device{}))
	}, reflect.TypeFor[device.Device]())
	v.addAs(func(to *[]reflect.Value) { *to = append(*to, reflect.ValueOf(s), reflect.ValueOf(&cpu.Stream{})) }, reflect.TypeFor[device.Stream]())
	v.addAs(func(to *[]reflect.Value) { *to = append(*to, reflect.ValueOf(e), reflect.ValueOf(&cpu.Event{})) }, reflect.TypeFor[device.Event]())
	v.addAs(func(to *[]reflect.Value) { *to = append(*to, reflect.ValueOf(context.Background())) }, reflect.TypeFor[context.Context]())
	v.addAs(func(to *[]reflect.Value) {
		*to = append(*to, reflect.ValueOf(elementwise.Of(elementwise.Add)), reflect.ValueOf((*shape.Softmax)(nil)), reflect.ValueOf(&shape.Softmax{}), reflect.ValueOf(&operation.If{}))
	}, reflect.TypeFor[operation.Spec]())
	v.addAs(func(to *[]reflect.Value) { *to = append(*to, reflect.ValueOf(op), reflect.ValueOf((*atb.Op)(nil))) }, reflect.TypeFor[operation.Operation]())
	v.addAs(func(to *[]reflect.Value) { *to = append(*to, reflect.ValueOf(io.Discard)) }, reflect.TypeFor[io.Writer]())
	return v, func() { require.NoError(t, errors.Join(e.Close(), op.Close(), c.Close(), dev.Close())) }
}

func (v *values) addAs(fill func(*[]reflect.Value), t reflect.Type) {
	xs := v.samples[t]
	fill(&xs)
	v.samples[t] = xs
}

// of returns arguments of type t, good ones first, the zero value last.
func (v *values) of(t reflect.Type) []reflect.Value {
	out := append([]reflect.Value(nil), v.samples[t]...)
	for _, x := range interesting(t) {
		out = append(out, x)
	}
	v.depth++
	defer func() { v.depth-- }()
	if v.depth < 4 {
		switch t.Kind() {
		case reflect.Pointer:
			if t.Elem().Kind() != reflect.Func && !v.made[t] {
				for _, x := range v.of(t.Elem())[:min(2, len(v.of(t.Elem())))] {
					p := reflect.New(t.Elem())
					if len(v.samples[t]) == 0 {
						p.Elem().Set(x)
					}
					out = append(out, p)
				}
			}
		case reflect.Slice:
			elems := v.of(t.Elem())
			for _, x := range []reflect.Value{elems[0], elems[len(elems)-1]} {
				s := reflect.MakeSlice(t, 1, 1)
				s.Index(0).Set(x)
				out = append(out, s)
			}
		case reflect.Func:
			out = append(out, reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
				rs := make([]reflect.Value, t.NumOut())
				for i := range rs {
					rs[i] = reflect.Zero(t.Out(i))
				}
				return rs
			}))
		}
	}
	return append(out, reflect.Zero(t))
}

// interesting returns numbers and texts that calls stumble over.
func interesting(t reflect.Type) []reflect.Value {
	var out []reflect.Value
	add := func(x any) { out = append(out, reflect.ValueOf(x).Convert(t)) }
	switch t.Kind() {
	case reflect.Bool:
		add(true)
	case reflect.Int, reflect.Int64:
		for _, n := range []int64{1, 3, -1, 100, math.MaxInt64, math.MinInt64} {
			out = append(out, reflect.ValueOf(n).Convert(t))
		}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		for _, n := range []int{1, -1, 100} {
			add(n)
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint, reflect.Uint64, reflect.Uintptr:
		for _, n := range []uint{1, 3, 200, math.MaxUint} {
			add(n)
		}
	case reflect.Float32, reflect.Float64:
		for _, f := range []float64{1, -1, math.NaN(), math.Inf(1)} {
			add(f)
		}
	case reflect.String:
		add("x")
		add("../x")
	}
	return out
}
