package matmul

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// int4Data is a product with int4 weights and its values.
type int4Data struct {
	x, scale, bias tensor.DType
	m, n, k, group int64
	xs, ws         []float64 // [m][k]; [n][k], times their scales
	biases         []float64
	mem            [][]byte
	packed         []byte
	desc           tensor.Desc
}

func newInt4Data(t *testing.T, x, scale, bias tensor.DType, m, n, k, group int64, seed uint64) *int4Data {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	d := &int4Data{x: x, scale: scale, bias: bias, m: m, n: n, k: k, group: group, mem: make([][]byte, Inputs)}
	d.xs = draw(r, x, m*k)
	scales := draw(r, scale, n*k/group)
	bits := make([]byte, n*k/2)
	for i := range n * k {
		q := int8(r.IntN(16)) - 8
		bits[i/2] |= byte(q) & 15 << (4 * (i % 2))
		d.ws = append(d.ws, float64(q)*scales[i/k*(k/group)+i%k/group])
	}
	pack := kernel.Problem{In: make([]tensor.Desc, Inputs), Params: Int4Params{n}}
	pack.In[W], pack.In[Scale] = tensor.Of(tensor.Uint8, n, k/2), tensor.Of(scale, n, k/group)
	var err error
	d.desc, err = Int4Panels(Int4Params{n}, k, k/group, scale)
	require.NoError(t, err)
	pack.Out = []tensor.Desc{d.desc}
	in := make([][]byte, Inputs)
	in[W], in[Scale] = bits, encode(scale, scales)
	d.packed = kerneltest.Run(t, kerneltest.Case{Kernel: int4PackGo, Problem: pack, In: in})[0]
	d.mem[X], d.mem[W] = encode(x, d.xs), d.packed
	if bias != tensor.Undefined {
		d.biases = draw(r, bias, n)
		d.mem[Bias] = encode(bias, d.biases)
	}
	return d
}

func (d *int4Data) problem() kernel.Problem {
	p := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: []tensor.Desc{tensor.Of(d.x, d.m, d.n)}, Params: Int4Params{d.n}}
	p.In[X], p.In[W] = tensor.Of(d.x, d.m, d.k), d.desc
	if d.bias != tensor.Undefined {
		p.In[Bias] = tensor.Of(d.bias, d.n)
	}
	return p
}

func (d *int4Data) run(t *testing.T) []byte {
	t.Helper()
	p := d.problem()
	k, _, err := Int4Product.Select(&p, kernel.Filter{})
	require.NoError(t, err)
	return kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: d.mem})[0]
}

// check compares with float64: rounding x to int16 may cost half a step of its
// chunk, and sums are in f32.
func (d *int4Data) check(t *testing.T, got []byte) {
	t.Helper()
	chunk := min(roundUp(minChunk, d.group), d.k)
	vals := decode(d.x, got)
	for i := range d.m {
		for j := range d.n {
			x, w := d.xs[i*d.k:][:d.k], d.ws[j*d.k:][:d.k]
			var want, tolerance float64
			for from := int64(0); from < d.k; from += chunk {
				largest, size, weights := 0.0, 0.0, 0.0
				for k := from; k < min(from+chunk, d.k); k++ {
					want += x[k] * w[k]
					size += math.Abs(x[k] * w[k])
					largest = max(largest, math.Abs(x[k]))
					weights += math.Abs(w[k])
				}
				tolerance += size*0x1p-24*float64(chunk+8) + largest*weights*0x1p-16*1.01
			}
			if d.bias != tensor.Undefined {
				tolerance += math.Abs(want) * halfUlp(d.bias)
				want += d.biases[j]
			}
			tolerance += (math.Abs(want) + tolerance) * halfUlp(d.x) * 1.01
			require.InDelta(t, want, vals[i*d.n+j], tolerance, "%s m=%d n=%d k=%d group=%d at %d,%d", d.x, d.m, d.n, d.k, d.group, i, j)
		}
	}
}

func TestInt4Products(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for i, s := range [][4]int64{
			{1, 1, 8, 8}, {1, 33, 64, 32}, {1, 1100, 1032, 24}, {1, 600, 1088, 64}, {2, 32, 520, 8}, {5, 70, 1024, 128}, {6, 16, 96, 32}, {7, 31, 1200, 24}, {13, 65, 640, 64}, {40, 40, 2048, 1024},
		} {
			for j, x := range floats {
				bias := append([]tensor.DType{tensor.Undefined}, floats...)[(i+j)%4]
				d := newInt4Data(t, x, floats[(i+2*j)%3], bias, s[0], s[1], s[2], s[3], uint64(i))
				d.check(t, d.run(t))
			}
		}
	})
}

