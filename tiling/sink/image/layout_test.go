package image

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink/argsformat"
)

// Sizes and offsets of the published structures.
func TestSizes(t *testing.T) {
	assert.Equal(t, 248, ShapeBytes)
	assert.Equal(t, 536, StorageShapeBytes)
	assert.Equal(t, 96, StorageFormatBytes)
	assert.Equal(t, 640, TensorDataAt)
	assert.Equal(t, 72, TensorDataBytes)
	assert.Equal(t, 752, TensorBytes)
	assert.Equal(t, 1392, SlotBytes)
	assert.Equal(t, 20, HeadBytes)
	assert.Equal(t, 64, DataHeaderBytes)
	assert.Equal(t, 64, DataAt)
	assert.Equal(t, 64+128, VectorHeaderBytes+MaxWorkspaces*8)
	assert.Equal(t, 48, KernelContextBytes)
	assert.Equal(t, 11, numOutputs)
	args := NewArgs(&Spec{Val: []tensor.Desc{tensor.Of(tensor.Int32, 1), {}, tensor.Of(tensor.Int32, 1)}}, nil, false)
	for i, want := range []int64{660, 660 + 1392} {
		at, err := args.TensorAt(i)
		require.NoError(t, err)
		assert.Equal(t, want, at, "absent inputs have no slot")
	}
	assert.Equal(t, int64(20+2*1392), args.WordsAt())
	for _, i := range []int{-1, 2} {
		_, err := args.TensorAt(i)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, fmt.Sprintf("want a read input from 0 to 1, got %d", i))
	}
}

func TestRoomForTilingData(t *testing.T) {
	for given, want := range map[int64]int64{-1: 16384, math.MinInt64: 16384, 0: 0, 1: 8, 8: 8, 9: 16, 16385: 16392} {
		l, err := NewLayout(&Spec{DataBytes: given})
		require.NoError(t, err)
		assert.Equal(t, want, l.Data, "%d", given)
		assert.Equal(t, 64+want, l.VectorAt)
		assert.Equal(t, 64+want+64+128, l.RegionAt)
		assert.Zero(t, l.DumpAt)
	}
}

func TestRegion(t *testing.T) {
	in := tensor.Of(tensor.Float32, 2)
	for ins := range 4 {
		for vals := range 4 {
			for outs := range 4 {
				s := &Spec{Name: "name", Type: "type/of it", DataBytes: 24, Params: make([]byte, 13), Workspaces: make([]int64, outs)}
				for range ins {
					s.In = append(s.In, in, tensor.Desc{})
				}
				for range vals {
					s.Val = append(s.Val, in)
				}
				for range outs {
					s.Out = append(s.Out, in)
				}
				l, err := NewLayout(s)
				require.NoError(t, err)
				io := int64(ins + vals + outs)
				c := io + 11 + 4
				tiled := int64(len("name")+1+len("type/of it")+1) + io*752 + 48 + 8*c + (16+256)*c
				info := align(24+4*(2*int64(ins)+int64(vals+outs)), 8) + 8*int64(11+outs) + 16
				assert.Equal(t, l.RegionAt+(tiled+7)/8*8+info, l.Size)
				assert.Equal(t, l.TensorsAt, l.RegionAt, "tensors first: inputs whose value is not read, then outputs")
				assert.Equal(t, l.TensorsAt+752*int64(ins+outs), l.TypeAt)
				assert.Equal(t, l.TypeAt+11, l.NameAt)
				assert.GreaterOrEqual(t, l.InfoAt, l.NameAt+5)
				assert.GreaterOrEqual(t, l.ContextAt, l.InfoAt+info, "compute node info lies before the kernel context")
				assert.Zero(t, l.CellsAt%128)
				assert.GreaterOrEqual(t, l.CellsAt, l.ContextAt+48+8*int64(l.cells()))
				assert.Less(t, l.CellsAt, l.ContextAt+48+8*int64(l.cells())+128)
				assert.LessOrEqual(t, l.cellAt(l.cells()-1)+16, l.Size, "the published size holds all parts")
				assert.Equal(t, int64(128), l.cellAt(1)-l.cellAt(0))
				assert.Equal(t, ins+vals, l.Inputs)
				assert.Equal(t, vals, l.Read)
			}
		}
	}
}

