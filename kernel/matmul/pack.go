package matmul

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

var packGo = kernel.Define(kernel.Def[Params, packTiling]{
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
		return 0, saturate(n * float64(t.W.DType.Size()+4))
	},
})

// packTiling plans the packing of weights: items of packColumns columns.
type packTiling struct {
	Batch, N, K int64
	Chunk       int64
	W           matrix
	Groups      int64
}

// packColumns is the number of columns that are packed at a time.
const packColumns = 64

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
	if w.Bytes() == 0 || !isFloat(w.DType) || w.Rank() != 2 && w.Rank() != 3 && !stored {
		return status.Errorf(status.ErrInvalidParam, "cannot pack %s", w)
	}
	var s shape
	t.Batch, t.K = s.readW(w, a.TransB)
	t.N, t.W, t.Chunk = s.n, s.w, min(chunkOf(t.K), t.K)
	t.Groups = ceilDiv(t.N, packColumns)
	if want := packedDesc(t.Batch, t.N, t.K); p.Out[0] != want {
		return status.Errorf(status.ErrInvalidParam, "want an output %s, got %s", &want, &p.Out[0])
	}
	return nil
}

// packedDesc describes packed weights.
func packedDesc(batch, n, k int64) tensor.Desc {
	return tensor.Of(tensor.Float32, batch, ceilDiv(n, panelWidth), k, panelWidth)
}

func (t *packTiling) blocks(m kernel.Machine) int {
	return kernel.BlocksFor(m, t.Batch*t.Groups, float64(t.Batch)*float64(t.N)*float64(t.K)*nanosPerPacked)
}

// blockScratch is the room that a packer needs.
func (t *packTiling) blockScratch() int64 {
	return 4 * roundUp(max(panelWidth*t.Chunk, packColumns+panelWidth), 16)
}

func runPack(a *kernel.Args, block int, t *packTiling, _ []int64) error {
	dst := device.View[float32](a.Mem(Inputs))
	tmp := device.View[float32](a.Scratch.Bytes()[int64(block)*t.blockScratch():][:t.blockScratch()])
	panels, stride := ceilDiv(t.N, panelWidth), t.K*panelWidth
	lo, hi := kernel.Share(t.Batch*t.Groups, block, a.Blocks)
	for item := lo; item < hi; item++ {
		b, j := item/t.Groups, item%t.Groups*packColumns
		n := min(packColumns, t.N-j)
		pk := packer{&t.W, a.Mem(W), b, tmp}
		for k := int64(0); k < t.K; k += t.Chunk {
			o := (b*panels+j/panelWidth)*stride + k*panelWidth
			pk.quads(dst[o:], stride, j, n, k, min(t.Chunk, t.K-k))
		}
	}
	return nil
}
