package image

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

func functions(t testing.TB) *Functions {
	f, err := NewFunctions(sums)
	require.NoError(t, err)
	return f
}

// The tiling on the device, from bytes alone, is that on the host.
func TestTilingFromBytes(t *testing.T) {
	p := problem()
	b := newBed(t, sums, p, false, nil)
	f := functions(t)
	// Nothing of the host's is left but the bytes.
	b.spec.In, b.spec.Params = nil, nil
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		vals := [][]int64{make([]int64, 4), make([]int64, 2)}
		for _, v := range vals {
			for i := range v {
				v[i] = int64(int32(r.Uint32()))
			}
		}
		b.setValues(vals)
		clear(b.mem.Out[flagWindow])
		require.NoError(t, b.run(f))
		data, grid := b.result()
		wantData, wantGrid := hosted(t, sums, p, vals)
		require.Equal(t, wantData, data)
		require.Equal(t, wantGrid, grid)
		assert.Equal(t, uint64(1), b.flag())
		ctx := b.mem.Out[contextWindow]
		assert.Equal(t, []uint64{1, uint64(sums.Scratch(p))}, []uint64{le.Uint64(ctx[b.layout.VectorAt+8:]), le.Uint64(ctx[b.layout.VectorAt+64:])}, "the workspace vector")
	}
}

// An input that moved is read where it is now; context and arguments stay as
// they are.
func TestMovedInput(t *testing.T) {
	b := newBed(t, sums, problem(), false, nil)
	f := functions(t)
	b.setValues(values)
	require.NoError(t, b.run(f))
	_, before := b.result()
	moved := block(16)
	copy(device.View[int32](moved), []int32{100, 0, 0, 0})
	b.mem.In[valueWindow] = moved
	require.NoError(t, b.run(f))
	_, after := b.result()
	assert.Equal(t, before.Key-2+100, after.Key)
}

func TestSteadyTilingAllocatesNothing(t *testing.T) {
	b := newBed(t, sums, problem(), true, nil)
	b.setValues(values)
	f := functions(t)
	run := f.Entry().Run
	args := &device.CPUArgs{Inputs: b.mem.In, Outputs: b.mem.Out}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if run(args) != nil {
			panic("tiling failed")
		}
	}))
}

