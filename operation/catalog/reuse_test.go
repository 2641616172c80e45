package catalog_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/operation"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/catalog"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/tensor"
)

// operand is an input of an operation under test: what it looks like and how it
// is filled.
type operand struct {
	desc tensor.Desc
	host bool
	fill func(rng *rand.Rand) []int64 // integers, nil for random data of the type
}

func f32(dims ...int64) operand  { return operand{desc: tensor.Of(tensor.Float32, dims...)} }
func f16(dims ...int64) operand  { return operand{desc: tensor.Of(tensor.Float16, dims...)} }
func i8(dims ...int64) operand   { return operand{desc: tensor.Of(tensor.Int8, dims...)} }
func bf16(dims ...int64) operand { return operand{desc: tensor.Of(tensor.BFloat16, dims...)} }

// ints are int32 values on the device.
func ints(fill func(rng *rand.Rand) []int64, dims ...int64) operand {
	return operand{desc: tensor.Of(tensor.Int32, dims...), fill: fill}
}

// hostInts are int32 values on the host and the device.
func hostInts(fill func(rng *rand.Rand) []int64, dims ...int64) operand {
	o := ints(fill, dims...)
	o.host = true
	return o
}

// within draws n integers of lo to hi.
func within(n, lo, hi int64) func(*rand.Rand) []int64 {
	return func(rng *rand.Rand) []int64 {
		v := make([]int64, n)
		for i := range v {
			v[i] = lo + rng.Int64N(hi-lo+1)
		}
		return v
	}
}

// distinct draws n different integers below `below`.
func distinct(n, below int64) func(*rand.Rand) []int64 {
	return func(rng *rand.Rand) []int64 {
		v := make([]int64, n)
		for i, x := range rng.Perm(int(below))[:n] {
			v[i] = int64(x)
		}
		return v
	}
}

// summing draws n integers of at least 1 with a sum of total.
func summing(n, total int64) func(*rand.Rand) []int64 {
	return func(rng *rand.Rand) []int64 {
		v := slices.Repeat([]int64{1}, int(n))
		for range total - n {
			v[rng.Int64N(n)]++
		}
		return v
	}
}

// bytes makes the data of the operand.
func (o *operand) bytes(rng *rand.Rand) []byte {
	n := o.desc.Numel()
	b := device.BytesOf(make([]uint64, (o.desc.Bytes()+7)/8))[:o.desc.Bytes()]
	if o.fill != nil {
		for i, v := range o.fill(rng) {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
		}
		return b
	}
	switch o.desc.DType {
	case tensor.Int8:
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
	default:
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64()) + 0.1
		}
		kernel.StoreFloats(b, x, o.desc.DType)
	}
	return b
}

// reuseCase is an operation with parameters, others for an Update, and operands
// for a size.
type reuseCase struct {
	name        string
	spec, other operation.Spec
	in          func(n int64) []operand
}

func cases() []reuseCase {
	return slices.Concat(elementCases(), productCases(), shapeCases(), attentionCases())
}

