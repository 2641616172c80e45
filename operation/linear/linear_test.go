package linear

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

const (
	f32  = tensor.Float32
	f16  = tensor.Float16
	bf16 = tensor.BFloat16
	i8   = tensor.Int8
	i32  = tensor.Int32
)

func of(t tensor.DType, dims ...int64) tensor.Desc { return tensor.Of(t, dims...) }

func nz(t tensor.DType, dims ...int64) tensor.Desc {
	d := tensor.Of(t, dims...)
	d.Format = tensor.FractalNZ
	return d
}

func TestValidate(t *testing.T) {
	float := Linear{TransposeB: true}
	with := func(l Linear, change func(*Linear)) Linear { change(&l); return l }
	quant := with(float, func(l *Linear) { l.OutDataType = f16 })
	for name, c := range map[string]struct {
		l  Linear
		ok bool
	}{
		"defaults":              {DefaultLinear(), true},
		"accumulate":            {with(float, func(l *Linear) { l.EnAccum = true }), true},
		"accumulate and bias":   {with(DefaultLinear(), func(l *Linear) { l.EnAccum = true }), false},
		"dequantise":            {quant, true},
		"to f32":                {with(quant, func(l *Linear) { l.OutDataType = f32 }), true},
		"to int8":               {with(quant, func(l *Linear) { l.OutDataType = i8 }), false},
		"per channel":           {with(quant, func(l *Linear) { l.QuantMode = QuantPerChannel }), true},
		"per token":             {with(quant, func(l *Linear) { l.QuantMode = QuantPerToken }), true},
		"per token and bias":    {with(quant, func(l *Linear) { l.QuantMode, l.HasBias = QuantPerToken, true }), false},
		"float and quant mode":  {with(float, func(l *Linear) { l.QuantMode = QuantPerChannel }), false},
		"quant mode 3":          {with(quant, func(l *Linear) { l.QuantMode = 3 }), false},
		"negative quant mode":   {with(quant, func(l *Linear) { l.QuantMode = -1 }), false},
		"int8 accumulate":       {with(quant, func(l *Linear) { l.EnAccum = true }), false},
		"einsum":                {with(float, func(l *Linear) { l.MatmulType = MatmulEinSum }), true},
		"einsum and bias":       {with(DefaultLinear(), func(l *Linear) { l.MatmulType = MatmulEinSum }), false},
		"einsum and transposeA": {with(float, func(l *Linear) { l.MatmulType, l.TransposeA = MatmulEinSum, true }), false},
		"einsum and accumulate": {with(float, func(l *Linear) { l.MatmulType, l.EnAccum = MatmulEinSum, true }), false},
		"einsum and quantised":  {with(quant, func(l *Linear) { l.MatmulType = MatmulEinSum }), false},
		"matmul type 2":         {with(float, func(l *Linear) { l.MatmulType = 2 }), false},
		"negative matmul type":  {with(float, func(l *Linear) { l.MatmulType = -1 }), false},
	} {
		err := c.l.Validate()
		if c.ok {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorIs(t, err, status.ErrInvalidParam, name)
		}
	}
}

func TestDecode(t *testing.T) {
	s, err := operation.Decode([]byte(`{"transposeA":true,"transposeB":false,"hasBias":false,"outDataType":27,"enAccum":false,"matmulType":0,"quantMode":2,"rsv":[0]}`), DefaultLinear())
	require.NoError(t, err)
	assert.Equal(t, Linear{TransposeA: true, OutDataType: bf16, QuantMode: QuantPerToken}, s)
	s, err = operation.Decode([]byte(`{"outDataType":-1}`), DefaultLinear())
	require.NoError(t, err)
	assert.Equal(t, DefaultLinear(), s)
}

