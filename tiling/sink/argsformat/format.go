package argsformat

import (
	"strconv"
	"strings"
)

// Format is the format of an argument buffer.
type Format []Item

// String writes the format as Parse reads it.
func (f Format) String() string {
	var b strings.Builder
	for _, it := range f {
		b.WriteByte('{')
		b.WriteString(it.String())
		b.WriteByte('}')
	}
	return b.String()
}

// String writes the item without braces.
func (it Item) String() string {
	var b []byte
	if it.InSubNode {
		b = append(b, "skn"...)
		b = strconv.AppendInt(b, it.SubNode, 10)
	}
	for i := range words {
		w := &words[i]
		if w.kind == it.Kind && w.part == it.Part {
			return string(it.appendRest(append(b, w.name...), w.shape))
		}
	}
	return "kind(" + strconv.Itoa(int(it.Kind)) + "," + strconv.Itoa(int(it.Part)) + ")"
}

// appendRest appends what follows the name.
func (it Item) appendRest(b []byte, s shape) []byte {
	switch s {
	case bare:
		return b
	case valued:
		return strconv.AppendUint(b, it.Value, 10)
	}
	if it.Index != All {
		b = strconv.AppendInt(b, int64(it.Index), 10)
	}
	if s == starred || !it.Folded {
		b = append(b, '*')
	}
	return b
}

// Last returns the last item of a kind, -1 if there is none. Items of sub nodes
// do not count.
func (f Format) Last(k Kind) int {
	for i := len(f) - 1; i >= 0; i-- {
		if f[i].AddrType() == k {
			return i
		}
	}
	return -1
}

// In returns the format with every item as one of sub node `id`.
func (f Format) In(id int64) Format {
	out := make(Format, len(f))
	for i, it := range f {
		out[i] = it.In(id)
	}
	return out
}
