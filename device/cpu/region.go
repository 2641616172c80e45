package cpu

import (
	"math/bits"
	"os"
	"unsafe"
)

// Memory comes in regions. Small ones, up to smallPages pages, are cut from
// chunks and kept for the next small region; large ones are mappings of their
// own and go back to the system.
const (
	smallPages = 16
	chunkBytes = 4 << 20
	hugePage   = 2 << 20
)

// region is a piece of memory that one allocation owns.
type region struct {
	mem   []byte
	raw   []byte // the mapping to give back, nil for a small region
	class int    // size class of a small region, a power of two pages
}

// regions hands out memory. Its owner locks.
type regions struct {
	page   int
	chunks [][]byte
	rest   []byte // of the newest chunk
	free   [6][][]byte
}

func newRegions() *regions { return &regions{page: max(os.Getpagesize(), 4096)} }

// take returns zeroed memory of at least size bytes, page aligned.
func (r *regions) take(size int, huge bool) (region, error) {
	pages := (size + r.page - 1) / r.page
	if pages <= smallPages {
		return r.takeSmall(bits.Len(uint(pages - 1)))
	}
	bytes := pages * r.page
	if !huge || bytes < hugePage {
		raw, err := mapPages(bytes)
		return region{mem: raw, raw: raw}, err
	}
	raw, err := mapPages(bytes + hugePage)
	if err != nil {
		return region{}, err
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (hugePage - 1)
	mem := raw[skip : skip+bytes : skip+bytes]
	adviseHuge(mem)
	return region{mem: mem, raw: raw}, nil
}

func (r *regions) takeSmall(class int) (region, error) {
	if list := r.free[class]; len(list) > 0 {
		mem := list[len(list)-1]
		r.free[class] = list[:len(list)-1]
		clear(mem)
		return region{mem: mem, class: class}, nil
	}
	size := r.page << class
	if len(r.rest) < size {
		chunk, err := mapPages(max(chunkBytes, smallPages*r.page))
		if err != nil {
			return region{}, err
		}
		r.chunks = append(r.chunks, chunk)
		r.rest = chunk
	}
	mem := r.rest[:size:size]
	r.rest = r.rest[size:]
	return region{mem: mem, class: class}, nil
}

// give takes a region back.
func (r *regions) give(g region) error {
	if g.raw != nil {
		return unmapPages(g.raw)
	}
	if g.mem != nil {
		r.free[g.class] = append(r.free[g.class], g.mem)
	}
	return nil
}

// close gives all chunks back; large regions must be back already.
func (r *regions) close() error {
	var first error
	for _, c := range r.chunks {
		if err := unmapPages(c); err != nil && first == nil {
			first = err
		}
	}
	*r = regions{page: r.page}
	return first
}