// TestChecks lists each check with the first descriptor that fails it, on
// profile native unless the case says otherwise.
func TestChecks(t *testing.T) {
	float, biased := Linear{TransposeB: true}, DefaultLinear()
	accum := Linear{TransposeB: true, EnAccum: true}
	einsum := Linear{TransposeB: true, MatmulType: MatmulEinSum}
	token := Linear{TransposeB: true, OutDataType: f16, QuantMode: QuantPerToken}
	dequant := Linear{TransposeB: true, OutDataType: f16}
	type descs = []tensor.Desc
	for name, c := range map[string]struct {
		l     Linear
		in    descs
		code  status.Code
		board bool
	}{
		"fits":                      {float, descs{of(f32, 2, 3), of(f32, 4, 3)}, status.OK, false},
		"missing bias":              {biased, descs{of(f32, 2, 3), of(f32, 4, 3)}, status.ErrInvalidInTensorNum, false},
		"types":                     {float, descs{of(f32, 2, 3), of(f16, 4, 3)}, status.ErrInvalidTensorIniMatch, false},
		"x rank 1":                  {float, descs{of(f32, 3), of(f32, 4, 3)}, status.ErrInvalidTensorDimNum, false},
		"x rank 4":                  {float, descs{of(f32, 1, 1, 2, 3), of(f32, 4, 3)}, status.ErrInvalidTensorDimNum, false},
		"nd weight rank 4":          {float, descs{of(f32, 2, 16), of(f32, 1, 1, 16, 16)}, status.ErrInvalidTensorDimNum, false},
		"weight rank 3, x rank 2":   {float, descs{of(f32, 2, 3), of(f32, 1, 4, 3)}, status.ErrInvalidTensorDimNum, false},
		"einsum x rank 2":           {einsum, descs{of(f32, 2, 3), of(f32, 1, 4, 3)}, status.ErrInvalidTensorDimNum, false},
		"einsum weight rank 2":      {einsum, descs{of(f32, 2, 5, 3), of(f32, 4, 3)}, status.ErrInvalidTensorDimNum, false},
		"einsum nz weight rank 3":   {einsum, descs{of(f16, 2, 5, 3), nz(f16, 5, 4, 3)}, status.ErrInvalidTensorDimNum, false},
		"token scales, weight 2":    {token, descs{of(i8, 2, 2, 64), of(i8, 32, 64), of(f32, 32), of(f32, 2)}, status.ErrInvalidTensorDimNum, false},
		"batch":                     {float, descs{of(f32, 3, 2, 3), of(f32, 2, 4, 3)}, status.ErrInvalidTensorDim, false},
		"weight rank 3 batch 1":     {float, descs{of(f32, 3, 2, 3), of(f32, 1, 4, 3)}, status.ErrInvalidTensorDim, false},
		"one weight, transposed x":  {Linear{TransposeA: true}, descs{of(f32, 3, 3, 2), of(f32, 3, 4)}, status.ErrInvalidTensorDim, false},
		"one weight":                {float, descs{of(f32, 3, 2, 3), of(f32, 4, 3)}, status.OK, false},
		"k":                         {float, descs{of(f32, 2, 3), of(f32, 3, 4)}, status.ErrInvalidTensorDim, false},
		"k before blocks":           {float, descs{of(f16, 2, 16), nz(f16, 1, 2, 15, 16)}, status.ErrInvalidTensorDim, true},
		"stored rows on the board":  {float, descs{of(f16, 2, 16), nz(f16, 1, 1, 15, 16)}, status.ErrInvalidTensorDim, true},
		"stored rows":               {float, descs{of(f16, 2, 16), nz(f16, 1, 1, 15, 16)}, status.OK, false},
		"stored block":              {float, descs{of(f16, 2, 32), nz(f16, 1, 1, 16, 32)}, status.ErrInvalidTensorDim, false},
		"stored int8":               {dequant, descs{of(i8, 2, 32), nz(i8, 1, 1, 16, 32), of(f32, 16)}, status.OK, false},
		"bias rank":                 {biased, descs{of(f32, 2, 3), of(f32, 4, 3), of(f32, 1, 1, 4)}, status.ErrInvalidTensorDimNum, false},
		"bias length":               {biased, descs{of(f32, 2, 3), of(f32, 4, 3), of(f32, 5)}, status.ErrInvalidTensorDim, false},
		"bias batch":                {biased, descs{of(f32, 2, 2, 3), of(f32, 2, 4, 3), of(f32, 4)}, status.ErrInvalidTensorDim, false},
		"acc rank":                  {accum, descs{of(f16, 2, 3), of(f16, 4, 3), of(f32, 1, 2, 4)}, status.ErrInvalidTensorDimNum, false},
		"acc columns":               {accum, descs{of(f16, 2, 3), of(f16, 4, 3), of(f32, 2, 5)}, status.ErrInvalidTensorDim, false},
		"scale rank":                {dequant, descs{of(i8, 2, 3), of(i8, 4, 3), of(f32, 1, 1, 4)}, status.ErrInvalidTensorDimNum, false},
		"scale length":              {dequant, descs{of(i8, 2, 3), of(i8, 4, 3), of(f32, 1, 3)}, status.ErrInvalidTensorDim, false},
		"scale rank 2 per token":    {token, descs{of(i8, 2, 3), of(i8, 4, 3), of(f32, 1, 4), of(f32, 2)}, status.ErrInvalidTensorDimNum, false},
		"token scale rank first":    {token, descs{of(i8, 2, 3), of(i8, 4, 3), of(f32, 5), of(f32, 1, 2)}, status.ErrInvalidTensorDimNum, false},
		"token scale length":        {token, descs{of(i8, 2, 3), of(i8, 4, 3), of(f32, 4), of(f32, 3)}, status.ErrInvalidTensorDim, false},
		"f32 result on the board":   {Linear{TransposeB: true, OutDataType: f32}, descs{of(i8, 2, 3), of(i8, 4, 3), of(f32, 4)}, status.ErrInvalidTensorIniMatch, true},
		"empty weight":              {float, descs{of(f32, 2, 3), of(f32, 0, 3)}, status.ErrInvalidTensorSize, false},
		"sizes that leave int64":    {float, descs{of(f32, math.MaxInt64, 2), of(f32, 4, 2)}, status.ErrInvalidTensorSize, false},
		"f32 on the board at infer": {Linear{}, descs{of(f32, 2, 3), of(f32, 3, 4)}, status.OK, true},
	} {
		profile := operation.Native()
		if c.board {
			profile = operation.Board910B()
		}
		_, err := operation.InferShape(c.l, profile, c.in)
		assert.Equal(t, c.code, status.CodeOf(err), "%s: %v", name, err)
	}
}

