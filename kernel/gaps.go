package kernel

import "reflect"

// gap is the place of bytes that no field of a type holds. What they are after an
// assignment is the compiler's choice, and it differs between processors.
type gap struct{ from, to int }

// gapsOf lists the gaps of a plain type, at an offset, in order.
func gapsOf(t reflect.Type, at int) (out []gap) {
	switch t.Kind() {
	case reflect.Struct:
		end := 0
		for f := range t.Fields() {
			if from := int(f.Offset); from > end {
				out = append(out, gap{at + end, at + from})
			}
			out = append(out, gapsOf(f.Type, at+int(f.Offset))...)
			end = int(f.Offset + f.Type.Size())
		}
		if all := int(t.Size()); all > end {
			out = append(out, gap{at + end, at + all})
		}
	case reflect.Array:
		for i := range t.Len() {
			out = append(out, gapsOf(t.Elem(), at+i*int(t.Elem().Size()))...)
		}
	}
	return out
}

// clearGaps makes the bytes a function of the fields.
func clearGaps(b []byte, gaps []gap) {
	for _, g := range gaps {
		clear(b[g.from:g.to])
	}
}
