package shape

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernel/softmax"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

// counting gives the elements 0, 1, 2, ... of a float32 tensor.
func counting(d tensor.Desc) []byte {
	v := make([]float32, d.Numel())
	for i := range v {
		v[i] = float32(i)
	}
	return device.BytesOf(v)
}

func floats(b []byte) []float32 { return append([]float32(nil), device.View[float32](b)...) }

// values runs a spec on float32 inputs that count up and returns the outputs.
func values(t *testing.T, s operation.Spec, in ...tensor.Desc) [][]float32 {
	t.Helper()
	c := optest.Case{Spec: s, In: in}
	for i := range in {
		c.Data = append(c.Data, counting(in[i]))
	}
	var out [][]float32
	for _, b := range optest.Run(t, c).Out {
		out = append(out, floats(b))
	}
	return out
}

func TestTransposeValues(t *testing.T) {
	assert.Equal(t, [][]float32{{0, 3, 1, 4, 2, 5}}, values(t, Transpose{[]int64{1, 0}}, f32(2, 3)))
	assert.Equal(t, [][]float32{{0, 1, 4, 5, 2, 3, 6, 7}}, values(t, Transpose{[]int64{1, 0, 2}}, f32(2, 2, 2)))
	assert.Equal(t, [][]float32{{0, 1, 2, 3}}, values(t, Transpose{[]int64{1, 2, 0}}, f32(1, 2, 2)))
}

func TestConcatValues(t *testing.T) {
	assert.Equal(t, [][]float32{{0, 1, 0, 2, 3, 1}}, values(t, Concat{ConcatDim: 1}, f32(2, 2), f32(2, 1)))
	assert.Equal(t, [][]float32{{0, 1, 2, 3, 0, 1}}, values(t, Concat{ConcatDim: -2}, f32(2, 2), f32(1, 2)))
}

func TestSplitValues(t *testing.T) {
	two := values(t, Split{SplitDim: 1, SplitNum: 2}, f32(2, 6))
	three := values(t, Split{SplitDim: 1, SplitNum: 3}, f32(2, 6))
	assert.Equal(t, [][]float32{{0, 1, 2, 6, 7, 8}, {3, 4, 5, 9, 10, 11}}, two)
	assert.Equal(t, [][]float32{{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}, three)
	assert.Equal(t, [][]float32{{0}, {1, 2}, {3, 4, 5}}, values(t, Split{SplitNum: 3, SplitSizes: []int64{1, 2, 3}}, f32(6)))
}

func TestSplitIntoOutputsOfOtherShape(t *testing.T) {
	in := f16(4, 3)
	data := make([]byte, in.Bytes())
	for i := range data {
		data[i] = byte(i)
	}
	res := optest.Run(t, optest.Case{
		Spec: Split{SplitNum: 2}, Profile: operation.Board910B(),
		In: []tensor.Desc{in}, Data: [][]byte{data}, Out: []tensor.Desc{f16(6), f16(3, 2)},
	})
	assert.Equal(t, [][]byte{data[:12], data[12:]}, res.Out)
}

func TestSliceValues(t *testing.T) {
	assert.Equal(t, [][]float32{{5, 6, 9, 10}}, values(t, Slice{[]int64{1, 1}, []int64{-1, 2}}, f32(3, 4)))
	assert.Equal(t, [][]float32{{11}}, values(t, Slice{[]int64{-1, -1}, []int64{1, 1}}, f32(3, 4)))
	assert.Equal(t, [][]float32{{4, 5, 6, 7}}, values(t, Slice{[]int64{1, 0}, []int64{1, -1}}, f32(3, 4)))
}

func TestGatherValues(t *testing.T) {
	x, idx := f32(2, 3), i32(2, 2)
	res := optest.Run(t, optest.Case{
		Spec: Gather{Axis: 1, BatchDims: 1}, In: []tensor.Desc{x, idx},
		Data: [][]byte{counting(x), device.BytesOf([]int32{2, 0, 1, 1})},
	})
	assert.Equal(t, []float32{2, 0, 4, 4}, floats(res.Out[0]))
	res = optest.Run(t, optest.Case{
		Spec: Gather{}, In: []tensor.Desc{x, i32(3)},
		Data: [][]byte{counting(x), device.BytesOf([]int32{1, 1, 0})},
	})
	assert.Equal(t, []float32{3, 4, 5, 3, 4, 5, 0, 1, 2}, floats(res.Out[0]))
}

// TestGatherOutside checks that profile native reports an index that the board
// would not check, and that profile 910b gives zeros.
func TestGatherOutside(t *testing.T) {
	x, idx := f32(4, 2), i32(3)
	data := [][]byte{counting(x), device.BytesOf([]int32{1, 5, -1})}
	res := optest.Run(t, optest.Case{Spec: Gather{}, Profile: operation.Board910B(), In: []tensor.Desc{x, idx}, Data: data})
	assert.Equal(t, []float32{2, 3, 0, 0, 0, 0}, floats(res.Out[0]))

	env := &kernelgraph.Env{Machine: kernel.Machine{Cores: 1}, Copy: move.Copy}
	g, err := operation.Lower(Gather{}, operation.Native(), env, []tensor.Desc{x, idx}, []tensor.Desc{f32(3, 2)}, nil)
	require.NoError(t, err)
	n := g.Nodes[0]
	a := device.Args{Tiling: make([]byte, n.TilingSize), Blocks: 1, Buffers: []device.Buffer{
		device.Wrap(data[0]), device.Wrap(data[1]), device.Wrap(make([]byte, 24)),
	}}
	_, err = n.Kernel.Tile(&n.Problem, a.Tiling)
	require.NoError(t, err)
	err = n.Kernel.Program().Run(&a, 0)
	require.ErrorIs(t, err, status.ErrRuntimeFail)
	assert.ErrorContains(t, err, "index 5 at position 1 is outside 0 to 3")
}

// softmaxOf is the softmax of x over its middle axis in float64.
func softmaxOf(x []float32, outer, length, inner int) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		o, c := i/(length*inner), i%inner
		top, sum := math.Inf(-1), 0.0
		for k := range length {
			top = max(top, float64(x[(o*length+k)*inner+c]))
		}
		for k := range length {
			sum += math.Exp(float64(x[(o*length+k)*inner+c]) - top)
		}
		y[i] = math.Exp(float64(x[i])-top) / sum
	}
	return y
}

func TestSoftmaxValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	d := f32(2, 3, 4, 5)
	x := make([]float32, d.Numel())
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for _, c := range []struct {
		axes                 []int64
		outer, length, inner int
	}{
		{[]int64{0}, 1, 2, 60}, {[]int64{1, 2}, 2, 12, 5}, {[]int64{2, -1}, 6, 20, 1}, {[]int64{-1}, 24, 5, 1}, {[]int64{0, 1, 2, 3}, 1, 120, 1},
	} {
		res := optest.Run(t, optest.Case{Spec: Softmax{c.axes}, In: []tensor.Desc{d}, Data: [][]byte{device.BytesOf(x)}})
		for i, want := range softmaxOf(x, c.outer, c.length, c.inner) {
			require.InDelta(t, want, floats(res.Out[0])[i], 2e-7, "axes %v element %d", c.axes, i)
		}
	}
}

// TestSoftmaxOverFewLongRows checks that the launches that share rows between
// cores give the bits of one launch.
func TestSoftmaxOverFewLongRows(t *testing.T) {
	d := tensor.Of(tensor.Float16, 1, 5*softmax.Chunk+3)
	rng := rand.New(rand.NewPCG(5, 4))
	x := make([]tensor.F16, d.Numel())
	for i := range x {
		x[i] = tensor.F16From(float32(rng.NormFloat64()))
	}
	var nodes []int
	var out [][]byte
	for _, cores := range []int{1, 2} {
		res := optest.Run(t, optest.Case{
			Spec: Softmax{[]int64{1}}, In: []tensor.Desc{d}, Data: [][]byte{device.BytesOf(x)},
			Machine: kernel.Machine{Cores: cores, L1: 32 << 10, L2: 1 << 20},
		})
		nodes, out = append(nodes, len(res.Graph.Nodes)), append(out, res.Out[0])
	}
	assert.Equal(t, []int{1, 3}, nodes)
	assert.Equal(t, out[0], out[1])
}

func TestSortValues(t *testing.T) {
	x := f32(2, 5)
	res := optest.Run(t, optest.Case{
		Spec: Sort{Num: []int64{3}}, In: []tensor.Desc{x},
		Data: [][]byte{device.BytesOf([]float32{1, 7, 1, -2, 7, 0, float32(math.Inf(-1)), -1, -1, -3})},
	})
	assert.Equal(t, []float32{7, 7, 1, 0, -1, -1}, floats(res.Out[0]))
	assert.Equal(t, []int32{1, 4, 0, 0, 2, 3}, device.View[int32](res.Out[1])[:6])
}

func TestIndexAddValues(t *testing.T) {
	x, idx := f32(2, 3), device.BytesOf([]int32{2, 0, 2, 2})
	updates := device.BytesOf([]float32{1, 2, 3, 4, 10, 20, 30, 40})
	want := []float32{0 - 0.5*2, 1, 2 - 0.5*8, 3 - 0.5*20, 4, 5 - 0.5*80}
	for _, inPlace := range []map[int]int{nil, {0: 0}} {
		res := optest.Run(t, optest.Case{
			Spec: IndexAdd{IndexAddAll, 1}, In: []tensor.Desc{x, i32(4), f32(2, 4), f32(1)}, InPlace: inPlace,
			Data: [][]byte{counting(x), idx, updates, device.BytesOf([]float32{-0.5})},
		})
		assert.Equal(t, want, floats(res.Out[0]))
		if inPlace == nil {
			assert.Equal(t, counting(x), res.In[0], "var elsewhere stays as it is")
		}
		// Two updates of four count, and the others may name anything.
		res = optest.Run(t, optest.Case{
			Spec: IndexAdd{IndexType: IndexAddValid}, In: []tensor.Desc{x, i32(4), f32(4, 3), i32(1)}, InPlace: inPlace,
			Data: [][]byte{counting(x), device.BytesOf([]int32{1, 1, 9, -1}), counting(f32(4, 3)), device.BytesOf([]int32{2})},
		})
		assert.Equal(t, []float32{0, 1, 2, 6, 9, 12}, floats(res.Out[0]))
	}
}
