package devicetest

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

func latchChecks() []listCheck {
	return []listCheck{
		{"a tiling function fails", listDefaults(), checkTilingFails},
		{"a tiling function never returns", listDefaults(), checkDeadline},
		{"deadlines of tasks", listDefaults(), checkOwnDeadline},
		{"a function in time", listDefaults(), checkInTime},
		{"a failed function stores nothing", listDefaults(), checkNothingStored},
		{"every waiter wakes", listDefaults(), checkWaitersWake},
		{"a failed execution leaves no event", listDefaults(), checkNoEventLeft},
		{"a kernel fails", listDefaults(), checkListKernelFails},
		{"first error wins", listDefaults(), checkFirstListError},
		{"later work of the stream", listDefaults(), checkAfterFailure},
		{"close while a function runs", listDefaults(), checkCloseWhileRunning},
	}
}

// works replays m until the operation's output is that of the value n.
func (b *listBed) works(m loaded, s stream, n byte) {
	b.Helper()
	in, out := b.value(n), b.out()
	m.replay(s, moves(in, out))
	s.sync()
	key, blocks := tiled(n)
	require.Equal(b, markedWords(key, key, blocks, n), words(out))
}

func checkTilingFails(b *listBed) {
	o := b.operation("attention")
	m, s := b.load(b.sunkOne(o, 2)), b.stream()
	plain, cause := errors.New("no such head"), errors.New("a value that is an error")
	for _, c := range []struct {
		name, text string
		want       error
		tile       func(a *device.CPUArgs) error
	}{
		{"error", plain.Error(), plain, func(*device.CPUArgs) error { return plain }},
		{"code", "", status.ErrOutOfHostMemory, func(*device.CPUArgs) error { return status.ErrOutOfHostMemory }},
		{"operation error", "7 heads", status.ErrInvalidTensorDim, func(*device.CPUArgs) error { return status.Errorf(status.ErrInvalidTensorDim, "7 heads") }},
		{"panic", "the moon is full", status.ErrRuntimeFail, func(*device.CPUArgs) error { panic("the moon is full") }},
		{"panic with an error", cause.Error(), cause, func(*device.CPUArgs) error { panic(cause) }},
		{"overrun", "out of range", status.ErrRuntimeFail, func(a *device.CPUArgs) error {
			for i := range 65 {
				a.Outputs[2][i] = 1
			}
			return nil
		}},
		{"append does not overrun", "", nil, func(a *device.CPUArgs) error {
			_ = append(a.Outputs[0], 1, 2, 3, 4)
			return tileNow(a)
		}},
		{"nil pointer", "nil pointer", status.ErrRuntimeFail, func(*device.CPUArgs) error { var p *int; *p++; return nil }},
		{"end of the goroutine", "", status.ErrRuntimeFail, func(*device.CPUArgs) error { runtime.Goexit(); return nil }},
	} {
		o.tile(c.tile)
		m.replay(s, moves(b.value(1), b.out()))
		err := s.Synchronize(b.Context())
		if c.want != nil {
			require.ErrorIs(b, err, c.want, c.name)
			require.ErrorContains(b, err, c.text, c.name)
			place, ok := errors.AsType[*status.OpError](err)
			require.True(b, ok, c.name)
			assert.Equal(b, "attention", place.Op, c.name)
			assert.Contains(b, place.Node, "node 3", c.name)
		} else {
			require.NoError(b, err, c.name)
		}
		o.tile(tileNow)
		b.works(m, s, 6)
	}
	require.Equal(b, int64(8), m.Stats().Failures)
}

// stuck makes the tiling of o block until release, and tells whether it was
// aborted by then.
func (o *operation) stuck() (release func(), aborted *atomic.Bool) {
	never := make(chan struct{})
	aborted = &atomic.Bool{}
	o.tile(func(a *device.CPUArgs) error {
		<-never
		aborted.Store(a.Aborted())
		_ = a.Inputs[0][0]
		for i := range a.Outputs {
			copy(a.Outputs[i], repeat(0xBB, len(a.Outputs[i])))
		}
		return nil
	})
	return func() { close(never) }, aborted
}

