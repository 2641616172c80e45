package elementwise

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/tensor"
)

func silu(x float64) float64 {
	if x < -700 {
		return 0
	}
	return x * sigmoid(x)
}

// halves are rows and half widths around pieces.
var halves = [][2]int64{{1, 1}, {3, 5}, {7, 64}, {2, 1024}, {1, 5000}, {33, 100}}

func TestSwiGLU(t *testing.T) {
	for _, d := range floatTypes {
		for i, s := range halves {
			rows, h := s[0], s[1]
			data, x := normals(uint64(i), d, rows*2*h, 4)
			want := make([]float64, rows*h)
			for j := range want {
				r, c := int64(j)/h, int64(j)%h
				want[j] = silu(x[r*2*h+c]) * x[r*2*h+h+c]
			}
			p := kernel.Problem{In: []tensor.Desc{tensor.Of(d, rows, 2*h)}, Out: []tensor.Desc{tensor.Of(d, rows, h)}, Params: struct{}{}}
			slack := halfSlack(d)
			if d == tensor.Float32 {
				slack = 3.5 // package vec's silu and a product
			}
			requireRounded(t, d, want, decode(d, run(t, SwiGLU, p, [][]byte{data}, nil)[0]), slack, "swiglu")
		}
	}
}

func TestSwiGLUGrad(t *testing.T) {
	for _, d := range floatTypes {
		for i, s := range halves {
			rows, h := s[0], s[1]
			data, x := normals(uint64(i), d, rows*2*h, 4)
			grad, dy := normals(uint64(i)+20, d, rows*h, 4)
			p := kernel.Problem{In: []tensor.Desc{tensor.Of(d, rows, h), tensor.Of(d, rows, 2*h)}, Out: []tensor.Desc{tensor.Of(d, rows, 2*h)}, Params: struct{}{}}
			out := run(t, SwiGLUGrad, p, [][]byte{grad, data}, nil)
			got := decode(d, out[0])
			for j, y := range dy {
				first := int64(j)/h*2*h + int64(j)%h
				a, b := x[first], x[first+h]
				gate := min(max(a, -300), 300)
				s := sigmoid(gate)
				share := y * float64(float32(s)) // which is 0 for far gates
				// 1+gate·(1-s) cancels near its zero at -1.28.
				requireNear(t, d, share*b*(1+gate*(1-s)), got[first], share*b, "gradient of the gate")
				requireNear(t, d, share*max(a, -300), got[first+h], 0, "gradient of the other")
			}
			assert.Equal(t, out, run(t, SwiGLUGrad, p, [][]byte{grad, data}, map[int]int{0: 1}), "in place of x")
		}
	}
}

// requireNear checks a gradient: off by some last places, and by as many of a
// term that cancels.
func requireNear(t *testing.T, d tensor.DType, want, got, term float64, what string) {
	t.Helper()
	rounded := decode(d, tensor.FromFloat64s(d, []float64{want}))[0]
	if math.IsNaN(want) || math.IsInf(rounded, 0) || math.IsInf(got, 0) {
		require.Equal(t, fmt.Sprint(rounded), fmt.Sprint(got), what)
		return
	}
	places := 0.53
	if d == tensor.Float32 {
		places = 6
	}
	require.LessOrEqual(t, math.Abs(got-want), places*lastPlace(d, want)+4*lastPlace(tensor.Float32, term), "%s: want %v, got %v", what, want, got)
}

func TestFirstHalfIsTheGate(t *testing.T) {
	p := kernel.Problem{In: []tensor.Desc{tensor.Of(tensor.Float32, 1, 2)}, Out: []tensor.Desc{tensor.Of(tensor.Float32, 1, 1)}, Params: struct{}{}}
	out := run(t, SwiGLU, p, [][]byte{tensor.FromFloat64s(tensor.Float32, []float64{1, 2})}, nil)
	assert.InDelta(t, 1.4621172, decode(tensor.Float32, out[0])[0], 1e-7)
}

func TestSwiGLURefuses(t *testing.T) {
	d := func(dims ...int64) tensor.Desc { return tensor.Of(tensor.Float32, dims...) }
	for _, c := range []struct {
		table   kernel.Table
		in, out []tensor.Desc
	}{
		{SwiGLU, []tensor.Desc{d(4)}, []tensor.Desc{d(4)}},
		{SwiGLU, []tensor.Desc{d(5)}, []tensor.Desc{d(2)}},
		{SwiGLU, []tensor.Desc{d(4)}, []tensor.Desc{tensor.Of(tensor.Float16, 2)}},
		{SwiGLUGrad, []tensor.Desc{d(2, 2), d(2, 4)}, []tensor.Desc{d(2, 2)}},
		{SwiGLUGrad, []tensor.Desc{d(2, 2)}, []tensor.Desc{d(2, 4)}},
	} {
		p := kernel.Problem{In: c.in, Out: c.out, Params: struct{}{}}
		_, _, err := c.table.Select(&p, kernel.Filter{})
		assert.Error(t, err, "%v -> %v", c.in, c.out)
	}
}
