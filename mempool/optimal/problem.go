package optimal

import (
	"cmp"
	"math"
	"slices"
)

// Buffer is one buffer to place: Size bytes in sections Lower to Upper-1 of the
// time line. Two buffers that share a section share no byte.
type Buffer struct {
	Lower, Upper int32
	// Size is at least 1.
	Size int64
	// Align is the alignment of the offset, a power of two; 0 stands for 1.
	Align int64
	// Fixed is the only offset that is allowed; Free allows all.
	Fixed int64
	// Life is the time between the ends of the lifetime, in any unit. It only
	// guides the search.
	Life int64
}

// Free is the Fixed offset of a buffer that may lie anywhere.
const Free int64 = -1

// BuffersMax is the number of buffers up to which a search makes sense: memory
// grows with its square.
const BuffersMax = 8192

// problem is what all searches of one problem share. Sizes and offsets count in
// units.
type problem struct {
	buffers  []Buffer
	unit     int64 // bytes
	n        int
	sections int
	words    int // of a set of buffers

	size  []int64
	align []int64
	fixed []int64
	near  []uint64 // by buffer: the set of those that share a section with it
	in    []uint64 // by section: the set of its buffers
	twin  []int32  // a buffer before this one with its sections, size and alignment, or none
	total []int64  // by section
	cross []int32  // by section: buffers that it shares with the section before
	// aligned says that some offsets have to be rounded up.
	aligned bool

	started, ended []uint64
	sorted         []int32
}

// none stands for no buffer and no part.
const none = -1

func (p *problem) load(buffers []Buffer, sections int) {
	p.buffers, p.n, p.sections = buffers, len(buffers), sections
	p.words = (p.n + 63) / 64
	p.scale()
	p.total, p.cross = zeroed(p.total, sections), zeroed(p.cross, sections+1)
	p.in, p.near = zeroed(p.in, sections*p.words), grow(p.near, p.n*p.words)
	for i := range buffers {
		b := &buffers[i]
		word, bit := i>>6, uint64(1)<<(i&63)
		for s := int(b.Lower); s < int(b.Upper); s++ {
			p.total[s] += p.size[i]
			p.in[s*p.words+word] |= bit
			if s > int(b.Lower) {
				p.cross[s]++
			}
		}
	}
	p.relate()
	p.findTwins()
}

// scale finds the unit, and the sizes and offsets in it.
func (p *problem) scale() {
	p.size, p.align, p.fixed = grow(p.size, p.n), grow(p.align, p.n), grow(p.fixed, p.n)
	most := int64(1)
	for i := range p.buffers {
		most = max(most, p.buffers[i].Align)
	}
	p.aligned = false
	unit := int64(0)
	for i := range p.buffers {
		b := &p.buffers[i]
		p.aligned = p.aligned || b.Size%most != 0
		unit = gcd(b.Size, unit)
		if b.Fixed != Free {
			p.aligned = p.aligned || b.Fixed%most != 0
			unit = gcd(b.Fixed, unit)
		}
	}
	if p.aligned {
		for i := range p.buffers {
			unit = gcd(max(p.buffers[i].Align, 1), unit)
		}
	}
	p.unit = unit
	for i := range p.buffers {
		b := &p.buffers[i]
		p.size[i], p.align[i], p.fixed[i] = b.Size/unit, 1, Free
		if p.aligned {
			p.align[i] = max(b.Align, 1) / unit
		}
		if b.Fixed != Free {
			p.fixed[i] = b.Fixed / unit
		}
	}
}

// relate finds who is near whom: those that start before a buffer's end, without
// those that end before its start.
func (p *problem) relate() {
	w := p.words
	p.started, p.ended = zeroed(p.started, (p.sections+1)*w), zeroed(p.ended, (p.sections+1)*w)
	for i := range p.buffers {
		b := &p.buffers[i]
		p.started[int(b.Lower+1)*w+i>>6] |= 1 << (i & 63)
		p.ended[int(b.Upper)*w+i>>6] |= 1 << (i & 63)
	}
	for k := w; k < len(p.started); k++ {
		p.started[k] |= p.started[k-w]
		p.ended[k] |= p.ended[k-w]
	}
	for i := range p.buffers {
		b := &p.buffers[i]
		near := p.near[i*w : (i+1)*w]
		started, ended := p.started[int(b.Upper)*w:], p.ended[int(b.Lower)*w:]
		for k := range near {
			near[k] = started[k] &^ ended[k]
		}
		near[i>>6] &^= 1 << (i & 63)
	}
}

// findTwins links equal buffers.
func (p *problem) findTwins() {
	p.twin, p.sorted = grow(p.twin, p.n), grow(p.sorted, p.n)
	for i := range p.sorted {
		p.sorted[i] = int32(i)
	}
	slices.SortFunc(p.sorted, func(i, j int32) int { return cmp.Or(p.compare(i, j), cmp.Compare(i, j)) })
	for k, i := range p.sorted {
		p.twin[i] = none
		if k > 0 && p.fixed[i] == Free && p.compare(p.sorted[k-1], i) == 0 {
			p.twin[i] = p.sorted[k-1]
		}
	}
}

// compare returns 0 for two buffers that can take each other's place.
func (p *problem) compare(i, j int32) int {
	a, b := &p.buffers[i], &p.buffers[j]
	return cmp.Or(cmp.Compare(a.Lower, b.Lower), cmp.Compare(a.Upper, b.Upper), cmp.Compare(a.Size, b.Size),
		cmp.Compare(p.align[i], p.align[j]), cmp.Compare(a.Fixed, b.Fixed))
}

// bound returns the largest total of a section, or end of a fixed buffer.
func (p *problem) bound() int64 {
	most := int64(0)
	for _, t := range p.total {
		most = max(most, t)
	}
	for i, at := range p.fixed {
		if at != Free {
			most = max(most, at+p.size[i])
		}
	}
	return most
}

// stack returns an arena that always does where there is a plan: all buffers one
// on another, above the fixed ones.
func (p *problem) stack() int64 {
	top := int64(0)
	for i, at := range p.fixed {
		if at != Free {
			top = max(top, at+p.size[i])
		}
	}
	for i, at := range p.fixed {
		if at == Free {
			top = alignUp(top, p.align[i]) + p.size[i]
		}
	}
	return top
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

const (
	// roomMax bounds the sum of sizes and alignments, and fixed offsets, in bytes.
	roomMax = 1 << 61
	// far is more than any offset, and does not overflow with a size added.
	far = math.MaxInt64 / 2
)

func alignUp(v, align int64) int64 { return (v + align - 1) &^ (align - 1) }
