package attention

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/operation"
	"goatb/tensor"
)

// pagedTolerance bounds the error relative to values of about 1: one rounding
// of the output to f16 or bf16; float32 sums of a few dozen products.
func pagedTolerance(p *PagedAttention, dt tensor.DType) float64 {
	tol := map[tensor.DType]float64{tensor.Float32: 1e-5, tensor.Float16: 1e-3, tensor.BFloat16: 8e-3}[dt]
	if p.int8All() {
		// A probability between two of 50 levels may round to either side:
		// 1/50 of a value of 127 with a scale of 0.02.
		tol = 0.06
	}
	return tol
}

func (c *pagedCase) check(t *testing.T) {
	t.Helper()
	got, _ := c.run(t)
	want := c.reference()
	require.Len(t, got, len(want))
	tol := pagedTolerance(&c.spec, c.dtype)
	for i := range want {
		require.InDelta(t, want[i], got[i], tol*math.Max(1, math.Abs(want[i])), "element %d", i)
	}
}

// TestPagedMatrix computes every combination of parameters that can be created,
// in every float type, on the profile of the mathematics; and on the board's
// profile where its limits allow the case.
func TestPagedMatrix(t *testing.T) {
	count := 0
	for p := range PagedMatrix() {
		count++
		for i, dt := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			name := fmt.Sprintf("%s/%s", pagedName(p), dt)
			t.Run(name, func(t *testing.T) {
				if p.int8All() && dt != tensor.Float32 {
					p.OutDataType = dt
				}
				c := newPagedCase(p, dt, uint64(count))
				if i == 1 {
					c.scaleType = tensor.Int64
				}
				c.build().check(t)
				if dt != tensor.Float32 {
					if p.QuantType != QuantNone || p.ScaleType == ScaleLogN || p.spec() && !p.mla() || p.compress() {
						c.dk = c.dv
					}
					c.profile, c.maskShape = operation.Board910B(), nil
					c.build().check(t)
				}
			})
		}
	}
	assert.Equal(t, 148, count, "the list must not shrink by accident")
}

// pagedName tells the choices that differ from the default.
func pagedName(p PagedAttention) string {
	s := p.MaskType.String()
	for _, x := range []struct {
		there bool
		name  string
	}{
		{p.spec(), "SPEC"}, {p.QuantType != QuantNone, p.QuantType.String()}, {p.HasQuantOffset, "OFFSET"},
		{p.compress(), p.CompressType.String()}, {p.ScaleType != ScaleTOR, p.ScaleType.String()},
		{p.InputLayout != LayoutBSND, p.InputLayout.String()}, {p.BatchRunStatusEnable, "STATUS"}, {p.mla(), "MLA"},
	} {
		if x.there {
			s += "+" + x.name
		}
	}
	return s
}

// Every combination has a row set in the board's table.
func TestPagedMatrixVariants(t *testing.T) {
	for p := range PagedMatrix() {
		c := newPagedCase(p, tensor.Float16, 1)
		c.dk = c.dv
		c.build()
		_, err := operation.InferShape(p, operation.Board910B(), c.in)
		require.NoError(t, err, pagedName(p))
	}
}

// Long contexts with few heads are cut into parts; the bits are those of the
// single kernel on one core.
func TestPagedSplit(t *testing.T) {
	for name, change := range map[string]func(*pagedCase){
		"decode": func(c *pagedCase) {},
		"f16":    func(c *pagedCase) { c.dtype, c.maskType = tensor.Float16, tensor.Float16 },
		"mask": func(c *pagedCase) {
			c.spec.MaskType = PagedMaskNorm
			c.maskColumns = 2500
		},
		"mla": func(c *pagedCase) { c.spec.MLAVHeadSize = 8; c.dk = 12 },
		"spec": func(c *pagedCase) {
			c.spec.CalcType, c.spec.MaskType, c.qLens = PagedCalcSpec, PagedMaskSpec, []int64{3}
		},
		"bnsd": func(c *pagedCase) { c.spec.InputLayout = LayoutBNSD },
	} {
		t.Run(name, func(t *testing.T) {
			p := PagedAttention{HeadNum: 3, KVHeadNum: 1, QKScale: 0.3}
			c := newPagedCase(p, tensor.Float32, 9)
			c.dk, c.bs, c.columns, c.contexts = 8, 128, 20, []int64{2300}
			c.maskColumns = 2560
			change(c)
			c.build()
			var outs [][]byte
			for cores, want := range map[int]string{1: "paged/go", 2: "pagedparts/go parts/merge", 16: "pagedparts/go parts/merge"} {
				c.machine = kernel.Machine{Cores: cores, L1: 32 << 10, L2: 1 << 20}
				require.Equal(t, want, c.kernels(t), "%d cores", cores)
				c.check(t)
				_, out := c.run(t)
				outs = append(outs, out)
			}
			assert.True(t, bytes.Equal(outs[0], outs[1]) && bytes.Equal(outs[0], outs[2]), "cores change bits")
		})
	}
}

// The kernel list hangs on descriptors: lengths change nothing.
func TestPagedPlanIgnoresLengths(t *testing.T) {
	c := newPagedCase(PagedAttention{HeadNum: 3, KVHeadNum: 1, QKScale: 0.3}, tensor.Float32, 9)
	c.bs, c.columns, c.contexts = 128, 20, []int64{2300}
	c.build()
	long := c.kernels(t)
	c.set("contextLens", 1)
	assert.Equal(t, long, c.kernels(t))
	_, dynamic := any(c.spec).(operation.Dynamic)
	assert.False(t, dynamic)
}

func TestPagedHeadSizesAndBlocks(t *testing.T) {
	for _, size := range []struct{ dk, dv int64 }{{8, 8}, {80, 80}, {96, 64}, {100, 100}, {128, 128}, {256, 256}, {1, 3}} {
		for _, bs := range []int64{1, 3, 16, 512} {
			c := newPagedCase(PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 0.1}, tensor.Float32, 3)
			c.dk, c.dv, c.bs, c.columns = size.dk, size.dv, bs, (24+bs-1)/bs
			c.build().check(t)
		}
	}
}

func TestPagedMaskShapes(t *testing.T) {
	for _, x := range []struct {
		spec  PagedAttention
		shape []int64
	}{
		{PagedAttention{MaskType: PagedMaskNorm}, []int64{4, 24}},
		{PagedAttention{MaskType: PagedMaskNorm}, []int64{1, 24}},
		{PagedAttention{MaskType: PagedMaskNorm}, []int64{4, 4, 1, 30}},
		{PagedAttention{MaskType: PagedMaskALiBi}, []int64{4, 1, 24}},
		{PagedAttention{MaskType: PagedMaskALiBi}, []int64{1, 4, 24}},
		{PagedAttention{MaskType: PagedMaskSpec}, []int64{4, 24}},
		{PagedAttention{MaskType: PagedMaskNorm, CalcType: PagedCalcSpec}, []int64{4, 1, 24}},
		{PagedAttention{MaskType: PagedMaskNorm, CalcType: PagedCalcSpec}, []int64{1, 24, 24}},
		{PagedAttention{MaskType: PagedMaskSpec, CalcType: PagedCalcSpec}, []int64{8, 25}},
	} {
		p := x.spec
		p.HeadNum, p.KVHeadNum, p.QKScale = 4, 2, 0.3
		c := newPagedCase(p, tensor.Float32, 3)
		c.maskShape = x.shape
		c.build().check(t)
	}
}