func TestSetupChecks(t *testing.T) {
	in := []tensor.Desc{of(f32, 2, 3), of(f32, 3, 4)}
	setup := func(p *operation.Profile, out tensor.Desc) status.Code {
		return status.CodeOf(operation.CheckSetup(Linear{}, p, in, []tensor.Desc{out}, nil))
	}
	assert.Equal(t, status.OK, setup(operation.Native(), of(f32, 2, 4)))
	assert.Equal(t, status.ErrInvalidParam, setup(operation.Board910B(), of(f32, 2, 4)), "f32 takes weights [n,k] only")
	assert.Equal(t, status.ErrInvalidTensorDimNum, setup(operation.Board910B(), of(f32, 8)), "the output comes first")
	assert.Equal(t, status.ErrInvalidTensorDim, setup(operation.Board910B(), of(f32, 4, 2)))
	assert.Equal(t, status.ErrInvalidTensorIniMatch, setup(operation.Native(), of(f16, 2, 4)))

	huge := []tensor.Desc{of(f16, 1<<36, 1), of(f16, 1<<36, 1)}
	out, err := operation.InferShape(Linear{TransposeB: true}, operation.Native(), huge)
	require.NoError(t, err)
	err = operation.CheckSetup(Linear{TransposeB: true}, operation.Native(), huge, out, nil)
	assert.ErrorIs(t, err, status.ErrInvalidTensorSize, "an output of 2^72 elements")
}

// randomFloats fills a tensor.
func randomFloats(r *rand.Rand, d tensor.Desc) []byte {
	b := device.BytesOf(make([]uint64, (d.Bytes()+7)/8))[:d.Bytes()]
	for i := range d.Numel() {
		v := r.Float32()*2 - 1
		switch d.DType {
		case f16:
			device.View[tensor.F16](b)[i] = tensor.F16From(v)
		case bf16:
			device.View[tensor.BF16](b)[i] = tensor.BF16From(v)
		case i8:
			device.View[int8](b)[i] = int8(v * 127)
		case i32:
			device.View[int32](b)[i] = int32(v * 1000)
		default:
			device.View[float32](b)[i] = v
		}
	}
	return b
}

