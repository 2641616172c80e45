package context

import (
	"goatb/device"
	"goatb/mempool"
	"goatb/runner"
	"goatb/tilingcache"
)

// Stats is a snapshot of a context's counters. Counts are since the context was
// made, sizes are in bytes.
type Stats struct {
	// Setups counts Setup calls of top-level operations, SetupHits those that
	// found their plan unchanged.
	Setups, SetupHits int64
	// InferShapes and InferHits count shape inferences of graph nodes.
	InferShapes, InferHits int64
	// PoolHits and PoolMisses count runners taken from the pool and made anew;
	// PoolIdle is the number of runners that wait in it.
	PoolHits, PoolMisses int64
	PoolIdle             int
	// Executes counts launches of operations, Kernels kernels enqueued,
	// SkippedCopies copies, and splits and joins, left out since both ends were the
	// same memory.
	Executes, Kernels, SkippedCopies int64
	// HostTilings counts tilings computed on the host, DeviceTilings those that
	// the device computed for policy device-sink.
	HostTilings, DeviceTilings int64
	// Captures counts graphs that device-sink captured, Compiled those of them that
	// a compilation had, Replays launches that replayed one. Fallbacks counts
	// tilings that were to leave the host and did not, with each capture;
	// FallbackReasons says which and why.
	Captures, Compiled, Replays, Fallbacks int64
	FallbackReasons                        []runner.Fallback
	// LocalHits, GlobalHits and Misses count tiling lookups.
	LocalHits, GlobalHits, Misses int64
	// Global describes the global tiling cache, which contexts may share.
	Global tilingcache.GlobalStats
	// BytesMoved counts tiling bytes brought to the device.
	BytesMoved int64
	// HostRing and DeviceRing describe the tiling rings; their stalls count
	// launches that waited for a block.
	HostRing, DeviceRing mempool.RingStats
	// RingBytes is what both rings reserve, 0 once the context is closed.
	RingBytes int64
	// Streams describes the execute streams by id, Copy the copy stream, which
	// is zero when there is none.
	Streams []device.StreamStats
	Copy    device.StreamStats
	// WorkspaceBytes is what the context's own workspaces hold, WorkspaceMax
	// the largest workspace that a Setup asked for.
	WorkspaceBytes, WorkspaceMax int64
	// Overflows counts hits of the overflow check.
	Overflows int64
}

// Stats returns a snapshot. It may be called from any goroutine, also after
// Close; that of a nil or zero context is zero.
func (c *Context) Stats() Stats {
	if c == nil || c.dev == nil {
		return Stats{}
	}
	n := &c.count
	s := Stats{
		Setups: n.Setups.Load(), SetupHits: n.SetupHits.Load(),
		InferShapes: n.InferShapes.Load(), InferHits: n.InferHits.Load(),
		PoolHits: n.PoolHits.Load(), PoolMisses: n.PoolMisses.Load(), PoolIdle: c.pool.Idle(),
		Executes: n.Executes.Load(), Kernels: n.Kernels.Load(), SkippedCopies: n.SkippedCopies.Load(),
		HostTilings: n.Tilings.Load(), LocalHits: n.LocalHits.Load(), GlobalHits: n.GlobalHits.Load(), Misses: n.CacheMisses.Load(),
		DeviceTilings: n.DeviceTilings.Load(), Captures: n.Captures.Load(), Compiled: n.Compiled.Load(), Replays: n.Replays.Load(),
		BytesMoved: n.TilingBytes.Load(), WorkspaceMax: n.WorkspaceMax.Load(), Overflows: n.Overflows.Load(),
	}
	s.Fallbacks, s.FallbackReasons = c.env.Sinking.Fallbacks.List()
	if c.env.Global != nil {
		s.Global = c.env.Global.Stats()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.env.HostRing != nil && c.env.DeviceRing != nil {
		s.HostRing, s.DeviceRing = c.env.HostRing.Stats(), c.env.DeviceRing.Stats()
		if !c.closed.Load() {
			s.RingBytes = int64(s.HostRing.Blocks)*s.HostRing.BlockSize + int64(s.DeviceRing.Blocks)*s.DeviceRing.BlockSize
		}
	}
	for _, st := range c.env.Streams {
		s.Streams = append(s.Streams, st.Stats())
	}
	if c.env.Copy != nil {
		s.Copy = c.env.Copy.Stats()
	}
	for _, w := range c.workspaces {
		s.WorkspaceBytes += w.Size()
	}
	return s
}
