package cpu_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/status"
)

func open(t testing.TB, opts ...cpu.Option) *cpu.Device {
	t.Helper()
	d, err := cpu.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func newStream(t testing.TB, d *cpu.Device) device.Stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	return s
}

func newEvent(t testing.TB, d *cpu.Device) device.Event {
	t.Helper()
	e, err := d.NewEvent()
	require.NoError(t, err)
	return e
}

var modes = []struct {
	name string
	opts []cpu.Option
}{
	{"async", nil},
	{"inline", []cpu.Option{cpu.WithInline()}},
}

func emptyLaunch() *device.Launch {
	return &device.Launch{
		Program: &device.Program{Name: "empty", Run: func(*device.Args, int) error { return nil }},
		Blocks:  1, Buffers: make([]device.Buffer, 4), Inputs: 3, Inline: make([]byte, 128),
	}
}

func call(f func()) *device.Launch {
	return &device.Launch{Blocks: 1, Program: &device.Program{Name: "call", Run: func(*device.Args, int) error {
		f()
		return nil
	}}}
}

func TestEnqueueAllocatesNothing(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := open(t, m.opts...)
			s, o, e := newStream(t, d), newStream(t, d), newEvent(t, d)
			x, err := d.Alloc(64)
			require.NoError(t, err)
			empty, wide := emptyLaunch(), emptyLaunch()
			wide.Blocks, wide.Inline = 2, nil
			round := func() {
				_ = s.Launch(empty)
				_ = s.Launch(wide)
				_ = s.Copy(x.At(0, 32), x.At(32, 32))
				_ = s.Record(e)
				_ = o.Wait(e)
				_ = o.Reset(e)
				_ = o.Synchronize(t.Context())
			}
			for range 3000 {
				round()
			}
			require.Zero(t, testing.AllocsPerRun(1000, round))
			launches := func() { _ = s.Launch(empty) }
			for range 5000 {
				launches()
			}
			require.Zero(t, testing.AllocsPerRun(5000, launches))
		})
	}
}

func TestInlineRunsInTheCall(t *testing.T) {
	before := runtime.NumGoroutine()
	d := open(t, cpu.WithInline(), cpu.WithWorkers(3))
	require.Equal(t, 3, d.Props().Cores)
	s, o, e := newStream(t, d), newStream(t, d), newEvent(t, d)
	ran := 0
	require.NoError(t, s.Launch(call(func() { ran++ })))
	require.Equal(t, 1, ran)
	require.NoError(t, s.Wait(e))
	require.NoError(t, s.Launch(call(func() { ran++ })))
	require.Equal(t, 1, ran, "held")
	require.NoError(t, o.Record(e))
	require.Equal(t, 2, ran, "run by the recording call")
	blocks := []int{}
	l := call(nil)
	l.Blocks = 5
	l.Program = &device.Program{Name: "order", Run: func(_ *device.Args, block int) error {
		blocks = append(blocks, block)
		return nil
	}}
	require.NoError(t, s.Launch(l))
	require.Equal(t, []int{0, 1, 2, 3, 4}, blocks)
	require.LessOrEqual(t, runtime.NumGoroutine(), before, "no goroutine was started")
}

func TestBlocksRunOnHelpers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, cpu.WithWorkers(3), cpu.WithSpin(0))
		s := newStream(t, d)
		var inside atomic.Int32
		full := make(chan struct{})
		for range 20 {
			full = make(chan struct{})
			inside.Store(0)
			require.NoError(t, s.Launch(&device.Launch{Blocks: 3, Program: &device.Program{Name: "meet", Run: func(*device.Args, int) error {
				if inside.Add(1) == 3 {
					close(full)
				}
				<-full
				return nil
			}}}))
			require.NoError(t, s.Synchronize(t.Context()))
		}
	})
}

