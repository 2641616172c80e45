package matmul

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// eachLevel runs a test with every instruction set that the machine has.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run(level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			test(t)
		})
	}
}

// product describes a product for tests; zero types mean absent operands.
type product struct {
	x, out         tensor.DType
	b, wb, m, n, k int64
	p              Params
	stored         bool // w in the stored FractalNZ form
	rank2          bool // x of rank 2
	bias           tensor.DType
	scale          tensor.DType
	token, acc     bool
	special        bool // NaN and Inf among the elements
}

func (c product) String() string {
	return fmt.Sprintf("%s to %s b=%d/%d m=%d n=%d k=%d %+v stored=%t bias=%s scale=%s token=%t acc=%t",
		c.x, c.out, c.b, c.wb, c.m, c.n, c.k, c.p, c.stored, c.bias, c.scale, c.token, c.acc)
}

// data is a product with its values: exact in their types, as float64.
type data struct {
	product
	problem kernel.Problem
	in      [][]byte
	// xs is [b][m][k], ws [wb][n][k], biases and scales [wb][n].
	xs, ws, biases, scales, tokens, accs []float64
}

// encode stores values of a type.
func encode(t tensor.DType, v []float64) []byte {
	b := device.BytesOf(make([]uint64, (int64(len(v))*t.Size()+7)/8))[:int64(len(v))*t.Size()]
	for i, f := range v {
		switch t {
		case tensor.Float32:
			device.View[float32](b)[i] = float32(f)
		case tensor.Float16:
			device.View[tensor.F16](b)[i] = tensor.F16From(float32(f))
		case tensor.BFloat16:
			device.View[tensor.BF16](b)[i] = tensor.BF16From(float32(f))
		case tensor.Int8:
			device.View[int8](b)[i] = int8(f)
		case tensor.Int32:
			device.View[int32](b)[i] = int32(f)
		default: // 64-bit scales: f32 bits, with noise in the upper half
			device.View[uint64](b)[i] = uint64(math.Float32bits(float32(f))) | uint64(i)<<32
		}
	}
	return b
}

// decode reads values of a type.
func decode(t tensor.DType, b []byte) []float64 {
	v := make([]float64, int64(len(b))/t.Size())
	for i := range v {
		switch t {
		case tensor.Float32:
			v[i] = float64(device.View[float32](b)[i])
		case tensor.Float16:
			v[i] = float64(device.View[tensor.F16](b)[i].Float32())
		case tensor.BFloat16:
			v[i] = float64(device.View[tensor.BF16](b)[i].Float32())
		case tensor.Int8:
			v[i] = float64(device.View[int8](b)[i])
		case tensor.Int32:
			v[i] = float64(device.View[int32](b)[i])
		default:
			v[i] = float64(math.Float32frombits(uint32(device.View[uint64](b)[i])))
		}
	}
	return v
}

// draw returns n random values that are exact in type t.
func draw(r *rand.Rand, t tensor.DType, n int64) []float64 {
	v := make([]float64, n)
	for i := range v {
		switch t {
		case tensor.Int8:
			v[i] = float64(r.IntN(256) - 128)
		case tensor.Int32:
			v[i] = float64(r.IntN(2001) - 1000)
		default:
			v[i] = r.Float64()*4 - 2
		}
	}
	return decode(t, encode(t, v))
}

// newData draws the operands and lays them out.
func newData(c product, seed uint64) *data {
	r := rand.New(rand.NewPCG(seed, 77))
	d := &data{product: c, in: make([][]byte, Inputs)}
	d.problem = kernel.Problem{In: make([]tensor.Desc, Inputs), Out: make([]tensor.Desc, 1), Params: c.p}
	d.xs, d.ws = draw(r, c.x, c.b*c.m*c.k), draw(r, c.x, c.wb*c.n*c.k)
	if c.special {
		d.xs[r.Int64N(int64(len(d.xs)))] = math.NaN()
		d.ws[r.Int64N(int64(len(d.ws)))] = math.Inf(1)
	}
	d.layOutX()
	d.layOutW()
	set := func(i int, t tensor.DType, v []float64, dims ...int64) {
		d.problem.In[i], d.in[i] = tensor.Of(t, dims...), encode(t, v)
	}
	if c.bias != tensor.Undefined {
		d.biases = draw(r, c.bias, c.wb*c.n)
		set(Bias, c.bias, d.biases, c.wb, c.n)
	}
	if c.scale != tensor.Undefined {
		d.scales = draw(r, tensor.Float32, c.wb*c.n)
		set(Scale, c.scale, d.scales, c.wb, c.n)
	}
	if c.token {
		d.tokens = draw(r, tensor.Float32, c.m)
		set(TokenScale, tensor.Float32, d.tokens, c.m)
	}
	if c.acc {
		d.accs = draw(r, tensor.Float32, c.b*c.m*c.n)
		set(Acc, tensor.Float32, d.accs, c.b, c.m, c.n)
	}
	d.problem.Out[0] = tensor.Of(c.out, c.b, c.m, c.n)
	switch {
	case c.p.EinSum:
		d.problem.Out[0] = tensor.Of(c.out, c.m, c.b, c.n)
	case c.rank2:
		d.problem.Out[0] = tensor.Of(c.out, c.m, c.n)
	}
	return d
}

