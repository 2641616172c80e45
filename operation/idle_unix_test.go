//go:build unix

package operation_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
)

// processTime is the processor time that the process has used.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A millisecond after the last work ended, a context uses no processor time: its
// streams, workers and rings sleep.
func TestIdleContextSleeps(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a quiet moment")
	}
	b := newBed(t, atbctx.WithStreams(2), atbctx.WithPolicy("multi-stream"))
	g := b.shifted()
	p := b.pack2(g, make([]float32, 1<<16), host(1, 2))
	ws := b.setup(g, p)
	best := time.Hour
	for range 10 {
		for range 20 {
			b.execute(g, p, ws)
		}
		b.sync()
		runtime.GC()
		<-time.After(2 * time.Millisecond)
		start := processTime(t)
		<-time.After(50 * time.Millisecond)
		if best = min(best, processTime(t)-start); best < time.Millisecond {
			break
		}
	}
	assert.Less(t, best, time.Millisecond, "processor time in 50 ms of idleness")
}