// Bytes of a context: headers, addresses, tensors without data, cells.
func TestEncodedContext(t *testing.T) {
	b := newBed(t, sums, problem(), false, func(s *Spec) {
		s.Deterministic, s.Level = true, 3
		s.Launch[TilingKey], s.Launch[ScheduleMode] = 9, 4
	})
	l, ctx, base := b.layout, b.mem.Out[contextWindow], uint64(OutputAt(contextWindow, 0))
	word := func(at int64) uint64 { return le.Uint64(ctx[at:]) }
	assert.Equal(t, []uint64{uint64(l.Data), 0, base + 64}, []uint64{word(0), word(8), word(16)}, "capacity, size, address of the tiling data")
	assert.Equal(t, []uint64{16, 0, base + uint64(l.VectorAt) + 64}, []uint64{word(l.VectorAt), word(l.VectorAt + 8), word(l.VectorAt + 56)}, "the workspace vector")
	assert.Equal(t, "sums/go\x00layer/sums\x00", string(ctx[l.TypeAt:l.TypeAt+19]))
	assert.Equal(t, []uint64{5 + 5, 11}, []uint64{word(l.ContextAt), word(l.ContextAt + 8)}, "cells: 5 tensors and 5 more in, 11 out")
	cell := func(i int) uint64 {
		at := word(l.ContextAt + 48 + 8*int64(i))
		require.Equal(t, base+uint64(l.cellAt(i)), at)
		return word(int64(at - base))
	}
	for i, want := range []uint64{
		base + uint64(l.TensorsAt), base + uint64(l.TensorsAt) + 752, uint64(InputAt(argsWindow, 660)), uint64(InputAt(argsWindow, 660+1392)), base + uint64(l.TensorsAt) + 2*752,
		0, uint64(InputAt(platformWindow, 0)), 0, 1, 3,
		9, 0, 0, base, base + uint64(l.VectorAt), 0, 4, 0, 0, 0, 0,
	} {
		assert.Equal(t, want, cell(i), "cell %d", i)
	}
	pub := l.Published(OutputAt(contextWindow, 0))
	assert.Equal(t, base+uint64(l.KeyAt()), uint64(pub.Key))
	assert.Equal(t, l.cellAt(10), l.KeyAt())
	assert.Equal(t, l.cellAt(11), l.BlockDimAt())
	assert.Equal(t, base+64, uint64(pub.Data))

	for i, want := range []tensor.Desc{b.spec.In[0], b.spec.In[2], b.spec.Out[0]} {
		d, data, err := getTensor(ctx[l.TensorsAt+752*int64(i):])
		require.NoError(t, err)
		assert.Equal(t, want, d)
		assert.Zero(t, data, "a tensor that only has a shape")
		assert.Zero(t, word(l.TensorsAt+752*int64(i)+640+8))
	}
	assert.Equal(t, []uint64{2, 3, 5}, []uint64{word(l.TensorsAt), word(l.TensorsAt + 8), word(l.TensorsAt + 16)}, "rank and dimensions")

	args := b.mem.In[argsWindow]
	assert.Equal(t, []uint32{uint32(len(args)), 3, 0, 0, 0}, []uint32{le.Uint32(args), le.Uint32(args[4:]), le.Uint32(args[8:]), le.Uint32(args[12:]), le.Uint32(args[16:])})
	assert.Equal(t, len(args), 20+2*1392+3*8)
	for i, want := range b.spec.Val {
		at, err := b.args.TensorAt(i)
		require.NoError(t, err)
		d, data, err := getTensor(args[at:])
		require.NoError(t, err)
		assert.Equal(t, want, d)
		assert.Equal(t, InputAt(valueWindow+i, 0), data)
		assert.Equal(t, uint64(want.Bytes()), le.Uint64(args[at+640+8:]))
	}
	words := args[b.args.WordsAt():]
	assert.Equal(t, []uint64{uint64(pub.Context), uint64(pub.Type), uint64(OutputAt(flagWindow, 0))}, []uint64{le.Uint64(words), le.Uint64(words[8:]), le.Uint64(words[16:])})
}

