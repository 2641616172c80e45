//go:build linux || darwin

package cpu_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

// TestMemoryThatIsGone launches kernels and copies on memory that its owner
// took away: the fault becomes an error of the stream.
func TestMemoryThatIsGone(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			s := newStream(t, open(t, m.opts...))
			mem, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			require.NoError(t, err)
			gone := device.Wrap(mem)
			// The pages stay reserved: were they unmapped, the runtime could map
			// memory of its own there, and the kernel would write to that.
			require.NoError(t, syscall.Mprotect(mem, syscall.PROT_NONE))
			t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
			for _, blocks := range []int{1, 6} {
				require.NoError(t, s.Launch(&device.Launch{Blocks: blocks, Buffers: []device.Buffer{gone}, Program: &device.Program{Name: "touch", Run: func(a *device.Args, block int) error {
					a.Mem(0)[block] = 1
					return nil
				}}}))
				err = s.Synchronize(t.Context())
				require.ErrorIs(t, err, status.ErrRuntimeFail)
				require.ErrorContains(t, err, "kernel touch panicked")
			}
			require.NoError(t, s.Copy(gone.At(0, 64), device.Wrap(make([]byte, 64))))
			require.ErrorContains(t, s.Synchronize(t.Context()), "copy of 64 bytes")
		})
	}
}
