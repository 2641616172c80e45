package pressure

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/atb"
	"goatb/device/cpu"
)

const (
	depth = 1024
	// between is the number of launches from one hold to the next: more than a
	// ring or the queue takes.
	between = 2000
)

// press launches operations while the stream is held again and again, and
// returns the statistics. Each hold makes the host wait, for a block or for room in
// the queue.
func press(t *testing.T, c *atb.Context, launches int) atb.Stats {
	s := newSums(t, c, launches)
	g := newGate()
	var released sync.WaitGroup
	released.Go(func() { g.release(c) })
	for i := range launches {
		if i%between == 0 {
			g.hold(t, c)
		}
		s.launch(i)
	}
	close(g.held)
	released.Wait()
	s.check(launches)
	return c.Stats()
}

// Ten thousand launches through 32 device blocks: nothing is overwritten, the
// host's waits are counted where they happen, the queue keeps its bound.
func TestRing(t *testing.T) {
	const launches = 10_000
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			c := newContext(t, newDevice(t, cpu.WithQueueDepth(depth)), atb.WithPolicy(policy))
			s := press(t, c, launches)
			rings := s.HostRing.Stalls + s.DeviceRing.Stalls
			if policy == "kernel-follow" {
				assert.Zero(t, rings)
				assert.Zero(t, s.DeviceRing.Taken)
				assert.GreaterOrEqual(t, s.Streams[0].QueueStalls, int64(launches/between), "the host waited for the queue")
			} else {
				assert.Equal(t, 32, s.DeviceRing.Blocks)
				assert.GreaterOrEqual(t, rings, int64(launches/between))
				assert.Positive(t, s.DeviceRing.StallNanos)
				assert.EqualValues(t, launches, s.DeviceRing.Taken)
				assert.Zero(t, s.DeviceRing.InUse)
				assert.Zero(t, s.HostRing.InUse)
			}
			assert.Positive(t, s.Streams[0].DepthMax)
			assert.LessOrEqual(t, s.Streams[0].DepthMax, int64(depth))
			assert.EqualValues(t, launches+launches/between, s.Streams[0].Launches)
		})
	}
}

// Two contexts of one device, each on its goroutine and with its own stream that
// stands still: neither waits for the other.
func TestTwoContexts(t *testing.T) {
	const launches = 4000
	d := newDevice(t, cpu.WithQueueDepth(depth))
	for i := range policies {
		var both sync.WaitGroup
		for _, policy := range []string{policies[i], policies[(i+1)%len(policies)]} {
			c := newContext(t, d, atb.WithPolicy(policy))
			both.Go(func() {
				s := press(t, c, launches)
				assert.EqualValues(t, launches, s.Executes, policy)
			})
		}
		both.Wait()
	}
}
