package devicetest

import (
	"errors"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

func replayChecks() []listCheck {
	return []listCheck{
		{"new addresses", listDefaults(), checkNewAddresses},
		{"addresses stay", listDefaults(), checkAddressesStay},
		{"events order streams", listDefaults(), checkListOrder},
		{"mixed kernels", listDefaults(), checkMixed},
		{"tiling in the list and in memory", listDefaults(), checkListTiling},
		{"writes", listDefaults(), checkWrites},
		{"in the order of the stream", listDefaults(), checkReplayOrder},
		{"one after the other on several streams", listDefaults(), checkReplayStreams},
		{"models beside each other", listDefaults(), checkTwoModels},
		{"refused refreshes", listDefaults(), checkRefusedRefresh},
		{"freed memory", listDefaults(), checkFreedMemory},
		{"a failed stream skips", listDefaults(), checkSkipped},
		{"captured", listDefaults(), checkCaptured},
	}
}

// addTask is a kernel of one block that adds v to every byte of src into dst.
func addTask(on device.StreamID, dst, src device.Address, v byte) device.Task {
	l := add(device.Buffer{}, device.Buffer{}, v)
	return device.Task{Kind: device.KernelTask, Stream: on, Kernel: &device.Kernel{
		Program: l.Program, Blocks: 1, Inputs: 1, Operands: []device.Address{src, dst},
	}}
}

// window is a window of memory that refreshes.
func window(t device.MemoryType, index int, off, size int64) device.Address {
	return device.Address{Type: t, Index: index, Off: off, Size: size}
}

// chain is a list that adds 1, 2 and 3 to input 0 through the workspace into
// output 0, 16 bytes each.
func chain() *device.TaskList {
	l := &device.TaskList{Name: "chain"}
	main := l.Bind("main")
	in, out := window(device.InputMemory, 0, 0, 16), window(device.OutputMemory, 0, 0, 16)
	x, y := window(device.WorkspaceMemory, 0, 0, 16), window(device.WorkspaceMemory, 0, 64, 16)
	l.Add(addTask(main, x, in, 1))
	l.Add(device.Task{Kind: device.CopyTask, Stream: main, Copy: &device.CopyAddresses{Dst: y, Src: x}})
	l.Add(addTask(main, y, y, 2))
	l.Add(addTask(main, out, y, 3))
	return l
}

// chainMoves gives a chain its memory.
func chainMoves(in, out, ws device.Buffer) *device.Refresh {
	r := moves(in, out)
	r.Moves = append(r.Moves, device.Relocation{Type: device.WorkspaceMemory, Buffer: ws})
	return r
}

func (b *listBed) filled(size int64, v byte) device.Buffer {
	buf := b.alloc(size)
	copy(buf.Bytes(), repeat(v, int(size)))
	return buf
}

func checkNewAddresses(b *listBed) {
	s, m := b.stream(), b.load(chain())
	for i := range byte(20) {
		in, out, ws := b.filled(16, i), b.filled(16+int64(i), poison), b.filled(80+int64(i)*16, poison)
		m.replay(s, chainMoves(in, out, ws.At(int64(i)*16, 80)))
		s.sync()
		require.Equal(b, repeat(i+6, 16), out.Bytes()[:16])
		require.Equal(b, repeat(poison, int(i)), out.Bytes()[16:])
		require.Equal(b, repeat(i+1, 16), ws.Bytes()[int(i)*16:][:16])
	}
	assert.Equal(b, device.ModelStats{Replays: 20, Kernels: 60, Copies: 20}, m.Stats())
}

func checkAddressesStay(b *listBed) {
	s, m := b.stream(), b.load(chain())
	in, out, ws := b.filled(16, 1), b.filled(16, 0), b.alloc(80)
	m.replay(s, chainMoves(in, out, ws))
	other := b.filled(16, 0)
	m.replay(s, &device.Refresh{Moves: []device.Relocation{{Type: device.OutputMemory, Buffer: other}}})
	s.sync()
	copy(in.Bytes(), repeat(9, 16))
	m.replay(s, nil)
	s.sync()
	require.Equal(b, repeat(7, 16), out.Bytes())
	require.Equal(b, repeat(15, 16), other.Bytes())
}

// checkListOrder sends a value around a ring of streams.
func checkListOrder(b *listBed) {
	const streams, rounds = 5, 30
	l := &device.TaskList{Name: "ring"}
	x := device.Absolute(b.alloc(16))
	for range streams {
		l.Bind("s")
	}
	for i := range streams * rounds {
		on := device.StreamID(i % streams)
		if i > 0 {
			l.Add(device.Task{Kind: device.EventWaitTask, Stream: on, Event: device.EventID(i - 1)})
		}
		l.Add(addTask(on, x, x, 1))
		l.Add(device.Task{Kind: device.EventRecordTask, Stream: on, Event: l.NewEvent()})
	}
	s, m := b.stream(), b.load(l)
	for i := 1; i <= 10; i++ {
		m.replay(s, nil)
		s.sync()
		require.Equal(b, byte(i*streams*rounds), x.Buffer.Bytes()[7])
	}
}

// checkMixed runs a mixed kernel whose vector parts read what the cube part of
// their block wrote, and begin after it.
func checkMixed(b *listBed) {
	const blocks, ratio = 6, 2
	cube := &device.Program{Name: "test/cube", Run: func(a *device.Args, block int) error {
		device.View[uint32](a.Mem(0))[block] = uint32(block*10 + a.Blocks)
		return nil
	}}
	vector := &device.Program{Name: "test/vector", Run: func(a *device.Args, block int) error {
		device.View[uint32](a.Mem(1))[block] = device.View[uint32](a.Mem(0))[block/ratio]*1000 + uint32(a.Blocks) + uint32(a.Tiling[0])<<20
		return nil
	}}
	var begun []int
	cube.Begin = func(a *device.Args) error { begun = append(begun, a.Blocks); return nil }
	vector.Begin = cube.Begin
	l := &device.TaskList{Name: "mixed"}
	x, y := b.alloc(4*blocks), b.alloc(4*blocks*ratio)
	l.Add(device.Task{Kind: device.AllKernelTask, Stream: l.Bind("main"), Kernel: &device.Kernel{
		Program: cube, Vector: vector, Ratio: ratio, Blocks: blocks, Operands: []device.Address{device.Absolute(x), device.Absolute(y)}, Inline: []byte{1},
	}})
	s, m := b.stream(), b.load(l)
	m.replay(s, nil)
	s.sync()
	for i, got := range device.View[uint32](y.Bytes()) {
		require.Equal(b, uint32(i/ratio*10+blocks)*1000+blocks*ratio+1<<20, got, i)
	}
	require.Equal(b, []int{blocks, blocks * ratio}, begun)
}

func checkListTiling(b *listBed) {
	inline := []byte{5, 6, 7}
	in := b.filled(64, 9)
	l := &device.TaskList{Name: "tilings"}
	main := l.Bind("main")
	x, y := device.Absolute(b.out()), device.Absolute(b.out())
	for _, k := range []device.Kernel{
		{Program: marked(1), Blocks: 2, Key: 4, Operands: []device.Address{x}, Inline: inline},
		{Program: marked(3), Blocks: 3, Key: 5, Operands: []device.Address{y}, Tiling: device.Absolute(in)},
	} {
		l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &k})
	}
	s, m := b.stream(), b.load(l)
	inline[0] = 200
	m.replay(s, nil)
	s.sync()
	require.Equal(b, markedWords(1, 4, 2, 5), words(x.Buffer), "the load copied it")
	require.Equal(b, markedWords(3, 5, 3, 9), words(y.Buffer))
	in.Bytes()[0] = 11
	m.replay(s, nil)
	s.sync()
	require.Equal(b, markedWords(3, 5, 3, 11), words(y.Buffer), "the run reads it")
}

