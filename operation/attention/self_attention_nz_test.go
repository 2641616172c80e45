package attention

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// TestBlockedMasks stores a mask in fractal_nz, with its logical and its stored
// shape, and compares with the plain one.
func TestBlockedMasks(t *testing.T) {
	for _, x := range []struct {
		mask    SelfMaskType
		lead    string
		perHead bool
	}{
		{SelfMaskNorm, "", false}, {SelfMaskNorm, "b", false}, {SelfMaskALiBi, "h", false},
		{SelfMaskALiBiCompress, "", false}, {SelfMaskALiBiCompressSqrt, "", true}, {SelfMaskALiBiCompressLeftAlign, "", false},
	} {
		for _, stored := range []bool{false, true} {
			if stored && x.mask.slopes() {
				continue // rank 4 is refused for these
			}
			d := newSelfData(Combination{CalcType: SelfPAEncoder, MaskType: x.mask}.Spec(2, 1), 77)
			d.spec.KernelType = KernelHighPrecision
			d.dtype, d.maskT, d.lead, d.perHead = tensor.Float16, tensor.Float16, x.lead, x.perHead
			d.rows, d.keys, d.side = []int64{31, 20}, []int64{31, 20}, 32
			if x.perHead {
				d.side = 17 // 16 columns
			}
			d.build()
			port := d.spec.ports().mask
			if x.perHead {
				d.padMaskRows(port, 32)
			}
			want, _ := d.run(t, operation.Native())
			d.check(t, want)
			d.blockMask(t, port, stored)
			got, _ := d.run(t, operation.Native())
			assert.Equal(t, want, got, "mask %s, stored %v", x.mask, stored)
			if !x.perHead && !x.mask.slopes() {
				got, _ = d.run(t, operation.Board910B())
				assert.Equal(t, want, got)
			}
		}
	}
}

// padMaskRows gives every plane of the mask the given number of rows, which go
// on as the distances do.
func (d *selfData) padMaskRows(port int, rows int64) {
	m := &d.in[port]
	heads, old, cols := m.Dim(0), m.Dim(1), m.Dim(2)
	plane := make([]float64, 0, heads*rows*cols)
	for h := range heads {
		plane = append(plane, d.mask[h*old*cols:(h+1)*old*cols]...)
		for r := old; r < rows; r++ {
			row := make([]float64, cols)
			for c := range row {
				row[c] = d.compressedPlain(h, r, int64(c))
			}
			plane = append(plane, row...)
		}
	}
	d.put(port, m.WithShape(heads, rows, cols), plane)
}

// compressedPlain is the mask's own bias of position r and key c.
func (d *selfData) compressedPlain(h, r, c int64) float64 {
	return round(d.compressed(h, r, c), d.maskT)
}

// blockMask stores the mask in fractal_nz.
func (d *selfData) blockMask(t *testing.T, port int, stored bool) {
	m := d.in[port]
	n := m.Numel() / m.Dim(-1) / m.Dim(-2)
	packed := make([]byte, len(d.data[port]))
	require.NoError(t, tensor.PackNZ(packed, d.data[port], n, m.Dim(-2), m.Dim(-1), m.DType))
	d.data[port] = packed
	d.in[port].Format = tensor.FractalNZ
	if stored {
		d.in[port].Shape = tensor.ShapeOf(n, m.Dim(-1)/16, m.Dim(-2), 16)
	}
}

func TestBlockedMasksThatNeedPadding(t *testing.T) {
	rows, lens := tensor.Of(tensor.Float16, 8, 16), tensor.Of(tensor.Int32, 1)
	p := sampleSpec(SelfPAEncoder, SelfMaskNorm)
	for _, shape := range [][]int64{{16, 20}, {20, 16}, {1, 2, 16, 8}} {
		m := tensor.Of(tensor.Float16, shape...)
		m.Format = tensor.FractalNZ
		in := slices.Clone([]tensor.Desc{rows, rows, rows, m, lens})
		_, err := operation.InferShape(p, operation.Board910B(), in)
		require.ErrorIs(t, err, status.ErrInvalidTensorDim)
		assert.ErrorContains(t, err, "want rows and columns in groups of 16")
	}
}