// On the engine of other libraries a workspace is two words.
func TestLogWorkspaceIsTwoWords(t *testing.T) {
	b := newBed(t, sums, problem(), true, nil)
	args := b.mem.In[argsWindow]
	assert.Equal(t, uint32(5), le.Uint32(args[4:]))
	words := args[b.args.WordsAt():]
	require.Len(t, words, 5*8)
	assert.Equal(t, []uint64{uint64(OutputAt(logWindow, 0)), 64}, []uint64{le.Uint64(words[24:]), le.Uint64(words[32:])})
}

func TestDumpIndex(t *testing.T) {
	b := newBed(t, sums, problem(), false, func(s *Spec) { s.Dump, s.DumpIndex = true, 0xfedc })
	l, ctx := b.layout, b.mem.Out[contextWindow]
	assert.Equal(t, l.VectorAt-8, l.DumpAt, "the last 8 bytes of the room")
	assert.Equal(t, uint64(0xfedc), le.Uint64(ctx[l.DumpAt:]))
	assert.Equal(t, uint64(l.DumpAt-64), le.Uint64(ctx), "which tilings do not get")
	b.setValues(values)
	require.NoError(t, b.run(functions(t)))
	data, _ := b.result()
	assert.Len(t, data, int(l.Data), "the tiling fills its room")
	assert.Equal(t, uint64(0xfedc), le.Uint64(ctx[l.DumpAt:]))
	for _, tt := range []struct {
		on, described bool
		sizes         []int64
		write         bool
		warning       string
	}{
		{true, true, []int64{1024, 112}, true, ""},
		{false, true, []int64{1024}, false, ""},
		{true, false, []int64{1024}, false, "not described"},
		{true, true, nil, false, "no sizes"},
	} {
		write, warning := DumpIndex(tt.on, tt.described, tt.sizes)
		assert.Equal(t, tt.write, write)
		assert.Equal(t, tt.warning == "", warning == "")
		assert.Contains(t, warning, tt.warning)
	}
}

func TestSpecErrors(t *testing.T) {
	for want, s := range map[string]*Spec{
		"at most 1073741824 bytes of tiling data": {DataBytes: 1<<30 + 1},
		"at most 16 workspaces, got 17":           {Workspaces: make([]int64, 17)},
		"workspace 1: got -1 bytes":               {Workspaces: []int64{0, -1}},
		"at most 4096 tensors, got 4097":          {In: make([]tensor.Desc, 4000), Val: make([]tensor.Desc, 50), Out: make([]tensor.Desc, 47)},
		"bytes of parameters":                     {Params: make([]byte, 1<<16+1)},
		"bytes of names":                          {Name: string(make([]byte, 1<<16)), Type: "t"},
	} {
		_, err := NewLayout(s)
		require.ErrorIs(t, err, status.ErrInvalidParam, want)
		assert.ErrorContains(t, err, want)
	}
	p := problem()
	p.Params = "text"
	assert.Panics(t, func() { _, _ = FromKernel("x", sums, p) }, "a problem that Supports has not seen")
}

func TestEncodeErrors(t *testing.T) {
	b := newBed(t, sums, problem(), false, nil)
	base, plat := OutputAt(0, 0), InputAt(1, 0)
	read := []Address{InputAt(0, 660), InputAt(0, 660+1392)}
	dst := make([]byte, b.layout.Size)
	for want, encode := range map[string]func() error{
		"want 10032 bytes":                func() error { return b.layout.Encode(dst[1:], base, b.spec, read, plat) },
		"and 2 read tensors":              func() error { return b.layout.Encode(dst, base, b.spec, read[:1], plat) },
		"aligned to 128 bytes":            func() error { return b.layout.Encode(dst, base.At(8), b.spec, read, plat) },
		"aligned to 128 bytes, got 0x0":   func() error { return b.layout.Encode(dst, 0, b.spec, read, plat) },
		"want platform information":       func() error { return b.layout.Encode(dst, base, b.spec, read, 0) },
		"want the tensor of read input 1": func() error { return b.layout.Encode(dst, base, b.spec, []Address{read[0], 0}, plat) },
	} {
		assert.ErrorContains(t, encode(), want)
	}
}

