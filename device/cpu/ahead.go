package cpu

import (
	"sync/atomic"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/internal/workpool"
)

// Between kernels that go through memory as fast as a core gets it, helpers have
// nothing to do while short kernels run, and who is done first waits for the others.
// Meanwhile they fetch into their caches what they will read first in the kept launch
// that comes next among those that tell. Every other piece is fetched: the rest comes
// from memory while the worker goes through them.
const (
	// aheadPiece is what a worker fetches before it looks for work again, some hundred
	// nanoseconds.
	aheadPiece = 2 << 10
	// aheadShare is the share of L2 that is filled.
	aheadShare = 8
)

// ahead is what the workers fetch for a launch, each its own part.
type ahead []aheadPart

// aheadPart is an address and a size, and how far the worker has come. Nothing is
// reached through the address, and a worker that sees a new one with an old size
// fetches in vain.
type aheadPart struct {
	from       atomic.Uintptr
	size, done atomic.Int64
	_          [cacheLine - 24]byte
}

// fetch fetches a piece of a worker's part. It reports whether there was one.
func (a ahead) fetch(worker int) bool {
	p := &a[worker]
	done := p.done.Load()
	if done >= p.size.Load() {
		return false
	}
	gemm.Fetch(p.from.Load()+uintptr(done), aheadPiece/64)
	p.done.Store(done + 2*aheadPiece)
	return true
}

// again makes the workers begin at the beginning.
func (a ahead) again() {
	for i := range a {
		a[i].done.Store(0)
	}
}

// of sets what workers fetch for a launch with a known tiling.
func (a ahead) of(p *device.Program, args *device.Args, pool *workpool.Pool, most int64) {
	for i := range a {
		b := p.Ahead(args, pool.FirstBlock(i, args.Blocks))
		a[i].from.Store(gemm.Address(b))
		a[i].size.Store(min(int64(len(b)), most) / aheadPiece * aheadPiece)
	}
}

// fetchAhead is what a worker does that finds no block.
func (s *Stream) fetchAhead(worker int) bool {
	a := s.run.ahead.Load()
	return a != nil && a.fetch(worker)
}
