//go:build unix

package pressure

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
)

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestIdleUsesNoProcessor looks at 50 ms that begin a millisecond after the last
// work has ended. One worker that spins on would use all of them; the bound
// leaves room for the Go runtime's own work, and the best of some tries counts.
func TestIdleUsesNoProcessor(t *testing.T) {
	const bound, tries = 5 * time.Millisecond, 10
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			c := newContext(t, newDevice(t), atb.WithPolicy(policy), atb.WithStreams(2))
			s := newSums(t, c, 200)
			best := time.Hour
			for range tries {
				for i := range 200 {
					s.launch(i)
				}
				require.NoError(t, c.Synchronize(t.Context()))
				runtime.GC()
				s.launch(0)
				require.NoError(t, c.Synchronize(t.Context()))
				<-time.After(time.Millisecond)
				start := processorTime(t)
				<-time.After(50 * time.Millisecond)
				if best = min(best, processorTime(t)-start); best < bound {
					return
				}
			}
			assert.Less(t, best, bound, "processor time in 50 ms without work")
		})
	}
}
