package pressure

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
)

// resident returns the bytes of the process that are in memory.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("this system has no /proc/self/statm to read resident memory from")
	}
	var total, pages int64
	_, err = fmt.Sscan(string(text), &total, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// TestReservedRingsAreNotResident makes contexts with the default rings, of 480
// MiB each, and uses one of them.
func TestReservedRingsAreNotResident(t *testing.T) {
	const mib = 1 << 20
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			d := newDevice(t)
			debug.FreeOSMemory()
			before := resident(t)
			c := newContext(t, d, atb.WithPolicy(policy))
			assert.EqualValues(t, 480*mib, c.Stats().RingBytes)
			assert.Less(t, resident(t)-before, int64(10*mib), "before use")
			s := newSums(t, c, 500)
			for i := range 500 {
				s.launch(i)
			}
			s.check(500)
			debug.FreeOSMemory()
			assert.Less(t, resident(t)-before, int64(20*mib), "after launches with small tilings through every block")
		})
	}
}
