package kernelgraph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

func TestBuilderRefuses(t *testing.T) {
	b := newBuilder([]int64{8}, []int64{8})
	tmp := b.Temp("t", bytes(8))
	err := b.Kernel(kernelgraph.Call{Table: plain, Params: none{}, In: refs{tmp}, Out: refs{b.Out(0)}})
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	assert.ErrorContains(t, err, "t is read before any node writes it")
	assert.ErrorIs(t, b.Copy(tmp, b.Out(0)), status.ErrInvalidGraph)
	assert.ErrorIs(t, b.Foreign(nil, refs{tmp}, nil, 0), status.ErrInvalidGraph)
	assert.ErrorIs(t, b.Copy(b.In(0), b.Temp("u", bytes(9))), status.ErrInvalidGraph)
	err = b.Kernel(kernelgraph.Call{Name: "k", Table: plain, Params: none{}, Val: refs{kernelgraph.Absent}, Out: refs{b.Out(0)}})
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	for _, v := range []struct{ size, offset int64 }{{9, 0}, {8, 1}, {1, 8}, {0, 0}, {1, -1}, {8, 1 << 62}} {
		_, err := b.View(b.In(0), bytes(v.size), v.offset)
		assert.ErrorIs(t, err, status.ErrInvalidParam, "%+v", v)
	}
	_, err = b.Build()
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	assert.ErrorContains(t, err, "no node writes output 0")
}

func TestBuilderKeepsRefusals(t *testing.T) {
	picky := kernel.Define(kernel.Def[none, none]{
		Name:     "test/picky",
		Supports: func(*kernel.Problem, none) error { return fmt.Errorf("not this one") },
		Tile:     func(*kernel.Problem, none, *none, []int64) (kernel.Grid, error) { return kernel.Grid{Blocks: 1}, nil },
		Run:      func(*kernel.Args, int, *none, []int64) error { return nil },
	})
	b := newBuilder([]int64{8}, []int64{8})
	call(t, b, append(kernel.Table{picky}, plain...), refs{b.In(0)}, refs{b.Out(0)})
	g := build(t, b)
	require.Len(t, g.Nodes[0].Refused, 1)
	assert.Equal(t, "test/picky", g.Nodes[0].Refused[0].Kernel)
	var text strings.Builder
	require.NoError(t, g.WriteReasons(&text))
	assert.Equal(t, "0 k: test/plain instead of test/picky: not this one\n", text.String())
	err := b.Kernel(kernelgraph.Call{Table: kernel.Table{picky}, Params: none{}, In: refs{b.In(0)}, Out: refs{b.Out(0)}})
	assert.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "not this one")
}

// An absent operand is an empty descriptor.
func TestAbsentOperands(t *testing.T) {
	b := kernelgraph.New(env, "Test", []tensor.Desc{bytes(8), {}}, []tensor.Desc{{}, bytes(8)})
	assert.Equal(t, kernelgraph.Absent, b.In(1))
	assert.Equal(t, kernelgraph.Absent, b.Out(0))
	call(t, b, plain, refs{b.In(0), b.In(1)}, refs{b.Out(0), b.Out(1)})
	g := build(t, b)
	assert.Equal(t, []string{"test/plain[in0 -]->[- out1]"}, text(g))
	assert.Equal(t, tensor.Desc{}, g.Nodes[0].Problem.In[1])
}

