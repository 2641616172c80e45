package cpu_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/status"
)

func TestOptionsOutOfRange(t *testing.T) {
	for name, o := range map[string]cpu.Option{
		"no workers": cpu.WithWorkers(0), "negative workers": cpu.WithWorkers(-3), "many workers": cpu.WithWorkers(1 << 20),
		"no queue": cpu.WithQueueDepth(0), "deep queue": cpu.WithQueueDepth(1 << 30),
		"negative limit": cpu.WithMemoryLimit(-1), "negative spin": cpu.WithSpin(-1),
	} {
		d, err := cpu.New(o)
		assert.ErrorIs(t, err, status.ErrInvalidParam, name)
		assert.Nil(t, d, name)
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, append([]cpu.Option{cpu.WithMemoryLimit(1000)}, m.opts...)...)
				x, err := d.Alloc(600)
				require.NoError(t, err)
				_, err = d.Alloc(401)
				require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
				require.ErrorContains(t, err, "want 401 bytes")
				require.ErrorContains(t, err, "got 400 free of 1000")
				_, err = d.AllocHost(5000)
				require.NoError(t, err, "the limit is on device memory")

				s, e := newStream(t, d), newEvent(t, d)
				require.NoError(t, s.Wait(e))
				require.NoError(t, d.Free(x))
				_, err = d.Alloc(500)
				require.ErrorIs(t, err, status.ErrOutOfDeviceMemory, "enqueued work may still use it")
				require.NoError(t, newStream(t, d).Record(e))
				require.NoError(t, s.Synchronize(t.Context()))
				synctest.Wait()
				_, err = d.Alloc(1000)
				require.NoError(t, err)
			})
		})
	}
}

func TestAddressSpaceIsExhausted(t *testing.T) {
	d := open(t)
	for _, size := range []int64{math.MaxInt64, 1 << 60, 1 << 52} {
		_, err := d.Alloc(size)
		require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
		require.ErrorContains(t, err, strconv.FormatInt(size, 10))
	}
}

// resident returns how many bytes of b are in memory, from the kernel's list of
// mappings.
func resident(t *testing.T, b device.Buffer) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("no list of mappings here: %v", err)
	}
	start := uint64(uintptr(unsafe.Pointer(&b.Bytes()[0])))
	total, inside := int64(0), false
	for line := range strings.Lines(string(text)) {
		var from, to uint64
		var kib int64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from < start+uint64(b.Size()) && start < to
		} else if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); n == 1 && inside {
			total += kib << 10
		}
	}
	return total
}

// TestMemoryIsReservedOnly makes the rings of a context and touches only their
// starts.
func TestMemoryIsReservedOnly(t *testing.T) {
	d := open(t)
	host, err := d.AllocHost(384 << 20)
	require.NoError(t, err)
	dev, err := d.Alloc(96 << 20)
	require.NoError(t, err)
	require.Less(t, resident(t, host), int64(1<<20), "before use")
	require.Less(t, resident(t, dev), int64(1<<20), "before use")
	host.Bytes()[0], dev.Bytes()[0] = 1, 1
	require.Less(t, resident(t, host), int64(1<<20), "after one byte")
	require.Less(t, resident(t, dev), int64(5<<20), "after one byte")
	for i := range 32 << 20 / 4096 {
		dev.Bytes()[i*4096] = 1
	}
	require.Greater(t, resident(t, dev), int64(16<<20), "touched memory is resident")
	require.NoError(t, d.Free(dev))
	require.NoError(t, d.Free(host))
}

func TestSmallMemoryIsReused(t *testing.T) {
	d := open(t)
	seen := map[*byte]bool{}
	for range 1000 {
		x, err := d.Alloc(100)
		require.NoError(t, err)
		seen[&x.Bytes()[0]] = true
		require.NoError(t, d.Free(x))
	}
	require.Len(t, seen, 1)
	var all []device.Buffer
	for range 20000 {
		x, err := d.Alloc(4)
		require.NoError(t, err)
		all = append(all, x)
	}
	for i, x := range all {
		x.Bytes()[0] = byte(i)
	}
	for i, x := range all {
		require.Equal(t, byte(i), x.Bytes()[0])
		require.NoError(t, d.Free(x))
	}
}
