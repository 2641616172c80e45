package mempool

import (
	"math"

	"goatb/status"
)

// Solver places items online: it learns of an item when it is allocated and of
// its end when it is freed. It is one arena; offsets count bytes from its
// start. A Solver belongs to one goroutine.
type Solver interface {
	// Alloc places size bytes. Size 0 is legal, takes no room and gives an
	// offset within the arena. Errors: ErrInvalidParam for a negative size,
	// ErrOutOfDeviceMemory when the arena's size leaves int64.
	Alloc(size int64) (offset int64, err error)
	// Free ends the item at offset. Where an item of no bytes shares the offset
	// of another one, the item of no bytes ends first: memory is never given
	// out early. An offset that is not live is ErrInvalidParam.
	Free(offset int64) error
	// Peak returns the arena's size in bytes: the largest end of any item since
	// the last Reset.
	Peak() int64
	// Requested returns the sum of all sizes since the last Reset.
	Requested() int64
	// Reset empties the arena and forgets everything.
	Reset()
}

// NewSolver makes an online solver of type BruteForce, FirstFit, BestFit or
// Intervals. Optimal needs to see all items first, see Planner; it and unknown
// types are ErrInvalidParam.
func NewSolver(t SolverType) (Solver, error) {
	s := newStrategy(t)
	if s == nil {
		return nil, status.Errorf(status.ErrInvalidParam, "want an online solver, types 0 to 3, got %s", t)
	}
	return &online{arena: arena{strategy: s}, live: map[int64]int32{}, empty: map[int64]int{}}, nil
}

func newStrategy(t SolverType) strategy {
	switch t {
	case BruteForce:
		return &bruteForce{}
	case FirstFit:
		return &firstFit{}
	case BestFit:
		return &bestFit{}
	case Intervals:
		return &intervals{}
	}
	return nil
}

// strategy is what the four solvers differ in. Sizes are positive, blocks are
// live: arena has checked that.
type strategy interface {
	// take finds room and returns the offset, and the strategy's own number of
	// the block.
	take(size int64) (offset int64, block int32)
	// give ends a block.
	give(block int32)
	// reset forgets all blocks and keeps the memory that they took.
	reset()
}

// arena adds the totals that every strategy needs.
type arena struct {
	strategy
	peak, requested int64
}

func (a *arena) alloc(size int64) (offset int64, block int32) {
	offset, block = a.take(size)
	a.requested += size
	a.peak = max(a.peak, offset+size)
	return offset, block
}

func (a *arena) reset() {
	a.strategy.reset()
	a.peak, a.requested = 0, 0
}

// online names the blocks of an arena by offset.
type online struct {
	arena
	live  map[int64]int32 // offset -> block
	empty map[int64]int   // offset -> number of live items of no bytes
}

func (o *online) Alloc(size int64) (int64, error) {
	switch {
	case size < 0:
		return 0, status.Errorf(status.ErrInvalidParam, "want a size of at least 0, got %d", size)
	case size == 0:
		o.empty[o.peak]++
		return o.peak, nil
	case size > math.MaxInt64-o.requested:
		return 0, status.Errorf(status.ErrOutOfDeviceMemory, "sizes add up to more than int64 holds: %d and %d bytes", o.requested, size)
	}
	offset, block := o.alloc(size)
	o.live[offset] = block
	return offset, nil
}

func (o *online) Free(offset int64) error {
	if n := o.empty[offset]; n > 1 {
		o.empty[offset] = n - 1
		return nil
	} else if n == 1 {
		delete(o.empty, offset)
		return nil
	}
	block, ok := o.live[offset]
	if !ok {
		return status.Errorf(status.ErrInvalidParam, "free of offset %d, where nothing is live", offset)
	}
	delete(o.live, offset)
	o.give(block)
	return nil
}

func (o *online) Peak() int64      { return o.peak }
func (o *online) Requested() int64 { return o.requested }

func (o *online) Reset() {
	o.reset()
	clear(o.live)
	clear(o.empty)
}
