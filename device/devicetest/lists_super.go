package devicetest

import (
	"encoding/binary"
	"errors"

	"github.com/stretchr/testify/require"

	"goatb/device"
)

func superChecks() []listCheck {
	noUpdate := listDefaults()
	noUpdate.NoTaskUpdate = true
	return []listCheck{
		{"reads key and block dim itself", noUpdate, checkSuper},
		{"waits for its flags", listDefaults(), checkFlagHeld},
		{"a failed tiling ends the poll", listDefaults(), checkSuperFails},
		{"a kernel in its middle fails", listDefaults(), checkSubKernelFails},
		{"key not in the table", listDefaults(), checkSuperUnknownKey},
	}
}

// super is a list of one super kernel: a kernel that is tiled by the host, then
// the given operations with their tilings hoisted before it. Output i belongs to
// operation i, output 0 to the first kernel.
func superList(ops ...*operation) *device.TaskList {
	l := &device.TaskList{Name: "fused"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	subs := []device.SubKernel{{Label: label("plain"), Kernel: device.Kernel{
		Program: marked(9), Blocks: 2, Key: 9, Operands: []device.Address{output(0)}, Inline: []byte{1},
	}}}
	for i, o := range ops {
		flag := l.NewEvent()
		p := o.preprocess(input(i))
		p.Notify, p.Flag = true, flag
		l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Label: label(o.name), Preprocess: p})
		subs = append(subs, device.SubKernel{Label: label(o.name), Kernel: o.kernel(output(i + 1)), Sunk: &device.Sunk{Flag: flag, Patch: o.patch()}})
	}
	l.Add(device.Task{Kind: device.SuperKernelTask, Stream: main, Label: label("super"), Super: subs})
	return l
}

// superMoves gives a super kernel memory for its operations.
func (b *listBed) superMoves(ins, outs []device.Buffer) *device.Refresh {
	r := &device.Refresh{}
	for i, in := range ins {
		r.Moves = append(r.Moves, device.Relocation{Type: device.InputMemory, Index: i, Buffer: in})
	}
	for i, out := range outs {
		r.Moves = append(r.Moves, device.Relocation{Type: device.OutputMemory, Index: i, Buffer: out})
	}
	return r
}

func checkSuper(b *listBed) {
	x, y := b.operation("x"), b.operation("y")
	m, s := b.load(superList(x, y)), b.stream()
	require.Equal(b, device.BlocksPending, m.States(nil)[2].Blocks)
	ins, outs := []device.Buffer{b.value(0), b.value(0)}, []device.Buffer{b.out(), b.out(), b.out()}
	r := b.superMoves(ins, outs)
	for n := range byte(20) {
		ins[0].Bytes()[0], ins[1].Bytes()[0] = n, n+5
		for _, out := range outs {
			copy(out.Bytes(), repeat(poison, 8*marks))
		}
		m.replay(s, r)
		r = nil
		s.sync()
		require.Equal(b, markedWords(9, 9, 2, 1), words(outs[0]))
		for i, v := range []byte{n, n + 5} {
			key, blocks := tiled(v)
			require.Equal(b, markedWords(key, key, blocks, v), words(outs[i+1]), n)
		}
	}
	key, last := tiled(24)
	_, first := tiled(19)
	require.Equal(b, device.TaskState{Blocks: uint32(max(2, first, last)), Key: key, Runs: 20}, m.States(nil)[2])
	require.Equal(b, int64(0), m.Stats().Updates)
}

func checkFlagHeld(b *listBed) {
	o := b.operation("op")
	m, s := b.load(superList(o)), b.stream()
	in, outs := b.value(4), []device.Buffer{b.out(), b.out()}
	r := b.superMoves([]device.Buffer{in}, outs)
	for round := range int64(3) {
		release := o.held()
		ended := m.begin(s, r)
		b.settle()
		require.Equal(b, 2*round+1, m.Stats().Kernels, "the first kernel ran, the second polls: its flag was reset")
		release()
		ended()
		s.sync()
		require.Equal(b, 2*round+2, m.Stats().Kernels)
		r = nil
	}
	key, blocks := tiled(4)
	require.Equal(b, markedWords(key, key, blocks, 4), words(outs[1]))
}

func checkSuperFails(b *listBed) {
	x, y := b.operation("x"), b.operation("y")
	m, s := b.load(superList(x, y)), b.stream()
	ins, outs := []device.Buffer{b.value(1), b.value(2)}, []device.Buffer{b.out(), b.out(), b.out()}
	cause := errors.New("no tiling today")
	x.tile(func(*device.CPUArgs) error { return cause })
	m.replay(s, b.superMoves(ins, outs))
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, cause)
	require.ErrorContains(b, err, "x: execute: node 3")
	x.tile(tileNow)
	y.tile(func(*device.CPUArgs) error { panic("moon") })
	m.replay(s, nil)
	require.ErrorContains(b, s.Synchronize(b.Context()), "moon")
	y.tile(tileNow)
	release := y.held()
	ended := m.begin(s, nil)
	b.settle()
	require.Equal(b, markedWords(poison, 0, 0, 0)[0], words(outs[2])[0], "the flag of the failed execution is gone")
	release()
	ended()
	s.sync()
	key, blocks := tiled(2)
	require.Equal(b, markedWords(key, key, blocks, 2), words(outs[2]))
}

func checkSubKernelFails(b *listBed) {
	o := b.operation("op")
	l := superList(o)
	cause := errors.New("bad block")
	l.Tasks[1].Super[0].Kernel.Program = fails(cause).Program
	m, s := b.load(l), b.stream()
	outs := []device.Buffer{b.out(), b.out()}
	m.replay(s, b.superMoves([]device.Buffer{b.value(1)}, outs))
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, cause)
	require.ErrorContains(b, err, "plain: execute: node 3")
	require.Equal(b, binary.LittleEndian.Uint64(repeat(poison, 8)), words(outs[1])[0])
}

func checkSuperUnknownKey(b *listBed) {
	o := b.operation("op")
	o.tile(func(a *device.CPUArgs) error {
		a.Outputs[0][0], a.Outputs[1][0] = 4, 1
		return nil
	})
	m, s := b.load(superList(o)), b.stream()
	m.replay(s, b.superMoves([]device.Buffer{b.value(1)}, []device.Buffer{b.out(), b.out()}))
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, device.FaultVariant)
	require.ErrorContains(b, err, "op: execute: node 3")
}