// A kernel that may not work in place writes to a temporary when its output
// shares bytes with an input.
func TestDetours(t *testing.T) {
	for _, tt := range []struct {
		name       string
		table      kernel.Table
		inAt       int64 // the input is 8 bytes from here on
		outAt      int64 // so is the output
		wantDetour bool
	}{
		{"same bytes, not in place", plain, 0, 0, true},
		{"same bytes, in place", inPlace, 0, 0, false},
		{"shifted, in place", inPlace, 0, 4, true},
		{"shifted back, in place", inPlace, 4, 0, true},
		{"apart, not in place", plain, 0, 8, false},
		{"apart, before", plain, 8, 0, false},
		{"one byte", plain, 0, 7, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder([]int64{16}, []int64{16})
			tmp := b.Temp("t", bytes(16))
			call(t, b, plain, refs{b.In(0)}, refs{tmp})
			in, err := b.View(tmp, bytes(8), tt.inAt)
			require.NoError(t, err)
			out, err := b.View(tmp, bytes(8), tt.outAt)
			require.NoError(t, err)
			call(t, b, tt.table, refs{in}, refs{out})
			require.NoError(t, b.Copy(tmp, b.Out(0)))
			nodes := text(build(t, b))[1:]
			if tt.wantDetour {
				assert.Equal(t, []string{tt.table[0].Name() + "[t']->[detour]", "copy/bytes[detour]->[t']", "copy/bytes[t]->[out0]"}, nodes)
			} else {
				assert.Equal(t, []string{tt.table[0].Name() + "[t']->[t']", "copy/bytes[t]->[out0]"}, nodes)
			}
		})
	}
}

func TestCopies(t *testing.T) {
	b := newBuilder([]int64{16}, []int64{16})
	half := func(r kernelgraph.Ref, n, at int64) kernelgraph.Ref {
		v, err := b.View(r, bytes(n), at)
		require.NoError(t, err)
		return v
	}
	tmp := b.Temp("t", bytes(16))
	require.NoError(t, b.Copy(b.In(0), tmp))
	require.NoError(t, b.Copy(tmp, tmp))
	require.NoError(t, b.Copy(tmp, half(tmp, 16, 0)))
	require.NoError(t, b.Copy(half(tmp, 8, 0), half(tmp, 8, 8)))
	require.NoError(t, b.Copy(half(tmp, 12, 0), half(tmp, 12, 4)))
	require.NoError(t, b.Copy(tmp, b.Out(0)))
	g := build(t, b)
	assert.Equal(t, []string{
		"copy/bytes[in0]->[t]",
		"copy/bytes[t']->[t']",
		"copy/bytes[t']->[detour]", "copy/bytes[detour]->[t']", // halves that overlap
		"copy/bytes[t]->[out0]",
	}, text(g))
	for i := range g.Nodes {
		assert.Equal(t, kernelgraph.CopyNode, g.Nodes[i].Kind)
	}
}

func TestViewsOfViews(t *testing.T) {
	b := newBuilder([]int64{64}, []int64{4})
	v, err := b.View(b.In(0), bytes(32), 16)
	require.NoError(t, err)
	w, err := b.View(v, bytes(4), 8)
	require.NoError(t, err)
	_, err = b.View(v, bytes(4), 30)
	require.ErrorIs(t, err, status.ErrInvalidParam, "it leaves the view, though not the tensor")
	call(t, b, plain, refs{w}, refs{b.Out(0)})
	g := build(t, b)
	base, off := g.Base(g.Nodes[0].In[0])
	assert.Equal(t, g.Inputs[0], base)
	assert.Equal(t, int64(24), off)
}

// nodeOf adds a node to b that reads `in`, writes `out` in steps.
func nodeOf(b *kernelgraph.Builder, in, out refs, lower func(s *kernelgraph.Builder) error) error {
	return b.Node("n", "Op", in, out, 0, lower)
}

