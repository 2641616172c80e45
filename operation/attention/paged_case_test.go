package attention

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/tensor"
)

// pagedCase is a paged attention with data. Sequences are counted per kv head
// where contexts are; build makes the operands.
type pagedCase struct {
	spec             PagedAttention
	dtype            tensor.DType
	dk, dv           int64
	bs, columns      int64
	blocks           int64
	contexts, qLens  []int64
	status           []int64
	maskColumns      int64
	maskShape        []int64
	maskType         tensor.DType
	scaleType        tensor.DType
	profile          *operation.Profile
	machine          kernel.Machine
	rand             *rand.Rand
	in               []tensor.Desc
	data             [][]byte
	values           map[string][]float64
	tokens, headSize int64
}

// newPagedCase makes a case for the parameters with sizes that exercise
// several blocks: contexts that end inside a block, are empty, or fill all.
func newPagedCase(p PagedAttention, dt tensor.DType, seed uint64) *pagedCase {
	c := &pagedCase{
		spec: p, dtype: dt, dk: 12, dv: 8, bs: 4, columns: 6, contexts: []int64{7, 24, 0, 1},
		maskType: dt, scaleType: tensor.Float32, rand: rand.New(rand.NewPCG(seed, 77)),
	}
	if p.spec() {
		c.qLens = []int64{2, 5, 0, 1}
	}
	if p.compress() {
		c.contexts = []int64{7, 24, 0, 1, 13, 4}
		c.dk = 8
	}
	if p.BatchRunStatusEnable {
		c.status = []int64{1, 1, 1, 0}
		if p.compress() {
			c.status = []int64{1, 0, 1, 1, 1, 1}
		}
	}
	c.maskColumns = c.columns * c.bs
	return c
}

// build makes descriptors and data in the order of the ports.
func (c *pagedCase) build() *pagedCase {
	p := &c.spec
	b := int64(len(c.contexts))
	c.tokens = b
	if p.compress() {
		c.tokens = b / p.kvHeads()
	}
	if p.spec() {
		c.tokens = 0
		for _, n := range c.qLens {
			c.tokens += n
		}
	}
	if c.blocks == 0 {
		c.blocks = b*c.columns + 1
	}
	c.values = map[string][]float64{}
	c.in, c.data = nil, nil
	for i, port := range p.Signature().In {
		// kDescale and vDescale mean channels or heads; names are unique in a
		// signature.
		c.operand(i, port.Name)
	}
	return c
}

func (c *pagedCase) operand(_ int, name string) {
	p, b := &c.spec, int64(len(c.contexts))
	heads := p.kvHeads()
	if p.compress() {
		heads = 1
	}
	cache := func(width int64) []int64 {
		if p.InputLayout == LayoutBNSD {
			return []int64{c.blocks, heads, c.bs, width}
		}
		return []int64{c.blocks, c.bs, heads, width}
	}
	qt, kt := c.dtype, c.dtype
	if p.int8All() {
		qt, kt = tensor.Int8, tensor.Int8
	}
	if p.QuantType == QuantDequantFusion {
		kt = tensor.Int8
	}
	switch name {
	case "query":
		c.add(name, qt, c.sample(qt), c.tokens, int64(p.HeadNum), c.dk)
	case "kCache":
		c.add(name, kt, c.sample(kt), cache(c.dk)...)
	case "vCache":
		c.add(name, kt, c.sample(kt), cache(c.dv)...)
	case "blockTables":
		c.tables(b)
	case "contextLens":
		c.ints(name, c.contexts)
	case "qSeqLens":
		c.ints(name, c.qLens)
	case "batchRunStatus":
		c.ints(name, c.status)
	case "mask":
		c.mask()
	case "razorOffset":
		c.add(name, tensor.Float32, c.rand.NormFloat64, c.blocks, c.bs)
	case "logN":
		c.add(name, tensor.Float32, func() float64 { return 1 + c.rand.Float64() }, b)
	case "kOffset":
		c.add(name, tensor.Int32, func() float64 { return float64(c.rand.IntN(41) - 20) }, p.kvHeads()*c.dk)
	case "vOffset":
		c.add(name, tensor.Int32, func() float64 { return float64(c.rand.IntN(41) - 20) }, p.kvHeads()*c.dv)
	case "pScale":
		c.add(name, tensor.Float32, func() float64 { return 50 + 70*c.rand.Float64() }, int64(p.HeadNum))
	default:
		c.scales(name)
	}
}

