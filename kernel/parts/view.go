package parts

import (
	"goatb/device"
	"goatb/tensor"
)

// end is what stands for the sum of a part that its row does not have: sums are
// 0 or more, or NaN.
const end = -1

// maxBytes bounds the tensor of parts.
const maxBytes = 64 << 20

// Fits reports whether the parts of rows rows may be kept in memory.
func Fits(rows, parts, valueSize int64) bool {
	return rows <= 0 || parts <= maxBytes/4/(valueSize+2)/rows
}

// Desc describes the tensor of parts: f32[rows,parts,valueSize+2], for each row
// of the output the weighted values, the largest score and the sum of the
// exponentials of each part. Row r of the output is its elements from
// r*valueSize on.
func Desc(rows, parts, valueSize int64) tensor.Desc {
	return tensor.Of(tensor.Float32, rows, parts, valueSize+2)
}

// View is the memory of a tensor of parts. Of every row all parts that there
// are have to be Put, and its End marked; a row without parts is zero.
type View struct {
	mem         []float32
	parts, size int64
}

// ViewOf views memory that Desc describes.
func ViewOf(mem []byte, parts, valueSize int64) View {
	return View{device.View[float32](mem), parts, valueSize}
}

func (v View) part(row, part int64) []float32 {
	width := v.size + 2
	at := (row*v.parts + part) * width
	return v.mem[at : at+width]
}

// Put writes a part of a row: values, largest score and sum as for Join.
func (v View) Put(row, part int64, values []float32, top, sum float32) {
	p := v.part(row, part)
	copy(p[:v.size], values)
	p[v.size], p[v.size+1] = top, sum
}

// End says that a row has n parts, of at most those that there is room for.
func (v View) End(row, n int64) {
	if n < v.parts {
		v.part(row, n)[v.size+1] = end
	}
}

// merge joins the parts of a row in total.
func (v View) merge(row int64, total []float32) {
	var top, sum float32
	for i := range v.parts {
		p := v.part(row, i)
		if p[v.size+1] == end {
			break
		}
		Join(total, &top, &sum, p[:v.size], p[v.size], p[v.size+1])
	}
	Finish(total, total, []float32{sum})
}