func TestNodeInPlace(t *testing.T) {
	// two reads its input twice and writes its output with the first kernel.
	two := func(s *kernelgraph.Builder) error {
		h := s.Temp("h", bytes(8))
		if err := s.Kernel(kernelgraph.Call{Table: inPlace, Params: none{}, In: refs{s.In(0)}, Out: refs{s.Out(0)}}); err != nil {
			return err
		}
		if err := s.Kernel(kernelgraph.Call{Table: inPlace, Params: none{}, In: refs{s.In(0)}, Out: refs{h}}); err != nil {
			return err
		}
		return s.Kernel(kernelgraph.Call{Table: inPlace, Params: none{}, In: refs{s.Out(0), h}, Out: refs{s.Out(0)}})
	}
	// update copies the input to the output and works on the output.
	update := func(s *kernelgraph.Builder) error {
		if err := s.Copy(s.In(0), s.Out(0)); err != nil {
			return err
		}
		return s.Kernel(kernelgraph.Call{Table: inPlace, Params: none{}, In: refs{s.Out(0)}, Out: refs{s.Out(0)}})
	}
	// last reads the input for the last time in the kernel that writes.
	last := func(s *kernelgraph.Builder) error {
		h := s.Temp("h", bytes(8))
		if err := s.Kernel(kernelgraph.Call{Table: plain, Params: none{}, In: refs{s.In(0)}, Out: refs{h}}); err != nil {
			return err
		}
		return s.Kernel(kernelgraph.Call{Table: inPlace, Params: none{}, In: refs{s.In(0), h}, Out: refs{s.Out(0)}})
	}
	for _, tt := range []struct {
		name  string
		lower func(*kernelgraph.Builder) error
		want  []string
	}{
		{"reads what it has changed", two, []string{
			"test/in-place[t]->[n/detour]", "test/in-place[t]->[n/h]", "test/in-place[n/detour n/h]->[n/detour]", "copy/bytes[n/detour]->[t]",
		}},
		{"updates", update, []string{"test/in-place[t']->[t']"}},
		{"reads and writes at last", last, []string{"test/plain[t]->[n/h]", "test/in-place[t n/h]->[t']"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder([]int64{8}, []int64{8})
			tmp := b.Temp("t", bytes(8))
			call(t, b, plain, refs{b.In(0)}, refs{tmp})
			require.NoError(t, nodeOf(b, refs{tmp}, refs{tmp}, tt.lower))
			require.NoError(t, b.Copy(tmp, b.Out(0)))
			g := build(t, b)
			got := text(g)
			assert.Equal(t, tt.want, got[1:len(got)-1])
			assert.Len(t, g.Scopes, 2, "what was lowered in vain leaves no scope")
			for _, l := range g.Lives() {
				assert.Less(t, int(l.Ref), len(g.Tensors))
			}
			plan(t, g, kernelgraph.WorkspaceOptions{Solver: 4})
		})
	}
	t.Run("apart", func(t *testing.T) {
		b := newBuilder([]int64{8}, []int64{8})
		require.NoError(t, nodeOf(b, refs{b.In(0)}, refs{b.Out(0)}, two))
		assert.Len(t, text(build(t, b)), 3, "an output of its own needs no detour")
	})
	t.Run("inside another node", func(t *testing.T) {
		b := newBuilder([]int64{8}, []int64{8})
		tmp := b.Temp("t", bytes(8))
		call(t, b, plain, refs{b.In(0)}, refs{tmp})
		require.NoError(t, nodeOf(b, refs{tmp}, refs{tmp}, func(s *kernelgraph.Builder) error {
			if err := nodeOf(s, refs{s.In(0)}, refs{s.Out(0)}, update); err != nil {
				return err
			}
			return s.Kernel(kernelgraph.Call{Table: plain, Params: none{}, In: refs{s.In(0)}, Out: refs{s.Temp("u", bytes(8))}})
		}))
		require.NoError(t, b.Copy(tmp, b.Out(0)))
		assert.Equal(t, []string{
			"copy/bytes[t]->[n/detour]", "test/in-place[n/detour]->[n/detour]",
			"test/plain[t]->[n/u]", "copy/bytes[n/detour]->[t]",
		}, text(build(t, b))[1:5])
	})
	t.Run("on two streams", func(t *testing.T) {
		b := newBuilder([]int64{8}, []int64{8})
		tmp := b.Temp("t", bytes(8))
		call(t, b, plain, refs{b.In(0)}, refs{tmp})
		err := nodeOf(b, refs{tmp}, refs{tmp}, func(s *kernelgraph.Builder) error {
			if err := update(s); err != nil {
				return err
			}
			s.SetStream(1)
			return s.Kernel(kernelgraph.Call{Table: plain, Params: none{}, In: refs{s.In(0)}, Out: refs{s.Temp("u", bytes(8))}})
		})
		assert.ErrorIs(t, err, status.ErrInvalidGraph)
	})
	t.Run("fails", func(t *testing.T) {
		b := newBuilder([]int64{8}, []int64{8})
		want := fmt.Errorf("no")
		assert.ErrorIs(t, nodeOf(b, refs{b.In(0)}, refs{b.Out(0)}, func(*kernelgraph.Builder) error { return want }), want)
	})
}

