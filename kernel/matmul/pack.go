package matmul

import (
	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// packPanels brings weights to layout Panels.
var packPanels = kernel.Define(kernel.Def[Params, packTiling]{
	Name:  "matmul/pack",
	Class: device.Move,
	Supports: func(p *kernel.Problem, a Params) error {
		var t packTiling
		return planPack(p, a, &t)
	},
	Scratch: func(p *kernel.Problem, a Params) int64 {
		var t packTiling
		if planPack(p, a, &t) != nil {
			return 0
		}
		return int64(t.blocks(p.Machine)) * t.blockScratch()
	},
	Tile: func(p *kernel.Problem, a Params, t *packTiling, _ []int64) (kernel.Grid, error) {
		err := planPack(p, a, t)
		return kernel.Grid{Blocks: t.blocks(p.Machine)}, err
	},
	Run: runPack,
	Cost: func(t *packTiling, _ []int64) (int64, int64) {
		n := float64(t.Batch) * float64(t.N) * float64(t.K)
		return 0, saturate(2 * n * float64(t.W.DType.Size()))
	},
})

// packTiling plans the packing of weights: items of one panel.
type packTiling struct {
	Batch, N, K int64
	Chunk       int64
	W           matrix
	Panels      int64
	// Bytes is the size of a panel.
	Bytes int64
}

// planPack checks and plans the packing of W, the only operand.
func planPack(p *kernel.Problem, a Params, t *packTiling) error {
	if err := wantArity(p); err != nil {
		return err
	}
	if err := wantAbsent(p, X, Bias, Scale, TokenScale, Acc); err != nil {
		return err
	}
	w := &p.In[W]
	stored := w.Rank() == 4 && w.Format == tensor.FractalNZ && w.Dim(3) == tensor.NZBlock(w.DType)
	if w.Bytes() == 0 || tensor.PanelStep(w.DType) == 0 || w.Format == tensor.Panels || w.Rank() != 2 && w.Rank() != 3 && !stored {
		return status.Errorf(status.ErrInvalidParam, "cannot pack %s", w)
	}
	var s shape
	t.Batch, t.K = s.readW(w, a.TransB)
	t.N, t.W, t.Chunk = s.n, s.w, min(chunkOf(t.K), t.K)
	t.Panels = ceilDiv(t.N, gemm.PanelColumns)
	t.Bytes = tensor.PanelBytes(w.DType, t.K)
	want := tensor.Of(w.DType, t.N, t.K)
	if w.Rank() != 2 {
		want = tensor.Of(w.DType, t.Batch, t.N, t.K)
	}
	want.Format = tensor.Panels
	if want.Bytes() == 0 || p.Out[0] != want {
		return status.Errorf(status.ErrInvalidParam, "want an output %s, got %s", &want, &p.Out[0])
	}
	return nil
}

func (t *packTiling) blocks(m kernel.Machine) int {
	return kernel.BlocksFor(m, t.Batch*t.Panels, float64(t.Batch)*float64(t.N)*float64(t.K)*nanosPerPacked)
}

// blockScratch is the room for rows that are converted or gathered before they are
// packed.
func (t *packTiling) blockScratch() int64 { return 4 * max(16*t.Chunk, acrossWords) }

func runPack(a *kernel.Args, block int, t *packTiling, _ []int64) error {
	dst := a.Mem(Inputs)
	e := panelEngine(t.W.DType)
	tmp := device.View[float32](a.Scratch.Bytes()[int64(block)*t.blockScratch():][:t.blockScratch()])
	lo, hi := kernel.Share(t.Batch*t.Panels, block, a.Blocks)
	for item := lo; item < hi; item++ {
		r := item % t.Panels * gemm.PanelColumns
		columns := min(gemm.PanelColumns, t.N-r)
		panel := dst[item*t.Bytes:][:t.Bytes]
		pk := packer{e: &e, m: &t.W, mem: a.Mem(W), b: item / t.Panels, tmp: tmp}
		for k := int64(0); k < t.K; k += t.Chunk {
			n := min(t.Chunk, t.K-k)
			if t.W.DType == tensor.Float16 {
				pk.halves(panel[k*2*gemm.PanelColumns:], r, columns, k, n)
			} else {
				pk.panel(panel[k/e.step()*4*gemm.PanelColumns:], r, columns, k, n)
			}
		}
		t.pad(panel, columns)
	}
	return nil
}

// panelEngine returns an engine that packs elements of type t, which need not be
// one that multiplies on this machine.
func panelEngine(t tensor.DType) engine {
	set := &gemm.Set{Transpose: gemm.BestTranspose(cpu.Active())}
	switch t {
	case tensor.BFloat16:
		set.Elem = gemm.BF16
	case tensor.Int8:
		set.Elem = gemm.Int8
	}
	return engine{set: set, word: t}
}

// halves packs f16 columns of w, which are no words: n elements from k on.
func (p *packer) halves(dst []byte, r, columns, k, n int64) {
	src, to := device.View[uint16](p.mem), device.View[uint16](dst)
	if !p.m.AlongK && p.m.Block == 0 {
		for i := range n {
			copy(to[i*gemm.PanelColumns:][:columns], src[p.m.at(p.b, r, k+i)/2:])
		}
		return
	}
	for c := range columns {
		for i := range n {
			to[i*gemm.PanelColumns+c] = src[p.m.at(p.b, r+c, k+i)/2]
		}
	}
}

// pad makes the columns behind the last one zeros and adds the sums of int8
// columns.
func (t *packTiling) pad(panel []byte, columns int64) {
	step := tensor.PanelStep(t.W.DType) * t.W.DType.Size()
	row := gemm.PanelColumns * step
	end := ceilDiv(t.K, tensor.PanelStep(t.W.DType)) * row
	if columns < gemm.PanelColumns {
		for at := int64(0); at < end; at += row {
			clear(panel[at+columns*step : at+row])
		}
	}
	if t.W.DType == tensor.Int8 {
		sums := device.View[int32](panel[end:])
		clear(sums)
		for i, v := range device.View[int8](panel[:end]) {
			sums[i/4%gemm.PanelColumns] += 128 * int32(v)
		}
	}
}
