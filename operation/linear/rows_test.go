package linear

import (
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

// picked are rows in any order, one of them twice, of the last panel too.
var picked = []int32{3, 69, 0, 35, 3, 64}

func pickedBytes() []byte { return device.BytesOf(append([]int32(nil), picked...)) }

// TestPackedRowsKeepBits picks rows of packed float weights of more and less than
// one piece, with odd tails.
func TestPackedRowsKeepBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, dtype := range []tensor.DType{f32, f16, bf16} {
		for _, k := range []int64{1, 5, 64, 512, 1031} {
			w := of(dtype, 70, k)
			data := randomFloats(r, w)
			packed := optest.Run(t, optest.Case{Spec: Pack{TransposeB: true}, In: []tensor.Desc{w}, Data: [][]byte{data}}).Out[0]
			in := []tensor.Desc{panels(dtype, 70, k), of(i32, int64(len(picked)))}
			got := optest.Run(t, optest.Case{Spec: PackedRows{}, In: in, Data: [][]byte{packed, pickedBytes()}}).Out[0]
			row := k * dtype.Size()
			for i, p := range picked {
				require.Equal(t, data[int64(p)*row:int64(p+1)*row], got[int64(i)*row:int64(i+1)*row], "%s k=%d row %d", dtype, k, p)
			}
		}
	}
}

func TestPackedRowsOfInt8(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for _, k := range []int64{3, 64, 1029} {
		w, scale := of(i8, 70, k), of(f32, 70)
		data, scales := randomFloats(r, w), randomFloats(r, scale)
		packed := optest.Run(t, optest.Case{Spec: Pack{TransposeB: true}, In: []tensor.Desc{w}, Data: [][]byte{data}}).Out[0]
		in := []tensor.Desc{panels(i8, 70, k), of(i32, int64(len(picked))), scale}
		got := float64s(t, optest.Run(t, optest.Case{Spec: PackedRows{OutDataType: f32}, In: in, Data: [][]byte{packed, pickedBytes(), scales}}).Out[0], f32)
		ws, ss := device.View[int8](data), float64s(t, scales, f32)
		for i, p := range picked {
			for c := range k {
				want := float32(ws[int64(p)*k+c]) * float32(ss[p])
				require.Equal(t, float64(want), got[int64(i)*k+c], "k=%d row %d", k, p)
			}
		}
	}
}

func TestPackedRowsOfInt4(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, scaleType := range []tensor.DType{f16, f32} {
		const n, k, groups = 70, 1056, 33
		bits := make([]byte, n*k/2)
		for i := range bits {
			bits[i] = byte(r.Uint32())
		}
		w, scale := of(tensor.Uint8, n, k/2), of(scaleType, n, groups)
		scales := randomFloats(r, scale)
		packed := optest.Run(t, optest.Case{Spec: PackInt4{}, In: []tensor.Desc{w, scale}, Data: [][]byte{bits, scales}})
		in := []tensor.Desc{packed.Graph.Tensors[packed.Graph.Outputs[0]].Desc, of(i32, int64(len(picked)))}
		got := float64s(t, optest.Run(t, optest.Case{Spec: PackedRows{OutDataType: f32, Columns: n}, In: in, Data: [][]byte{packed.Out[0], pickedBytes()}}).Out[0], f32)
		ss := float64s(t, scales, scaleType)
		for i, p := range picked {
			for c := range k {
				at := int(p)*k + c
				q := float32(int8(bits[at/2]>>(4*(at%2))<<4) >> 4)
				want := q * float32(ss[int(p)*groups+c/(k/groups)])
				require.Equal(t, float64(want), got[i*k+c], "row %d element %d", p, c)
			}
		}
	}
}

func TestPackedRowsRefusals(t *testing.T) {
	u8, ids := of(tensor.Uint8, 1, 2, 576), of(i32, 4)
	for name, c := range map[string]struct {
		spec PackedRows
		in   []tensor.Desc
		code status.Code
	}{
		"rows as stored":  {PackedRows{}, []tensor.Desc{of(f32, 8, 8), ids}, status.ErrInvalidTensorIniMatch},
		"type of indices": {PackedRows{}, []tensor.Desc{panels(f32, 8, 8), of(f32, 4)}, status.ErrInvalidTensorIniMatch},
		"rank of panels":  {PackedRows{}, []tensor.Desc{panels(f32, 1, 8, 8), ids}, status.ErrInvalidTensorDimNum},
		"rank of indices": {PackedRows{}, []tensor.Desc{panels(f32, 8, 8), of(i32, 2, 2)}, status.ErrInvalidTensorDimNum},
		"no scale":        {PackedRows{OutDataType: f32}, []tensor.Desc{panels(i8, 8, 8), ids}, status.ErrInvalidInTensorNum},
		"length of scale": {PackedRows{OutDataType: f32}, []tensor.Desc{panels(i8, 8, 8), ids, of(f32, 9)}, status.ErrInvalidTensorDim},
		"columns":         {PackedRows{OutDataType: f32, Columns: 33}, []tensor.Desc{u8, ids}, status.ErrInvalidTensorDim},
		"bytes":           {PackedRows{OutDataType: f32, Columns: 32}, []tensor.Desc{of(tensor.Uint8, 1, 2, 570), ids}, status.ErrInvalidTensorDim},
		"no output type":  {PackedRows{Columns: 32}, nil, status.ErrInvalidParam},
		"output type":     {PackedRows{OutDataType: i8}, nil, status.ErrInvalidParam},
		"negative":        {PackedRows{OutDataType: f32, Columns: -1}, nil, status.ErrInvalidParam},
	} {
		op, err := operation.New(c.spec)
		if err == nil {
			_, err = op.InferShape(c.in)
		}
		assert.ErrorIs(t, err, c.code, name)
	}
}

func TestPackedRowsOutside(t *testing.T) {
	for _, bad := range []int32{-1, 8} {
		c := newContext(t)
		w, err := atbctx.FromFloats(c, f32, make([]float32, 64), 8, 8)
		require.NoError(t, err)
		p, err := PackWeight(t.Context(), c, w, true)
		require.NoError(t, err)
		ids, err := atbctx.FromSlice(c, []int32{2, bad}, 2)
		require.NoError(t, err)
		_, err = runOnce(t.Context(), c, PackedRows{}, p, ids)
		require.ErrorIs(t, err, status.ErrRuntimeFail)
		require.ErrorContains(t, err, "position 1")
	}
}