func (d *data) layOutX() {
	dims := []int64{d.b, d.m, d.k}
	index := func(b, i, k int64) int64 { return (b*d.m+i)*d.k + k }
	switch {
	case d.p.EinSum:
		dims = []int64{d.m, d.b, d.k}
		index = func(b, i, k int64) int64 { return (i*d.b+b)*d.k + k }
	case d.p.TransA:
		dims = []int64{d.b, d.k, d.m}
		index = func(b, i, k int64) int64 { return (b*d.k+k)*d.m + i }
	}
	if d.rank2 {
		dims = dims[1:]
	}
	v := make([]float64, len(d.xs))
	for b := range d.b {
		for i := range d.m {
			for k := range d.k {
				v[index(b, i, k)] = d.xs[(b*d.m+i)*d.k+k]
			}
		}
	}
	d.problem.In[X], d.in[X] = tensor.Of(d.x, dims...), encode(d.x, v)
}

func (d *data) layOutW() {
	rows, cols := d.k, d.n // of the matrix in memory
	if d.p.TransB {
		rows, cols = d.n, d.k
	}
	v := make([]float64, len(d.ws))
	for b := range d.wb {
		for j := range d.n {
			for k := range d.k {
				r, c := k, j
				if d.p.TransB {
					r, c = j, k
				}
				v[(b*rows+r)*cols+c] = d.ws[(b*d.n+j)*d.k+k]
			}
		}
	}
	desc := tensor.Of(d.x, d.wb, rows, cols)
	mem := encode(d.x, v)
	if d.wb == 1 {
		desc = tensor.Of(d.x, rows, cols)
	}
	if d.stored {
		block := tensor.NZBlock(d.x)
		flat := mem
		mem = make([]byte, len(flat))
		if err := tensor.PackNZ(mem, flat, d.wb, rows, cols, d.x); err != nil {
			panic(err)
		}
		desc = tensor.Of(d.x, d.wb, cols/block, rows, block)
		desc.Format = tensor.FractalNZ
	}
	d.problem.In[W], d.in[W] = desc, mem
}

// reference computes output element (b, i, j) in float64, and the largest error
// that f32 sums in any order and the roundings of the output may have.
func (d *data) reference(b, i, j int64) (want, tolerance float64) {
	wb := b % d.wb
	var sum, size float64
	x, w := d.xs[(b*d.m+i)*d.k:][:d.k], d.ws[(wb*d.n+j)*d.k:][:d.k]
	for k := range x {
		sum += x[k] * w[k]
		size += math.Abs(x[k] * w[k])
	}
	tolerance = size * 0x1p-24 * float64(min(d.k, chunkOf(d.k))+ceilDiv(d.k, chunkOf(d.k))+4)
	if d.x == tensor.Int8 {
		tolerance = 0
		if d.bias != tensor.Undefined {
			sum += d.biases[wb*d.n+j]
		}
		sum *= d.scales[wb*d.n+j]
		if d.token {
			sum *= d.tokens[i]
		}
		tolerance = math.Abs(sum) * 0x1p-22 // four roundings to f32
	} else if d.bias != tensor.Undefined {
		tolerance += math.Abs(sum) * halfUlp(d.bias)
		sum += d.biases[wb*d.n+j]
	}
	if d.acc {
		sum += d.accs[(b*d.m+i)*d.n+j]
	}
	return sum, (tolerance + math.Abs(sum)*halfUlp(d.out)) * 1.01
}

// halfUlp is the largest relative error of a rounding to type t.
func halfUlp(t tensor.DType) float64 {
	switch t {
	case tensor.Float16:
		return 0x1p-11
	case tensor.BFloat16:
		return 0x1p-8
	}
	return 0x1p-24
}

