package cpu

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
)

// prompt is a stream whose host has come in time often enough, with light launches
// that it keeps.
type prompt struct {
	*testing.T
	dev *Device
	s   *Stream
	k   *kept
	ran atomic.Int64
}

// holdingTest runs f in a bubble of virtual time.
func holdingTest(t *testing.T, f func(p *prompt)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, err := New(WithWorkers(2))
		require.NoError(t, err)
		p := &prompt{T: t, dev: d}
		p.s = p.stream()
		count := device.Launch{Blocks: 1, Program: &device.Program{Name: "count", Run: func(*device.Args, int) error { p.ran.Add(1); return nil }}}
		k, err := p.s.Keep([]device.Launch{count, count})
		require.NoError(t, err)
		p.k = k.(*kept)
		p.k.took.Store(1)
		p.s.holding.prompt = promptEnough
		f(p)
		require.NoError(t, d.Close())
	})
}

func (p *prompt) stream() *Stream {
	s, err := p.dev.NewStream()
	require.NoError(p, err)
	return s.(*Stream)
}

func (p *prompt) event() device.Event {
	e, err := p.dev.NewEvent()
	require.NoError(p, err)
	return e
}

// hold enqueues light work and sees that it is held.
func (p *prompt) hold() {
	p.Helper()
	before := p.ran.Load()
	require.NoError(p, p.k.Run(0, 2))
	synctest.Wait()
	require.Equal(p, before, p.ran.Load(), "the work is held back")
}

// done sees that n launches were run since hold without a Synchronize.
func (p *prompt) done(n int) {
	p.Helper()
	synctest.Wait()
	require.EqualValues(p, n, p.ran.Load())
}

// A prompt host runs what is held when it synchronizes, and stays prompt.
func TestHeldForSynchronize(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		for n := 1; n <= 100; n++ {
			p.hold()
			require.NoError(p, p.s.Synchronize(p.Context()))
			require.EqualValues(p, 2*n, p.ran.Load())
		}
		require.Equal(p, promptMost, p.s.holding.prompt)
	})
}

// Without a Synchronize the work is run when its time is over, and the host has
// less credit.
func TestHeldIsRunInTheEnd(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		p.hold()
		<-time.After(holdTime)
		p.done(2)
		require.Zero(p, p.s.holding.prompt)
		require.NoError(p, p.k.Run(0, 2))
		synctest.Wait()
		require.EqualValues(p, 4, p.ran.Load(), "the stream's goroutine runs it at once")
		<-time.After(10 * holdTime)
		require.False(p, p.s.holding.armed, "an idle stream has no timer")
	})
}

// Whoever could notice that work is held makes it run.
func TestWhatEndsHolding(t *testing.T) {
	for name, f := range map[string]func(p *prompt) (more int){
		"query": func(p *prompt) int { require.False(p, p.s.Query()); return 0 },
		"launch": func(p *prompt) int {
			require.NoError(p, p.s.Launch(&device.Launch{Blocks: 1, Program: p.k.launches[0].prog, Buffers: nil}))
			return 1
		},
		"close": func(p *prompt) int { require.NoError(p, p.s.Close()); return 0 },
		"a large copy": func(p *prompt) int {
			x := device.Wrap(make([]byte, 2*lightBytes))
			require.NoError(p, p.s.Copy(x.At(0, lightBytes+1), x.At(0, lightBytes+1)))
			return 0
		},
		"many tasks": func(p *prompt) int {
			x := device.Wrap(make([]byte, 8))
			for range mostHeld {
				require.NoError(p, p.s.Copy(x, x))
			}
			return 0
		},
		"a slow kernel": func(p *prompt) int {
			p.k.took.Store(int64(lightTime) + 1)
			require.NoError(p, p.k.Run(0, 0))
			require.NoError(p, p.k.Run(0, 1))
			return 1
		},
		"event query": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			synctest.Wait()
			require.Zero(p, p.ran.Load(), "a record is held too")
			e.Query()
			return 0
		},
		"event synchronize": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			require.NoError(p, e.Synchronize(p.Context()))
			return 0
		},
		"a wait of another stream": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			require.NoError(p, p.stream().Wait(e))
			return 0
		},
		"a record that another stream waits for": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.stream().Wait(e))
			require.NoError(p, p.s.Record(e))
			return 0
		},
		"a record of another stream on the event": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			require.NoError(p, p.stream().Record(e))
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			holdingTest(t, func(p *prompt) {
				p.hold()
				p.done(2 + f(p))
			})
		})
	}
}

// A queue that is full of what is held does not wait for itself.
func TestHeldFillsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := New(WithQueueDepth(2))
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		s.(*Stream).holding.prompt = promptMost
		x := device.Wrap(make([]byte, 8))
		for range 20 {
			require.NoError(t, s.Copy(x, x))
		}
		require.NoError(t, s.Synchronize(t.Context()))
		require.NoError(t, d.Close())
	})
}

// A host that comes late loses its credit, in time.
func TestLateHost(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		p.s.holding.prompt = promptMost
		rounds := 0
		for p.s.holding.prompt >= promptEnough {
			require.NoError(p, p.k.Run(0, 2))
			<-time.After(2 * lateHost)
			require.NoError(p, p.s.Synchronize(p.Context()))
			rounds++
		}
		require.Equal(p, promptMost/promptLoss, rounds)
	})
}

func TestCredit(t *testing.T) {
	var h holding
	for range 2 * promptMost {
		h.came(true, time.Time{})
	}
	require.Equal(t, promptMost, h.prompt)
	h.came(false, time.Time{})
	require.Equal(t, promptMost-promptLoss, h.prompt)
	h.since = time.Now().Add(-time.Hour)
	h.came(true, h.since.Add(lateHost))
	require.Equal(t, promptMost-promptLoss+1, h.prompt, "work of an hour would not have been done")
	for range promptMost {
		h.came(true, time.Now())
	}
	require.Zero(t, h.prompt)
}