// checkWrites gives executions that are enqueued in a row values of their own.
func checkWrites(b *listBed) {
	s, release := b.stalled()
	m := b.load(chain())
	in, extra := b.alloc(16), b.alloc(4)
	var outs []device.Buffer
	data := make([]byte, 16)
	r := chainMoves(in, device.Buffer{}, b.alloc(80))
	for i := range byte(8) {
		outs = append(outs, b.alloc(16))
		r.Moves[1].Buffer = outs[i]
		copy(data, repeat(i, 16))
		r.Writes = []device.Write{{To: window(device.InputMemory, 0, 0, 16), Data: data}, {To: device.Absolute(extra), Data: []byte{i, 1, 2, 3}}}
		m.replay(s, r)
		r.Moves = r.Moves[:2]
		r.Moves[0].Buffer = in
	}
	copy(data, repeat(99, 16))
	release()
	s.sync()
	for i, out := range outs {
		require.Equal(b, repeat(byte(i)+6, 16), out.Bytes(), i)
	}
	require.Equal(b, []byte{7, 1, 2, 3}, extra.Bytes())
}

func checkReplayOrder(b *listBed) {
	s, m := b.stream(), b.load(chain())
	in, out, ws := b.alloc(16), b.alloc(16), b.alloc(80)
	r := chainMoves(in, out, ws)
	for range 10 {
		m.replay(s, r)
		s.launch(add(in, out, 1))
		r = nil
	}
	s.sync()
	require.Equal(b, repeat(70, 16), in.Bytes(), "10 times 6 and 1")
}

