package cpu

import (
	"math/bits"
	"os"
	"unsafe"
)

// Memory comes in regions. Small ones, up to smallPages pages, are cut from
// chunks and kept for the next region of their size; others are mappings of their own
// and go back to the system. Where huge pages are asked for, regions up to half of one
// are cut from chunks of them, until these hold mediumBytes: what is used together lies
// together then, and does not crowd in some sets of a cache. Larger ones lie in spans.
const (
	smallPages  = 16
	chunkBytes  = 4 << 20
	mediumBytes = 16 << 20
	hugePage    = 2 << 20
)

// region is a piece of memory that one allocation owns.
type region struct {
	mem  []byte
	raw  []byte  // the mapping to give back, nil for a piece of something
	from *chunks // what it is a piece of
	span *span   // where it lies
}

// regions hands out memory. Its owner locks.
type regions struct {
	page        int
	small, huge chunks
	large       spans
}

// chunks are mappings that regions are cut from.
type chunks struct {
	raw  [][]byte
	rest []byte // of the newest one
	free map[int][][]byte
	huge bool
}

func newRegions() *regions {
	return &regions{page: max(os.Getpagesize(), 4096), small: chunks{free: map[int][][]byte{}}, huge: chunks{free: map[int][][]byte{}, huge: true}}
}

// take returns zeroed memory of at least size bytes, page aligned.
func (r *regions) take(size int, huge bool) (region, error) {
	pages := (size + r.page - 1) / r.page
	bytes := pages * r.page
	switch {
	case huge && (pages <= smallPages || bytes <= hugePage/2):
		piece := sizeClass(pages) * r.page
		if pages <= smallPages || r.huge.holds(piece) || len(r.huge.raw)*chunkBytes < mediumBytes {
			return r.huge.take(piece)
		}
	case pages <= smallPages:
		return r.small.take(sizeClass(pages) * r.page)
	case huge:
		return r.large.take(bytes)
	}
	raw, err := mapPages(bytes)
	return region{mem: raw, raw: raw}, err
}

// sizeClass is the number of pages of a piece that holds so many: a power of two up to
// smallPages, and no more than a quarter too many above.
func sizeClass(pages int) int {
	above := 1 << bits.Len(uint(pages-1))
	if pages <= smallPages {
		return above
	}
	step := above / 8
	return (pages + step - 1) / step * step
}

// mapHuge maps memory that begins with a huge page and asks for such pages.
func mapHuge(bytes int) (mem, raw []byte, err error) {
	if raw, err = mapPages(bytes + hugePage); err != nil {
		return nil, nil, err
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (hugePage - 1)
	mem = raw[skip : skip+bytes : skip+bytes]
	adviseHuge(mem)
	return mem, raw, nil
}

// holds reports whether a piece of a size needs no other chunk.
func (c *chunks) holds(size int) bool { return len(c.free[size]) > 0 || len(c.rest) >= size }

// take returns a piece of a size.
func (c *chunks) take(size int) (region, error) {
	if list := c.free[size]; len(list) > 0 {
		mem := list[len(list)-1]
		c.free[size] = list[:len(list)-1]
		clear(mem)
		return region{mem: mem, from: c}, nil
	}
	if len(c.rest) < size {
		if err := c.add(max(chunkBytes, size)); err != nil {
			return region{}, err
		}
	}
	mem := c.rest[:size:size]
	c.rest = c.rest[size:]
	return region{mem: mem, from: c}, nil
}

// add maps another chunk.
func (c *chunks) add(size int) error {
	var mem, raw []byte
	var err error
	if c.huge {
		mem, raw, err = mapHuge(size)
	} else {
		raw, err = mapPages(size)
		mem = raw
	}
	if err != nil {
		return err
	}
	c.raw, c.rest = append(c.raw, raw), mem
	return nil
}

// give takes a region back.
func (r *regions) give(g region) error {
	switch {
	case g.span != nil:
		return r.large.give(g)
	case g.raw != nil:
		return unmapPages(g.raw)
	case g.from != nil:
		g.from.free[len(g.mem)] = append(g.from.free[len(g.mem)], g.mem)
	}
	return nil
}

// close gives all chunks back; large regions must be back already.
func (r *regions) close() error {
	var first error
	for _, c := range [...]*chunks{&r.small, &r.huge} {
		for _, raw := range c.raw {
			if err := unmapPages(raw); err != nil && first == nil {
				first = err
			}
		}
		*c = chunks{free: map[int][][]byte{}, huge: c.huge}
	}
	return first
}