// check compares an output with the reference.
func (d *data) check(t *testing.T, got []byte) {
	t.Helper()
	vals := decode(d.out, got)
	require.Len(t, vals, int(d.b*d.m*d.n))
	for b := range d.b {
		for i := range d.m {
			for j := range d.n {
				at := (b*d.m+i)*d.n + j
				if d.p.EinSum {
					at = (i*d.b+b)*d.n + j
				}
				want, tol := d.reference(b, i, j)
				if math.IsNaN(want) || math.IsInf(want, 0) || math.Abs(want) > 65504 && d.out == tensor.Float16 {
					require.Equal(t, math.IsNaN(want), math.IsNaN(vals[at]), "%s at %d,%d,%d: want %v, got %v", d, b, i, j, want, vals[at])
					continue
				}
				require.InDelta(t, want, vals[at], tol, "%s at %d,%d,%d", d, b, i, j)
			}
		}
	}
}

// kernelCase makes a case of a kernel of Product.
func (d *data) kernelCase(k *kernel.Kernel) kerneltest.Case {
	c := kerneltest.Case{Kernel: k, Problem: d.problem, In: d.in}
	if d.acc {
		c.InPlace = map[int]int{0: Acc}
	}
	return c
}

// run runs the product with the kernel that takes it.
func (d *data) run(t *testing.T) []byte {
	t.Helper()
	k, _, err := Product.Select(&d.problem, kernel.Filter{})
	require.NoError(t, err, d.String())
	return kerneltest.Run(t, d.kernelCase(k))[0]
}

// runSplit runs Partial and Reduce.
func (d *data) runSplit(t *testing.T, o kernel.Options) []byte {
	t.Helper()
	s, err := shapeOf(&d.problem, d.p)
	require.NoError(t, err)
	part := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: []tensor.Desc{s.partialDesc(sumType(d.x))}, Params: d.p, Options: o}
	part.In[X], part.In[W] = d.problem.In[X], d.problem.In[W]
	k, _, err := Partial.Select(&part, kernel.Filter{})
	require.NoError(t, err, d.String())
	sums := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: part, In: [][]byte{d.in[X], d.in[W], nil, nil, nil, nil}})

	c := d.kernelCase(nil)
	c.Problem.In = append([]tensor.Desc{part.Out[0], {}}, d.problem.In[Bias:]...)
	c.In = append([][]byte{sums[0], nil}, d.in[Bias:]...)
	if s.batch != d.b && d.b > 1 { // the batch became rows
		c.Problem.Out = []tensor.Desc{tensor.Of(d.out, s.m, s.n)}
		c.Problem.Params = Params{}
	}
	c.Kernel, _, err = Reduce.Select(&c.Problem, kernel.Filter{})
	require.NoError(t, err, d.String())
	return kerneltest.Run(t, c)[0]
}

// runPacked runs Pack and a product with its output.
func (d *data) runPacked(t *testing.T) []byte {
	t.Helper()
	pack := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: []tensor.Desc{d.panels()}, Params: d.p}
	pack.In[W] = d.problem.In[W]
	k, _, err := Pack.Select(&pack, kernel.Filter{})
	require.NoError(t, err, d.String())
	packed := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: pack, In: [][]byte{nil, d.in[W], nil, nil, nil, nil}})

	c := d.kernelCase(nil)
	p := d.p
	p.TransB = true
	c.Problem.Params = p
	c.Problem.In = append([]tensor.Desc{d.problem.In[X], pack.Out[0]}, d.problem.In[Bias:]...)
	c.In = append([][]byte{d.in[X], packed[0]}, d.in[Bias:]...)
	c.Kernel, _, err = Product.Select(&c.Problem, kernel.Filter{})
	require.NoError(t, err, d.String())
	return kerneltest.Run(t, c)[0]
}

// panels describes the packed weights.
func (d *data) panels() tensor.Desc {
	desc := tensor.Of(d.x, d.n, d.k)
	if d.problem.In[W].Rank() > 2 {
		desc = tensor.Of(d.x, d.wb, d.n, d.k)
	}
	desc.Format = tensor.Panels
	return desc
}

// packed lays out weights in layout Panels, element by element.
func (d *data) packed() []byte {
	desc := d.panels()
	panel, step := tensor.PanelBytes(d.x, d.k), tensor.PanelStep(d.x)
	mem := device.BytesOf(make([]uint64, desc.Bytes()/8))
	panels := ceilDiv(d.n, 32)
	for b := range d.wb {
		for r := range d.n {
			at := (b*panels + r/32) * panel
			row := d.ws[(b*d.n+r)*d.k:][:d.k]
			sum := int32(0)
			for k := range d.k {
				i := k/step*32*step + r%32*step + k%step
				copy(mem[at+i*d.x.Size():][:d.x.Size()], encode(d.x, row[k:k+1]))
				sum += 128 * int32(row[k])
			}
			if d.x == tensor.Int8 {
				device.View[int32](mem[at+panel-128:])[r%32] = sum
			}
		}
	}
	return mem
}