func TestWhatAFunctionSees(t *testing.T) {
	b := newBed(t, sums, problem(), false, func(s *Spec) { s.Deterministic, s.Level = true, 2; s.Type = "own" })
	b.setValues(values)
	f := &Functions{}
	f.Register("own", func(*Context) error { return errors.New("an older one") })
	f.Register("own", func(c *Context) error {
		assert.Equal(t, "own layer/sums", c.Type()+" "+c.Name())
		require.Equal(t, 4, c.Inputs())
		require.Equal(t, 1, c.Outputs())
		p := problem()
		for i, want := range []tensor.Desc{p.In[0], p.In[2], p.Val[0], p.Val[1]} {
			d, data, err := c.Input(i)
			require.NoError(t, err)
			assert.Equal(t, want, d)
			if i < 2 {
				assert.Nil(t, data, "a tensor whose value is not declared has no data")
			} else {
				assert.Len(t, data, int(want.Bytes()))
			}
		}
		d, err := c.Output(0)
		require.NoError(t, err)
		assert.Equal(t, p.Out[0], d)
		m, err := c.Platform()
		require.NoError(t, err)
		assert.Equal(t, p.Machine, m)
		on, level, err := c.Deterministic()
		require.NoError(t, err)
		assert.Equal(t, []any{true, uint32(2)}, []any{on, level})
		require.NoError(t, c.Append([]byte("abc")))
		require.NoError(t, c.Append([]byte("de")))
		data, err := c.Data()
		require.NoError(t, err)
		assert.Equal(t, "abcde", string(data))
		require.NoError(t, c.Set(ScheduleMode, 1))
		for _, wrong := range []error{
			c.Set(tilingDataOut, 0), c.Set(workspacesOut, 0), c.Set(numOutputs, 0),
			second(c.Get(numOutputs)), second(c.Output(1)), second(c.Output(-1)), third(c.Input(4)), third(c.Input(-1)),
		} {
			assert.ErrorIs(t, wrong, status.ErrInvalidParam)
		}
		require.NoError(t, c.Set(TilingKey, 77))
		return c.Set(BlockDim, 3)
	})
	assert.True(t, f.Has("own"))
	assert.False(t, f.Has("sums/go"))
	for range 2 {
		require.NoError(t, b.run(f), "the tiling data begin anew")
		data, grid := b.result()
		assert.Equal(t, "abcde", string(data))
		assert.Equal(t, kernel.Grid{Key: 77, Blocks: 3}, grid)
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// A failing function leaves the flag alone, and its error names the operation.
func TestFailuresOfTheFunction(t *testing.T) {
	own := errors.New("own failure")
	for _, tt := range []struct {
		name string
		fn   Function
		code status.Code
		want string
	}{
		{"its error", func(*Context) error { return own }, status.ErrInternal, "own failure"},
		{"its code", func(*Context) error { return status.Errorf(status.ErrInvalidTensorSize, "too long") }, status.ErrInvalidTensorSize, "too long"},
		{"data overflow", func(c *Context) error { return c.Append(make([]byte, 1000)) }, status.ErrOutOfDeviceMemory, "tiling data: want 1000 bytes behind 0, got room for 184"},
		{"data overflow, second", func(c *Context) error {
			return errors.Join(c.Append(make([]byte, 182)), c.Append(make([]byte, 3)))
		}, status.ErrOutOfDeviceMemory, "tiling data: want 3 bytes behind 182, got room for 184"},
		{"negative data", func(c *Context) error { return second(c.Grow(-1)) }, status.ErrOutOfDeviceMemory, "want -1 bytes"},
		{"17 workspaces", func(c *Context) error { return c.SetWorkspaces(make([]int64, 17)) }, status.ErrInvalidParam, "want at most 16 workspaces, got 17"},
		{"workspace beyond the bound", func(c *Context) error { return c.SetWorkspaces([]int64{961}) }, status.ErrInvalidWorkspaceSize,
			"want at most the 960 bytes that the host planned for workspace 0, got 961"},
		{"workspace that was not planned", func(c *Context) error { return c.SetWorkspaces([]int64{960, 1}) }, status.ErrInvalidWorkspaceSize, "the 0 bytes that the host planned for workspace 1, got 1"},
		{"negative workspace", func(c *Context) error { return c.SetWorkspaces([]int64{-1}) }, status.ErrInvalidWorkspaceSize, "got -1"},
	} {
		b := newBed(t, sums, problem(), false, nil)
		f := &Functions{}
		f.Register("sums/go", tt.fn)
		err := b.run(f)
		require.ErrorIs(t, err, tt.code, tt.name)
		assert.ErrorContains(t, err, tt.want, tt.name)
		assert.Contains(t, err.Error(), "sums/go: tiling on the device: layer/sums: ", tt.name)
		assert.Zero(t, b.flag(), "%s: nobody is told", tt.name)
	}
	b := newBed(t, sums, problem(), false, nil)
	f := &Functions{}
	f.Register("sums/go", func(*Context) error { return own })
	assert.ErrorIs(t, b.run(f), own)
	f.Register("sums/go", func(c *Context) error { return c.SetWorkspaces(slices.Concat([]int64{960}, make([]int64, 15))) })
	assert.NoError(t, b.run(f), "16 workspaces, 15 of them empty")
}

// The kernel's own tiling fails where the host planned too little.
func TestKernelBeyondItsPlan(t *testing.T) {
	b := newBed(t, sums, problem(), false, func(s *Spec) { s.DataBytes = 100 })
	err := b.run(functions(t))
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
	assert.ErrorContains(t, err, "sums/go: tiling on the device: layer/sums: tiling data: want 184 bytes behind 0, got room for 104")
	b = newBed(t, sums, problem(), false, func(s *Spec) { s.Workspaces = []int64{959} })
	err = b.run(functions(t))
	require.ErrorIs(t, err, status.ErrInvalidWorkspaceSize)
	assert.ErrorContains(t, err, "sums/go: tiling on the device: layer/sums")
	b = newBed(t, sums, problem(), false, func(s *Spec) { s.Workspaces = nil })
	assert.ErrorIs(t, b.run(functions(t)), status.ErrInvalidWorkspaceSize)
	b = newBed(t, sums, problem(), false, func(s *Spec) { s.Params = s.Params[:8] })
	err = b.run(functions(t))
	require.ErrorIs(t, err, status.ErrInternal)
	assert.ErrorContains(t, err, "want 16 bytes of parameters of sums/go, got 8")
	p := problem()
	p.Val[0].DType = tensor.Float32
	b = newBed(t, sums, p, false, nil)
	err = b.run(functions(t))
	require.ErrorIs(t, err, status.ErrInvalidTensorDType)
	assert.ErrorContains(t, err, "value 0 of the tiling")
}

func TestArgumentsOfTheEntry(t *testing.T) {
	f := functions(t)
	for _, a := range []*device.CPUArgs{{}, {Inputs: [][]byte{nil}}} {
		err := f.Entry().Run(a)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "want arguments, got none")
	}
	for _, tt := range []struct {
		name   string
		change func(*bed)
		want   string
	}{
		{"short", func(b *bed) { b.mem.In[argsWindow] = make([]byte, 19) }, "want arguments of at least 20 bytes, got 19"},
		{"cut", func(b *bed) { b.mem.In[argsWindow] = b.mem.In[argsWindow][:100] }, "in 100 with 3 words"},
		{"two words", func(b *bed) { le.PutUint32(b.mem.In[argsWindow][4:], 2) }, "with 2 words"},
		{"more words than bytes", func(b *bed) { le.PutUint32(b.mem.In[argsWindow][4:], 1<<31) }, "words"},
		{"nil context", func(b *bed) { le.PutUint64(b.mem.In[argsWindow][b.args.WordsAt():], 0) }, "want the addresses of context and operation type, got 0x0"},
		{"nil operation type", func(b *bed) { le.PutUint64(b.mem.In[argsWindow][b.args.WordsAt()+8:], 0) }, "and 0x0"},
		{"operation type elsewhere", func(b *bed) { le.PutUint64(b.mem.In[argsWindow][b.args.WordsAt()+8:], uint64(InputAt(9, 0))) }, "window 9"},
		{"context elsewhere", func(b *bed) { le.PutUint64(b.mem.In[argsWindow][b.args.WordsAt():], uint64(OutputAt(9, 0))) }, "window 9"},
		{"no function", func(b *bed) { copy(b.mem.Out[contextWindow][b.layout.TypeAt:], "sumz") }, `no function is registered for operation type "sumz/go"`},
	} {
		b := newBed(t, sums, problem(), false, nil)
		tt.change(b)
		err := b.run(f)
		require.ErrorIs(t, err, status.ErrInvalidParam, tt.name)
		assert.ErrorContains(t, err, tt.want, tt.name)
		assert.Zero(t, b.flag())
	}
	b := newBed(t, sums, problem(), false, nil)
	err := b.run(&Functions{})
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "no function is registered")
	_, err = NewFunctions(kernel.Define(kernel.Def[params, plan]{
		Name: "host/go", Tile: func(*kernel.Problem, params, *plan, []int64) (kernel.Grid, error) { return kernel.Grid{Blocks: 1}, nil },
		Run: func(*kernel.Args, int, *plan, []int64) error { return nil },
	}))
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "tiling function of host/go: want placement TILING_ON_AICPU, got TILING_ON_HOST")
	le.PutUint64(b.mem.In[argsWindow][b.args.WordsAt()+16:], uint64(OutputAt(flagWindow, 4)))
	assert.ErrorIs(t, b.run(f), status.ErrInvalidTensorAddr, "a flag outside of its window")
	b.mem.Out[flagWindow] = block(16)
	b.setValues(values)
	assert.ErrorContains(t, b.run(f), "aligned to 8 bytes")
}

