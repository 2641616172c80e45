package linear

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

func TestInt4Linear(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 8))
		const n, k, groups = 37, 192, 3
		bits := make([]byte, n*k/2)
		for i := range bits {
			bits[i] = byte(r.Uint32())
		}
		for _, x := range []tensor.Desc{of(f32, 4, k), of(bf16, 2, 3, k), of(f16, 1, k)} {
			for _, bias := range []bool{false, true} {
				scale := randomFloats(r, of(x.DType, n, groups))
				packed := optest.Run(t, optest.Case{Spec: PackInt4{}, In: []tensor.Desc{of(tensor.Uint8, n, k/2), of(x.DType, n, groups)}, Data: [][]byte{bits, scale}})
				l := Int4Linear{Columns: n, HasBias: bias}
				in := []tensor.Desc{x, packed.Graph.Tensors[packed.Graph.Outputs[0]].Desc}
				data := [][]byte{randomFloats(r, x), packed.Out[0]}
				biases := make([]float64, n)
				if bias {
					in, data = append(in, of(f32, n)), append(data, randomFloats(r, of(f32, n)))
					biases = float64s(t, data[2], f32)
				}
				got := float64s(t, optest.Run(t, optest.Case{Spec: l, In: in, Data: data}).Out[0], x.DType)
				xs, scales := float64s(t, data[0], x.DType), float64s(t, scale, x.DType)
				for i := range len(xs) / k {
					for j := range n {
						want, size := biases[j], 0.0
						for c := range k {
							q := float64(int8(bits[(j*k+c)/2]>>(4*(c%2))<<4) >> 4)
							p := xs[i*k+c] * q * scales[j*groups+c/(k/groups)]
							want += p
							size += math.Abs(p)
						}
						require.InDelta(t, want, got[i*n+j], size*0x1p-8+0x1p-8, "%s at %d,%d", x, i, j)
					}
				}
			}
		}
	})
}

func TestInt4Refusals(t *testing.T) {
	u8 := func(dims ...int64) tensor.Desc { return of(tensor.Uint8, dims...) }
	for name, c := range map[string]struct {
		spec operation.Spec
		in   []tensor.Desc
		code status.Code
	}{
		"rank of w":       {PackInt4{}, []tensor.Desc{u8(8), of(f16, 8, 1)}, status.ErrInvalidTensorDimNum},
		"rank of scale":   {PackInt4{}, []tensor.Desc{u8(8, 8), of(f16, 8)}, status.ErrInvalidTensorDimNum},
		"rows of scale":   {PackInt4{}, []tensor.Desc{u8(8, 8), of(f16, 9, 1)}, status.ErrInvalidTensorDim},
		"groups":          {PackInt4{}, []tensor.Desc{u8(8, 8), of(f16, 8, 3)}, status.ErrInvalidTensorDim},
		"short groups":    {PackInt4{}, []tensor.Desc{u8(8, 8), of(f16, 8, 4)}, status.ErrInvalidTensorDim},
		"type":            {PackInt4{}, []tensor.Desc{of(i8, 8, 8), of(f16, 8, 1)}, status.ErrInvalidTensorIniMatch},
		"weight's rank":   {Int4Linear{Columns: 32}, []tensor.Desc{of(f16, 2, 64), u8(1, 1152)}, status.ErrInvalidTensorDimNum},
		"columns":         {Int4Linear{Columns: 33}, []tensor.Desc{of(f16, 2, 64), u8(1, 2, 576)}, status.ErrInvalidTensorDim},
		"k":               {Int4Linear{Columns: 32}, []tensor.Desc{of(f16, 2, 72), u8(1, 2, 576)}, status.ErrInvalidTensorDim},
		"bytes":           {Int4Linear{Columns: 32}, []tensor.Desc{of(f16, 2, 64), u8(1, 2, 600)}, status.ErrInvalidTensorDim},
		"bias":            {Int4Linear{Columns: 32, HasBias: true}, []tensor.Desc{of(f16, 2, 64), u8(1, 2, 576), of(f16, 33)}, status.ErrInvalidTensorDim},
		"float weights":   {Int4Linear{Columns: 32}, []tensor.Desc{of(f16, 2, 64), of(f16, 1, 2, 576)}, status.ErrInvalidTensorIniMatch},
		"without columns": {Int4Linear{}, nil, status.ErrInvalidParam},
	} {
		op, err := operation.New(c.spec)
		if err == nil {
			_, err = op.InferShape(c.in)
		}
		assert.ErrorIs(t, err, c.code, name)
	}
}

func TestPackInt4Weight(t *testing.T) {
	c := newContext(t)
	w, err := atbctx.FromSlice(c, []uint8{0x21, 0x43, 0x65, 0x87}, 1, 4)
	require.NoError(t, err)
	scale, err := atbctx.FromFloats(c, f16, []float32{2}, 1, 1)
	require.NoError(t, err)
	p, err := PackInt4Weight(t.Context(), c, w, scale)
	require.NoError(t, err)
	assert.Equal(t, of(tensor.Uint8, 1, 1, 192), p.Desc)
	raw := make([]byte, 192)
	require.NoError(t, atbctx.Read(t.Context(), c, raw, &p))
	want := make([]byte, 192)
	want[1] = 0x40 // two
	copy(want[64:], []byte{0x31, 0x75, 0x42, 0x86})
	assert.Equal(t, want, raw)
	assert.NotEqual(t, device.Buffer{}, p.Data)
}
