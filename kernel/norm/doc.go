// Package norm holds the kernels of normalisations over the last dimensions of
// a tensor. They compute a row in float32, accumulate in a fixed order and
// round once, so a row's result depends on that row alone.
package norm

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// isFloat reports whether the kernels compute with t.
func isFloat(t tensor.DType) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

// transferNanos is the time to load or store one element.
func transferNanos(t tensor.DType) float64 {
	if t == tensor.Float32 {
		return 0.1
	}
	return kernel.Nanos(0.1, 1)
}

// rowBuffers cuts a block's scratch into buffers of one row of float32.
type rowBuffers struct {
	mem   []float32
	width int64
}

func buffersOf(a *kernel.Args, block, count int, width int64) rowBuffers {
	size := int64(count) * width
	return rowBuffers{device.View[float32](a.Scratch.Bytes())[int64(block)*size:][:size:size], width}
}

// scratchFor returns the scratch bytes of `count` row buffers for every block.
func scratchFor(p *kernel.Problem, count, width int64) int64 {
	return int64(max(p.Machine.Cores, 1)) * count * width * 4
}

func (b *rowBuffers) row(i int64) []float32 { return b.mem[i*b.width:][:b.width:b.width] }

// operand is an operand with rows, or with one row for all.
type operand struct {
	mem   []byte
	dtype tensor.DType
}

// there reports whether an optional operand is bound.
func (o *operand) there() bool { return o.mem != nil }

// at returns the bytes of a row.
func (o *operand) at(row, width int64) []byte {
	n := width * o.dtype.Size()
	return o.mem[row*n : (row+1)*n]
}

// load returns a row as float32, in buf where it has to be converted.
func (o *operand) load(buf []float32, row, width int64) []float32 {
	return kernel.Floats(buf, o.at(row, width), o.dtype, width)
}
