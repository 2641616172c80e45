package mempool

import (
	"context"
	"errors"
	"sync"
	"time"

	"goatb/device"
	"goatb/status"
)

// SlotAlign is the alignment of every ring block, in bytes: tiling structs may
// be read in place.
const SlotAlign = 64

// Ring hands out equal blocks of one buffer, round robin. The package comment
// tells who owns a block when.
//
// It may be used from any goroutine; several takers get different blocks. The
// memory behind it belongs to the caller and must outlive the ring. Take,
// Release and Return allocate nothing once each block has been released once.
type Ring struct {
	dev       device.Device
	host      device.Host // nil where nobody keeps account
	mem       device.Buffer
	blockSize int64

	mu     sync.Mutex
	slots  []slot
	next   int // slot of the next Take
	taken  int64
	stalls int64
	nanos  int64
	closed bool
}

// slot is the state of one block, guarded by Ring.mu.
type slot struct {
	event device.Event // nil until the block's first Release
	owner owner
	turn  uint64 // number of takes so far: tells a stale Block from the live one
}

type owner uint8

const (
	ownedByNobody owner = iota
	ownedByHost
	ownedByStream
	changingHands // a Take waits for the event, or a Release records it
)

// Block is one block of a ring, owned by whoever took it. It is a small value.
// The zero Block is no block.
type Block struct {
	ring  *Ring
	buf   device.Buffer
	index int
	turn  uint64
}

// Buffer returns the block's memory.
func (b Block) Buffer() device.Buffer { return b.buf }

// Index returns the block's place in the ring.
func (b Block) Index() int { return b.index }

// RingStats counts what a ring has seen.
type RingStats struct {
	// Blocks and BlockSize are the ring's shape; BlockSize is in bytes.
	Blocks    int
	BlockSize int64
	// InUse is the number of blocks that the host or unfinished device work owns.
	InUse int
	// Taken counts successful takes.
	Taken int64
	// Stalls counts takes that had to wait for device work, StallNanos their
	// waiting time in nanoseconds.
	Stalls, StallNanos int64
}

// NewRing makes a ring of blocks*blockSize bytes at the start of mem, which may
// be device or host memory. Events come from d. Errors: ErrInvalidParam for a
// missing device, a count below 1, a block size that is no positive multiple of
// SlotAlign, memory that is freed, misaligned or too small.
func NewRing(d device.Device, mem device.Buffer, blocks int, blockSize int64) (*Ring, error) {
	switch {
	case d == nil:
		return nil, status.Errorf(status.ErrInvalidParam, "ring: want a device, got nil")
	case blocks < 1:
		return nil, status.Errorf(status.ErrInvalidParam, "ring: want at least 1 block, got %d", blocks)
	case blockSize < 1 || blockSize%SlotAlign != 0:
		return nil, status.Errorf(status.ErrInvalidParam, "ring: want a block size that is a positive multiple of %d, got %d", SlotAlign, blockSize)
	case !mem.Live():
		return nil, status.Errorf(status.ErrInvalidParam, "ring: want live memory, got a nil or freed buffer")
	case mem.Offset()%SlotAlign != 0:
		return nil, status.Errorf(status.ErrInvalidParam, "ring: want memory at a multiple of %d, got offset %d", SlotAlign, mem.Offset())
	case blockSize > mem.Size()/int64(blocks):
		return nil, status.Errorf(status.ErrInvalidParam, "ring: want %d blocks of %d bytes, got %d bytes", blocks, blockSize, mem.Size())
	}
	return &Ring{dev: d, host: device.HostOf(d), mem: mem, blockSize: blockSize, slots: make([]slot, blocks)}, nil
}

// Take gives the next block that the host does not own to the caller. When device
// work still owns it, Take waits until that work is done or ctx is done, and
// counts the stall; a take that ctx ended leaves the ring as it was. When the
// host owns every block, no wait could help: the error is ErrOutOfHostMemory or
// ErrOutOfDeviceMemory by the ring's memory. A closed ring is ErrInvalidParam.
func (r *Ring) Take(ctx context.Context) (Block, error) {
	if ctx == nil {
		return Block{}, status.Errorf(status.ErrInvalidParam, "take from a ring: want argument ctx, got nil")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return Block{}, errClosed("take from")
	}
	i, ok := r.candidate()
	if !ok {
		return Block{}, r.exhausted()
	}
	s := &r.slots[i]
	if s.owner == ownedByStream {
		if err := r.await(ctx, i); err != nil {
			return Block{}, err
		}
	} else {
		r.next = (i + 1) % len(r.slots)
	}
	s.owner = ownedByHost
	s.turn++
	r.taken++
	return Block{ring: r, buf: r.mem.At(int64(i)*r.blockSize, r.blockSize), index: i, turn: s.turn}, nil
}

