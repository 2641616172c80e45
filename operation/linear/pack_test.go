package linear

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

func panels(t tensor.DType, dims ...int64) tensor.Desc {
	d := tensor.Of(t, dims...)
	d.Format = tensor.Panels
	return d
}

// TestPackedWeightsGiveEqualBits multiplies with weights as they are stored and
// packed.
func TestPackedWeightsGiveEqualBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		for _, c := range []struct {
			l    Linear
			x, w tensor.Desc
			rest []tensor.Desc
		}{
			{Linear{TransposeB: true}, of(f32, 5, 70), of(f32, 40, 70), nil},
			{Linear{}, of(f32, 1, 600), of(f32, 600, 33), nil},
			{Linear{TransposeB: true}, of(bf16, 3, 71), of(bf16, 64, 71), nil},
			{Linear{}, of(bf16, 20, 16), of(bf16, 16, 5), nil},
			{Linear{TransposeB: true}, of(f16, 2, 9), of(f16, 31, 9), nil},
			{DefaultLinear(), of(f16, 2, 4, 65), of(f16, 2, 31, 65), []tensor.Desc{of(f16, 2, 31)}},
			{Linear{TransposeB: true, EnAccum: true}, of(bf16, 2, 9), of(bf16, 31, 9), []tensor.Desc{of(f32, 2, 31)}},
			{Linear{OutDataType: bf16, HasBias: true}, of(i8, 3, 77), of(i8, 77, 40), []tensor.Desc{of(i32, 40), of(f32, 40)}},
			{Linear{TransposeB: true, OutDataType: f16, QuantMode: QuantPerToken}, of(i8, 17, 32), of(i8, 64, 32), []tensor.Desc{of(f32, 64), of(f32, 17)}},
			{Linear{TransposeB: true, MatmulType: MatmulEinSum}, of(f32, 3, 2, 20), of(f32, 2, 35, 20), nil},
			{Linear{}, of(f32, 3, 32), nz(f32, 1, 3, 32, 16), nil},
		} {
			in := append([]tensor.Desc{c.x, c.w}, c.rest...)
			if c.w.Rank() == 4 {
				in[0] = of(f32, 1, 3, 32)
			}
			var data [][]byte
			for _, d := range in {
				data = append(data, randomFloats(r, d))
			}
			run := func(l Linear, in []tensor.Desc, data [][]byte) []byte {
				oc := optest.Case{Spec: l, In: in, Data: data}
				if l.EnAccum {
					oc.InPlace = map[int]int{0: thirdIn}
				}
				return optest.Run(t, oc).Out[0]
			}
			want := run(c.l, in, data)
			packed := optest.Run(t, optest.Case{Spec: Pack{TransposeB: c.l.TransposeB}, In: in[1:2], Data: data[1:2]})
			out := Pack{TransposeB: c.l.TransposeB}.outShape(&in[1])
			in[1] = tensor.Desc{DType: c.w.DType, Format: tensor.Panels, Shape: out}
			data[1] = packed.Out[0]
			l := c.l
			l.TransposeB = true
			assert.True(t, bytes.Equal(want, run(l, in, data)), "%v", in)
		}
	})
}

func TestPackRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		spec operation.Spec
		in   []tensor.Desc
		code status.Code
	}{
		"rank":           {Pack{}, []tensor.Desc{of(f32, 8)}, status.ErrInvalidTensorDimNum},
		"stored blocks":  {Pack{}, []tensor.Desc{nz(f32, 1, 2, 16, 8)}, status.ErrInvalidTensorDim},
		"type":           {Pack{}, []tensor.Desc{of(i32, 8, 8)}, status.ErrInvalidTensorIniMatch},
		"packed already": {Pack{}, []tensor.Desc{panels(f32, 8, 8)}, status.ErrInvalidTensorIniMatch},
		"x in panels":    {Linear{TransposeB: true}, []tensor.Desc{panels(f32, 8, 8), of(f32, 8, 8)}, status.ErrInvalidTensorIniMatch},
		"k differs":      {Linear{TransposeB: true}, []tensor.Desc{of(f32, 8, 9), panels(f32, 8, 8)}, status.ErrInvalidTensorDim},
	} {
		op, err := operation.New(c.spec)
		require.NoError(t, err)
		_, err = op.InferShape(c.in)
		assert.ErrorIs(t, err, c.code, name)
		_, err = op.InferShapeUnder(operation.Board910B(), c.in)
		assert.Error(t, err, name)
	}
	op, err := operation.New(Linear{TransposeB: true})
	require.NoError(t, err)
	_, err = op.InferShapeUnder(operation.Board910B(), []tensor.Desc{of(f16, 8, 8), panels(f16, 8, 8)})
	assert.ErrorIs(t, err, status.ErrInvalidTensorIniMatch, "the board has no such layout")
}

// newContext opens a context on the embedded device.
func newContext(t *testing.T) *atbctx.Context {
	t.Helper()
	dev, err := cpu.New()
	require.NoError(t, err)
	c, err := atbctx.New(dev)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, dev.Close())
	})
	return c
}

func TestPackWeight(t *testing.T) {
	c := newContext(t)
	w, err := atbctx.FromFloats(c, bf16, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	require.NoError(t, err)
	p, err := PackWeight(t.Context(), c, w, false)
	require.NoError(t, err)
	assert.Equal(t, panels(bf16, 2, 3), p.Desc)
	raw := make([]uint16, p.Desc.Bytes()/2)
	require.NoError(t, atbctx.Read(t.Context(), c, device.BytesOf(raw), &p))
	want := make([]uint16, len(raw)) // pairs along k, 32 columns, two of them there
	for i, v := range map[int]float32{0: 1, 1: 3, 2: 2, 3: 4, 64: 5, 66: 6} {
		want[i] = uint16(tensor.BF16From(v))
	}
	assert.Equal(t, want, raw)

	_, err = PackWeight(t.Context(), c, p, true)
	assert.ErrorIs(t, err, status.ErrInvalidTensorIniMatch)
	op, err := operation.New(Linear{})
	require.NoError(t, err)
	x, err := atbctx.FromFloats(c, bf16, []float32{1, 2}, 1, 2)
	require.NoError(t, err)
	y, err := atbctx.NewTensor(c, of(bf16, 1, 3))
	require.NoError(t, err)
	_, err = op.Setup(operation.VariantPack{In: []device.Tensor{x, p}, Out: []device.Tensor{y}}, c)
	assert.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "want transposeB")
	require.NoError(t, op.Close())
}

// TestPanelsKeepTheirShape checks that a graph does not cut packed weights.
func TestPanelsKeepTheirShape(t *testing.T) {
	op, err := operation.New(Linear{TransposeB: true})
	require.NoError(t, err)
	node := operation.Node{Op: op, In: []int{0, 1}, Out: []int{2}}
	for _, change := range []func(*operation.Node){
		func(n *operation.Node) { n.Chunk = []operation.Chunk{{}, {Num: 2}} },
		func(n *operation.Node) {
			n.Reshape = []operation.ReshapeFunc{nil, func(s tensor.Shape) tensor.Shape { return s }}
		},
	} {
		n := node
		change(&n)
		g, err := operation.NewGraph(operation.GraphParam{Inputs: 2, Outputs: 1, Nodes: []operation.Node{n}})
		require.NoError(t, err)
		_, err = g.InferShape([]tensor.Desc{of(f32, 4, 8), panels(f32, 64, 8)})
		assert.ErrorIs(t, err, status.ErrGraphNodeReshapeFail)
		assert.ErrorContains(t, err, "neither reshaped nor cut")
		op, err = operation.New(Linear{TransposeB: true})
		require.NoError(t, err)
		node.Op = op
	}
}
