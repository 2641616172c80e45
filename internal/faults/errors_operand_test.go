package faults_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/status"
	"goatb/tensor"
)

// victim is a sample that errors are provoked on, and that must work after each.
type victim struct {
	*call
	s    *sample
	in   []operand
	want [][]byte
	sig  portNames
}

// portNames are the names of the operands as errors give them.
type portNames struct{ in, out []string }

func newVictim(t *testing.T, s *sample) *victim {
	v := &victim{s: s, in: s.in(random(99), 3)}
	v.want = cold(t, s.spec, v.in...)
	v.call = newBed(t).ready(s.spec, v.in...)
	sig := s.spec.Signature()
	for i, p := range sig.In {
		v.sig.in = append(v.sig.in, fmt.Sprintf("input %d (%s)", i, p.Name))
	}
	for i, p := range sig.Out {
		v.sig.out = append(v.sig.out, fmt.Sprintf("output %d (%s)", i, p.Name))
	}
	return v
}

// optional reports whether input i may be absent.
func (v *victim) optional(i int) bool { return v.s.spec.Signature().In[i].Optional }

// fresh returns the pack with slices of its own.
func (v *victim) fresh() atb.VariantPack {
	return atb.VariantPack{In: slices.Clone(v.pack.In), Out: slices.Clone(v.pack.Out)}
}

// works checks that the operation gives the right result.
func (v *victim) works(after string) {
	v.Helper()
	for i, o := range v.in {
		copy(v.pack.In[i].Data.Bytes(), o.data)
		copy(v.pack.In[i].Host, o.data)
	}
	_, err := v.op.Setup(v.pack, v.c)
	require.NoError(v, err, after)
	v.execute(v.op, v.pack, v.ws)
	got := v.images()
	require.Equal(v, v.want, got, after)
}

// refused checks an error's code and that its text has the operation, the call
// and some parts.
func refused(t testing.TB, err error, code status.Code, op, stage string, parts ...string) {
	t.Helper()
	require.ErrorIs(t, err, code)
	assert.Equal(t, code, status.CodeOf(err), "%v", err)
	for _, part := range append(parts, op+": "+stage+": ") {
		assert.ErrorContains(t, err, part)
	}
}

// badDescs are descriptors that no tensor can have.
var badDescs = []struct {
	name string
	desc func(atb.Desc) atb.Desc
	code status.Code
	text string
}{
	{"rank 0", func(d atb.Desc) atb.Desc { return d.WithShape() }, status.ErrInvalidTensorDim, "want rank 1 to 8, got 0"},
	{"rank 9", func(d atb.Desc) atb.Desc { return d.WithShape(1, 1, 1, 1, 1, 1, 1, 1, 1) }, status.ErrInvalidTensorDim, "want rank 1 to 8, got 9"},
	{"rank 300", func(d atb.Desc) atb.Desc { return d.WithShape(make([]int64, 300)...) }, status.ErrInvalidTensorDim, "want rank 1 to 8, got"},
	{"dimension 0", func(d atb.Desc) atb.Desc { return d.WithShape(2, 0) }, status.ErrInvalidTensorSize, "[2,0]"},
	{"dimension below 0", func(d atb.Desc) atb.Desc { return d.WithShape(2, -3) }, status.ErrInvalidTensorSize, "[2,-3]"},
	{"smallest dimension", func(d atb.Desc) atb.Desc { return d.WithShape(math.MinInt64) }, status.ErrInvalidTensorSize, "[-9223372036854775808]"},
	{"product of two beyond int64", func(d atb.Desc) atb.Desc { return d.WithShape(1<<40, 1<<40) }, status.ErrInvalidTensorSize, "within int64"},
	{"largest dimension", func(d atb.Desc) atb.Desc { return d.WithShape(math.MaxInt64, math.MaxInt64) }, status.ErrInvalidTensorSize, "within int64"},
	{"above 256 GiB", func(d atb.Desc) atb.Desc { return d.WithShape(256<<30 + 1) }, status.ErrInvalidTensorSize, "want at most 274877906944 bytes, got"},
	{"undefined dtype", func(d atb.Desc) atb.Desc { d.DType = tensor.Undefined; return d }, status.ErrInvalidTensorSize, "dtype undefined has no size"},
	{"unknown dtype", func(d atb.Desc) atb.Desc { d.DType = 200; return d }, status.ErrInvalidTensorSize, "has no size"},
	{"dtype outside the table", func(d atb.Desc) atb.Desc { d.DType = tensor.Complex128; return d }, status.ErrInvalidTensorIniMatch, "complex128"},
	{"layout outside the table", func(d atb.Desc) atb.Desc { d.Format = tensor.NCHW; return d }, status.ErrInvalidTensorIniMatch, "nchw"},
	{"unknown layout", func(d atb.Desc) atb.Desc { d.Format = 99; return d }, status.ErrInvalidTensorIniMatch, "format(99)"},
}

