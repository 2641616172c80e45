package llama

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/linear"
	"goatb/tensor"
)

// nativeContext is a context on a CPU device that no variable reaches.
func nativeContext(t *testing.T, opts ...atb.Option) *atb.Context {
	t.Helper()
	dev, err := cpu.New()
	require.NoError(t, err)
	c, err := atb.NewContext(dev, append([]atb.Option{atb.WithEnv(func(string) (string, bool) { return "", false })}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(c.Close(), dev.Close())) })
	return c
}

// tallConfig has matrices that pass in several slabs: the classifier, and w1 above
// w3, whose border lies inside of a panel. 48 columns make no whole groups of int4.
func tallConfig() Config {
	return Config{Dim: 32, Hidden: 17008, Layers: 1, Heads: 4, KVHeads: 2, Vocab: 40003, MaxSeq: 8, Epsilon: 1e-5, RopeBase: 10000, SharedClassifier: true}
}

// TestSlabsMakeTheWholeMatrix loads in slabs and compares with matrices that were
// packed in one piece.
func TestSlabsMakeTheWholeMatrix(t *testing.T) {
	w, err := Random(tallConfig(), 3)
	require.NoError(t, err)
	c := nativeContext(t)
	bytesOf := func(x atb.Tensor) []byte {
		b := make([]byte, x.Data.Size())
		require.NoError(t, atb.Read(t.Context(), c, b, &x))
		return b
	}
	stacked := append(append([]float32(nil), w.Layers[0].W1...), w.Layers[0].W3...)
	for _, f := range []Format{{DType: tensor.Float32}, {DType: tensor.BFloat16}, {DType: tensor.BFloat16, Weights: Int8}, {DType: tensor.Float16, Weights: Int4}} {
		m, err := UploadAs(c, w, f)
		require.NoError(t, err)
		for _, x := range []struct {
			got  matrix
			data []float32
		}{{m.classifier, w.Embedding}, {m.layers[0].matrices[gateUp], stacked}} {
			require.Greater(t, x.got.rows, int64(slab/32), "more than a slab")
			rows, cols := x.got.rows, x.got.cols
			var whole atb.Tensor
			switch f.Weights {
			case AsActivations:
				plain, err := atb.FromFloats(c, f.DType, x.data, rows, cols)
				require.NoError(t, err)
				whole, err = linear.PackWeight(t.Context(), c, plain, true)
				require.NoError(t, err)
			case Int8:
				q, scales := make([]int8, len(x.data)), make([]float32, rows)
				for r := range rows {
					for _, v := range x.data[r*cols : (r+1)*cols] {
						scales[r] = max(scales[r], float32(math.Abs(float64(v))))
					}
					for i, v := range x.data[r*cols : (r+1)*cols] {
						q[r*cols+int64(i)] = int8(math.RoundToEven(float64(v * (127 / scales[r]))))
					}
					scales[r] /= 127
				}
				plain, err := atb.FromSlice(c, q, rows, cols)
				require.NoError(t, err)
				whole, err = linear.PackWeight(t.Context(), c, plain, true)
				require.NoError(t, err)
				got, err := atb.ToFloats(t.Context(), c, x.got.tensors[1])
				require.NoError(t, err)
				require.InDeltaSlice(t, scales, got, 1e-9)
			case Int4:
				bits, scales := make([]byte, len(x.data)/2), make([]tensor.F16, int(rows*cols)/int4Group)
				roundInt4(bits, scales, x.data)
				w4, err := atb.FromSlice(c, bits, rows, cols/2)
				require.NoError(t, err)
				s4, err := atb.FromSlice(c, scales, rows, cols/int4Group)
				require.NoError(t, err)
				whole, err = linear.PackInt4Weight(t.Context(), c, w4, s4)
				require.NoError(t, err)
			}
			require.Equal(t, whole.Desc, x.got.tensors[0].Desc)
			want, got := bytesOf(whole), bytesOf(x.got.tensors[0])
			same := 0
			for i := range want {
				if want[i] == got[i] {
					same++
				}
			}
			// Rounding of a half may fall either way in int8: x·(127/largest) is rounded twice.
			least := len(want)
			if f.Weights == Int8 {
				least -= len(want) / 1000
			}
			assert.GreaterOrEqual(t, same, least, "%s %s", f.DType, f.Weights)
		}
		require.NoError(t, m.Close())
	}
}