func TestLogHook(t *testing.T) {
	b := newBed(t, sums, problem(), true, nil)
	b.setValues(values)
	f := functions(t)
	require.NoError(t, b.run(f), "no hook")
	var got []int
	var warned []error
	broken := errors.New("broken log")
	f.Log = func(w []byte) error { got = append(got, len(w)); return broken }
	require.NoError(t, b.run(f), "a log that fails stops nothing")
	f.Warn = func(err error) { warned = append(warned, err) }
	require.NoError(t, b.run(f))
	assert.Equal(t, []int{64, 64}, got)
	assert.Equal(t, []error{broken}, warned)
	le.PutUint64(b.mem.In[argsWindow][b.args.WordsAt()+24:], uint64(OutputAt(logWindow, 8)))
	require.NoError(t, b.run(f))
	require.Len(t, warned, 2)
	assert.ErrorIs(t, warned[1], status.ErrInvalidTensorAddr)
	plain := newBed(t, sums, problem(), false, nil)
	plain.setValues(values)
	require.NoError(t, plain.run(f))
	assert.Len(t, got, 2, "no workspace, no log")
}

// What does not reach the launch must not differ from it in a checked build.
func TestIgnoredOutputs(t *testing.T) {
	for _, o := range ignored {
		b := newBed(t, sums, problem(), false, func(s *Spec) { s.Launch[o] = 5 })
		f := &Functions{}
		set := uint64(5)
		f.Register("sums/go", func(c *Context) error { return c.Set(o, set) })
		f.Checked = true
		require.NoError(t, b.run(f))
		set = 6
		err := b.run(f)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "output "+o.String()+" does not reach the launch: want the launch's 5, got 6")
		f.Checked = false
		require.NoError(t, b.run(f))
	}
	assert.Len(t, ignored, numOutputs-4)
}

// Damaged bytes are errors, whatever they are.
func TestDamagedBytes(t *testing.T) {
	f := functions(t)
	f.Log = func([]byte) error { return nil }
	r := rand.New(rand.NewPCG(9, 10))
	failed := 0
	for range 3000 {
		b := newBed(t, sums, problem(), true, nil)
		b.setValues(values)
		for range 1 + r.IntN(3) {
			w := [][]byte{b.mem.In[argsWindow], b.mem.Out[contextWindow]}[r.IntN(2)]
			w[r.IntN(len(w))] ^= 1 << r.IntN(8)
		}
		if err := b.run(f); err != nil {
			failed++
			_, ok := errors.AsType[*status.OpError](err)
			require.True(t, ok, "%v", err)
		}
	}
	assert.NotZero(t, failed)
}