func checkDeadline(b *listBed) {
	o := b.operation("attention")
	m, s := b.load(b.sunkOne(o, 2)), b.stream()
	before := time.Now()
	release, aborted := o.stuck()
	m.replay(s, moves(b.value(1), b.out()))
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, device.FaultDeadline)
	require.ErrorIs(b, err, status.ErrRuntimeFail)
	require.ErrorContains(b, err, "attention: execute: node 3")
	require.ErrorContains(b, err, "1m0s")
	require.Equal(b, time.Minute, time.Since(before))
	o.tile(tileNow)
	b.works(m, s, 3)
	b.works(m, s, 5)
	kept := append([]byte{}, o.tiling.Bytes()...)
	release()
	b.settle()
	require.True(b, aborted.Load())
	require.Equal(b, kept, o.tiling.Bytes(), "who was given up cannot store any more")
	require.Equal(b, uint64(3), binary.LittleEndian.Uint64(o.key.Bytes()))
	b.works(m, s, 7)
}

func checkOwnDeadline(b *listBed) {
	o := b.operation("attention")
	o.deadline = time.Second
	m, s := b.load(b.sunkOne(o, 2)), b.stream()
	for range 3 {
		before := time.Now()
		release, _ := o.stuck()
		m.replay(s, moves(b.value(1), b.out()))
		require.ErrorIs(b, s.Synchronize(b.Context()), device.FaultDeadline)
		require.Equal(b, time.Second, time.Since(before))
		release()
	}
	o.tile(tileNow)
	b.works(m, s, 3)
}

// checkInTime has functions that take nearly as long as they may, one behind the
// other.
func checkInTime(b *listBed) {
	o := b.operation("attention")
	o.deadline = time.Second
	m, s := b.load(b.sunkOne(o, 2)), b.stream()
	o.tile(func(a *device.CPUArgs) error {
		done := make(chan struct{})
		time.AfterFunc(time.Second-1, func() { close(done) })
		<-done
		return tileNow(a)
	})
	for n := range byte(5) {
		b.works(m, s, n)
	}
	require.Equal(b, int64(0), m.Stats().Failures)
}

func checkNothingStored(b *listBed) {
	o := b.operation("attention")
	m, s := b.load(b.sunkOne(o, 2)), b.stream()
	b.works(m, s, 4)
	key, tiling := append([]byte{}, o.key.Bytes()...), append([]byte{}, o.tiling.Bytes()...)
	o.tile(func(a *device.CPUArgs) error {
		for i := range a.Outputs {
			copy(a.Outputs[i], repeat(0xCC, len(a.Outputs[i])))
		}
		return errors.New("changed my mind")
	})
	m.replay(s, nil)
	require.Error(b, s.Synchronize(b.Context()))
	require.Equal(b, key, o.key.Bytes())
	require.Equal(b, tiling, o.tiling.Bytes())
	o.tile(func(a *device.CPUArgs) error {
		require.Equal(b, tiling, a.Outputs[2], "outputs begin as device memory")
		return nil
	})
	m.replay(s, nil)
	s.sync()
}

// checkWaitersWake fails one stream while others wait for it, directly and
// through each other.
func checkWaitersWake(b *listBed) {
	const streams = 6
	l := &device.TaskList{Name: "waiters"}
	first := l.Bind("failing")
	cause := errors.New("first stream")
	bad := true
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: first, Label: label("op"), Preprocess: &device.Preprocess{Engine: device.AICPU, Function: &device.Function{
		Name: "fails", Run: func(*device.CPUArgs) error {
			if bad {
				return cause
			}
			return nil
		},
	}}})
	ran := make([]atomic.Int64, streams)
	for i := range streams {
		on := l.Bind("waiting")
		e := l.NewEvent()
		l.Add(device.Task{Kind: device.EventRecordTask, Stream: device.StreamID(i), Event: e})
		l.Add(device.Task{Kind: device.EventWaitTask, Stream: on, Event: e})
		p := call(func() { ran[i].Add(1) }).Program
		l.Add(device.Task{Kind: device.KernelTask, Stream: on, Kernel: &device.Kernel{Program: p, Blocks: 1}})
	}
	m, s := b.load(l), b.stream()
	m.replay(s, nil)
	require.ErrorIs(b, s.Synchronize(b.Context()), cause)
	for i := range ran {
		require.Equal(b, int64(0), ran[i].Load(), i)
	}
	bad = false
	for round := range int64(3) {
		m.replay(s, nil)
		s.sync()
		for i := range ran {
			require.Equal(b, round+1, ran[i].Load(), i)
		}
	}
}

