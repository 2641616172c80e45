package faults_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/status"
	"goatb/tensor"
)

// memoryCase is something wrong with the memory of one operand at Execute.
type memoryCase struct {
	name string
	// spoil changes the operand, or reports that this cannot be done to it.
	spoil func(b *bed, x *atb.Tensor) bool
	code  status.Code
	text  string
}

var memoryCases = []memoryCase{
	{"no data", func(_ *bed, x *atb.Tensor) bool { x.Data = atb.Buffer{}; return true }, status.ErrInvalidTensorAddr, "want memory on the device, got"},
	{"freed data", func(b *bed, x *atb.Tensor) bool {
		m, err := b.c.Alloc(x.Desc.Bytes())
		require.NoError(b, err)
		require.NoError(b, b.c.Free(m))
		x.Data = m
		return true
	}, status.ErrInvalidTensorAddr, "its memory was freed"},
	{"a byte short", func(_ *bed, x *atb.Tensor) bool { x.Data = x.Data.At(0, x.Data.Size()-1); return true }, status.ErrInvalidTensorSize, "want %d bytes for "},
	{"a byte long", func(b *bed, x *atb.Tensor) bool { x.Data = b.area(x.Data.Size() + 1); return true }, status.ErrInvalidTensorSize, "want %d bytes for "},
	{"empty data", func(_ *bed, x *atb.Tensor) bool { x.Data = x.Data.At(0, 0); return true }, status.ErrInvalidTensorSize, "want %d bytes for "},
	{"another shape of equal size", func(_ *bed, x *atb.Tensor) bool {
		x.Desc = x.Desc.WithShape(x.Desc.Numel(), 1, 1)
		return true
	}, status.ErrInvalidTensorSize, "want setup's "},
	{"another dtype of equal size", func(_ *bed, x *atb.Tensor) bool {
		other := map[int64]atb.DType{1: tensor.Uint8, 2: tensor.Int16, 4: tensor.Uint32, 8: tensor.Uint64}[x.Desc.DType.Size()]
		if other == x.Desc.DType {
			return false
		}
		x.Desc.DType = other
		return true
	}, status.ErrInvalidTensorSize, "want setup's "},
	{"another layout", func(_ *bed, x *atb.Tensor) bool { x.Desc.Format = tensor.NCHW; return true }, status.ErrInvalidTensorSize, "want setup's "},
	{"no descriptor", func(_ *bed, x *atb.Tensor) bool { x.Desc = atb.Desc{}; return true }, status.ErrInvalidTensorSize, "want setup's "},
	{"no tensor", func(_ *bed, x *atb.Tensor) bool { *x = atb.Tensor{}; return true }, status.ErrInvalidTensorSize, "want setup's "},
}

// TestBadMemory spoils the memory of every operand of every operation between
// Setup and Execute.
func TestBadMemory(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		for _, tt := range memoryCases {
			check := func(p atb.VariantPack, x *atb.Tensor, name string) {
				text := tt.text
				if text == "want %d bytes for " {
					text = fmt.Sprintf(text, x.Desc.Bytes())
				}
				if !tt.spoil(v.bed, x) {
					return
				}
				err := v.op.Execute(p, v.ws, v.c)
				refused(t, err, tt.code, v.op.Name(), "execute", name+": "+text)
				require.ErrorIs(t, err, status.ErrInvalidParam, "ATB's code matches as well")
				require.Error(t, v.op.PreLaunch(p, v.ws, v.c))
			}
			for i := range v.pack.In {
				if v.in[i].host || v.in[i].absent() {
					continue
				}
				p := v.fresh()
				check(p, &p.In[i], v.sig.in[i])
			}
			for i := range v.pack.Out {
				p := v.fresh()
				check(p, &p.Out[i], v.sig.out[i])
			}
		}
		assert.Zero(t, v.c.Stats().Kernels, "nothing was enqueued")
		v.works("bad memory")
	})
}

