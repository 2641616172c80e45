package matmul

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
)

var floatGo = kernel.Define(floatDef("matmul/go", false))

// accumulateGo is the product that is added to memory: the output is Acc's.
var accumulateGo = kernel.Define(floatDef("matmul/accumulate", true))

func floatDef(name string, accumulate bool) kernel.Def[Params, tiling] {
	d := productDef(name, func(p *kernel.Problem, a Params) (plan, error) {
		if err := wantAccumulator(p, accumulate); err != nil {
			return plan{}, err
		}
		return planFloat(p, a)
	}, shareFloat)
	d.InPlace, d.Pairs = accumulate, [][2]int{{0, Acc}}
	return d
}

// wantAccumulator checks whether there is an accumulator.
func wantAccumulator(p *kernel.Problem, want bool) error {
	if err := wantArity(p); err != nil {
		return err
	}
	if want != (!p.In[Acc].Empty()) {
		return status.Errorf(status.ErrInvalidParam, "accumulates: %t, got accumulator %s", want, &p.In[Acc])
	}
	return nil
}

// planFloat checks and plans a whole float product.
func planFloat(p *kernel.Problem, a Params) (plan, error) {
	s, ep, err := floatShape(p, a)
	if err != nil {
		return plan{}, err
	}
	l := newPlan(p, &s, false)
	l.Ep = ep
	return l, nil
}

// floatShape checks the operands of a whole float product.
func floatShape(p *kernel.Problem, a Params) (shape, epilogue, error) {
	s, err := shapeOf(p, a)
	if err != nil {
		return s, epilogue{}, err
	}
	if err := s.wantFloats(p); err != nil {
		return s, epilogue{}, err
	}
	ep, err := floatEpilogue(p, &s)
	return s, ep, err
}

// wantFloats checks the element types of X and W.
func (s *shape) wantFloats(p *kernel.Problem) error {
	x, w := p.In[X].DType, p.In[W].DType
	if !isFloat(x) || w != x {
		return status.Errorf(status.ErrInvalidParam, "want X and W of one type, f32, f16 or bf16, got %s and %s", x, w)
	}
	return nil
}

// floatWorker computes the items of one block.
type floatWorker struct {
	t                      *tiling
	x, w                   []byte
	acc, xs, ws, part, tmp []float32
	// xRows are the rows of x of batch xBatch, xStride apart, from K xFrom on.
	xRows                  []float32
	xStride, xBatch, xFrom int64
}

func shareFloat(a *kernel.Args, first, end int, t *tiling, _ []int64) error {
	bufs := carve(a, first, t)
	w := newFloatWorker(a, t, &bufs)
	f := finisher{a: a, ep: &t.Ep, buf: bufs[bufColumn]}
	lo, hi := kernel.Shares(t.Items, first, end, a.Blocks)
	for i := range hi - lo {
		p := t.place(t.order(lo, hi, i, first))
		acc, ld := w.product(&p, a.Key)
		if t.Split {
			storePartial(t, device.View[float32](a.Mem(Inputs)), &p, acc, ld)
			continue
		}
		f.floatColumns(p.b, p.j, p.n)
		for r := range p.m {
			f.floats(t.element(&p, r), acc[r*ld:r*ld+p.n])
		}
	}
	return nil
}

func newFloatWorker(a *kernel.Args, t *tiling, bufs *[numBufs][]float32) floatWorker {
	return floatWorker{
		t: t, x: a.Mem(X), w: a.Mem(W), xBatch: -1,
		acc: bufs[bufAcc], xs: bufs[bufX], ws: bufs[bufW], part: bufs[bufPart], tmp: bufs[bufTmp],
	}
}

// carve cuts a block's scratch memory into its buffers.
func carve(a *kernel.Args, block int, t *tiling) (bufs [numBufs][]float32) {
	mem := a.Scratch.Bytes()[int64(block)*t.BlockScratch:]
	for i, n := range t.Buf {
		if n > 0 {
			bufs[i] = device.View[float32](mem[:4*n])
			mem = mem[4*n:]
		}
	}
	return bufs
}

// product computes the sums of one item: rows of acc, ld apart.
func (w *floatWorker) product(p *place, key uint64) (acc []float32, ld int64) {
	ld = roundUp(p.n, panelWidth)
	acc = w.acc[:roundUp(p.m, 2)*ld]
	clear(acc)
	switch key {
	case keyRows:
		w.rows(p, acc, ld)
	case keyColumns:
		w.columns(p, acc, ld)
	default:
		w.panels(p, acc, ld)
	}
	return acc, ld
}

// storePartial stores the sums of a chunk in the output of Partial.
func storePartial[S float32 | int32](t *tiling, out []S, p *place, acc []S, ld int64) {
	for i := range p.m {
		o := ((p.chunk*t.Batch+p.b)*t.M+p.i+i)*t.N + p.j
		copy(out[o:o+p.n], acc[i*ld:])
	}
}
