package matmul

import (
	"slices"

	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Operands of every kernel of the package, by position.
const (
	// X is the left matrix: [m,k], [b,m,k], or [m,b,k] with EinSum; the last
	// two axes are swapped with TransA. For Reduce it is Partial's output.
	X = iota
	// W is the right matrix: [n,k] or [b,n,k] with TransB, [k,n] or [b,k,n]
	// without; a rank 4 tensor of layout FractalNZ is the stored form of these,
	// and one of layout Panels, [n,k] or [b,n,k] with TransB, is Pack's output.
	// One matrix serves every batch of X.
	W
	// Bias is [n] or [b,n]: of a float type for float products, where the
	// product is rounded to a half-precision bias's type before the addition,
	// and int32 for int8 products.
	Bias
	// Scale is [n] or [b,n], f32 or 64-bit integers whose low halves are f32
	// bits. Int8 products need it.
	Scale
	// TokenScale is f32 [m]: a second factor of int8 products, by row.
	TokenScale
	// Acc is the f32 accumulator that a float product is added to. It must be
	// the output's memory.
	Acc

	// Inputs is the number of inputs; the output comes after them.
	Inputs
)

// Params of a product.
type Params struct {
	// TransA and TransB say that the last two axes of X and W are swapped from
	// [m,k] and [k,n].
	TransA, TransB bool
	// EinSum makes the batch the middle axis of X and of the output.
	EinSum bool
}

// Product holds the kernels that compute a product in one step.
var Product = slices.Concat(
	engineKernels(false, productOf), engineKernels(false, accumulateOf), engineKernels(true, int8Of),
	kernel.Table{floatGo, accumulateGo, int8Go},
)

// Partial holds the kernels that compute the sums of each chunk of K: the
// output is [chunks, batch, m, n], f32 or, for int8 operands, int32.
var Partial = slices.Concat(engineKernels(false, partialOf), engineKernels(true, partialOf), kernel.Table{partialGo, partialInt8Go})

// Reduce holds the kernels that add up Partial's output X and finish the
// product.
var Reduce = kernel.Table{reduceGo, reduceInt8Go}

// Pack holds the kernels that bring constant weights W to layout Panels: the
// output has W's type and the shape [n,k] or [b,n,k].
var Pack = kernel.Table{packPanels}

// isFloat tells the float types that products take.
func isFloat(t tensor.DType) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

func wantArity(p *kernel.Problem) error {
	if len(p.In) != Inputs || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want %d inputs and 1 output, got %d and %d", Inputs, len(p.In), len(p.Out))
	}
	return nil
}

// wantAbsent checks that a kernel is not given operands that it would ignore.
func wantAbsent(p *kernel.Problem, operands ...int) error {
	for _, i := range operands {
		if !p.In[i].Empty() {
			return status.Errorf(status.ErrInvalidParam, "operand %d is not taken, got %s", i, &p.In[i])
		}
	}
	return nil
}