func elementCases() []reuseCase {
	scaled := func(by float32) elementwise.Elewise {
		e := elementwise.Of(elementwise.Muls)
		e.Muls.VarAttr = by
		return e
	}
	swish := func(s float32) activation.Activation {
		a := activation.Of(activation.Swish)
		a.Scale = s
		return a
	}
	rms := func(t norm.LayerType, eps float32) norm.RMSNorm {
		r := norm.DefaultRMSNorm()
		r.LayerType, r.Norm.Epsilon, r.PreNorm.Epsilon = t, eps, eps
		return r
	}
	quant := rms(norm.Plain, 1e-5)
	quant.Norm.QuantType = norm.QuantInt8
	gamma := quant
	gamma.Norm.Epsilon = 1
	return []reuseCase{
		{"Elewise add", elementwise.Of(elementwise.Add), elementwise.Of(elementwise.Mul), func(n int64) []operand { return []operand{f32(n, 65), f32(65)} }},
		{"Elewise muls", scaled(2), scaled(3), func(n int64) []operand { return []operand{f16(3, n)} }},
		{"Elewise quant", elementwise.Of(elementwise.QuantPerChannel), nil, func(n int64) []operand { return []operand{f16(n, 33), f16(33), i8(33)} }},
		{"Elewise dynamic quant", elementwise.Of(elementwise.DynamicQuant), nil, func(n int64) []operand { return []operand{f32(n, 40)} }},
		{"Activation", swish(1), swish(2), func(n int64) []operand { return []operand{bf16(n, 50)} }},
		{"Activation swiglu", activation.Of(activation.SwiGLUForward), nil, func(n int64) []operand { return []operand{f32(n, 48)} }},
		{"RmsNorm", rms(norm.Plain, 1e-5), rms(norm.Plain, 0.5), func(n int64) []operand { return []operand{f16(n, 48), f16(48)} }},
		{"RmsNorm pre", rms(norm.Pre, 1e-5), rms(norm.Pre, 0.5), func(n int64) []operand { return []operand{f32(n, 48), f32(n, 48), f32(48)} }},
		{"RmsNorm quant", quant, gamma, func(n int64) []operand { return []operand{f16(n, 48), f16(48), f16(48), f16(1), i8(1)} }},
		{"Rope", rope.Rope{RotaryCoeff: 2}, rope.Rope{RotaryCoeff: 4}, func(n int64) []operand {
			return []operand{f32(n, 32), f32(n, 16), f32(n, 8), f32(n, 8), ints(summing(1, n), 1)}
		}},
	}
}

func productCases() []reuseCase {
	plain := linear.Linear{TransposeB: true}
	bias := linear.DefaultLinear()
	perToken := linear.Linear{OutDataType: tensor.Float16, QuantMode: linear.QuantPerToken}
	acc := linear.Linear{EnAccum: true}
	return []reuseCase{
		{"Linear", plain, linear.Linear{}, func(n int64) []operand { return []operand{f32(n, 64), f32(64, 64)} }},
		{"Linear bias", bias, nil, func(n int64) []operand { return []operand{f16(n, 70), f16(24, 70), f16(24)} }},
		{"Linear split", plain, nil, func(n int64) []operand { return []operand{f32(2, 5000*n), f32(8, 5000*n)} }},
		{"Linear turned", linear.Linear{TransposeA: true}, nil, func(n int64) []operand { return []operand{bf16(32, n), bf16(32, 40)} }},
		{"Linear accumulate", acc, nil, func(n int64) []operand { return []operand{f16(n, 32), f16(32, 16), f32(n, 16)} }},
		{"Linear per token", perToken, nil, func(n int64) []operand { return []operand{i8(n, 64), i8(64, 32), f32(32), f32(n)} }},
	}
}

func shapeCases() []reuseCase {
	return []reuseCase{
		{"Gather", shape.Gather{}, shape.Gather{Axis: 1}, func(n int64) []operand { return []operand{f32(9, 9, 3), ints(within(n, 0, 8), n)} }},
		{"Softmax", shape.Softmax{Axes: []int64{-1}}, shape.Softmax{Axes: []int64{0, 1}}, func(n int64) []operand { return []operand{f16(n, 6, 7)} }},
		{"Softmax of long rows", shape.Softmax{Axes: []int64{-1}}, nil, func(n int64) []operand { return []operand{f32(1, 20000*n)} }},
		{"Transpose", shape.Transpose{Perm: []int64{1, 0, 2}}, shape.Transpose{Perm: []int64{2, 1, 0}}, func(n int64) []operand { return []operand{f32(n, 5, 6)} }},
		{"Concat", shape.Concat{ConcatDim: 0}, shape.Concat{ConcatDim: 1}, func(n int64) []operand { return []operand{f32(n, 8), f32(n, 8)} }},
		{"Split", shape.Split{SplitNum: 2, SplitDim: 1}, shape.Split{SplitNum: 3, SplitDim: 1}, func(n int64) []operand { return []operand{f32(n, 12)} }},
		{"Split by sizes", shape.Split{SplitNum: 2, SplitDim: 1, SplitSizes: []int64{3, 9}}, shape.Split{SplitNum: 2, SplitDim: 1, SplitSizes: []int64{9, 3}}, func(n int64) []operand { return []operand{f32(n, 12)} }},
		{"Slice", shape.Slice{Offsets: []int64{0, 1}, Size: []int64{-1, 4}}, shape.Slice{Offsets: []int64{0, 2}, Size: []int64{1, 4}}, func(n int64) []operand { return []operand{f16(n, 7)} }},
	}
}