func TestSharing(t *testing.T) {
	k := func(table kernel.Table, in, out refs, b *kernelgraph.Builder) {
		call(t, b, table, in, out)
	}
	for _, tt := range []struct {
		name string
		make func(b *kernelgraph.Builder)
		want bool
	}{
		{"in place", func(b *kernelgraph.Builder) { k(inPlace, refs{b.In(0)}, refs{b.Out(0)}, b) }, true},
		{"not in place", func(b *kernelgraph.Builder) { k(plain, refs{b.In(0)}, refs{b.Out(0)}, b) }, false},
		{"never read", func(b *kernelgraph.Builder) { k(plain, nil, refs{b.Out(0)}, b) }, true},
		{"copied and updated", func(b *kernelgraph.Builder) {
			require.NoError(t, b.Copy(b.In(0), b.Out(0)))
			k(inPlace, refs{b.Out(0)}, refs{b.Out(0)}, b)
		}, true},
		{"read after the write", func(b *kernelgraph.Builder) {
			k(inPlace, refs{b.In(0)}, refs{b.Out(0)}, b)
			k(plain, refs{b.In(0)}, refs{b.Temp("t", bytes(8))}, b)
		}, false},
		{"read before the write", func(b *kernelgraph.Builder) {
			k(plain, refs{b.In(0)}, refs{b.Temp("t", bytes(8))}, b)
			k(plain, nil, refs{b.Out(0)}, b)
		}, true},
		{"written after the write", func(b *kernelgraph.Builder) {
			k(plain, nil, refs{b.Out(0)}, b)
			k(plain, nil, refs{b.In(0)}, b)
		}, false},
		{"written before the write", func(b *kernelgraph.Builder) {
			k(plain, nil, refs{b.In(0)}, b)
			k(inPlace, refs{b.In(0)}, refs{b.Out(0)}, b)
		}, true},
		{"both written at once", func(b *kernelgraph.Builder) { k(inPlace, nil, refs{b.In(0), b.Out(0)}, b) }, false},
		{"other windows", func(b *kernelgraph.Builder) {
			v, err := b.View(b.In(0), bytes(4), 4)
			require.NoError(t, err)
			w, err := b.View(b.Out(0), bytes(4), 0)
			require.NoError(t, err)
			k(inPlace, refs{v}, refs{w}, b)
		}, false},
		{"on two streams without order", func(b *kernelgraph.Builder) {
			k(plain, refs{b.In(0)}, refs{b.Temp("t", bytes(8))}, b)
			b.SetStream(1)
			k(plain, nil, refs{b.Out(0)}, b)
		}, false},
		{"on two streams with an event", func(b *kernelgraph.Builder) {
			k(plain, refs{b.In(0)}, refs{b.Temp("t", bytes(8))}, b)
			b.Record(1)
			b.SetStream(1)
			b.Wait(1)
			k(plain, nil, refs{b.Out(0)}, b)
		}, true},
		{"on two streams with another event", func(b *kernelgraph.Builder) {
			k(plain, refs{b.In(0)}, refs{b.Temp("t", bytes(8))}, b)
			b.Record(1)
			b.SetStream(1)
			b.Wait(2)
			k(plain, nil, refs{b.Out(0)}, b)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder([]int64{8}, []int64{8})
			tt.make(b)
			g := build(t, b)
			assert.Equal(t, tt.want, kernelgraph.NewSharing(g).Allowed(g.Inputs[0], g.Outputs[0]))
		})
	}
	b := newBuilder([]int64{8}, []int64{9})
	k(inPlace, refs{b.In(0)}, refs{b.Out(0)}, b)
	g := build(t, b)
	assert.False(t, kernelgraph.NewSharing(g).Allowed(g.Inputs[0], g.Outputs[0]), "other sizes")
}
