package cpu_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
)

// A program that computes shares of blocks gets each block once, enqueued or kept,
// on one worker and on several, and its error names its place.
func TestShares(t *testing.T) {
	for _, m := range modes {
		for _, workers := range []int{1, 3} {
			d := open(t, append([]cpu.Option{cpu.WithWorkers(workers)}, m.opts...)...)
			s := newStream(t, d)
			const blocks = 40
			var mu sync.Mutex
			times := make([]int, blocks)
			l := device.Launch{Blocks: blocks, Label: &device.Label{Op: "op", Node: "node"}, Program: &device.Program{
				Name: "shares",
				Run:  func(*device.Args, int) error { return errors.New("blocks are taken as shares") },
				Share: func(_ *device.Args, lo, hi int) error {
					mu.Lock()
					defer mu.Unlock()
					for b := lo; b < hi; b++ {
						times[b]++
					}
					return nil
				},
			}}
			require.NoError(t, s.Launch(&l))
			k := keep(t, s, l)
			require.NoError(t, k.Run(0, 1))
			require.NoError(t, s.Synchronize(t.Context()), "%s with %d workers", m.name, workers)
			for b, n := range times {
				require.Equal(t, 2, n, "%s with %d workers: block %d", m.name, workers, b)
			}
			begun := 0
			prepared := *l.Program
			prepared.Begin = func(*device.Args) error { begun++; return nil }
			l.Program = &prepared
			one := l
			one.Blocks = 1
			require.NoError(t, keep(t, s, l, one).Run(0, 2))
			require.NoError(t, s.Synchronize(t.Context()))
			require.Equal(t, 2, begun, "%s with %d workers", m.name, workers)
			require.Equal(t, 4, times[0])
			require.Equal(t, 3, times[blocks-1])
			prepared.Begin = func(*device.Args) error { return errors.New("not begun") }
			require.NoError(t, keep(t, s, one, l).Run(0, 2))
			require.ErrorContains(t, s.Synchronize(t.Context()), "not begun")
			require.NoError(t, keep(t, s, l, one).Run(0, 2))
			require.ErrorContains(t, s.Synchronize(t.Context()), "not begun")
			require.Equal(t, 4, times[0], "blocks of launches that are not prepared")
			l.Program = &device.Program{Name: "shares", Run: l.Program.Run, Share: func(*device.Args, int, int) error { return errors.New("no luck") }}
			require.NoError(t, keep(t, s, l).Run(0, 1))
			err := s.Synchronize(t.Context())
			require.ErrorContains(t, err, "no luck")
			require.ErrorContains(t, err, "node")
		}
	}
}
