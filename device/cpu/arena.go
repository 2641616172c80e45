package cpu

import "unsafe"

// arena is a ring of elements that the launches of one stream take pieces from,
// in order, and that come back in order. It belongs to the goroutine that
// enqueues.
type arena[T any] struct {
	mem  []T
	next uint64 // elements handed out since the arena has this size
	base uint64 // the first task whose piece lies in mem
}

// take returns n contiguous elements, nil when there is no room. oldest is the
// position that the oldest unfinished task started at.
func (a *arena[T]) take(n int, oldest uint64) []T {
	size := uint64(len(a.mem))
	if size == 0 {
		return nil
	}
	at := a.next % size
	skip := uint64(0)
	if at+uint64(n) > size {
		skip = size - at
		at = 0
	}
	end := a.next + skip + uint64(n)
	if end-oldest > size {
		return nil
	}
	a.next = end
	return a.mem[at : at+uint64(n) : at+uint64(n)]
}

// grow starts a larger arena, in which n elements fit, at task index. Pieces of
// the old one stay valid.
func (a *arena[T]) grow(mem []T, index uint64) { *a = arena[T]{mem: mem, base: index} }

// grown is the new length of an arena of length have that must hold n.
func grown(have, n, least int) int { return max(2*have, 4*n, least) }

// operandGrain is the grain of the operand arena: so many buffers fill whole
// cache lines.
const operandGrain = 8

// tilingAlign is the alignment of tiling data and the grain of its arena.
const tilingAlign = 64

// alignedBytes allocates n bytes, n a multiple of tilingAlign, at an aligned
// address.
func alignedBytes(n int) []byte {
	mem := make([]byte, n+tilingAlign)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) & (tilingAlign - 1)
	return mem[skip : skip+n : skip+n]
}
