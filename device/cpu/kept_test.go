package cpu_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/status"
)

// seen is a launch that appends its key, its tiling and its block to a list.
func seen(list *[]string, key uint64, blocks int, tiling []byte) device.Launch {
	return device.Launch{Blocks: blocks, Key: key, Inline: tiling, Label: &device.Label{Op: "op", Node: fmt.Sprint("node", key)},
		Program: &device.Program{Name: "seen", Run: func(a *device.Args, block int) error {
			*list = append(*list, fmt.Sprintf("%d %s %d/%d", a.Key, a.Tiling, block, a.Blocks))
			return nil
		}}}
}

func keep(t testing.TB, s device.Stream, ls ...device.Launch) device.Kept {
	t.Helper()
	k, err := s.(device.KeepingStream).Keep(ls)
	require.NoError(t, err)
	return k
}

// Kept launches run in order, whole or in part, with what was set last, between
// what is enqueued in other ways.
func TestKept(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := open(t, append([]cpu.Option{cpu.WithWorkers(1)}, m.opts...)...)
			s := newStream(t, d)
			var got []string
			tiling := []byte("abcd")
			k := keep(t, s, seen(&got, 1, 1, tiling), seen(&got, 2, 2, []byte("x")), seen(&got, 3, 1, nil))
			copy(tiling, "lost")
			require.True(t, k.Idle())
			require.NoError(t, k.Run(0, 3))
			require.NoError(t, s.Launch(call(func() { got = append(got, "between") })))
			require.NoError(t, k.Run(1, 2))
			require.NoError(t, k.Run(2, 2))
			require.NoError(t, s.Synchronize(t.Context()))
			require.True(t, k.Idle())
			require.Equal(t, []string{"1 abcd 0/1", "2 x 0/2", "2 x 1/2", "3  0/1", "between", "2 x 0/2", "2 x 1/2"}, got)

			got = nil
			changed := seen(&got, 7, 2, []byte("yz"))
			require.NoError(t, k.Set(0, &changed))
			mem, err := d.Alloc(4)
			require.NoError(t, err)
			copy(mem.Bytes(), "wxyz")
			changed.Blocks, changed.Inline, changed.Tiling = 1, nil, mem.At(1, 2)
			require.NoError(t, k.Set(2, &changed))
			require.NoError(t, k.Run(0, 3))
			require.NoError(t, s.Synchronize(t.Context()))
			require.Equal(t, []string{"7 yz 0/2", "7 yz 1/2", "2 x 0/2", "2 x 1/2", "7 xy 0/1"}, got)
			assert.EqualValues(t, 8, s.Stats().Launches)
		})
	}
}

func TestKeptRefuses(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := open(t, m.opts...)
			s := newStream(t, d)
			mem, err := d.Alloc(64)
			require.NoError(t, err)
			l := device.Launch{Blocks: 1, Program: call(func() {}).Program, Buffers: []device.Buffer{mem}, Inline: []byte{1}, Label: &device.Label{Op: "op", Node: "node"}}
			none := l
			none.Program = nil
			_, err = s.(device.KeepingStream).Keep([]device.Launch{l, none})
			require.ErrorIs(t, err, status.ErrInvalidParam)
			k := keep(t, s, l, l)
			for _, r := range [][2]int{{-1, 1}, {0, 3}, {2, 1}} {
				require.ErrorIs(t, k.Run(r[0], r[1]), status.ErrInvalidParam)
			}
			bad := l
			bad.Blocks = 0
			require.ErrorContains(t, k.Set(0, &bad), "op: execute: node: want 1 to")
			bad = l
			bad.Inline = make([]byte, 65)
			require.ErrorContains(t, k.Set(0, &bad), "want an inline tiling of at most 64 bytes, got 65")
			require.NoError(t, k.Run(0, 2))
			require.NoError(t, d.Free(mem))
			err = k.Run(0, 1)
			require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
			require.ErrorContains(t, err, "want live memory for operand 0, got freed memory")
			require.NoError(t, s.Synchronize(t.Context()))
			require.NoError(t, s.Close())
			require.ErrorIs(t, keep(t, newStream(t, d)).Run(0, 1), status.ErrInvalidParam)
			require.ErrorIs(t, k.Run(0, 1), status.ErrInvalidStream)
		})
	}
}

// A failure, a panic or the end of the goroutine in one of the launches is the
// stream's error, named after it, and leaves the rest out; then the launches run
// again.
func TestKeptFailures(t *testing.T) {
	cause := errors.New("cause")
	for _, m := range modes {
		for what, bad := range map[string]func() error{
			"cause":          func() error { return cause },
			"panicked: here": func() error { panic("here") },
			"ended its":      func() error { runtime.Goexit(); return nil },
		} {
			if m.name == "inline" && what == "ended its" {
				continue // it ends the test
			}
			for _, blocks := range []int{1, 5} {
				t.Run(fmt.Sprintf("%s/%s/blocks=%d", m.name, what, blocks), func(t *testing.T) {
					d := open(t, append([]cpu.Option{cpu.WithWorkers(2)}, m.opts...)...)
					s := newStream(t, d)
					on, ran := true, 0
					fails := device.Launch{Blocks: blocks, Label: &device.Label{Op: "op", Node: "bad"}, Program: &device.Program{Name: "bad", Run: func(*device.Args, int) error {
						if on {
							return bad()
						}
						return nil
					}}}
					count := *call(func() { ran++ })
					k := keep(t, s, count, fails, count, count)
					require.NoError(t, k.Run(0, 4))
					err := s.Synchronize(t.Context())
					require.ErrorIs(t, err, status.ErrRuntimeFail)
					require.ErrorContains(t, err, "op: execute: bad")
					if what != "panicked: here" {
						require.ErrorContains(t, err, what)
					}
					require.Equal(t, 1, ran)
					on = false
					require.NoError(t, k.Run(0, 4))
					require.NoError(t, s.Synchronize(t.Context()))
					require.Equal(t, 4, ran)
				})
			}
		}
	}
}

// Launches of several blocks are shared by the workers, each block run once.
func TestKeptBlocks(t *testing.T) {
	d := open(t, cpu.WithWorkers(2))
	s := newStream(t, d)
	const blocks = 40
	var hits [blocks]int
	one, sum := *call(func() {}), 0
	many := device.Launch{Blocks: blocks, Program: &device.Program{Name: "many", Run: func(_ *device.Args, block int) error { hits[block]++; return nil }}}
	k := keep(t, s, one, many, *call(func() {
		for _, n := range hits {
			sum += n
		}
	}))
	for n := range 200 {
		sum = 0
		require.NoError(t, k.Run(0, 3))
		require.NoError(t, s.Synchronize(t.Context()))
		require.Equal(t, (n+1)*blocks, sum)
	}
}

func TestKeptAllocatesNothing(t *testing.T) {
	for _, m := range modes {
		d := open(t, m.opts...)
		s, l := newStream(t, d), *emptyLaunch()
		k := keep(t, s, l, l, l)
		run := func() {
			if k.Set(1, &l) != nil || k.Run(0, 3) != nil || s.Synchronize(t.Context()) != nil {
				t.Fail()
			}
		}
		for range 100 {
			run()
		}
		require.Zero(t, testing.AllocsPerRun(200, run), m.name)
	}
}

// A device whose observer wants to see every launch keeps none.
func TestObserverKeepsNothing(t *testing.T) {
	d := open(t, cpu.WithObserver(func(cpu.Task) {}))
	k, err := newStream(t, d).(device.KeepingStream).Keep([]device.Launch{*emptyLaunch()})
	require.NoError(t, err)
	require.Nil(t, k)
}