// TestModesAgainstFloat64 runs every mode once with odd sizes; package matmul
// tests the kernels in depth.
func TestModesAgainstFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	const m, n, k = 3, 5, 7
	for name, c := range map[string]struct {
		l  Linear
		in []tensor.Desc
		// sum computes an output element from the product and the inputs.
		sum func(in [][]float64, i, j int, p float64) float64
	}{
		"float":      {Linear{TransposeB: true}, []tensor.Desc{of(f32, m, k), of(f32, n, k)}, func(_ [][]float64, _, _ int, p float64) float64 { return p }},
		"transposed": {Linear{TransposeA: true}, []tensor.Desc{of(f32, k, m), of(f32, k, n)}, func(_ [][]float64, _, _ int, p float64) float64 { return p }},
		"labelled":   {Linear{}, []tensor.Desc{of(f32, m, k), nz(f32, k, n)}, func(_ [][]float64, _, _ int, p float64) float64 { return p }},
		"bias":       {DefaultLinear(), []tensor.Desc{of(f32, m, k), of(f32, n, k), of(f32, n)}, func(in [][]float64, _, j int, p float64) float64 { return p + in[2][j] }},
		"accumulate": {Linear{TransposeB: true, EnAccum: true}, []tensor.Desc{of(bf16, m, k), of(bf16, n, k), of(f32, m, n)}, func(in [][]float64, i, j int, p float64) float64 { return p + in[2][i*n+j] }},
		"dequantise": {Linear{TransposeB: true, HasBias: true, OutDataType: f32}, []tensor.Desc{of(i8, m, k), of(i8, n, k), of(i32, n), of(f32, n)}, func(in [][]float64, _, j int, p float64) float64 { return (p + in[2][j]) * in[3][j] }},
		"per token":  {Linear{TransposeB: true, OutDataType: f32, QuantMode: QuantPerToken}, []tensor.Desc{of(i8, m, k), of(i8, n, k), of(f32, n), of(f32, m)}, func(in [][]float64, i, j int, p float64) float64 { return p * in[2][j] * in[3][i] }},
	} {
		var data [][]byte
		var vals [][]float64
		for _, d := range c.in {
			data = append(data, randomFloats(r, d))
			vals = append(vals, float64s(t, data[len(data)-1], d.DType))
		}
		res := optest.Run(t, optest.Case{Spec: c.l, In: c.in, Data: data})
		got := float64s(t, res.Out[0], f32)
		for i := range m {
			for j := range n {
				p := 0.0
				for q := range k {
					a, b := vals[0][i*k+q], vals[1][j*k+q]
					if c.l.TransposeA {
						a = vals[0][q*m+i]
					}
					if !c.l.TransposeB {
						b = vals[1][q*n+j]
					}
					p += a * b
				}
				want := c.sum(vals, i, j, p)
				// a few f32 roundings of a sum of seven terms below 1
				assert.InDelta(t, want, got[i*n+j], 0x1p-20*max(1, math.Abs(want)), "%s at %d,%d", name, i, j)
			}
		}
	}
}

func TestAccumulateInPlaceAndCopied(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	l := Linear{TransposeB: true, EnAccum: true}
	for _, k := range []int64{64, 70000} { // one kernel and two
		in := []tensor.Desc{of(f16, 4, k), of(f16, 3, k), of(f32, 4, 3)}
		data := [][]byte{randomFloats(r, in[0]), randomFloats(r, in[1]), randomFloats(r, in[2])}
		copied := optest.Run(t, optest.Case{Spec: l, In: in, Data: data})
		assert.Equal(t, data[2], copied.In[2], "acc stays as it was when the output is other memory")
		inPlace := optest.Run(t, optest.Case{Spec: l, In: in, Data: data, InPlace: map[int]int{0: 2}})
		assert.Equal(t, copied.Out[0], inPlace.Out[0])
		assert.Equal(t, inPlace.Out[0], inPlace.In[2])
		assert.NotEqual(t, data[2], inPlace.In[2])
	}
}

// kernels returns the names of a graph's kernels.
func kernels(g *kernelgraph.Graph) []string {
	var names []string
	for i := range g.Nodes {
		names = append(names, g.Nodes[i].Kernel.Name())
	}
	return names
}

// stages says what the kernels of a graph do, whatever runs them: "matmul",
// "partial" and "reduce".
func stages(t *testing.T, g *kernelgraph.Graph) (out []string) {
	t.Helper()
	for _, name := range kernels(g) {
		stage := "matmul"
		for _, s := range []string{"partial", "reduce"} {
			if strings.Contains(name, s) {
				stage = s
			}
		}
		assert.True(t, strings.HasPrefix(name, "matmul/"), name)
		out = append(out, stage)
	}
	return out
}

// eachLevel runs a test with every instruction set that the machine has.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run(level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			test(t)
		})
	}
}