// TestInt4Rows checks that a row gives the same bits alone and in a batch, that
// rows of zeros give zeros, and that one with a NaN or an infinity gives NaN and
// disturbs no other.
func TestInt4Rows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		const m, n, k = 15, 40, 1088
		all := newInt4Data(t, tensor.Float32, tensor.Float16, tensor.Undefined, m, n, k, 32, 3)
		for c := range int64(k) {
			all.xs[4*k+c] = 0
		}
		all.xs[5*k+700], all.xs[7*k] = math.Inf(-1), math.NaN()
		all.mem[X] = encode(tensor.Float32, all.xs)
		got := all.run(t)
		vals := decode(tensor.Float32, got)
		for i := range int64(m) {
			one := *all
			one.m, one.mem = 1, append([][]byte(nil), all.mem...)
			one.mem[X] = all.mem[X][4*i*k : 4*(i+1)*k]
			row := got[4*i*n : 4*(i+1)*n]
			if i == 5 || i == 7 {
				if cpu.Active() != cpu.None || i == 7 {
					for _, v := range vals[i*n : (i+1)*n] {
						require.True(t, v != v, "row %d: %v", i, v)
					}
				}
				continue
			}
			require.True(t, bytes.Equal(row, one.run(t)), "row %d", i)
			if i == 4 {
				require.Equal(t, make([]float64, n), vals[i*n:(i+1)*n])
			}
		}
	})
}

// TestInt4Extremes multiplies with all 16 weights, the largest and the smallest
// x, in the longest group.
func TestInt4Extremes(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, size := range []float64{1, 0x1p-90, 0x1p-130, 0x1p100} {
			d := newInt4Data(t, tensor.Float32, tensor.Float32, tensor.Undefined, 2, 16, maxGroup, maxGroup, 9)
			for i := range d.xs {
				d.xs[i] = size
			}
			d.mem[X] = encode(tensor.Float32, d.xs)
			got := decode(tensor.Float32, d.run(t))
			for j := range d.n {
				want, weights := 0.0, 0.0
				for _, w := range d.ws[j*d.k:][:d.k] {
					want += w * size
					weights += math.Abs(w)
				}
				require.InDelta(t, want, got[j], weights*(size*0x1p-11+0x1p-115), "x = %g", size)
			}
		}
	})
}

func TestInt4Refusals(t *testing.T) {
	good := newInt4Data(t, tensor.Float16, tensor.Float16, tensor.Undefined, 3, 40, 64, 32, 1)
	for name, spoil := range map[string]func(p *kernel.Problem){
		"columns": func(p *kernel.Problem) { p.Params = Int4Params{70} },
		"none":    func(p *kernel.Problem) { p.Params = Int4Params{0} },
		"groups":  func(p *kernel.Problem) { p.In[W].Shape = p.In[W].Shape.With(1, 1) },
		"bytes":   func(p *kernel.Problem) { p.In[W].Shape = p.In[W].Shape.With(2, 577) },
		"wide k":  func(p *kernel.Problem) { p.In[X] = tensor.Of(tensor.Float16, 3, 128) },
		"k":       func(p *kernel.Problem) { p.In[X] = tensor.Of(tensor.Float16, 3, 72) },
		"type":    func(p *kernel.Problem) { p.In[X].DType = tensor.Int8 },
		"weights": func(p *kernel.Problem) { p.In[W].DType = tensor.Int8 },
		"output":  func(p *kernel.Problem) { p.Out[0] = tensor.Of(tensor.Float16, 3, 41) },
		"bias":    func(p *kernel.Problem) { p.In[Bias] = tensor.Of(tensor.Float16, 41) },
		"scale":   func(p *kernel.Problem) { p.In[Scale] = tensor.Of(tensor.Float16, 40, 2) },
	} {
		p := good.problem()
		spoil(&p)
		_, _, err := Int4Product.Select(&p, kernel.Filter{})
		assert.Error(t, err, name)
	}
	for _, c := range [][3]int64{{32, 40, 3}, {32, 0, 1}, {32, 24, 2}, {32, 1 << 20, 1}, {math.MaxInt64, 8, 1}, {1, math.MaxInt64 &^ 7, 1}, {1 << 37, 1 << 37, 1 << 30}} {
		_, err := Int4Panels(Int4Params{c[0]}, c[1], c[2], tensor.Float32)
		assert.Error(t, err, "%v", c)
	}
}