// TestBadDescriptors puts a descriptor that cannot be in the place of every
// operand of every operation, at Setup and at InferShape.
func TestBadDescriptors(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		for _, bad := range badDescs {
			for i := range v.pack.In {
				p := v.fresh()
				d := v.pack.In[i].Desc
				if d.Empty() {
					d = tensor.Of(tensor.Int8, 4)
				}
				p.In[i].Desc = bad.desc(d)
				if v.optional(i) && p.In[i].Desc.Empty() {
					continue
				}
				parts := []string{bad.text}
				if bad.code != status.ErrInvalidTensorIniMatch {
					parts = append(parts, v.sig.in[i])
				}
				_, err := v.op.Setup(p, v.c)
				refused(t, err, bad.code, v.op.Name(), "setup", parts...)
				refused(t, v.op.Execute(p, v.ws, v.c), status.ErrInvalidParam, v.op.Name(), "execute", "want a successful setup first")
				_, err = v.op.InferShape(descsOf(p.In))
				if bad.code == status.ErrInvalidTensorIniMatch && err == nil {
					continue // another dtype or layout that the outputs could follow
				}
				refused(t, err, bad.code, v.op.Name(), "infer shape", parts...)
			}
			for i := range v.pack.Out {
				p := v.fresh()
				p.Out[i].Desc = bad.desc(v.pack.Out[i].Desc)
				_, err := v.op.Setup(p, v.c)
				parts := []string{bad.text}
				if bad.code != status.ErrInvalidTensorIniMatch {
					parts = append(parts, v.sig.out[i])
				}
				refused(t, err, bad.code, v.op.Name(), "setup", parts...)
			}
		}
		v.works("bad descriptors")
	})
}

// TestWrongCounts passes too many and too few tensors to every operation.
func TestWrongCounts(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		n, m := len(v.pack.In), len(v.pack.Out)
		extra := v.blank(tensor.Of(tensor.Float32, 1))
		for _, tt := range []struct {
			in, out []atb.Tensor
			text    string
		}{
			{v.pack.In[:n-1], v.pack.Out, fmt.Sprintf("want %d inputs, got %d", n, n-1)},
			{append(v.fresh().In, extra), v.pack.Out, fmt.Sprintf("want %d inputs, got %d", n, n+1)},
			{nil, v.pack.Out, fmt.Sprintf("want %d inputs, got 0", n)},
			{v.pack.In, v.pack.Out[:m-1], fmt.Sprintf("want %d outputs, got %d", m, m-1)},
			{v.pack.In, append(v.fresh().Out, extra), fmt.Sprintf("want %d outputs, got %d", m, m+1)},
			{nil, nil, fmt.Sprintf("want %d inputs, got 0", n)},
		} {
			_, err := v.op.Setup(atb.VariantPack{In: tt.in, Out: tt.out}, v.c)
			require.ErrorIs(t, err, status.ErrInvalidInTensorNum)
			code := status.ErrInvalidInTensorNum
			if len(tt.in) == n {
				code = status.ErrInvalidTensorNum
			}
			refused(t, err, code, v.op.Name(), "setup", tt.text)
			if len(tt.in) != n {
				_, err = v.op.InferShape(descsOf(tt.in))
				refused(t, err, status.ErrInvalidInTensorNum, v.op.Name(), "infer shape", tt.text)
			}
		}
		v.works("wrong counts at setup")
		for _, p := range []atb.VariantPack{{In: v.pack.In[:n-1], Out: v.pack.Out}, {In: v.pack.In}, {Out: v.pack.Out}, {In: append(v.fresh().In, extra), Out: v.pack.Out}} {
			err := v.op.Execute(p, v.ws, v.c)
			refused(t, err, status.ErrInvalidTensorNum, v.op.Name(), "execute", fmt.Sprintf("want %d inputs and %d outputs, got %d and %d", n, m, len(p.In), len(p.Out)))
			require.ErrorIs(t, err, status.ErrInvalidParam)
		}
		v.works("wrong counts at execute")
	})
}

// otherShapes are shapes near one that works.
func otherShapes(d atb.Desc) []atb.Desc {
	dims := d.Shape.Dims()
	var out []atb.Desc
	for i := range dims {
		for _, n := range []int64{dims[i] - 1, dims[i] + 1, 2 * dims[i], dims[i] + 7, 1} {
			if n >= 1 && n != dims[i] {
				x := slices.Clone(dims)
				x[i] = n
				out = append(out, d.WithShape(x...))
			}
		}
	}
	out = append(out, d.WithShape(d.Numel()))
	if len(dims) < tensor.MaxRank {
		out = append(out, d.WithShape(append([]int64{1}, dims...)...), d.WithShape(append(dims, 1)...))
	}
	if len(dims) > 1 {
		out = append(out, d.WithShape(dims[1:]...))
	}
	return slices.DeleteFunc(out, func(x atb.Desc) bool { return x == d })
}