// checkNoEventLeft fails an execution whose event was recorded and not waited
// for: the next one has to wait for a record of its own.
func checkNoEventLeft(b *listBed) {
	l := &device.TaskList{Name: "left"}
	tiling, main := l.Bind("tiling"), l.Bind("main")
	cause, gate := errors.New("before the wait"), make(chan error, 1)
	o := b.operation("op")
	l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &device.Kernel{Blocks: 1, Program: &device.Program{Name: "test/gate", Run: func(*device.Args, int) error {
		return <-gate
	}}}})
	o.sink(l, main, tiling, 2, input(0), output(0))
	m, s := b.load(l), b.stream()
	ended := m.begin(s, moves(b.value(1), b.out()))
	b.settle()
	require.Equal(b, int64(1), m.Stats().Updates, "the record behind the update fired")
	gate <- cause
	ended()
	require.ErrorIs(b, s.Synchronize(b.Context()), cause)
	release := o.held()
	gate <- nil
	ended = m.begin(s, nil)
	b.settle()
	require.LessOrEqual(b, m.Stats().Kernels, int64(2), "the sunk kernel has to wait")
	release()
	ended()
	s.sync()
	require.Equal(b, int64(3), m.Stats().Kernels)
}

// checkListKernelFails fails the main stream while the attached one waits for
// it.
func checkListKernelFails(b *listBed) {
	l := &device.TaskList{Name: "kernel"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	e := l.NewEvent()
	cause := errors.New("row 3")
	bad := fails(cause)
	l.Add(device.Task{Kind: device.KernelTask, Stream: main, Label: label("matmul"), Kernel: &device.Kernel{Program: bad.Program, Blocks: 4}})
	l.Add(device.Task{Kind: device.EventRecordTask, Stream: main, Event: e})
	l.Add(device.Task{Kind: device.EventWaitTask, Stream: tiling, Event: e})
	b.operation("op").sink(l, main, tiling, 2, input(0), output(0))
	m, s := b.load(l), b.stream()
	for range 3 {
		m.replay(s, moves(b.value(1), b.out()))
		err := s.Synchronize(b.Context())
		require.ErrorIs(b, err, cause)
		require.ErrorContains(b, err, "matmul: execute: node 3 (mark/go)")
	}
	require.Equal(b, int64(0), m.Stats().Preprocessed)
	require.Equal(b, int64(3), m.Stats().Failures)
}

func checkFirstListError(b *listBed) {
	l := &device.TaskList{Name: "errors"}
	main := l.Bind("main")
	first, second := errors.New("first"), errors.New("second")
	l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &device.Kernel{Program: fails(first).Program, Blocks: 1}})
	l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &device.Kernel{Program: fails(second).Program, Blocks: 1}})
	m, s := b.load(l), b.stream()
	m.replay(s, nil)
	m.replay(s, nil)
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, first)
	require.NotErrorIs(b, err, second)
	require.ErrorContains(b, err, "errors", "a task without a label is the list's")
	require.Equal(b, int64(1), m.Stats().Kernels, "the second execution was skipped")
}

// checkAfterFailure checks that a failed execution is like any failed task.
func checkAfterFailure(b *listBed) {
	o := b.operation("op")
	cause := errors.New("no tiling")
	o.tile(func(*device.CPUArgs) error { return cause })
	m, s, after, e := b.load(b.sunkOne(o, 2)), b.stream(), b.stream(), b.event()
	x := b.alloc(16)
	m.replay(s, moves(b.value(1), b.out()))
	s.launch(fill(x, 1))
	s.record(e)
	after.wait(e)
	after.launch(fill(x, 2))
	after.sync()
	require.NoError(b, e.Synchronize(context.Background()))
	require.ErrorIs(b, s.Synchronize(b.Context()), cause)
	require.Equal(b, repeat(2, 16), x.Bytes())
	o.tile(tileNow)
	b.works(m, s, 2)
}

// checkCloseWhileRunning closes the device while a function is stuck: Close
// waits for the deadline, and nothing is left but the function.
func checkCloseWhileRunning(b *listBed) {
	d := b.open(b.T)
	models, err := device.Models(d)
	require.NoError(b, err)
	inner := &listBed{bed: &bed{T: b.T, open: b.open, dev: d}, models: models}
	o := inner.operation("op")
	release, _ := o.stuck()
	m, s := inner.load(inner.sunkOne(o, 2)), inner.stream()
	ended := m.begin(s, moves(inner.value(1), inner.out()))
	b.settle()
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	require.ErrorIs(b, <-closed, device.FaultDeadline)
	ended()
	require.ErrorIs(b, m.Replay(s.Stream, nil), status.ErrInvalidParam)
	require.NoError(b, m.Unload())
	release()
	b.settle()
}