// checkReplayStreams replays one model on several streams: executions never
// overlap, and their addresses are those of their own calls.
func checkReplayStreams(b *listBed) {
	m := b.load(chain())
	streams := []stream{b.stream(), b.stream(), b.stream()}
	x, ws := b.alloc(16), b.alloc(80)
	for range 10 {
		for _, s := range streams {
			m.replay(s, chainMoves(x, x, ws))
		}
	}
	for _, s := range streams {
		s.sync()
	}
	require.Equal(b, repeat(180, 16), x.Bytes(), "30 times 6")
	held, release := b.stalled()
	m.replay(held, nil)
	m.replay(streams[0], nil)
	b.settle()
	require.False(b, streams[0].Query(), "an earlier execution has not run")
	release()
	streams[0].sync()
	require.Equal(b, repeat(192, 16), x.Bytes())
}

func checkTwoModels(b *listBed) {
	one, two := b.load(b.sunkOne(b.operation("a"), 2)), b.load(b.sunkOne(b.operation("b"), 2))
	s, o := b.stream(), b.stream()
	x, y := b.out(), b.out()
	for n := range byte(20) {
		one.replay(s, moves(b.value(n), x))
		two.replay(o, moves(b.value(n+7), y))
	}
	s.sync()
	o.sync()
	key, blocks := tiled(19)
	require.Equal(b, mark(key, key, blocks, 19), words(x)[0])
	key, blocks = tiled(26)
	require.Equal(b, mark(key, key, blocks, 26), words(y)[0])
}

func checkRefusedRefresh(b *listBed) {
	s, m := b.stream(), b.load(chain())
	in, out, ws := b.filled(16, 1), b.alloc(16), b.alloc(80)
	refuse := func(want status.Code, text string, r *device.Refresh) {
		b.Helper()
		err := m.Replay(s.Stream, r)
		require.ErrorIs(b, err, want)
		require.ErrorContains(b, err, text)
		require.ErrorContains(b, err, "chain")
	}
	refuse(status.ErrInvalidTensorAddr, "input 0", nil)
	refuse(status.ErrInvalidTensorAddr, "workspace 0", moves(in, out))
	refuse(status.ErrInvalidParam, "input 7", &device.Refresh{Moves: []device.Relocation{{Type: device.InputMemory, Index: 7, Buffer: in}}})
	refuse(status.ErrInvalidParam, "absolute", &device.Refresh{Moves: []device.Relocation{{Buffer: in}}})
	refuse(status.ErrInvalidTensorSize, "at least 80 bytes", chainMoves(in, out, ws.At(0, 79)))
	refuse(status.ErrInvalidTensorAddr, "output 0", chainMoves(in, device.Buffer{}, ws))
	m.replay(s, chainMoves(in, out, ws))
	refuse(status.ErrInvalidTensorSize, "output 0", moves(b.filled(16, 9), out.At(0, 8)))
	for _, w := range []device.Write{
		{To: window(device.InputMemory, 0, 8, 16), Data: make([]byte, 16)},
		{To: window(device.InputMemory, 0, 0, 8), Data: make([]byte, 4)},
		{To: window(device.InputMemory, 0, -8, 8), Data: make([]byte, 8)},
		{To: window(device.OutputMemory, 3, 0, 8), Data: make([]byte, 8)},
		{To: device.Address{}, Data: nil},
	} {
		require.Error(b, m.Replay(s.Stream, &device.Refresh{Writes: []device.Write{w}}))
	}
	m.replay(s, nil)
	s.sync()
	require.Equal(b, repeat(7, 16), out.Bytes(), "the refused calls changed nothing")
	require.Equal(b, int64(2), m.Stats().Replays)
	require.ErrorIs(b, m.Replay(nil, nil), status.ErrInvalidParam)
	require.ErrorIs(b, m.Replay(device.NewCapture("x", device.Limits{}).Stream("main"), nil), status.ErrInvalidParam)
	require.NoError(b, s.Close())
	require.ErrorIs(b, m.Replay(s.Stream, nil), status.ErrInvalidStream)
}

