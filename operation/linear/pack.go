package linear

import (
	stdctx "context"
	"errors"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel/matmul"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Pack brings a constant weight to the layout tensor.Panels, in which Linear
// multiplies with it as fast as the device can. It is meant to run once for each
// weight, when a model is loaded; PackWeight does that.
//
//	input    w       [k,n] or [b,k,n], with TransposeB [n,k] or [b,n,k], or the
//	                 stored form of one of these in layout FractalNZ
//	output   panels  [n,k] or [b,n,k] in layout Panels
//
// Elements are f32, f16, bf16 or int8 and keep their values. The output takes
// its n rounded up to 32 and its k to 2 for bf16 and 4 for int8, and 128 bytes
// more for each 32 columns of int8: Bytes of its descriptor says how much.
//
// Errors of InferShape: ErrInvalidTensorDimNum for the rank, ErrInvalidTensorDim
// for the blocks of a stored weight. ATB does not have this operation; profiles
// other than native refuse it.
type Pack struct {
	// TransposeB says that the weight is stored [n,k].
	TransposeB bool `json:"transposeB"`
}

// Validate checks the parameters.
func (Pack) Validate() error { return nil }

// Signature lists the operands.
func (Pack) Signature() operation.Signature {
	return operation.Signature{
		Name: "PackOperation", In: operation.Ports("w"), Out: operation.Ports("panels"), Variant: "PackOperation",
		Native: "T->T@panels ; T@fractal_nz->T@panels | T=f32,f16,bf16,int8",
	}
}

// Check checks the rank and, for a stored weight, its blocks.
func (p Pack) Check(q *operation.Query) error {
	w, ranks := &q.In[0], []int{2, 3}
	if w.Format == tensor.FractalNZ {
		ranks = []int{2, 3, 4}
	}
	if err := q.InRank(status.ErrInvalidTensorDimNum, 0, ranks...); err != nil {
		return err
	}
	if block := tensor.NZBlock(w.DType); w.Rank() == 4 && w.Dim(3) != block {
		return q.BadIn(status.ErrInvalidTensorDim, 0, "want blocks of %d, got %s", block, w)
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	return q.OutShape(status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim, 0, p.outShape(w))
}

// outShape is the shape of the panels.
func (p Pack) outShape(w *tensor.Desc) tensor.Shape {
	rows, cols := w.Dim(-2), w.Dim(-1)
	if w.Rank() == 4 {
		rows, cols = w.Dim(2), w.Dim(1)*w.Dim(3)
	}
	if !p.TransposeB {
		rows, cols = cols, rows
	}
	if w.Rank() == 2 {
		return tensor.ShapeOf(rows, cols)
	}
	return tensor.ShapeOf(w.Dim(0), rows, cols)
}

// Infer returns the output's descriptor.
func (p Pack) Infer(q *operation.Query) ([]tensor.Desc, error) {
	w := &q.In[0]
	return []tensor.Desc{{DType: w.DType, Format: tensor.Panels, Shape: p.outShape(w)}}, nil
}

// Lower adds the kernel.
func (p Pack) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	in := operands(kernelgraph.Absent, b.In(0))
	return b.Kernel(kernelgraph.Call{
		Name: "pack", Table: matmul.Pack, Params: matmul.Params{TransB: p.TransposeB}, In: in[:], Out: []kernelgraph.Ref{b.Out(0)},
	})
}

// PackWeight packs the weight w of a Linear with the same TransposeB and returns
// a tensor of layout Panels in memory of its own, which the caller frees. Linear
// takes it with TransposeB set, whatever it was for w. It waits for the work that
// was enqueued before, and w is not needed any more when it returns. Errors are
// those of Pack, and of the device.
func PackWeight(ctx stdctx.Context, c *atbctx.Context, w device.Tensor, transposeB bool) (device.Tensor, error) {
	return runOnce(ctx, c, Pack{TransposeB: transposeB}, w)
}

// runOnce runs an operation with one output into new memory and waits for it.
func runOnce(ctx stdctx.Context, c *atbctx.Context, s operation.Spec, in ...device.Tensor) (device.Tensor, error) {
	op, err := operation.New(s)
	if err != nil {
		return device.Tensor{}, err
	}
	out, err := runInto(ctx, c, op, in)
	return out, errors.Join(err, op.Close())
}

func runInto(ctx stdctx.Context, c *atbctx.Context, op *operation.Op, in []device.Tensor) (device.Tensor, error) {
	var descs []tensor.Desc
	for i := range in {
		descs = append(descs, in[i].Desc)
	}
	descs, err := op.InferShape(descs)
	if err != nil {
		return device.Tensor{}, err
	}
	out, err := atbctx.NewTensor(c, descs[0])
	if err != nil {
		return device.Tensor{}, err
	}
	pack := operation.VariantPack{In: in, Out: []device.Tensor{out}}
	size, err := op.Setup(pack, c)
	var workspace device.Buffer
	if err == nil {
		workspace, err = c.Workspace(size)
	}
	if err == nil {
		err = op.Execute(pack, workspace, c)
	}
	if err == nil {
		err = c.Synchronize(ctx)
	}
	if err != nil {
		return device.Tensor{}, errors.Join(err, c.Free(out.Data))
	}
	return out, nil
}
