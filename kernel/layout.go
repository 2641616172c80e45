package kernel

import (
	"fmt"
	"reflect"
	"strings"
)

// Layout describes the parameters and the tiling of the kernel byte by byte:
// names, types and offsets. A tiling that was made by a kernel of another layout
// means something else here.
func (k *Kernel) Layout() string { return describe(k.types[0]) + " " + describe(k.types[1]) }

// describe writes a plain type with the places of its fields.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		var b strings.Builder
		b.WriteByte('{')
		for f := range t.Fields() {
			fmt.Fprintf(&b, "%s@%d %s;", f.Name, f.Offset, describe(f.Type))
		}
		fmt.Fprintf(&b, "}%d", t.Size())
		return b.String()
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), describe(t.Elem()))
	}
	return t.Kind().String()
}
