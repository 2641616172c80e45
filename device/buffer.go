package device

import (
	"sync/atomic"

	"goatb/status"
)

// Allocation is one piece of memory. Devices make allocations; users hold
// Buffers into them. It is safe for concurrent use.
type Allocation struct {
	bytes []byte
	size  int64
	space Space
	freed atomic.Bool
}

// Space tells where memory lives.
type Space uint8

// Spaces.
const (
	// DeviceSpace is memory that kernels read and write.
	DeviceSpace Space = iota
	// HostSpace is host memory that copies can reach.
	HostSpace
)

// NewAllocation is for devices: memory of size bytes; bytes is nil when Go code
// cannot address it.
func NewAllocation(space Space, size int64, bytes []byte) *Allocation {
	return &Allocation{bytes: bytes, size: size, space: space}
}

// Release marks the allocation as freed and reports whether it was live. From
// then on launches and copies refuse it. The device releases the memory itself
// once no enqueued work uses it.
func (a *Allocation) Release() bool { return a != nil && !a.freed.Swap(true) }

// Freed reports whether Release was called; no memory counts as freed.
func (a *Allocation) Freed() bool { return a == nil || a.freed.Load() }

// Memory returns the bytes, nil when Go code cannot address them.
func (a *Allocation) Memory() []byte {
	if a == nil {
		return nil
	}
	return a.bytes
}

// Size returns the allocation's size in bytes.
func (a *Allocation) Size() int64 {
	if a == nil {
		return 0
	}
	return a.size
}

// Buffer is a window into an allocation: {allocation, offset, size}. It is a
// small value; the zero Buffer is no memory. A Buffer keeps wrapped Go memory
// alive, so enqueued work does too.
type Buffer struct {
	alloc     *Allocation
	off, size int64
}

// Whole returns the buffer that covers an allocation.
func Whole(a *Allocation) Buffer { return Buffer{alloc: a, size: a.Size()} }

// Wrap makes a buffer over memory that the caller owns, such as a mapped file
// or a Go slice, without a copy. The memory must not move or be unmapped while
// work uses it; a Go slice stays alive as long as the buffer.
func Wrap(mem []byte) Buffer {
	return Whole(NewAllocation(DeviceSpace, int64(len(mem)), mem))
}

// WrapHost is Wrap for memory that only copies use.
func WrapHost(mem []byte) Buffer {
	return Whole(NewAllocation(HostSpace, int64(len(mem)), mem))
}

// IsNil reports whether b is no memory at all.
func (b Buffer) IsNil() bool { return b.alloc == nil }

// Size returns the window's size in bytes.
func (b Buffer) Size() int64 { return b.size }

// Offset returns the window's start in its allocation.
func (b Buffer) Offset() int64 { return b.off }

// Allocation returns the memory that the window lies in, nil for no memory.
func (b Buffer) Allocation() *Allocation { return b.alloc }

// Space tells where the memory lives.
func (b Buffer) Space() Space {
	if b.alloc == nil {
		return DeviceSpace
	}
	return b.alloc.space
}

// Live reports whether the memory exists and was not freed.
func (b Buffer) Live() bool { return b.alloc != nil && !b.alloc.freed.Load() }

// Slice returns the window [off, off+size) of b.
func (b Buffer) Slice(off, size int64) (Buffer, error) {
	if off < 0 || size < 0 || off > b.size || size > b.size-off {
		return Buffer{}, status.Errorf(status.ErrInvalidParam, "window of %d bytes at %d is outside a buffer of %d bytes", size, off, b.size)
	}
	return Buffer{alloc: b.alloc, off: b.off + off, size: size}, nil
}

// At is Slice for windows that a plan has already checked. Launches and copies
// refuse any other window, and it has no Bytes.
func (b Buffer) At(off, size int64) Buffer {
	return Buffer{alloc: b.alloc, off: b.off + off, size: size}
}

// Bytes returns the memory of the window for kernels and copies. It is nil for
// an empty window, for one outside its allocation, and where Go code cannot address
// the memory.
func (b Buffer) Bytes() []byte {
	if b.alloc == nil || b.alloc.bytes == nil || b.off < 0 || b.size < 0 || b.off > int64(len(b.alloc.bytes))-b.size {
		return nil
	}
	return b.alloc.bytes[b.off : b.off+b.size : b.off+b.size]
}

// Overlaps reports whether two windows share a byte. Memory that was wrapped
// twice counts as one.
func (b Buffer) Overlaps(o Buffer) bool {
	if b.size == 0 || o.size == 0 {
		return false
	}
	x, y, ok := b.starts(o)
	return ok && x < y+uintptr(o.size) && y < x+uintptr(b.size)
}

// Same reports whether two windows are the same bytes. Memory that was wrapped
// twice counts as one.
func (b Buffer) Same(o Buffer) bool {
	if b == o {
		return true
	}
	x, y, ok := b.starts(o)
	return ok && x == y && b.size == o.size
}

// starts returns where two windows start in one address space: that of their
// allocation, or the processor's. It reports false when they have none in
// common.
func (b Buffer) starts(o Buffer) (x, y uintptr, ok bool) {
	switch {
	case b.alloc == nil || o.alloc == nil:
		return 0, 0, false
	case b.alloc == o.alloc:
		return uintptr(b.off), uintptr(o.off), true
	case b.alloc.bytes == nil || o.alloc.bytes == nil:
		return 0, 0, false
	}
	return b.alloc.address() + uintptr(b.off), o.alloc.address() + uintptr(o.off), true
}

// Aligned reports whether the window starts at a multiple of `to` in memory,
// where the processor can address it, else in its allocation. Nothing starts at a
// multiple of less than 1.
func (b Buffer) Aligned(to int64) bool {
	if to < 1 {
		return false
	}
	if b.alloc == nil || b.alloc.bytes == nil {
		return b.off%to == 0
	}
	return (b.alloc.address()+uintptr(b.off))%uintptr(to) == 0
}