func (c *pagedCase) scales(name string) {
	p := &c.spec
	if p.int8All() {
		size := 0.01
		if name == "kDescale" {
			size = 2e-4
		}
		c.add(name, tensor.Float32, func() float64 { return size * (1 + c.rand.Float64()) }, int64(p.HeadNum))
		return
	}
	width := c.dv
	if name == "kDescale" {
		width = c.dk
	}
	c.add(name, tensor.Float32, func() float64 { return 0.005 + 0.01*c.rand.Float64() }, p.kvHeads()*width)
	if c.scaleType == tensor.Int64 {
		bits := make([]int64, p.kvHeads()*width)
		for i, v := range c.values[name] {
			bits[i] = int64(math.Float32bits(float32(v)))
		}
		last := len(c.in) - 1
		c.in[last].DType, c.data[last] = tensor.Int64, device.BytesOf(bits)
	}
}

func (c *pagedCase) sample(t tensor.DType) func() float64 {
	if t == tensor.Int8 {
		return func() float64 { return float64(c.rand.IntN(256) - 128) }
	}
	return c.rand.NormFloat64
}

func (c *pagedCase) add(name string, t tensor.DType, f func() float64, dims ...int64) {
	d := tensor.Of(t, dims...)
	v := make([]float64, d.Numel())
	for i := range v {
		v[i] = f()
	}
	c.in, c.data = append(c.in, d), append(c.data, tensor.FromFloat64s(t, v))
	c.values[name], _ = tensor.Float64s(c.data[len(c.data)-1], t)
}

func (c *pagedCase) ints(name string, v []int64) {
	i := -1
	c.add(name, tensor.Int32, func() float64 { i++; return float64(v[i]) }, int64(len(v)))
}

// tables gives every sequence blocks of its own in a random order.
func (c *pagedCase) tables(b int64) {
	order, i := c.rand.Perm(int(c.blocks)), -1
	c.add("blockTables", tensor.Int32, func() float64 { i++; return float64(order[i%len(order)]) }, b, c.columns)
}

func (c *pagedCase) mask() {
	shape, heads := c.maskShape, int64(c.spec.HeadNum)
	batch := int64(len(c.contexts))
	if c.spec.compress() {
		batch = c.tokens
	}
	switch {
	case shape != nil:
	case c.spec.spec() && c.spec.MaskType == PagedMaskSpec:
		shape = []int64{c.tokens, c.maskColumns}
	case c.spec.spec():
		shape = []int64{c.maskColumns, c.maskColumns}
	case c.spec.MaskType == PagedMaskALiBi:
		shape = []int64{batch, heads, 1, c.maskColumns}
	default:
		shape = []int64{batch, 1, c.maskColumns}
	}
	c.maskShape = shape
	c.add("mask", c.maskType, func() float64 {
		if c.rand.IntN(3) == 0 {
			return math.Inf(-1)
		}
		return c.rand.NormFloat64()
	}, shape...)
}

// set replaces the values of an operand.
func (c *pagedCase) set(name string, v ...float64) {
	for i, port := range c.spec.Signature().In {
		if port.Name == name {
			c.data[i] = tensor.FromFloat64s(c.in[i].DType, v)
			c.values[name], _ = tensor.Float64s(c.data[i], c.in[i].DType)
		}
	}
}

// run computes the case and returns the output as float64 and as bytes.
func (c *pagedCase) run(t testing.TB) ([]float64, []byte) {
	t.Helper()
	r := optest.Run(t, optest.Case{Spec: c.spec, Profile: c.profile, In: c.in, Data: c.data, Machine: c.machine})
	d := r.Graph.Tensors[r.Graph.Outputs[0]].Desc
	v, err := tensor.Float64s(r.Out[0], d.DType)
	require.NoError(t, err)
	return v, r.Out[0]
}

// kernels names the kernels that the case lowers to.
func (c *pagedCase) kernels(t testing.TB) string {
	t.Helper()
	r := optest.Run(t, optest.Case{Spec: c.spec, Profile: c.profile, In: c.in, Data: c.data, Machine: c.machine})
	var names []string
	for i := range r.Graph.Nodes {
		names = append(names, r.Graph.Nodes[i].Kernel.Name())
	}
	return strings.Join(names, " ")
}
