package runner

import "sync/atomic"

// Counters counts what the operations of a context did. It is safe for
// concurrent use.
type Counters struct {
	Setups, SetupHits     atomic.Int64
	InferShapes           atomic.Int64
	InferHits             atomic.Int64
	PoolHits, PoolMisses  atomic.Int64
	Executes, Kernels     atomic.Int64
	Tilings               atomic.Int64
	LocalHits, GlobalHits atomic.Int64
	CacheMisses           atomic.Int64
	TilingBytes           atomic.Int64
	SkippedCopies         atomic.Int64
	Overflows             atomic.Int64
	WorkspaceMax          atomic.Int64
	// Captures counts graphs that were captured, Compiled those of them that were so
	// ahead of time, Replays launches that replayed one, DeviceTilings the tilings
	// that the device computed.
	Captures, Compiled, Replays, DeviceTilings atomic.Int64
}

// tally gathers the counts of one launch without atomics.
type tally struct {
	kernels, tilings, localHits, globalHits, misses, bytes, skipped, replays int64
}

// flush adds the tally to the counters and clears it.
func (t *tally) flush(c *Counters) {
	c.Executes.Add(1)
	c.Kernels.Add(t.kernels)
	c.TilingBytes.Add(t.bytes)
	for _, x := range [...]struct {
		to *atomic.Int64
		n  int64
	}{{&c.Tilings, t.tilings}, {&c.LocalHits, t.localHits}, {&c.GlobalHits, t.globalHits}, {&c.CacheMisses, t.misses}, {&c.SkippedCopies, t.skipped}, {&c.Replays, t.replays}} {
		if x.n != 0 {
			x.to.Add(x.n)
		}
	}
	*t = tally{}
}
