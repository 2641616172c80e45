package elementwise

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/tensor"
)

// castTypes are the real element types.
var castTypes = []tensor.DType{
	tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Bool,
	tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
}

// extremes are values around the ends of integer types.
var extremes = []float64{
	0, 0.5, -0.5, 1.9, -1.9, 126.9, 127, 128, -128, -128.9, -129, 255, 255.5, 256, 32767.5, -32769, 65535, 65536, 65519, 65520,
	1 << 31, -(1 << 31), 1<<31 - 128, 1 << 32, 1 << 62, math.Ldexp(1, 63), -math.Ldexp(1, 63), math.Ldexp(1, 64),
	1e30, -1e30, math.Inf(1), math.Inf(-1), math.NaN(), 1e-30,
}

func castInput(d tensor.DType, seed uint64, n int64) []byte {
	switch {
	case d == tensor.Bool:
		b := ints(seed, d, n)
		for i := range b {
			b[i] &= 1
		}
		return b
	case d.IsFloat():
		b, _ := normals(seed, d, n, 300)
		copy(b, tensor.FromFloat64s(d, extremes)[:min(int(d.Size())*len(extremes), len(b))])
		return b
	}
	return ints(seed, d, n)
}

func TestCastFollowsConvert(t *testing.T) {
	for _, from := range castTypes {
		for _, to := range castTypes {
			for i, n := range []int64{65, 1100} {
				src := castInput(from, uint64(i), n)
				want := make([]byte, n*to.Size())
				require.NoError(t, tensor.Convert(want, to, src, from))
				p := kernel.Problem{In: []tensor.Desc{tensor.Of(from, n)}, Out: []tensor.Desc{tensor.Of(to, n)}, Params: struct{}{}}
				got := run(t, Cast, p, [][]byte{src}, nil)[0]
				require.Equal(t, want, got, "%s to %s", from, to)
				if from.Size() == to.Size() {
					require.Equal(t, want, run(t, Cast, p, [][]byte{src}, map[int]int{0: 0})[0], "%s to %s in place", from, to)
				}
			}
		}
	}
}

func TestCastChoosesTheLoops(t *testing.T) {
	for _, c := range []struct {
		from, to tensor.DType
		want     *kernel.Kernel
	}{
		{tensor.Float16, tensor.BFloat16, castLoops}, {tensor.Int32, tensor.Int64, castLoops}, {tensor.Float32, tensor.Int32, castLoops},
		{tensor.Int64, tensor.BFloat16, castAny}, {tensor.Uint64, tensor.Float32, castAny}, {tensor.Float64, tensor.Float16, castAny},
	} {
		p := kernel.Problem{In: []tensor.Desc{tensor.Of(c.from, 4)}, Out: []tensor.Desc{tensor.Of(c.to, 4)}, Params: struct{}{}}
		k, _, err := Cast.Select(&p, kernel.Filter{})
		require.NoError(t, err)
		assert.Same(t, c.want, k, "%s to %s", c.from, c.to)
	}
}

func TestCastRefusesComplexToReal(t *testing.T) {
	p := kernel.Problem{In: []tensor.Desc{tensor.Of(tensor.Complex64, 4)}, Out: []tensor.Desc{tensor.Of(tensor.Float32, 4)}, Params: struct{}{}}
	_, _, err := Cast.Select(&p, kernel.Filter{})
	assert.Error(t, err)
}

// quantRef rounds half to even and clamps; NaN is 0.
func quantRef(v, low float64) byte {
	if math.IsNaN(v) {
		return 0
	}
	return byte(int8(math.RoundToEven(min(max(v, low), 127))))
}

func TestQuantMul(t *testing.T) {
	for _, d := range floatTypes {
		for i, n := range lengths {
			data, x := normals(uint64(i), d, n, 100)
			for _, neg127 := range []bool{false, true} {
				p := kernel.Problem{
					In: []tensor.Desc{tensor.Of(d, n)}, Out: []tensor.Desc{tensor.Of(tensor.Int8, n)},
					Params: QuantMulParams{Scale: 1.25, Offset: -3}, Options: kernel.Options{QuantMinNeg127: neg127},
				}
				low := -128.0
				if neg127 {
					low = -127
				}
				got := run(t, QuantMul, p, [][]byte{data}, nil)[0]
				for j, v := range x {
					require.Equal(t, quantRef(v*1.25-3, low), got[j], "%s: %v", d, v)
				}
			}
		}
	}
}

