package matmul

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// reduceTiling plans the sum of partial sums: rows of N columns cut into pieces
// of Width.
type reduceTiling struct {
	Chunks, Batch, M, N int64
	OutBatch, OutRow    int64
	Width, Pieces       int64
	Ep                  epilogue
}

// maxReduceWidth bounds the columns that a block sums up at a time.
const maxReduceWidth = 1024

var reduceGo = kernel.Define(reduceDef("matmul/reduce", tensor.Float32, runReduceFloat))

var reduceInt8Go = kernel.Define(reduceDef("matmul/reduce-int8", tensor.Int32, runReduceInt8))

func reduceDef(name string, sum tensor.DType, run func(*kernel.Args, int, *reduceTiling, []int64) error) kernel.Def[Params, reduceTiling] {
	return kernel.Def[Params, reduceTiling]{
		Name:    name,
		Class:   device.Vector,
		InPlace: true,
		Pairs:   [][2]int{{0, Acc}},
		Supports: func(p *kernel.Problem, a Params) error {
			var t reduceTiling
			return planReduce(p, a, sum, &t)
		},
		Scratch: func(p *kernel.Problem, a Params) int64 {
			var t reduceTiling
			if planReduce(p, a, sum, &t) != nil {
				return 0
			}
			return int64(t.blocks(p.Machine)) * t.blockScratch()
		},
		Tile: func(p *kernel.Problem, a Params, t *reduceTiling, _ []int64) (kernel.Grid, error) {
			err := planReduce(p, a, sum, t)
			return kernel.Grid{Blocks: t.blocks(p.Machine)}, err
		},
		Run: run,
		Cost: func(t *reduceTiling, _ []int64) (int64, int64) {
			mn := float64(t.Batch) * float64(t.M) * float64(t.N)
			return saturate(mn * float64(t.Chunks)), saturate(mn * (4*float64(t.Chunks) + float64(t.Ep.Out.Size())))
		},
	}
}

// planReduce checks and plans a reduction. Its operands are [chunks, b, m, n]
// in place of X, and those that follow the product.
func planReduce(p *kernel.Problem, a Params, sum tensor.DType, t *reduceTiling) error {
	if err := wantArity(p); err != nil {
		return err
	}
	x := &p.In[X]
	if x.DType != sum || x.Rank() != 4 || x.Bytes() == 0 {
		return status.Errorf(status.ErrInvalidParam, "want %s partial sums [chunks, b, m, n], got %s", sum, x)
	}
	s := shape{batch: x.Dim(1), m: x.Dim(2), n: x.Dim(3)}
	t.Chunks, t.Batch, t.M, t.N = x.Dim(0), s.batch, s.m, s.n
	t.OutBatch, t.OutRow = s.m*s.n, s.n
	if a.EinSum {
		t.OutBatch, t.OutRow = s.n, s.batch*s.n
	}
	var err error
	if sum == tensor.Int32 {
		t.Ep, err = int8Epilogue(p, &s)
	} else {
		t.Ep, err = floatEpilogue(p, &s)
	}
	t.Width = min(s.n, maxReduceWidth)
	t.Pieces = ceilDiv(s.n, t.Width)
	return err
}

func (t *reduceTiling) items() int64 { return t.Batch * t.M * t.Pieces }

func (t *reduceTiling) blocks(m kernel.Machine) int {
	return kernel.BlocksFor(m, t.items(), float64(t.items())*float64(t.Width)*float64(t.Chunks)*4*nanosPerByte)
}

// blockScratch is the room for a piece of sums and for the finisher.
func (t *reduceTiling) blockScratch() int64 { return (1 + finisherRows) * t.rowBytes() }

func (t *reduceTiling) rowBytes() int64 { return 4 * roundUp(t.Width, 16) }

func runReduceFloat(a *kernel.Args, block int, t *reduceTiling, _ []int64) error {
	sums, f := t.buffers(a, block)
	lo, hi := kernel.Share(t.items(), block, a.Blocks)
	for item := lo; item < hi; item++ {
		b, i, j, n := t.piece(item)
		sum := device.View[float32](sums)[:n]
		sumChunks(t, sum, device.View[float32](a.Mem(X)), (b*t.M+i)*t.N+j)
		f.floatColumns(b, j, n)
		f.floats(b*t.OutBatch+i*t.OutRow+j, sum)
	}
	return nil
}

func runReduceInt8(a *kernel.Args, block int, t *reduceTiling, _ []int64) error {
	sums, f := t.buffers(a, block)
	lo, hi := kernel.Share(t.items(), block, a.Blocks)
	for item := lo; item < hi; item++ {
		b, i, j, n := t.piece(item)
		sum := device.View[int32](sums)[:n]
		sumChunks(t, sum, device.View[int32](a.Mem(X)), (b*t.M+i)*t.N+j)
		f.int8Columns(b, j, n)
		f.ints(b*t.OutBatch+i*t.OutRow+j, i, sum)
	}
	return nil
}

// buffers returns a block's row of sums and its finisher.
func (t *reduceTiling) buffers(a *kernel.Args, block int) ([]byte, finisher) {
	mem := a.Scratch.Bytes()[int64(block)*t.blockScratch():][:t.blockScratch()]
	return mem[:t.rowBytes()], finisher{a: a, ep: &t.Ep, buf: device.View[float32](mem[t.rowBytes():])}
}

// piece returns the batch, row, first column and columns of an item.
func (t *reduceTiling) piece(item int64) (b, i, j, n int64) {
	row := item / t.Pieces
	j = item % t.Pieces * t.Width
	return row / t.M, row % t.M, j, min(t.Width, t.N-j)
}

// sumChunks adds the chunks of the elements from at on in their order.
func sumChunks[S float32 | int32](t *reduceTiling, sum, parts []S, at int64) {
	copy(sum, parts[at:])
	for range t.Chunks - 1 {
		at += t.Batch * t.M * t.N
		part := parts[at:][:len(sum)]
		for c, v := range part {
			sum[c] += v
		}
	}
}