func TestEventCloseGivesUpWaits(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, m.opts...)
				s, o, e := newStream(t, d), newStream(t, d), newEvent(t, d)
				ran := false
				require.NoError(t, s.Wait(e))
				require.NoError(t, s.Launch(call(func() { ran = true })))
				require.NoError(t, o.Wait(newEvent(t, d)))
				synctest.Wait()
				require.NoError(t, e.Close())
				err := s.Synchronize(t.Context())
				require.ErrorIs(t, err, status.ErrRuntimeFail)
				require.ErrorContains(t, err, "event was closed")
				require.False(t, ran)
				require.False(t, o.Query(), "a wait for another event goes on")
				err = d.Close()
				require.ErrorIs(t, err, status.ErrDeviceFail)
				require.ErrorContains(t, err, "aborted")
			})
		})
	}
}

func TestCloseReturnsErrorsThatNobodyTook(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := open(t, m.opts...)
			lost := errors.New("lost")
			for range 2 {
				s := newStream(t, d)
				require.NoError(t, s.Launch(&device.Launch{Blocks: 1, Program: &device.Program{Name: "bad", Run: func(*device.Args, int) error { return lost }}}))
				require.ErrorIs(t, s.Close(), lost)
				require.NoError(t, s.Close())
			}
			s := newStream(t, d)
			require.NoError(t, s.Launch(&device.Launch{Blocks: 1, Program: &device.Program{Name: "bad", Run: func(*device.Args, int) error { return lost }}}))
			require.ErrorIs(t, d.Close(), lost)
			require.NoError(t, d.Close())
		})
	}
}

func TestPanicNamesItsPlace(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	l := call(func() { panic("out of cheese") })
	l.Label = &device.Label{Op: "kitchen", Node: "node 1", Kernel: "cheese/go"}
	require.NoError(t, s.Launch(l))
	err := s.Synchronize(t.Context())
	require.EqualError(t, err, "kitchen: execute: node 1 (cheese/go): kernel call panicked in block 0 at stream_test.go:"+lineOf(err)+": out of cheese (ERROR_RT_FAIL)")
}

// lineOf returns the line number in an error's text.
func lineOf(err error) string {
	text := err.Error()
	const before = "stream_test.go:"
	for i := 0; i+len(before) < len(text); i++ {
		if text[i:i+len(before)] == before {
			rest := text[i+len(before):]
			n := 0
			for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
				n++
			}
			return rest[:n]
		}
	}
	return "no line"
}

func TestObserver(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tasks []cpu.Task
				d := open(t, append([]cpu.Option{cpu.WithSpin(0), cpu.WithObserver(func(k cpu.Task) {
					if k.Stream == 0 {
						tasks = append(tasks, k)
					}
				})}, m.opts...)...)
				s, o, e := newStream(t, d), newStream(t, d), newEvent(t, d)
				label := &device.Label{Op: "op"}
				l := call(func() { <-time.After(3 * time.Second) })
				l.Label, l.Blocks = label, 1
				start := time.Now()
				require.NoError(t, s.Launch(l))
				require.NoError(t, s.Copy(device.Wrap(make([]byte, 8)), device.Wrap(make([]byte, 8))))
				require.NoError(t, s.Wait(e))
				require.NoError(t, s.Record(newEvent(t, d)))
				require.NoError(t, s.Launch(&device.Launch{Blocks: 1, Program: &device.Program{Name: "bad", Run: func(*device.Args, int) error { return errors.New("bad") }}}))
				require.NoError(t, s.Launch(l))
				synctest.Wait()
				<-time.After(10 * time.Second)
				released := time.Now()
				require.NoError(t, o.Record(e))
				require.Error(t, s.Synchronize(t.Context()))
				require.Len(t, tasks, 6)
				for i := range tasks {
					require.False(t, tasks[i].Enqueued.Before(start))
					require.False(t, tasks[i].Enqueued.After(tasks[i].Start))
					tasks[i].Enqueued = time.Time{}
				}
				ran := start.Add(3 * time.Second)
				assert.Equal(t, cpu.Task{Kind: "launch", Label: label, Blocks: 1, Start: start, End: ran}, tasks[0])
				assert.Equal(t, cpu.Task{Kind: "copy", Bytes: 8, Start: ran, End: ran}, tasks[1])
				assert.Equal(t, cpu.Task{Kind: "wait", Start: ran, End: released}, tasks[2])
				assert.Equal(t, cpu.Task{Kind: "record", Start: released, End: released}, tasks[3])
				assert.Equal(t, cpu.Task{Kind: "launch", Blocks: 1, Start: released, End: released}, tasks[4])
				assert.Equal(t, cpu.Task{Kind: "launch", Label: label, Blocks: 1, Skipped: true, Start: released, End: released}, tasks[5])
			})
		})
	}
}

func TestCloseEndsGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		d, err := cpu.New(cpu.WithWorkers(4))
		require.NoError(t, err)
		for range 4 {
			s := newStream(t, d)
			for range 20 {
				require.NoError(t, s.Launch(emptyLaunch()))
			}
			require.NoError(t, s.Wait(newEvent(t, d)))
		}
		require.Error(t, d.Close())
	}
	for range 1_000_000 { // one that has ended its work may have lost its processor before it is gone
		if runtime.NumGoroutine() <= before {
			break
		}
		runtime.Gosched()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// TestIdleDeviceSleeps checks that an idle device blocks: in a bubble the clock
// moves only when every goroutine does.
func TestIdleDeviceSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, cpu.WithWorkers(4))
		held := newStream(t, d)
		e := newEvent(t, d)
		require.NoError(t, held.Wait(e))
		s := newStream(t, d)
		for range 3 {
			l := emptyLaunch()
			l.Blocks = 8
			require.NoError(t, s.Launch(l))
			start := time.Now()
			<-time.After(time.Millisecond)
			require.Equal(t, time.Millisecond, time.Since(start))
		}
		require.NoError(t, s.Record(e))
		require.NoError(t, held.Synchronize(t.Context()))
	})
}

// TestOperandsAreForgotten checks that a stream that was synchronized keeps no
// Go memory alive.
func TestOperandsAreForgotten(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			s := newStream(t, open(t, m.opts...))
			freed := make(chan struct{})
			func() {
				mem := make([]byte, 1<<20)
				runtime.AddCleanup(&mem[0], func(c chan struct{}) { close(c) }, freed)
				l := emptyLaunch()
				l.Buffers[1] = device.Wrap(mem)
				require.NoError(t, s.Launch(l))
				require.NoError(t, s.Copy(device.Wrap(mem).At(0, 8), device.Wrap(mem).At(8, 8)))
			}()
			require.NoError(t, s.Launch(emptyLaunch()))
			require.NoError(t, s.Synchronize(t.Context()))
			for range 50 {
				runtime.GC()
				select {
				case <-freed:
					return
				default:
					runtime.Gosched()
				}
			}
			require.Fail(t, "memory of a finished launch is still reachable")
		})
	}
}

// TestKernelEndsItsGoroutine calls runtime.Goexit in kernels, as a failing test
// does.
func TestKernelEndsItsGoroutine(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, open(t, append([]cpu.Option{cpu.WithWorkers(3), cpu.WithSpin(0)}, m.opts...)...))
				for _, blocks := range []int{1, 2, 50} {
					l := call(runtime.Goexit)
					l.Blocks = blocks
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						_ = s.Launch(l)
					}()
					<-ended
					err := s.Synchronize(t.Context())
					require.ErrorIs(t, err, status.ErrRuntimeFail)
					require.ErrorContains(t, err, "kernel call ended its goroutine in block")
					var ran atomic.Int64
					l = call(func() { ran.Add(1) })
					l.Blocks = 5
					require.NoError(t, s.Launch(l))
					require.NoError(t, s.Synchronize(t.Context()))
					require.EqualValues(t, 5, ran.Load())
				}
			})
		})
	}
}