func attentionCases() []reuseCase {
	const heads, kv, d, bs = 4, 2, 16, 4
	paged := attention.PagedAttention{HeadNum: heads, KVHeadNum: kv, QKScale: 0.25}
	sharper := paged
	sharper.QKScale = 1
	self := attention.SelfAttention{HeadNum: heads, KVHeadNum: kv, QScale: 1, QKScale: 0.25, CalcType: attention.SelfPAEncoder}
	causal := self
	causal.MaskType = attention.SelfMaskCausal
	cached := attention.SelfAttention{HeadNum: heads, KVHeadNum: kv, QScale: 1, QKScale: 0.25, CalcType: attention.SelfDecoder}
	return []reuseCase{
		{"ReshapeAndCache", cache.ReshapeAndCache{}, nil, func(n int64) []operand {
			return []operand{f32(n, kv, d), f32(n, kv, d), f32(8, bs, kv, d), f32(8, bs, kv, d), ints(distinct(n, 8*bs), n)}
		}},
		{"PagedAttention", paged, sharper, func(n int64) []operand {
			return []operand{f32(n, heads, d), f32(30, bs, kv, d), f32(30, bs, kv, d), ints(within(7*n, 0, 29), n, 7), hostInts(within(n, 1, 28), n)}
		}},
		{"SelfAttention", self, causal, func(n int64) []operand {
			return []operand{f16(n*5, heads*d), f16(n*5, kv*d), f16(n*5, kv*d), hostInts(summing(n, n*5), n)}
		}},
		{"SelfAttention with a cache", cached, nil, func(n int64) []operand {
			return []operand{
				f32(n, heads*d), f32(n, kv*d), f32(n, kv*d), f32(2, n, 24, kv*d), f32(2, n, 24, kv*d),
				hostInts(within(n, 1, 24), n), hostInts(within(n, 1, 1), n), hostInts(within(1, 0, 1), 1),
			}
		}},
	}
}

// The table names every operation of the catalog.
func TestReuseCoversTheCatalog(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cases() {
		seen[c.spec.Signature().Name] = true
	}
	for _, name := range catalog.Names() {
		assert.True(t, seen[name], name)
	}
}

// bench is a context with an operation on it.
type bench struct {
	t  *testing.T
	c  *atbctx.Context
	op *operation.Op
}

func open(t *testing.T, dev device.Device, s operation.Spec, opts ...atbctx.Option) *bench {
	t.Helper()
	c, err := atbctx.New(dev, append([]atbctx.Option{atbctx.WithEnv(func(string) (string, bool) { return "", false })}, opts...)...)
	require.NoError(t, err)
	op, err := operation.New(s)
	require.NoError(t, err)
	return &bench{t, c, op}
}

func (b *bench) close() {
	require.NoError(b.t, b.op.Close())
	require.NoError(b.t, b.c.Close())
}