// TestOverlappingMemory lays outputs over each other, over inputs and over the
// workspace, shifted: no kernel may do that.
func TestOverlappingMemory(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		big := v.area(1 << 20)
		for i := range v.pack.Out {
			n := v.pack.Out[i].Data.Size()
			for j, in := range v.pack.In {
				if v.in[j].host || v.in[j].absent() {
					continue
				}
				p := v.fresh()
				p.Out[i].Data = big.At(0, n)
				p.In[j].Data = big.At(n-1, in.Data.Size())
				err := v.op.Execute(p, v.ws, v.c)
				refused(t, err, status.ErrInvalidTensorAddr, v.op.Name(), "execute", "overlaps")
			}
			for j := range v.pack.Out[:i] {
				p := v.fresh()
				p.Out[i].Data = big.At(0, n)
				p.Out[j].Data = big.At(0, p.Out[j].Data.Size())
				err := v.op.Execute(p, v.ws, v.c)
				refused(t, err, status.ErrInvalidTensorAddr, v.op.Name(), "execute", "overlaps")
			}
			if !v.ws.IsNil() {
				p := v.fresh()
				p.Out[i].Data = big.At(0, n)
				err := v.op.Execute(p, big.At(0, v.ws.Size()), v.c)
				refused(t, err, status.ErrInvalidTensorAddr, v.op.Name(), "execute", "overlaps the workspace")
			}
		}
		assert.Zero(t, v.c.Stats().Kernels, "nothing was enqueued")
		v.works("overlapping memory")
	})
}

// TestInPlace binds an output to the whole memory of an input of its size: that
// is refused, or right.
func TestInPlace(t *testing.T) {
	done := 0
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		for i, o := range v.pack.Out {
			for j, in := range v.pack.In {
				if v.in[j].host || v.in[j].absent() || in.Desc.Bytes() != o.Desc.Bytes() {
					continue
				}
				p := v.fresh()
				for k := range p.In {
					p.In[k] = v.put(v.in[k])
				}
				p.Out[i].Data = p.In[j].Data
				if err := v.op.Execute(p, v.ws, v.c); err != nil {
					refused(t, err, status.ErrInvalidTensorAddr, v.op.Name(), "execute", "overlaps")
					continue
				}
				v.sync()
				done++
				assert.Equal(t, v.want[i], p.Out[i].Data.Bytes(), "output %d in the place of input %d", i, j)
			}
		}
		v.works("in place")
	})
	assert.Greater(t, done, 20)
}

// TestBadWorkspaces passes every operation that needs a workspace a wrong one.
func TestBadWorkspaces(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		n := v.ws.Size()
		if n == 0 {
			v.execute(v.op, v.pack, v.area(64)) // more than needed is fine
			v.works("no workspace")
			return
		}
		freed, err := v.c.Alloc(n)
		require.NoError(t, err)
		require.NoError(t, v.c.Free(freed))
		for _, tt := range []struct {
			ws   atb.Buffer
			code status.Code
			text string
		}{
			{atb.Buffer{}, status.ErrInvalidWorkspaceAddr, fmt.Sprintf("want a workspace of %d bytes, got none", n)},
			{v.ws.At(0, 0), status.ErrInvalidWorkspaceSize, fmt.Sprintf("want a workspace of %d bytes, got 0", n)},
			{v.ws.At(0, n-1), status.ErrInvalidWorkspaceSize, fmt.Sprintf("want a workspace of %d bytes, got %d", n, n-1)},
			{freed, status.ErrInvalidWorkspaceAddr, "the workspace was freed"},
			{v.area(n+64).At(1, n), status.ErrInvalidWorkspaceAddr, "multiple of 64 bytes"},
		} {
			err := v.op.Execute(v.pack, tt.ws, v.c)
			refused(t, err, tt.code, v.op.Name(), "execute", tt.text)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			require.ErrorIs(t, v.op.PreLaunch(v.pack, tt.ws, v.c), tt.code)
		}
		assert.Zero(t, v.c.Stats().Kernels)
		v.works("bad workspaces")
	})
}