// candidate returns the next slot that the host does not own.
func (r *Ring) candidate() (int, bool) {
	i := r.next
	for range r.slots {
		if o := r.slots[i].owner; o != ownedByHost && o != changingHands {
			return i, true
		}
		i = (i + 1) % len(r.slots)
	}
	return 0, false
}

// await moves past slot i and waits for its event. It is called with r.mu held
// and gives it up while it waits.
func (r *Ring) await(ctx context.Context, i int) error {
	s := &r.slots[i]
	r.next = (i + 1) % len(r.slots)
	if s.event.Query() {
		return nil
	}
	s.owner = changingHands
	r.stalls++
	r.mu.Unlock()
	waited, err := r.sleep(ctx, s.event)
	r.mu.Lock()
	r.nanos += waited.Nanoseconds()
	if r.closed {
		return errClosed("take from")
	}
	if err == nil {
		return nil
	}
	s.owner = ownedByStream
	if r.next == (i+1)%len(r.slots) {
		r.next = i
	}
	return status.Place(err, status.ErrRuntimeFail, "", "", "ring")
}

// sleep waits for an event and returns how long.
func (r *Ring) sleep(ctx context.Context, e device.Event) (time.Duration, error) {
	now := device.Clock(r.host)
	if r.host != nil {
		r.host.Begin(device.RingWork, nil)
		defer r.host.End(device.RingWork)
	}
	start := now()
	err := e.Synchronize(ctx)
	return now().Sub(start), err
}

// fired reports whether the event of a block that a stream owns has fired; asking
// for statistics costs the host of a simulated device nothing.
func (r *Ring) fired(e device.Event) bool {
	if r.host != nil {
		return r.host.Fired(e)
	}
	return e.Query()
}

func errClosed(what string) error {
	return status.Errorf(status.ErrInvalidParam, "ring: %s a closed ring", what)
}

func (r *Ring) exhausted() error {
	code := status.ErrOutOfDeviceMemory
	if r.mem.Space() == device.HostSpace {
		code = status.ErrOutOfHostMemory
	}
	return status.Errorf(code, "ring: all %d blocks of %d bytes are taken and not given back", len(r.slots), r.blockSize)
}

// Release gives the block to s: it is free once the work that s holds so far is
// done. Errors leave the block with the caller: ErrInvalidStream for a nil
// stream, ErrInvalidParam for a block that the caller does not own (given back
// twice, of another ring), and what the device reports.
func (r *Ring) Release(b Block, s device.Stream) error {
	if s == nil {
		return status.Errorf(status.ErrInvalidStream, "ring: release of block %d wants a stream, got nil", b.index)
	}
	ev, err := r.handOver(b)
	if err != nil {
		return err
	}
	err = s.Record(ev)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed("release into")
	}
	r.slots[b.index].owner = ownedByStream
	if err != nil {
		r.slots[b.index].owner = ownedByHost
	}
	return status.Place(err, status.ErrRuntimeFail, "", "", "ring")
}

// handOver checks the caller's right to b and returns its event.
func (r *Ring) handOver(b Block) (device.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.owned(b)
	if err != nil {
		return nil, err
	}
	if s.event == nil {
		if s.event, err = r.dev.NewEvent(); err != nil {
			return nil, status.Place(err, status.ErrDeviceFail, "", "", "ring")
		}
	}
	s.owner = changingHands
	return s.event, nil
}

// Return gives back a block that no device work uses. Errors as Release.
func (r *Ring) Return(b Block) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.owned(b)
	if err != nil {
		return err
	}
	s.owner = ownedByNobody
	return nil
}

func (r *Ring) owned(b Block) (*slot, error) {
	if b.ring != r {
		return nil, status.Errorf(status.ErrInvalidParam, "ring: block %d is not of this ring", b.index)
	}
	if r.closed {
		return nil, errClosed("block given back to")
	}
	s := &r.slots[b.index]
	if s.turn != b.turn || s.owner != ownedByHost {
		return nil, status.Errorf(status.ErrInvalidParam, "ring: block %d was given back already", b.index)
	}
	return s, nil
}

// Stats returns a snapshot of the counters.
func (r *Ring) Stats() RingStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := RingStats{Blocks: len(r.slots), BlockSize: r.blockSize, Taken: r.taken, Stalls: r.stalls, StallNanos: r.nanos}
	for i := range r.slots {
		switch s := &r.slots[i]; s.owner {
		case ownedByHost, changingHands:
			out.InUse++
		case ownedByStream:
			if !r.fired(s.event) {
				out.InUse++
			}
		}
	}
	return out
}

// Close frees the ring's events; the memory stays the caller's. Close it after
// the streams that it was used with are synchronized. Closing twice is legal.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var errs []error
	for i := range r.slots {
		if ev := r.slots[i].event; ev != nil {
			errs = append(errs, ev.Close())
			r.slots[i] = slot{turn: r.slots[i].turn}
		}
	}
	return errors.Join(errs...)
}