func TestArgsErrors(t *testing.T) {
	b := newBed(t, sums, problem(), false, nil)
	data := []Address{InputAt(2, 0), InputAt(3, 0)}
	good := Words{Published: b.layout.Published(OutputAt(0, 0))}
	encode := func(text string, change func(*Words)) error {
		f, err := argsformat.Parse(text)
		require.NoError(t, err)
		a, w := NewArgs(b.spec, f, false), good
		if change != nil {
			change(&w)
		}
		return a.Encode(make([]byte, a.Size()), data, &w)
	}
	require.NoError(t, encode("{tiling_context}{*op_type}{}{tiling_context.tiling_key}{ws0*}{event_addr1*}", nil))
	require.NoError(t, encode("{skn3tiling_context}{skn3*op_type}{skn3event_addr1*}", nil), "the items of a sub node")
	for want, err := range map[string]error{
		`item "tiling_context": the tiling task has not been launched`: encode("{tiling_context}", func(w *Words) { w.Context = 0 }),
		`item "*op_type": the tiling task has not been launched`:       encode("{*op_type}", func(w *Words) { w.Type = 0 }),
		`item "i0" does not belong there`:                              encode("{i0}", nil),
		`item ".32b" does not belong there`:                            encode("{.32b}", nil),
	} {
		require.ErrorIs(t, err, status.ErrInternal)
		assert.ErrorContains(t, err, want)
	}
	for _, part := range []argsformat.Part{argsformat.TilingKey, argsformat.TilingData, argsformat.BlockDim} {
		err := encode("{"+argsformat.Context(part).String()+"}", func(w *Words) { w.Published = Published{} })
		require.ErrorIs(t, err, status.ErrInternal)
		assert.ErrorContains(t, err, "the tiling task has not been launched")
	}
	unknown := NewArgs(b.spec, argsformat.Format{argsformat.Context(7)}, false)
	err := unknown.Encode(make([]byte, unknown.Size()), data, &good)
	require.ErrorIs(t, err, status.ErrInternal)
	assert.ErrorContains(t, err, "unknown part 7 of a tiling context")
	err = b.args.Encode(make([]byte, 8), data, &good)
	assert.ErrorIs(t, err, status.ErrInternal)
	err = b.args.Encode(make([]byte, b.args.Size()), data[:1], &good)
	assert.ErrorContains(t, err, "2 inputs")
}

func TestMemory(t *testing.T) {
	m := Memory{In: [][]byte{make([]byte, 8), nil}, Out: [][]byte{make([]byte, 4)}}
	for _, tt := range []struct {
		a  Address
		n  int64
		ok bool
	}{
		{InputAt(0, 0), 8, true}, {InputAt(0, 8), 0, true}, {InputAt(0, 3), 5, true}, {InputAt(0, 3), 6, false}, {InputAt(0, 9), 0, false},
		{InputAt(0, 0), -1, false}, {InputAt(1, 0), 0, true}, {InputAt(1, 0), 1, false}, {InputAt(2, 0), 0, false},
		{OutputAt(0, 0), 4, true}, {OutputAt(0, 0), 5, false}, {OutputAt(1, 0), 0, false}, {0, 0, false}, {outputBit, 0, false}, {math.MaxUint64, 1, false}, {5, 1, false},
	} {
		b, err := m.Bytes(tt.a, tt.n)
		if tt.ok {
			require.NoError(t, err, "%#x", uint64(tt.a))
			assert.Len(t, b, int(tt.n))
			assert.Equal(t, len(b), cap(b))
			continue
		}
		assert.ErrorIs(t, err, status.ErrInvalidTensorAddr, "%#x", uint64(tt.a))
	}
	assert.Zero(t, Address(0).At(8))
	assert.Equal(t, InputAt(3, 24), InputAt(3, 16).At(8))
}