// run sets up and executes with fresh memory and returns the bytes of the
// outputs and, for operations that update them, of the inputs.
func (b *bench) run(in []operand, seed uint64) [][]byte {
	b.t.Helper()
	rng := rand.New(rand.NewPCG(11, seed))
	var pack operation.VariantPack
	descs := make([]tensor.Desc, len(in))
	for i := range in {
		data := in[i].bytes(rng)
		x, err := atbctx.NewTensor(b.c, in[i].desc)
		require.NoError(b.t, err)
		copy(x.Data.Bytes(), data)
		if in[i].host {
			x.Host = data
		}
		descs[i] = in[i].desc
		pack.In = append(pack.In, x)
	}
	outs, err := b.op.InferShape(descs)
	require.NoError(b.t, err)
	for _, d := range outs {
		x, err := atbctx.NewTensor(b.c, d)
		require.NoError(b.t, err)
		poison(x.Data)
		pack.Out = append(pack.Out, x)
	}
	size, err := b.op.Setup(pack, b.c)
	require.NoError(b.t, err)
	ws, err := b.c.Alloc(size)
	require.NoError(b.t, err)
	poison(ws)
	require.NoError(b.t, b.op.Execute(pack, ws, b.c))
	require.NoError(b.t, b.c.Synchronize(b.t.Context()))
	var got [][]byte
	for _, ts := range [][]device.Tensor{pack.Out, pack.In} {
		for _, x := range ts {
			got = append(got, slices.Clone(x.Data.Bytes()))
			require.NoError(b.t, b.c.Free(x.Data))
		}
	}
	require.NoError(b.t, b.c.Free(ws))
	return got
}

func poison(m device.Buffer) {
	for i := range m.Bytes() {
		m.Bytes()[i] = 0xff
	}
}

// A second run with other data, addresses, workspace, host values, policy,
// sizes or parameters gives what a cold run gives, bit for bit.
func TestReuse(t *testing.T) {
	dev, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			cold := func(s operation.Spec, n int64, seed uint64) [][]byte {
				b := open(t, dev, s, atbctx.WithTilingCaches(0), atbctx.WithSetupReuse(false))
				defer b.close()
				return b.run(c.in(n), seed)
			}
			for _, policy := range []string{"kernel-follow", "overall", "multi-stream"} {
				b := open(t, dev, c.spec, atbctx.WithPolicy(policy))
				defer b.close()
				check := func(what string, s operation.Spec, n int64, seed uint64) {
					t.Helper()
					require.Equal(t, cold(s, n, seed), b.run(c.in(n), seed), "%s: %s", policy, what)
				}
				check("first run", c.spec, 2, 1)
				check("other data, addresses, workspace and host values", c.spec, 2, 2)
				require.NoError(t, b.c.SetPolicy("overall"))
				check("another policy", c.spec, 2, 3)
				require.NoError(t, b.c.SetPolicy("multi-stream"))
				check("a third policy", c.spec, 2, 4)
				require.NoError(t, b.c.SetPolicy(policy))
				check("larger", c.spec, 5, 5)
				check("smaller again", c.spec, 2, 6)
				check("one", c.spec, 1, 7)
				if c.other != nil && len(c.other.Signature().Out) == len(c.spec.Signature().Out) {
					require.NoError(t, b.op.Update(c.other))
					check("other parameters", c.other, 1, 7)
					check("other parameters, larger", c.other, 5, 8)
					require.NoError(t, b.op.Update(c.spec))
					check("parameters and back", c.spec, 5, 8)
				}
				require.NoError(t, b.op.Close())
				for i, s := range []operation.Spec{c.spec, c.other, c.spec} {
					if s == nil {
						continue
					}
					b.op, err = operation.New(s)
					require.NoError(t, err)
					check(fmt.Sprintf("operation %d after one that was closed", i), s, 2, 10)
					require.NoError(t, b.op.Close())
				}
				b.op, err = operation.New(c.spec)
				require.NoError(t, err)
				check("with a full pool", c.spec, 5, 11)
				assert.Positive(t, b.c.Stats().SetupHits)
			}
		})
	}
}