// TestRoundInt4 holds groups against float64: an element may be off by half a step,
// or by a whole one at the end of the range that has no -8.
func TestRoundInt4(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	x := make([]float32, 4*int4Group)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	clear(x[2*int4Group : 3*int4Group])
	x[3*int4Group] = 3e6 // beyond what an f16 scale reaches
	bits, scales := make([]byte, len(x)/2), make([]tensor.F16, 4)
	roundInt4(bits, scales, x)
	for i, v := range x[:3*int4Group] {
		q := float64(int8(bits[i/2]>>(4*(i%2))<<4) >> 4)
		s := float64(scales[i/int4Group].Float32())
		off := 0.502 * math.Abs(s)
		if q == 7 {
			off = 1.002 * math.Abs(s)
		}
		require.InDelta(t, v, q*s, off, "element %d", i)
	}
	assert.Zero(t, scales[2].Float32())
	assert.Equal(t, tensor.F16From(-65504), scales[3])
	assert.Equal(t, byte(8), bits[3*int4Group/2]&15, "the largest is -8 times its scale")
}

func TestUploadAsRefuses(t *testing.T) {
	w, err := Random(Config{Dim: 32, Hidden: 32, Layers: 1, Heads: 4, KVHeads: 2, Vocab: 40, MaxSeq: 8, Epsilon: 1e-5, RopeBase: 10000}, 3)
	require.NoError(t, err)
	c := nativeContext(t)
	for _, f := range []Format{{DType: tensor.Int8}, {}, {DType: tensor.Float32, Weights: Int4 + 1}} {
		_, err := UploadAs(c, w, f)
		assert.ErrorContains(t, err, "upload: want", "%+v", f)
	}
	_, err = UploadAs(nativeContext(t, atb.WithChecks("910b")), w, Format{DType: tensor.Float32, Weights: Int8})
	assert.ErrorContains(t, err, "native checks")
	_, err = UploadAs(c, (*Weights)(nil), Format{DType: tensor.Float32})
	assert.Error(t, err)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		w.Layers[0].W3[5*32+7] = bad
		for _, f := range []WeightFormat{Int8, Int4} {
			_, err := UploadAs(c, w, Format{DType: tensor.Float32, Weights: f})
			assert.ErrorContains(t, err, "row 37, column 7", "%s of %g", f, bad)
		}
	}
	w.Layers[0].W3 = w.Layers[0].W3[1:]
	_, err = UploadAs(c, w, Format{DType: tensor.Float32})
	assert.ErrorContains(t, err, "want 32 x 32 elements")
}

// TestSeededRowsAreFunctionsOfTheSeed reads rows alone, together and twice.
func TestSeededRowsAreFunctionsOfTheSeed(t *testing.T) {
	c := tallConfig()
	s, err := NewSeeded(c, 5)
	require.NoError(t, err)
	other, err := NewSeeded(c, 6)
	require.NoError(t, err)
	var mean, square float64
	all := make([]float32, 100*32)
	require.NoError(t, s.Rows(all, Embedding, 0, 7))
	for i := range 100 {
		row, far := make([]float32, 32), make([]float32, 32)
		require.NoError(t, s.Rows(row, Embedding, 0, 7+i))
		require.Equal(t, all[i*32:(i+1)*32], row)
		require.NoError(t, other.Rows(far, Embedding, 0, 7+i))
		require.NotEqual(t, row, far)
		require.NoError(t, s.Rows(far, WQ, 0, i%32))
		require.NotEqual(t, row, far)
		for _, v := range row {
			mean, square = mean+float64(v)/3200, square+float64(v*v)/3200
		}
	}
	assert.InDelta(t, 0, mean, 0.05)
	assert.InDelta(t, 0.25, square, 0.02)
	for _, bad := range []struct {
		n       int
		t       Tensor
		l, from int
	}{{32, Embedding, 0, c.Vocab}, {31, Embedding, 0, 0}, {32, WQ, 1, 0}, {32, WQ, -1, 0}, {32, tensors, 0, 0}, {64, FinalNorm, 0, 0}, {32, WQ, 0, -1}} {
		assert.Error(t, s.Rows(make([]float32, bad.n), bad.t, bad.l, bad.from), "%+v", bad)
	}
}

func TestParseWeightFormat(t *testing.T) {
	for _, f := range []WeightFormat{AsActivations, Int8, Int4} {
		got, err := ParseWeightFormat(f.String())
		require.NoError(t, err)
		assert.Equal(t, f, got)
	}
	_, err := ParseWeightFormat("int2")
	assert.ErrorContains(t, err, "int8, int4")
	assert.Equal(t, "WeightFormat(9)", WeightFormat(9).String())
}
