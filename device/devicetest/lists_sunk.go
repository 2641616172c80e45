package devicetest

import (
	"bytes"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

func sunkChecks() []listCheck {
	prefetch := func(n int) ListOptions {
		o := listDefaults()
		o.Prefetch = n
		return o
	}
	return []listCheck{
		{"data chooses key and block dim", listDefaults(), checkDataDecides},
		{"a moved input is tiled from its new address", listDefaults(), checkMovedInput},
		{"too few nops run stale", prefetch(5), checkStale},
		{"enough nops never run stale", prefetch(5), checkFresh},
		{"no prefetch needs no nops", prefetch(0), checkNoPrefetch},
		{"entries are fetched once", prefetch(9), checkFetchedOnce},
		{"a wait counts as two entries: inside", prefetch(6), func(b *listBed) { checkWaitWidth(b, true) }},
		{"a wait counts as two entries: outside", prefetch(5), func(b *listBed) { checkWaitWidth(b, false) }},
		{"an update before the wait is seen", prefetch(5), checkEarlyUpdate},
		{"the event is reset", listDefaults(), checkEventReset},
		{"key not in the table", listDefaults(), checkUnknownKey},
		{"block dim out of range", listDefaults(), checkBadBlocks},
		{"states and dumps", listDefaults(), checkStates},
		{"operations share an attached stream", prefetch(3), checkSharedStream},
	}
}

// checkDataDecides changes key and block dim by input data alone.
func checkDataDecides(b *listBed) {
	s, m := b.stream(), b.load(b.sunkOne(b.operation("op"), 2))
	in, out := b.value(0), b.out()
	m.replay(s, moves(in, out))
	s.sync()
	for n := range byte(2 * marks) {
		in.Bytes()[0] = n
		copy(out.Bytes(), repeat(poison, 8*marks))
		m.replay(s, nil)
		s.sync()
		key, blocks := tiled(n)
		require.Equal(b, markedWords(key, key, blocks, n), words(out), n)
	}
	st := m.Stats()
	assert.Equal(b, device.ModelStats{Replays: 17, Kernels: 17, Preprocessed: 17, Updates: 17}, st)
	assert.Equal(b, int64(0), s.Stats().Launches, "the host has launched nothing")
}

func checkMovedInput(b *listBed) {
	s, m := b.stream(), b.load(b.sunkOne(b.operation("op"), 2))
	first, second, out := b.value(3), b.value(5), b.out()
	m.replay(s, moves(first, out))
	m.replay(s, &device.Refresh{Moves: []device.Relocation{{Type: device.InputMemory, Buffer: second}}})
	require.NoError(b, b.dev.Free(first), "the enqueued execution keeps it")
	s.sync()
	key, blocks := tiled(5)
	require.Equal(b, mark(key, key, blocks, 5), words(out)[0])
}

// held makes the tiling of o wait until the returned function is called.
func (o *operation) held() (release func()) {
	gate := make(chan struct{})
	o.tile(func(a *device.CPUArgs) error {
		<-gate
		return tileNow(a)
	})
	return func() { close(gate) }
}

// runHeld runs an execution whose tiling comes when the kernel's stream stands
// at its wait.
func (b *listBed) runHeld(m loaded, o *operation, r *device.Refresh) error {
	b.Helper()
	s := b.stream()
	release := o.held()
	ended := m.begin(s, r)
	b.settle()
	release()
	ended()
	return s.Synchronize(b.Context())
}

func checkStale(b *listBed) {
	for nops := range 5 {
		o := b.operation("op")
		m := b.load(b.sunkOne(o, nops))
		in, out := b.value(9), b.out()
		require.NoError(b, b.runHeld(m, o, moves(in, out)))
		require.Equal(b, markedWords(loadedKey, loadedKey, loadedBlocks, 9), words(out), "%d nops: the parameters of the load, with the new tiling", nops)
		key, blocks := tiled(9)
		in.Bytes()[0] = 13
		copy(out.Bytes(), repeat(poison, 8*marks))
		require.NoError(b, b.runHeld(m, o, nil))
		require.Equal(b, markedWords(key, key, blocks, 13), words(out), "%d nops: the parameters of the execution before", nops)
		require.Equal(b, int64(2), m.Stats().Stale)
	}
}

func checkFresh(b *listBed) {
	for _, nops := range []int{5, 6, 20} {
		o := b.operation("op")
		m := b.load(b.sunkOne(o, nops))
		in, out := b.value(0), b.out()
		for _, n := range []byte{10, 12, 3} {
			in.Bytes()[0] = n
			copy(out.Bytes(), repeat(poison, 8*marks))
			require.NoError(b, b.runHeld(m, o, moves(in, out)))
			key, blocks := tiled(n)
			require.Equal(b, markedWords(key, key, blocks, n), words(out), "%d nops", nops)
		}
		require.Equal(b, int64(0), m.Stats().Stale)
	}
}

func checkNoPrefetch(b *listBed) {
	p, err := b.models.Capability(device.CapPrefetch)
	require.NoError(b, err)
	require.Equal(b, int64(0), p)
	o := b.operation("op")
	m, out := b.load(b.sunkOne(o, 0)), b.out()
	require.NoError(b, b.runHeld(m, o, moves(b.value(9), out)))
	key, blocks := tiled(9)
	require.Equal(b, markedWords(key, key, blocks, 9), words(out))
}

// checkFetchedOnce has two waits whose windows overlap: the second kernel is
// fetched at the first wait, so an update between the waits comes too late.
func checkFetchedOnce(b *listBed) {
	l := &device.TaskList{Name: "two"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	first, second := b.operation("first"), b.operation("second")
	first.sink(l, main, tiling, 0, input(0), output(0))
	second.sink(l, main, tiling, 2, input(1), output(1))
	m := b.load(l)
	x, y := b.out(), b.out()
	require.NoError(b, b.runHeld(m, first, &device.Refresh{Moves: []device.Relocation{
		{Type: device.InputMemory, Buffer: b.value(8)}, {Type: device.InputMemory, Index: 1, Buffer: b.value(9)},
		{Type: device.OutputMemory, Buffer: x}, {Type: device.OutputMemory, Index: 1, Buffer: y},
	}}))
	require.Equal(b, markedWords(loadedKey, loadedKey, loadedBlocks, 8), words(x))
	require.Equal(b, markedWords(loadedKey, loadedKey, loadedBlocks, 9), words(y), "kernel, wait, reset, 2 nops, kernel: 6 entries behind the first wait")
}

// checkWaitWidth has a sunk kernel 6 entries behind a first wait: kernel, wait,
// reset, 2 nops, kernel. It is updated between the first wait and the second.
func checkWaitWidth(b *listBed, stale bool) {
	l := &device.TaskList{Name: "two"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	first, second := b.operation("first"), b.operation("second")
	first.sink(l, main, tiling, 0, input(0), output(0))
	second.sink(l, main, tiling, 2, input(0), output(1))
	between := make(chan struct{})
	l.Tasks[2].Kernel.Program = call(func() { <-between }).Program
	l.Tasks[3].Update.Binary.Variants[0].Program = l.Tasks[2].Kernel.Program
	release := first.held()
	m, s, out := b.load(l), b.stream(), b.out()
	r := moves(b.value(9), b.out())
	r.Moves = append(r.Moves, device.Relocation{Type: device.OutputMemory, Index: 1, Buffer: out})
	ended := m.begin(s, r)
	b.settle()
	release()
	b.settle()
	require.Equal(b, int64(2), m.Stats().Updates, "the first kernel runs, the second is updated")
	close(between)
	ended()
	s.sync()
	key, blocks := tiled(9)
	if stale {
		key, blocks = loadedKey, loadedBlocks
	}
	require.Equal(b, markedWords(key, key, blocks, 9), words(out))
}

func checkEarlyUpdate(b *listBed) {
	l := &device.TaskList{Name: "late main"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	gate := make(chan struct{})
	l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &device.Kernel{Blocks: 1, Program: &device.Program{Name: "test/gate", Run: func(*device.Args, int) error {
		<-gate
		return nil
	}}}})
	o := b.operation("op")
	o.sink(l, main, tiling, 0, input(0), output(0))
	m, s, out := b.load(l), b.stream(), b.out()
	ended := m.begin(s, moves(b.value(4), out))
	b.settle()
	tiledFirst := m.Stats().Updates == 1
	close(gate)
	ended()
	s.sync()
	if tiledFirst {
		key, blocks := tiled(4)
		require.Equal(b, markedWords(key, key, blocks, 4), words(out), "the wait was reached behind the update")
		return
	}
	require.Equal(b, markedWords(loadedKey, loadedKey, loadedBlocks, 4), words(out), "a device that runs one stream after the other comes to the wait first")
}

func checkEventReset(b *listBed) {
	o := b.operation("op")
	m, s, in, out := b.load(b.sunkOne(o, 2)), b.stream(), b.value(1), b.out()
	m.replay(s, moves(in, out))
	s.sync()
	copy(out.Bytes(), repeat(poison, 8*marks))
	release := o.held()
	ended := m.begin(s, nil)
	b.settle()
	require.Equal(b, int64(1), m.Stats().Kernels, "the record of the first execution is used up")
	release()
	ended()
	s.sync()
	key, blocks := tiled(1)
	require.Equal(b, markedWords(key, key, blocks, 1), words(out))
}

func checkUnknownKey(b *listBed) {
	o := b.operation("attention")
	m, s, in, out := b.load(b.sunkOne(o, 2)), b.stream(), b.value(1), b.out()
	o.tile(func(a *device.CPUArgs) error {
		a.Outputs[0][0], a.Outputs[1][0] = 77, 1
		return nil
	})
	m.replay(s, moves(in, out))
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, device.FaultVariant)
	require.ErrorIs(b, err, status.ErrRuntimeFail)
	require.ErrorContains(b, err, "attention: execute: node 3")
	require.ErrorContains(b, err, "77")
	require.Equal(b, int64(0), m.Stats().Kernels)
	o.tile(tileNow)
	m.replay(s, nil)
	s.sync()
	key, blocks := tiled(1)
	require.Equal(b, markedWords(key, key, blocks, 1), words(out))
}

func checkBadBlocks(b *listBed) {
	o := b.operation("attention")
	m, s := b.load(b.sunkOne(o, 2)), b.stream()
	for _, bad := range []byte{0, 0xFF} {
		o.tile(func(a *device.CPUArgs) error {
			a.Outputs[0][0] = 1
			copy(a.Outputs[1], repeat(bad, 4))
			return nil
		})
		m.replay(s, moves(b.value(1), b.out()))
		err := s.Synchronize(b.Context())
		require.ErrorIs(b, err, status.ErrRuntimeFail)
		require.ErrorContains(b, err, "attention")
		require.ErrorContains(b, err, "block dim")
	}
}

func checkStates(b *listBed) {
	o := b.operation("op")
	m, s := b.load(b.sunkOne(o, 1)), b.stream()
	const kernelAt = 3
	states := m.States(nil)
	require.Equal(b, m.list.Initial(), states)
	require.Equal(b, device.TaskState{Blocks: device.BlocksPending, Key: loadedKey}, states[kernelAt])
	m.replay(s, moves(b.value(5), b.out()))
	s.sync()
	key, blocks := tiled(5)
	states = m.States(states[:0])
	require.Equal(b, device.TaskState{Blocks: uint32(blocks), Key: key, Runs: 1}, states[kernelAt])
	for i := range states {
		require.Equal(b, int64(1), states[i].Runs, i)
	}
	var text bytes.Buffer
	require.NoError(b, m.list.Dump(&text, nil))
	assert.Equal(b, 1, strings.Count(text.String(), "0xFFFFFFFF"))
	text.Reset()
	require.NoError(b, m.list.Dump(&text, states))
	assert.NotContains(b, text.String(), "0xFFFFFFFF")
}

// checkSharedStream sinks many operations on one attached stream.
func checkSharedStream(b *listBed) {
	const n = 40
	l := &device.TaskList{Name: "many"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	r := &device.Refresh{}
	var outs, ins []device.Buffer
	for i := range n {
		b.operation("op").sink(l, main, tiling, 3, input(i), output(i))
		ins, outs = append(ins, b.value(0)), append(outs, b.out())
		r.Moves = append(r.Moves, device.Relocation{Type: device.InputMemory, Index: i, Buffer: ins[i]}, device.Relocation{Type: device.OutputMemory, Index: i, Buffer: outs[i]})
	}
	m, s := b.load(l), b.stream()
	for round := range byte(5) {
		for i := range n {
			ins[i].Bytes()[0] = byte(i)*3 + round
			copy(outs[i].Bytes(), repeat(poison, 8*marks))
		}
		m.replay(s, r)
		s.sync()
		r = nil
		for i := range n {
			v := byte(i)*3 + round
			key, blocks := tiled(v)
			require.Equal(b, markedWords(key, key, blocks, v), words(outs[i]), "operation %d in round %d", i, round)
		}
	}
	require.Equal(b, int64(0), m.Stats().Stale)
}
