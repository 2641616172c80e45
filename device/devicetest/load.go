package devicetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

var loadChecks = []check{
	{"a full queue waits", checkFullQueue},
	{"close frees who waits for a full queue", checkFullQueueClose},
	{"more tasks than the queue holds", checkDeep},
	{"many goroutines", checkManyGoroutines},
	{"many streams and events", checkManyStreams},
	{"alloc and free beside work", checkAllocBesideWork},
}

func checkFullQueue(b *bed) {
	s, release := b.stalled()
	depth := b.dev.Props().QueueDepth
	var enqueued, ran atomic.Int64
	go func() {
		for range depth + 20 {
			if s.Launch(call(func() { ran.Add(1) })) == nil {
				enqueued.Add(1)
			}
		}
	}()
	b.settle()
	require.EqualValues(b, depth-1, enqueued.Load(), "the wait takes a place too")
	require.Zero(b, ran.Load())
	require.EqualValues(b, depth, s.Stats().DepthMax)
	release()
	b.settle()
	require.EqualValues(b, depth+20, enqueued.Load())
	require.EqualValues(b, depth+20, ran.Load())
	require.Positive(b, s.Stats().QueueStalls)
}

func checkFullQueueClose(b *bed) {
	d := b.open(b.T)
	s, err := d.NewStream()
	require.NoError(b, err)
	e, err := d.NewEvent()
	require.NoError(b, err)
	require.NoError(b, s.Wait(e))
	var last error
	var done atomic.Bool
	go func() {
		for last == nil {
			last = s.Launch(call(func() {}))
		}
		done.Store(true)
	}()
	b.settle()
	require.False(b, done.Load())
	_ = d.Close()
	b.settle()
	require.True(b, done.Load())
	require.ErrorIs(b, last, status.ErrInvalidStream)
}

func checkDeep(b *bed) {
	s := b.stream()
	x := b.alloc(8)
	n := 3*b.dev.Props().QueueDepth + 7
	for i := range n {
		s.launch(fill(x, byte(i)))
	}
	s.sync()
	require.Equal(b, byte(n-1), x.Bytes()[0])
	require.EqualValues(b, n, s.Stats().Launches)
}

func checkManyGoroutines(b *bed) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s, err := b.dev.NewStream()
			if !assert.NoError(b, err) {
				return
			}
			rng := rand.New(rand.NewPCG(uint64(g), 7))
			for range 30 {
				n := 1 + rng.Int64N(3000)
				x, err := b.dev.Alloc(n)
				if !assert.NoError(b, err) {
					return
				}
				v := byte(rng.UintN(200))
				assert.NoError(b, s.Launch(fill(x, v)))
				out := make([]byte, n)
				assert.NoError(b, s.Launch(add(x, x, 1)))
				assert.NoError(b, s.Copy(device.WrapHost(out), x))
				assert.NoError(b, b.dev.Free(x))
				assert.NoError(b, s.Synchronize(b.Context()))
				assert.Equal(b, repeat(v+1, int(n)), out)
			}
			assert.NoError(b, s.Close())
		})
	}
	wg.Wait()
}

// checkManyStreams runs a random chain of kernels over several streams, each
// link ordered by an event, and checks that every link saw the one before it.
func checkManyStreams(b *bed) {
	rng := rand.New(rand.NewPCG(11, 12))
	var streams []stream
	var events []device.Event
	for range 6 {
		streams = append(streams, b.stream())
		events = append(events, b.event())
	}
	const links = 600
	last, seen := 0, make([]int, 0, links)
	for i := range links {
		next := rng.IntN(len(streams))
		if next != last {
			streams[last].record(events[last])
			streams[next].wait(events[last])
		}
		l := call(func() { seen = append(seen, i) })
		l.Blocks = 1
		streams[next].launch(l)
		last = next
	}
	streams[last].sync()
	require.Len(b, seen, links)
	for i, v := range seen {
		require.Equal(b, i, v)
	}
}

func checkAllocBesideWork(b *bed) {
	s := b.stream()
	sum := b.alloc(64)
	for i := range 200 {
		x := b.alloc(int64(64 + i*500))
		s.launch(fill(x, 1))
		s.launch(&device.Launch{Blocks: 4, Buffers: []device.Buffer{x, sum}, Inputs: 1, Program: &device.Program{Name: "test/sum", Run: func(a *device.Args, block int) error {
			for j := block * 16; j < block*16+16; j++ {
				a.Mem(1)[j] += a.Mem(0)[j]
			}
			return nil
		}}})
		require.NoError(b, b.dev.Free(x))
	}
	s.sync()
	require.Equal(b, repeat(200, 64), sum.Bytes())
}
