// Package activation holds the kernels of activation functions of one tensor
// and of the gated unit SwiGLU with its gradient. They compute in float32 and
// round once. The work is cut into pieces of at most pieceElements neighbouring
// elements, so results never depend on the number of blocks.
package activation

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// pieceElements is what is loaded, computed and stored at a time.
const pieceElements = 1024

// isFloat reports whether the kernels compute with t.
func isFloat(t tensor.DType) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

// wantFloats checks the number of operands and that all have one float type.
func wantFloats(p *kernel.Problem, in, out int) error {
	if len(p.In) != in || len(p.Out) != out {
		return status.Errorf(status.ErrInternal, "want %d inputs and %d outputs, got %d and %d", in, out, len(p.In), len(p.Out))
	}
	t := p.In[0].DType
	for _, descs := range [2][]tensor.Desc{p.In, p.Out} {
		for i := range descs {
			if d := &descs[i]; d.DType != t || !isFloat(t) {
				return status.Errorf(status.ErrInvalidParam, "want f32, f16 or bf16 throughout, got %s and %s", t, d.DType)
			}
		}
	}
	return nil
}

// transferNanos is the time to load or store one element.
func transferNanos(t tensor.DType) float64 {
	if t == tensor.Float32 {
		return 0
	}
	return 1
}

// pieces returns into how many pieces a row of n elements is cut.
func pieces(n int64) int64 { return (n + pieceElements - 1) / pieceElements }

// scratchFor returns the scratch bytes of `buffers` pieces of float32 for every
// block.
func scratchFor(p *kernel.Problem, buffers int64) int64 {
	return int64(max(p.Machine.Cores, 1)) * buffers * pieceElements * 4
}

// buffers returns the block's own buffers.
func buffers(a *kernel.Args, block, count int) []float32 {
	size := count * pieceElements
	return device.View[float32](a.Scratch.Bytes())[block*size:][:size:size]
}