func TestQuantDivAndDequantize(t *testing.T) {
	for _, d := range floatTypes {
		for i, c := range broadcastCases {
			if tensor.ShapeOf(c.a...) != tensor.ShapeOf(c.out...) {
				continue
			}
			x, per := tensor.Of(d, c.out...), tensor.Of(d, c.b...)
			data, v := normals(uint64(i), d, x.Numel(), 60)
			dataS, s := normals(uint64(i)+1, d, per.Numel(), 1)
			for j := range s {
				s[j] = math.Abs(s[j]) + 0.1
			}
			dataS, s = encode(d, s)
			offset := tensor.Of(tensor.Int8, c.b...)
			dataO := ints(uint64(i), tensor.Int8, per.Numel())
			for _, there := range []bool{true, false} {
				o := decode(tensor.Int8, dataO)
				in, descs := [][]byte{data, dataS, dataO}, []tensor.Desc{x, per, offset}
				if !there {
					o, in[2], descs[2] = make([]float64, len(o)), nil, tensor.Desc{}
				}
				q := tensor.Of(tensor.Int8, c.out...)
				p := kernel.Problem{In: descs, Out: []tensor.Desc{q}, Params: struct{}{}}
				got := run(t, QuantDiv, p, in, nil)[0]
				want := make([]float64, x.Numel())
				for j := range v {
					e := element(x.Shape, per.Shape, int64(j))
					require.Equal(t, quantRef(v[j]/s[e]+o[e], -128), got[j], "%s element %d", d, j)
					want[j] = (float64(int8(got[j])) - o[e]) * s[e]
					if d == tensor.Float16 {
						want[j] = min(max(want[j], -65504), 65504)
					}
				}
				p = kernel.Problem{In: []tensor.Desc{q, per, descs[2]}, Out: []tensor.Desc{x}, Params: struct{}{}}
				back := run(t, Dequantize, p, [][]byte{got, dataS, in[2]}, nil)[0]
				requireRounded(t, d, want, decode(d, back), 0.001, "dequantize "+d.String())
			}
		}
	}
}

func TestDequantizeSaturatesF16(t *testing.T) {
	in := []tensor.Desc{tensor.Of(tensor.Int8, 2), tensor.Of(tensor.Float16, 1), {}}
	p := kernel.Problem{In: in, Out: []tensor.Desc{tensor.Of(tensor.Float16, 2)}, Params: struct{}{}}
	got := run(t, Dequantize, p, [][]byte{{127, 0x80}, tensor.FromFloat64s(tensor.Float16, []float64{1000}), nil}, nil)[0]
	assert.Equal(t, []float64{65504, -65504}, decode(tensor.Float16, got))
}

func TestQuantDynamic(t *testing.T) {
	for _, d := range floatTypes {
		for i, s := range [][]int64{{1, 1}, {3, 5}, {2, 7, 64}, {70, 33}, {2, 4097}} {
			x := tensor.Of(d, s...)
			width := x.Dim(-1)
			rows := x.Numel() / width
			r := make([]float64, x.Numel())
			_, v := normals(uint64(i), d, x.Numel(), 4)
			for j := range r {
				if !math.IsInf(v[j], 0) {
					r[j] = v[j]
				}
			}
			clear(r[:width]) // row 0 is zero
			data, v := encode(d, r)
			p := kernel.Problem{
				In: []tensor.Desc{x}, Out: []tensor.Desc{tensor.Of(tensor.Int8, s...), tensor.Of(tensor.Float32, rows)},
				Params: struct{}{},
			}
			out := run(t, QuantDynamic, p, [][]byte{data}, nil)
			scale := decode(tensor.Float32, out[1])
			for row := range rows {
				top := 0.0
				for _, e := range v[row*width : (row+1)*width] {
					if math.Abs(e) > top {
						top = math.Abs(e)
					}
				}
				require.InDelta(t, top/127, scale[row], top*0x1p-24, "scale of row %d", row)
				for j, e := range v[row*width : (row+1)*width] {
					want := byte(0)
					if top > 0 {
						want = quantRef(e*127/top, -127)
					}
					require.Equal(t, want, out[0][row*width+int64(j)], "%s row %d element %d", d, row, j)
				}
			}
		}
	}
}