// TestShapeChoosesTheKernels crosses from one kernel to two and back: the
// graphs are independent of each other and the parameters stay.
func TestShapeChoosesTheKernels(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 5))
		l := Linear{TransposeB: true}
		run := func(k int64, data [][]byte) ([]byte, []string) {
			m := kernel.Machine{Cores: 8, L1: 32 << 10, L2: 1 << 20}
			res := optest.Run(t, optest.Case{Spec: l, In: []tensor.Desc{of(f32, 4, k), of(f32, 3, k)}, Data: data, Machine: m})
			return res.Out[0], stages(t, res.Graph)
		}
		small := [][]byte{randomFloats(r, of(f32, 4, 3)), randomFloats(r, of(f32, 3, 3))}
		large := [][]byte{randomFloats(r, of(f32, 4, 70000)), randomFloats(r, of(f32, 3, 70000))}
		first, names := run(3, small)
		assert.Equal(t, []string{"matmul"}, names)
		_, names = run(70000, large)
		assert.Equal(t, []string{"partial", "reduce"}, names)
		third, names := run(3, small)
		assert.Equal(t, []string{"matmul"}, names)
		assert.Equal(t, first, third)
		assert.Equal(t, Linear{TransposeB: true}, l)
	})
}

// TestStrategiesGiveEqualBits runs the same products on machines for which
// other kernels are best.
func TestStrategiesGiveEqualBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 6))
		for _, c := range []struct {
			l  Linear
			in []tensor.Desc
		}{
			{Linear{TransposeB: true}, []tensor.Desc{of(f32, 4, 60000), of(f32, 3, 60000)}},
			{DefaultLinear(), []tensor.Desc{of(bf16, 2, 60000), of(bf16, 6, 60000), of(bf16, 6)}},
			{Linear{TransposeB: true, MatmulType: MatmulEinSum}, []tensor.Desc{of(f16, 2, 2, 60000), of(f16, 2, 3, 60000)}},
			{Linear{TransposeB: true, OutDataType: bf16, QuantMode: QuantPerToken}, []tensor.Desc{of(i8, 3, 120000), of(i8, 4, 120000), of(f32, 4), of(f32, 3)}},
		} {
			var data [][]byte
			for _, d := range c.in {
				data = append(data, randomFloats(r, d))
			}
			run := func(cores int, o kernel.Options) optest.Result {
				m := kernel.Machine{Cores: cores, L1: 32 << 10, L2: 1 << 20}
				return optest.Run(t, optest.Case{Spec: c.l, In: c.in, Data: data, Machine: m, Options: o})
			}
			one, many := run(1, kernel.Options{}), run(64, kernel.Options{})
			assert.Equal(t, []string{"matmul"}, stages(t, one.Graph), "%v", c.in)
			assert.Equal(t, []string{"partial", "reduce"}, stages(t, many.Graph), "%v", c.in)
			assert.True(t, bytes.Equal(one.Out[0], many.Out[0]), "%v", c.in)
			assert.True(t, bytes.Equal(one.Out[0], run(64, kernel.Options{ShuffleK: true}).Out[0]), "%v shuffled", c.in)
		}
	})
}

// TestWorkspaceGrowsWithRows checks scratch and temporaries: monotone in the
// number of rows, and bounded by the cores and not by a number of workers.
func TestWorkspaceGrowsWithRows(t *testing.T) {
	need := func(cores int, rows int64) int64 {
		l := Linear{TransposeB: true}
		env := &kernelgraph.Env{Machine: kernel.Machine{Cores: cores, L2: 1 << 20}, Copy: move.Copy}
		in, out := []tensor.Desc{of(f16, rows, 512), of(f16, 512, 512)}, []tensor.Desc{of(f16, rows, 512)}
		g, err := operation.Lower(l, operation.Native(), env, in, out, nil)
		require.NoError(t, err)
		n := int64(0)
		for i := range g.Nodes {
			n = max(n, g.Nodes[i].Scratch)
		}
		for i := range g.Tensors {
			if x := &g.Tensors[i]; x.Kind == kernelgraph.Temp {
				n += x.Desc.Bytes()
			}
		}
		return n
	}
	last := int64(0)
	for _, rows := range []int64{1, 64, 4096} {
		n := need(2, rows)
		assert.GreaterOrEqual(t, n, last, "%d rows", rows)
		last = n
	}
	const perCore = 2 << 20
	for _, cores := range []int{1, 16, 512} {
		assert.LessOrEqual(t, need(cores, 4096), int64(cores)*perCore, "%d cores", cores)
	}
}

// float64s reads a tensor.
func float64s(t *testing.T, b []byte, d tensor.DType) []float64 {
	t.Helper()
	v, err := tensor.Float64s(b, d)
	require.NoError(t, err)
	return v
}