func checkFreedMemory(b *listBed) {
	l := chain()
	fixed := b.alloc(16)
	l.Add(device.Task{Kind: device.CopyTask, Copy: &device.CopyAddresses{Dst: device.Absolute(fixed), Src: window(device.OutputMemory, 0, 0, 16)}})
	m := b.load(l)
	s, release := b.stalled()
	in, out, ws := b.filled(16, 1), b.alloc(16), b.alloc(80)
	m.replay(s, chainMoves(in, out, ws))
	require.NoError(b, b.dev.Free(in))
	err := m.Replay(s.Stream, nil)
	require.ErrorIs(b, err, status.ErrInvalidTensorAddr)
	require.ErrorContains(b, err, "input 0")
	require.ErrorIs(b, m.Replay(s.Stream, moves(in, out)), status.ErrInvalidTensorAddr)
	again := b.filled(16, 3)
	m.replay(s, moves(again, out))
	require.NoError(b, b.dev.Free(fixed))
	require.ErrorIs(b, m.Replay(s.Stream, nil), status.ErrInvalidTensorAddr)
	release()
	s.sync()
	require.Equal(b, repeat(9, 16), out.Bytes(), "what was enqueued ran with the memory that was freed since")
	_, err = b.models.Load(l)
	require.ErrorIs(b, err, status.ErrInvalidTensorAddr)
	require.ErrorContains(b, err, "destination")
}

// checkSkipped has a stream fail before an execution: it is skipped, but its
// addresses are those of the next one.
func checkSkipped(b *listBed) {
	s, m := b.stream(), b.load(chain())
	in, out, ws := b.filled(16, 1), b.filled(16, 0), b.alloc(80)
	cause := errors.New("before the execution")
	s.launch(fails(cause))
	r := chainMoves(in, out, ws)
	r.Writes = []device.Write{{To: window(device.InputMemory, 0, 0, 16), Data: repeat(50, 16)}}
	m.replay(s, r)
	require.ErrorIs(b, s.Synchronize(b.Context()), cause)
	require.Equal(b, repeat(0, 16), out.Bytes())
	require.Equal(b, repeat(1, 16), in.Bytes())
	m.replay(s, nil)
	s.sync()
	require.Equal(b, repeat(7, 16), out.Bytes())
}

// checkCaptured captures two streams with events and replays the list.
func checkCaptured(b *listBed) {
	can, err := device.LimitsOf(b.models)
	require.NoError(b, err)
	c := device.NewCapture("captured", can)
	in, out, ws := b.filled(16, 1), b.alloc(16), b.alloc(48)
	c.Declare(device.InputMemory, 0, in)
	c.Declare(device.OutputMemory, 0, out)
	c.Declare(device.WorkspaceMemory, 0, ws)
	e, f := b.event(), b.event()
	run := func(s, o device.Stream) {
		require.NoError(b, s.Launch(add(ws.At(0, 16), in, 1)))
		require.NoError(b, s.Record(e))
		require.NoError(b, o.Wait(e))
		require.NoError(b, o.Launch(add(ws.At(16, 16), ws.At(0, 16), 2)))
		require.NoError(b, o.Copy(ws.At(32, 16), ws.At(16, 16)))
		require.NoError(b, o.Record(f))
		require.NoError(b, s.Wait(f))
		require.NoError(b, s.Launch(add(out, ws.At(32, 16), 3)))
	}
	run(c.Stream("main"), c.Stream("side"))
	l, err := c.Finish()
	require.NoError(b, err)
	require.Equal(b, make([]byte, 16), out.Bytes(), "nothing ran")
	s, m := b.stream(), b.load(l)
	other, to := b.filled(16, 10), b.alloc(16)
	m.replay(s, chainMoves(other, to, b.alloc(48)))
	s.sync()
	require.Equal(b, repeat(16, 16), to.Bytes())
	run(s, b.stream())
	s.sync()
	require.Equal(b, repeat(7, 16), out.Bytes(), "the same calls on streams that run them")
}