// shapeCodes are the codes that a wrong shape may have.
var shapeCodes = []status.Code{
	status.ErrInvalidParam, status.ErrInvalidTensorDim, status.ErrInvalidTensorDimNum, status.ErrInvalidTensorSize,
}

// shapeError checks the error of a wrong shape.
func (v *victim) shapeError(err error, stage string, d atb.Desc) {
	v.Helper()
	assert.Contains(v, shapeCodes, status.CodeOf(err), "%s: %v", d, err)
	assert.True(v, strings.HasPrefix(err.Error(), v.op.Name()+": "+stage+": "), "%v", err)
	saysWhatIsWanted(v, err)
}

// saysWhatIsWanted checks that an error says what was wanted, or needed.
func saysWhatIsWanted(t testing.TB, err error) {
	t.Helper()
	assert.Regexp(t, "want |needs | exclude each other|has no size", err.Error())
}

// TestOtherShapes gives every input of every operation another shape. Most are
// refused; what is accepted runs on memory of that shape, full of poison: it ends
// well or with an error of the kernel, writes nothing beside its operands, and
// the operation still works.
func TestOtherShapes(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		ran, refusals := 0, 0
		for i := range v.pack.In {
			for _, d := range otherShapes(v.pack.In[i].Desc) {
				p := v.fresh()
				p.In[i] = v.put(operand{desc: d, data: make([]byte, d.Bytes()), host: v.in[i].host})
				outs, err := v.op.InferShape(descsOf(p.In))
				if err != nil {
					v.shapeError(err, "infer shape", d)
				}
				if _, err = v.op.Setup(p, v.c); err != nil {
					v.shapeError(err, "setup", d)
					refusals++
				}
				if outs == nil {
					continue
				}
				for j := range outs {
					p.Out[j] = v.blank(outs[j])
				}
				size, err := v.op.Setup(p, v.c)
				if err != nil {
					v.shapeError(err, "setup", d)
					continue
				}
				ran++
				v.execute(v.op, p, v.area(max(size, 1)))
				if err := v.c.Synchronize(t.Context()); err != nil {
					assert.ErrorContains(t, err, v.op.Name()+": execute: ", "input %d as %s", i, d)
				}
			}
		}
		assert.Positive(t, ran+refusals)
		v.checkCanaries()
		v.works("other shapes")
	})
}

// TestOtherOutputShapes gives every output of every operation another shape.
func TestOtherOutputShapes(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		for i := range v.pack.Out {
			for _, d := range otherShapes(v.pack.Out[i].Desc) {
				p := v.fresh()
				p.Out[i] = v.blank(d)
				_, err := v.op.Setup(p, v.c)
				require.Error(t, err, "output %d as %s", i, d)
				v.shapeError(err, "setup", d)
				assert.ErrorContains(t, err, v.sig.out[i])
				assert.ErrorContains(t, err, d.Shape.String())
			}
		}
		v.works("other output shapes")
	})
}

// TestHostValues gives every operation that reads lengths on the host lengths
// that cannot be.
func TestHostValues(t *testing.T) {
	n := 0
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		for i := range v.in {
			if !v.in[i].host {
				continue
			}
			n++
			for _, bad := range []int32{-1, math.MinInt32, math.MaxInt32, 1_000_000} {
				p := v.fresh()
				values := make([]int32, v.in[i].desc.Numel())
				for j := range values {
					values[j] = bad
				}
				p.In[i].Host = ints(values).data
				_, err := v.op.Setup(p, v.c)
				v.valueError(err, "setup", i, bad)
				_, err = v.op.Setup(v.pack, v.c)
				require.NoError(t, err)
				v.valueError(v.op.Execute(p, v.ws, v.c), "execute", i, bad)
				v.execute(v.op, v.pack, v.ws)
				v.sync()
			}
			p := v.fresh()
			p.In[i].Host = nil
			_, err := v.op.Setup(p, v.c)
			refused(t, err, status.ErrInvalidTensorAddr, v.op.Name(), "setup", v.sig.in[i]+": want host data")
			p.In[i].Host = v.pack.In[i].Host[:2]
			_, err = v.op.Setup(p, v.c)
			refused(t, err, status.ErrInvalidTensorAddr, v.op.Name(), "setup", v.sig.in[i]+": want host data of ")
			v.works("host values")
		}
	})
	assert.Greater(t, n, 10)
}

// valueError checks the error of host values of input i.
func (v *victim) valueError(err error, stage string, i int, bad int32) {
	v.Helper()
	require.Error(v, err, "%s: %d", stage, bad)
	assert.Contains(v, shapeCodes, status.CodeOf(err), "%v", err)
	assert.True(v, strings.HasPrefix(err.Error(), v.op.Name()+": "+stage+": "), "%v", err)
	saysWhatIsWanted(v, err)
	name := v.s.spec.Signature().In[i].Name
	assert.ErrorContains(v, err, name)
	assert.ErrorContains(v, err, fmt.Sprint(bad))
}
