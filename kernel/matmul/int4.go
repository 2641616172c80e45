package matmul

import (
	"fmt"
	"slices"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Int4Product holds the kernels of products with int4 weights: X is [m,k] or
// [b,m,k] of a float type, W is Int4Pack's output, Bias as in Product, and the
// output has X's type.
//
// With assembly the elements of X are rounded to int16 first, by the largest one
// among those that are multiplied together: chunks of at least 512 elements of a
// row. That is an error of at most 1/65278 of the chunk's largest element for each
// element. Then products are exact within a group. A row with a NaN or an
// infinity gives NaN. Elements below 2^-116 may count as zero. Plain Go rounds
// products and sums to f32. A row's result does not depend on the batch.
var Int4Product = slices.Concat(int4Kernels(), kernel.Table{int4Go})

// int4Tiling plans a product with int4 weights: TilesM × TilesN items.
type int4Tiling struct {
	int4Layout
	M int64
	// Chunk is the number of elements of K whose x has one factor.
	Chunk                 int64
	TileM, TilesM, TilesN int64
	// The sizes of a block's buffers in bytes, and their sum.
	RowBytes, FactorBytes, LessBytes, TempBytes, SumBytes, BlockScratch int64
	// Prepared is the size of what is made once for all blocks, in front of theirs.
	Prepared int64
	X        tensor.DType
	// OneRow says that x has one row, which is multiplied with many panels at once.
	OneRow bool
	Ep     epilogue
}

// nanosPerInt4Step is the time of eight elements of K of a row and a strip of
// columns.
const nanosPerInt4Step = 2.2

// int4Shape checks the operands of a product with int4 weights.
func int4Shape(p *kernel.Problem, a Int4Params, t *int4Tiling) error {
	if err := wantArity(p); err != nil {
		return err
	}
	if err := wantAbsent(p, Scale, TokenScale, Acc); err != nil {
		return err
	}
	x, w := &p.In[X], &p.In[W]
	if r := x.Rank(); r != 2 && r != 3 || x.Bytes() == 0 || !isFloat(x.DType) || w.DType != tensor.Uint8 || w.Rank() != 3 {
		return status.Errorf(status.ErrInvalidParam, "want a float matrix and packed int4 weights, got %s and %s", x, w)
	}
	l, err := a.layout(x.Dim(-1), w.Dim(1), 2)
	if err == nil && l.GroupBytes != w.Dim(2) {
		l, err = a.layout(x.Dim(-1), w.Dim(1), 4)
	}
	if err != nil {
		return err
	}
	if *w != l.desc() || w.Bytes() == 0 {
		return status.Errorf(status.ErrInvalidParam, "%s are not int4 weights of %d columns over %d elements", w, a.Columns, l.K)
	}
	t.int4Layout = l
	s := shape{batch: 1, m: x.Numel() / t.K, n: t.Columns, k: t.K}
	t.M, t.X = s.m, x.DType
	t.Ep, err = floatEpilogue(p, &s)
	return err
}

// cut chooses tiles: columns for every core, and rows whose packed form stays in
// L2.
func (t *int4Tiling) cut(m kernel.Machine, maxRows int64) kernel.Grid {
	t.Chunk = min(roundUp(minChunk, t.Group), t.K)
	fit := l2(m) / 4 / (2 * t.K) / maxRows * maxRows
	t.TileM = min(t.M, max(maxRows, min(fit, 16*maxRows)))
	t.TilesM = ceilDiv(t.M, t.TileM)
	steps := float64(max(t.M, 2)) * float64(t.Panels) * float64(t.K/8)
	nanos := max(steps*nanosPerInt4Step, float64(t.Panels*t.PanelBytes)*nanosPerByte)
	blocks := int64(kernel.BlocksFor(m, t.TilesM*t.Panels, nanos))
	if t.M == 1 {
		blocks = int64(kernel.StreamBlocks(m, int(blocks), t.Panels, t.Panels*t.PanelBytes))
	}
	t.TilesN = shared(t.TilesM, min(ceilDiv(blocks, t.TilesM), t.Panels), t.Panels, blocks)
	return kernel.Grid{Blocks: int(min(blocks, t.TilesM*t.TilesN))}
}

// item returns the rows and panels of an item.
func (t *int4Tiling) item(i int64) (row, rows, panel, panels int64) {
	row, panel = i/t.TilesN*t.TileM, t.panel(i%t.TilesN)
	return row, min(t.TileM, t.M-row), panel, t.panel(i%t.TilesN+1) - panel
}

// panel returns the first panel of a tile.
func (t *int4Tiling) panel(tile int64) int64 { return firstUnit(t.Panels, t.TilesN, tile) }

// int4Way is how a kernel multiplies with int4 weights: with tiles of up to maxRows
// rows. book sizes the buffers; begin may be nil.
type int4Way struct {
	maxRows int64
	refusal func() error
	book    func(t *int4Tiling)
	begin   func(a *kernel.Args, t *int4Tiling, _ []int64) error
	share   func(a *kernel.Args, first, end int, t *int4Tiling, _ []int64) error
}

// int4Def defines a kernel.
func int4Def(name string, way int4Way) *kernel.Kernel {
	plan := func(p *kernel.Problem, a Int4Params, t *int4Tiling) (kernel.Grid, error) {
		if err := int4Shape(p, a, t); err != nil {
			return kernel.Grid{}, err
		}
		if err := way.refusal(); err != nil {
			return kernel.Grid{}, err
		}
		g := t.cut(p.Machine, way.maxRows)
		way.book(t)
		return g, nil
	}
	return kernel.Define(kernel.Def[Int4Params, int4Tiling]{
		Name:  name,
		Class: device.Cube,
		Supports: func(p *kernel.Problem, a Int4Params) error {
			var t int4Tiling
			_, err := plan(p, a, &t)
			return err
		},
		Scratch: func(p *kernel.Problem, a Int4Params) int64 {
			var t int4Tiling
			g, _ := plan(p, a, &t)
			return t.Prepared + int64(g.Blocks)*t.BlockScratch
		},
		Tile: func(p *kernel.Problem, a Int4Params, t *int4Tiling, _ []int64) (kernel.Grid, error) {
			return plan(p, a, t)
		},
		Begin: way.begin,
		Ahead: int4Ahead,
		Share: way.share,
		Explain: func(t *int4Tiling, _ []int64) string {
			return fmt.Sprintf("tile %dx%d panels", t.TileM, ceilDiv(t.Panels, t.TilesN))
		},
		Cost: func(t *int4Tiling, _ []int64) (int64, int64) {
			mk, mn := float64(t.M)*float64(t.K), float64(t.M)*float64(t.Columns)
			bytes := mk*float64(t.X.Size()) + float64(t.Panels)*float64(t.PanelBytes) + mn*float64(t.Ep.Out.Size())
			return saturate(2 * mn * float64(t.K)), saturate(bytes)
		},
	})
}

// int4Ahead is the panels that a block of one row reads.
func int4Ahead(a *kernel.Args, block int, t *int4Tiling, _ []int64) []byte {
	if !t.OneRow {
		return nil
	}
	first, _ := kernel.Share(t.TilesN, block, a.Blocks)
	return behind(a.Mem(W), t.panel(first)*t.PanelBytes)
}

// int4Kernels returns a kernel for each set of assembly loops.
func int4Kernels() (out kernel.Table) {
	for i := range gemm.Int4Sets() {
		e := int4Engine{&gemm.Int4Sets()[i]}
		refusal := func() error {
			if have := cpu.Active(); !have.Has(e.set.Needs) {
				return status.Errorf(status.ErrInvalidParam, "want a processor with %s, have %s", e.set.Needs, have)
			}
			return nil
		}
		out = append(out, int4Def("matmul/int4-"+e.set.Name, int4Way{int64(len(e.set.Rows)), refusal, e.book, e.begin, e.share}))
	}
	return out
}
