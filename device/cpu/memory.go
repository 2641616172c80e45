package cpu

import (
	"math"
	"sync"
	"sync/atomic"

	"goatb/device"
	"goatb/status"
)

// memory books the allocations of a device.
type memory struct {
	mu      sync.Mutex
	regions *regions
	live    map[*device.Allocation]region
	limit   int64
	used    int64 // bytes of device memory, deferred frees included
	closed  bool
}

// outOf is the code of a failed allocation in a space.
func outOf(space device.Space) status.Code {
	if space == device.HostSpace {
		return status.ErrOutOfHostMemory
	}
	return status.ErrOutOfDeviceMemory
}

// alloc takes memory; huge advises huge pages.
func (m *memory) alloc(space device.Space, size int64, huge bool) (device.Buffer, error) {
	if size < 0 {
		return device.Buffer{}, status.Errorf(status.ErrInvalidParam, "want a size of at least 0 bytes, got %d", size)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return device.Buffer{}, errClosed()
	}
	if space == device.DeviceSpace && size > m.limit-m.used {
		return device.Buffer{}, status.Errorf(status.ErrOutOfDeviceMemory, "want %d bytes, got %d free of %d", size, m.limit-m.used, m.limit)
	}
	var r region
	if size > 0 {
		if size > math.MaxInt-2*hugePage {
			return device.Buffer{}, status.Errorf(outOf(space), "want %d bytes, more than the address space", size)
		}
		var err error
		if r, err = m.regions.take(int(size), huge); err != nil {
			return device.Buffer{}, status.Errorf(outOf(space), "want %d bytes: %w", size, err)
		}
	}
	a := device.NewAllocation(space, size, r.mem[:size:size])
	m.live[a] = r
	if space == device.DeviceSpace {
		m.used += size
	}
	return device.Whole(a), nil
}

// release takes b out of the books. The region stays usable until give.
func (m *memory) release(b device.Buffer) (region, error) {
	a := b.Allocation()
	if a == nil {
		return region{}, status.Errorf(status.ErrInvalidParam, "want an allocation to free, got no memory")
	}
	if b.Offset() != 0 || b.Size() != a.Size() {
		return region{}, status.Errorf(status.ErrInvalidParam, "want a whole allocation of %d bytes to free, got a window of %d bytes at %d", a.Size(), b.Size(), b.Offset())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return region{}, errClosed()
	}
	r, ok := m.live[a]
	switch {
	case !ok && a.Freed():
		return region{}, status.Errorf(status.ErrInvalidParam, "want live memory to free, got an allocation of %d bytes that was freed before", a.Size())
	case !ok:
		return region{}, status.Errorf(status.ErrInvalidParam, "want memory of this device to free, got foreign memory of %d bytes", a.Size())
	}
	delete(m.live, a)
	a.Release()
	return r, nil
}

// give returns a released region of size bytes to the system.
func (m *memory) give(r region, space device.Space, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if space == device.DeviceSpace {
		m.used -= size
	}
	return m.regions.give(r)
}

// close frees everything. No task may run any more.
func (m *memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	var first error
	for a, r := range m.live {
		a.Release()
		if err := m.regions.give(r); err != nil && first == nil {
			first = err
		}
	}
	clear(m.live)
	if err := m.regions.close(); err != nil && first == nil {
		first = err
	}
	if first != nil {
		return status.Errorf(status.ErrDeviceFail, "release memory: %w", first)
	}
	return nil
}

// retired is memory whose Free waits for streams.
type retired struct {
	mem     *memory
	region  region
	space   device.Space
	size    int64
	pending atomic.Int64
}

// done takes one stream off the list of those to wait for.
func (r *retired) done() error {
	if r.pending.Add(-1) > 0 {
		return nil
	}
	return r.mem.give(r.region, r.space, r.size)
}
