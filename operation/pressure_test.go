package operation_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/operation"
	"goatb/tilingcache"
)

const (
	launches   = 10_000
	queueDepth = 256
	// between is the number of launches from one hold of the stream to the next.
	between = 500
)

// holder holds a stream again and again, and lets it go once the host is seen to
// wait.
type holder struct {
	*bed
	stream device.Stream
	gate   device.Event
	opener device.Stream
	holds  chan struct{}
	done   sync.WaitGroup
}

func newHolder(b *bed) *holder {
	s, err := b.c.Stream(0)
	require.NoError(b, err)
	opener, err := b.dev.NewStream()
	require.NoError(b, err)
	h := &holder{bed: b, stream: s, gate: b.event(), opener: opener, holds: make(chan struct{}, launches/between)}
	h.done.Go(h.release)
	return h
}

// hold holds the stream from here on.
func (h *holder) hold() {
	require.NoError(h, h.stream.Wait(h.gate))
	require.NoError(h, h.stream.Reset(h.gate))
	h.holds <- struct{}{}
}

// release opens the gate for each hold once every goroutine has come to rest:
// the host waits for a block or for room in the queue, or has nothing to do.
func (h *holder) release() {
	for range h.holds {
		synctest.Wait()
		assert.NoError(h, h.opener.Record(h.gate))
	}
}

func (h *holder) close() {
	close(h.holds)
	h.done.Wait()
	require.NoError(h, h.opener.Close())
}

// Ten thousand launches through rings of 128 and 32 blocks, while the stream is
// held now and then: each kernel reads its own tiling, waits are counted where
// there is a ring to wait for, and the queue stays within its depth.
func TestRingPressure(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := cpu.New(cpu.WithWorkers(2), cpu.WithQueueDepth(queueDepth), cpu.WithSpin(0))
				require.NoError(t, err)
				b := &bed{TB: t, dev: d}
				b.c = b.context(atbctx.WithPolicy(policy))
				t.Cleanup(func() { require.NoError(t, d.Close()) })
				o := b.op(shift{})
				x, err := atbctx.Wrap([]float32{1}, 1)
				require.NoError(t, err)
				lengths := []int32{0, 0}
				pack := operation.VariantPack{In: []device.Tensor{x, atbctx.Host(lengths)}, Out: []device.Tensor{{Desc: x.Desc}}}
				out, err := b.c.Alloc(64 * launches)
				require.NoError(t, err)
				h := newHolder(b)
				for i := range launches {
					lengths[0], lengths[1] = int32(i%10), int32(i/10%10)
					pack.Out[0].Data = out.At(64*int64(i), 4)
					_, err := o.Setup(pack, b.c)
					require.NoError(t, err)
					if i%between == 0 {
						h.hold()
					}
					require.NoError(t, o.Execute(pack, device.Buffer{}, b.c))
				}
				h.close()
				b.sync()
				got := device.View[float32](out.Bytes())
				for i := range launches {
					require.Equal(t, 1+float32(i%10)+float32(i/10%10), got[16*i], "launch %d", i)
				}
				s := b.c.Stats()
				stalls := s.HostRing.Stalls + s.DeviceRing.Stalls
				if policy == "kernel-follow" {
					assert.Zero(t, stalls)
					assert.Positive(t, s.Streams[0].QueueStalls, "the host waited for the queue instead")
				} else {
					assert.GreaterOrEqual(t, stalls, int64(launches/between))
					assert.Equal(t, int64(launches), s.DeviceRing.Taken)
					assert.Zero(t, s.DeviceRing.InUse)
				}
				assert.LessOrEqual(t, s.Streams[0].DepthMax, int64(queueDepth))
				assert.Positive(t, s.Streams[0].DepthMax)
			})
		})
	}
}

// Two contexts of one device and one tiling cache, each on its goroutine.
func TestTwoContexts(t *testing.T) {
	d, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	shared, err := tilingcache.NewGlobal(3)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			b := &bed{TB: t, dev: d}
			b.c = b.context(atbctx.WithPolicy(policies[1+n]), atbctx.WithGlobalCache(shared))
			g := b.shifted()
			for i := range 300 {
				p := b.pack2(g, []float32{float32(i)}, host(int32(i%10), int32(n)))
				ws := b.setup(g, p)
				b.execute(g, p, ws)
				if i%10 == 0 {
					assert.Equal(t, []float32{10 * (2*float32(i) + float32(i%10) + float32(n))}, b.values(p.Out[0]))
				}
				b.sync()
				require.NoError(t, b.c.Free(ws))
				require.NoError(t, b.c.Free(p.Out[0].Data))
			}
		})
	}
	wg.Wait()
	assert.Positive(t, shared.Stats().Hits)
}

// Closing gives every goroutine back.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		d, err := cpu.New(cpu.WithWorkers(3))
		require.NoError(t, err)
		c, err := atbctx.New(d, atbctx.WithEnv(noEnv), atbctx.WithStreams(2), atbctx.WithPolicy("multi-stream"))
		require.NoError(t, err)
		o, err := operation.New(muls(2))
		require.NoError(t, err)
		x, err := atbctx.FromSlice(c, make([]float32, 1<<16), 1<<16)
		require.NoError(t, err)
		n, err := o.Setup(operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{x}}, c)
		require.NoError(t, err)
		ws, err := c.Workspace(n)
		require.NoError(t, err)
		require.NoError(t, o.Execute(operation.VariantPack{}, ws, c))
		require.NoError(t, c.Close())
		require.NoError(t, o.Close())
		require.NoError(t, d.Close())
	}
	for i := 0; runtime.NumGoroutine() > before; i++ {
		require.Less(t, i, 1_000_000, "%d goroutines, %d before", runtime.NumGoroutine(), before)
		runtime.Gosched()
	}
}
