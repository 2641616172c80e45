package mempool

import (
	"cmp"
	"math"

	"goatb/status"
)

// problem is the list of items that take room, prepared for planning: numbered
// 0 to n-1 in the order of their start (then the caller's order), with
// lifetimes in sections.
//
// A section is a locally largest set of live items: going through time, one is
// complete each time an end follows a start. Two items overlap in time when
// they share a section, and only sections limit the arena. Item k spans the
// sections lo[k] to hi[k]-1, without a hole.
type problem struct {
	item       []int32 // the caller's index
	size       []int64 // bytes, rounded up to the granule
	align      []int64
	fixed      []int64 // offset, -1 where the planner may choose
	start, end []int32 // lifetime [start, end) in coordinates
	lo, hi     []int32 // lifetime in sections

	total []int64 // bytes live in each section
	at    []int32 // coordinate at which the section is complete
	parts []part
	bound int64 // no arena is smaller
	// mixed says that alignments differ: sizes need not be multiples of each
	// alignment. alignMax is the largest alignment.
	mixed    bool
	alignMax int64
	anyFixed bool

	line    timeline
	first   []int32 // by coordinate: items that start at or before it
	section []int32 // by coordinate: the section that is being filled
	delta   []int64 // by coordinate: change of the live bytes
	ends    []int32 // by coordinate: items that end at or before it
}

// part is a run of items, and of their sections, that shares no section with
// other items: parts are planned alone.
type part struct {
	first, last       int // items
	secFirst, secLast int // sections
	bound             int64
	pairs             int64 // pairs of items that overlap in time
	fixed             bool  // some item is fixed

	top      int64  // bytes that the best plan needs
	method   string // what found it
	searched bool
}

func (p *part) items() int    { return p.last - p.first }
func (p *part) sections() int { return p.secLast - p.secFirst }

func (p *problem) n() int        { return len(p.item) }
func (p *problem) sections() int { return len(p.total) }

// load reads and prepares items.
func (p *problem) load(items []Item, o Options) error {
	def := o.Align
	if def == 0 {
		def = DefaultAlign
	}
	if def < 1 || def > MaxAlign || def&(def-1) != 0 {
		return status.Errorf(status.ErrInvalidParam, "want an alignment that is a power of two of at most %d, got %d", MaxAlign, o.Align)
	}
	n, granule, err := p.survey(items, def, o.Solver)
	if err != nil {
		return err
	}
	p.resize(n)
	if n > 0 {
		p.line.load(items)
		p.number(items, def, granule)
		p.cut()
		p.split()
	}
	return nil
}

// survey checks the items one by one. It returns how many take room and the
// smallest alignment of those.
func (p *problem) survey(items []Item, def int64, solver SolverType) (n int, granule int64, err error) {
	room := int64(0)
	granule, p.alignMax, p.anyFixed = math.MaxInt64, 1, false
	for i := range items {
		it := &items[i]
		if odd(it) {
			if err := check(it, i, def, solver); err != nil {
				return 0, 0, err
			}
			p.anyFixed = p.anyFixed || it.Fixed && it.occupies()
		}
		if !it.occupies() {
			continue
		}
		n++
		align := cmp.Or(it.Align, def)
		granule, p.alignMax = min(granule, align), max(p.alignMax, align)
		if it.Size > MaxArena-align-room {
			return 0, 0, status.Errorf(status.ErrOutOfDeviceMemory, "item %d of %d bytes: sizes add up to more than %d", i, it.Size, int64(MaxArena))
		}
		room += it.Size + align
	}
	if n > math.MaxInt32/4 {
		return 0, 0, status.Errorf(status.ErrInvalidParam, "want at most %d items, got %d", math.MaxInt32/4, n)
	}
	p.mixed = n > 0 && granule != p.alignMax
	return n, granule, nil
}

// odd reports whether an item needs a closer look.
func odd(it *Item) bool {
	return it.Size < 0 || it.First < -MaxNode || it.Last > MaxNode || it.First > it.Last ||
		it.Align < 0 || it.Align > MaxAlign || it.Align&(it.Align-1) != 0 || it.Fixed
}

// check returns what is wrong with item i alone.
func check(it *Item, i int, def int64, solver SolverType) error {
	align := cmp.Or(it.Align, def)
	switch {
	case it.Size < 0:
		return status.Errorf(status.ErrInvalidParam, "item %d: want a size of at least 0, got %d", i, it.Size)
	case it.First < -MaxNode || it.Last > MaxNode || it.First > MaxNode+1 || it.Last < it.First-1:
		return status.Errorf(status.ErrInvalidParam, "item %d: want a lifetime within -2^61 to 2^61 that ends no earlier than it starts, got nodes %d to %d", i, it.First, it.Last)
	case align < 1 || align > MaxAlign || align&(align-1) != 0:
		return status.Errorf(status.ErrInvalidParam, "item %d: want an alignment that is a power of two of at most %d, got %d", i, MaxAlign, it.Align)
	case !it.Fixed:
		return nil
	case solver != Optimal:
		return status.Errorf(status.ErrInvalidParam, "item %d: solver %s cannot keep an item at offset %d", i, solver, it.Offset)
	case it.Offset < 0 || it.Offset%align != 0 || it.Offset > MaxArena || it.Size > MaxArena-it.Offset:
		return status.Errorf(status.ErrInvalidParam, "item %d: want %d bytes at a multiple of %d within 0 to %d, got offset %d", i, it.Size, align, int64(MaxArena), it.Offset)
	}
	return nil
}

func (p *problem) resize(n int) {
	p.item = grow(p.item, n)
	p.size, p.align, p.fixed = grow(p.size, n), grow(p.align, n), grow(p.fixed, n)
	p.start, p.end = grow(p.start, n), grow(p.end, n)
	p.lo, p.hi = grow(p.lo, n), grow(p.hi, n)
	p.total, p.at, p.parts = p.total[:0], p.at[:0], p.parts[:0]
	p.bound = 0
}

// number sorts the items by start and fills in what is known of each.
func (p *problem) number(items []Item, def, granule int64) {
	p.first = zeroed(p.first, p.line.coords)
	p.delta, p.ends = zeroed(p.delta, p.line.coords), zeroed(p.ends, p.line.coords)
	for i := range items {
		if items[i].occupies() {
			p.first[p.line.from[i]]++
		}
	}
	sum := int32(0)
	for c, count := range p.first {
		p.first[c] = sum
		sum += count
	}
	for i := range items {
		it := &items[i]
		if !it.occupies() {
			continue
		}
		from, to := p.line.from[i], p.line.to[i]
		k := p.first[from]
		p.first[from]++
		size := alignUp(it.Size, granule)
		p.item[k], p.size[k], p.start[k], p.end[k] = int32(i), size, from, to
		p.align[k], p.fixed[k] = cmp.Or(it.Align, def), -1
		if it.Fixed {
			p.fixed[k] = it.Offset
		}
		p.delta[from] += size
		p.delta[to] -= size
		p.ends[to]++
	}
}

// cut finds the sections. After number, first[c] counts the items that start at
// or before c, and ends[c] those that end at c.
func (p *problem) cut() {
	p.section = grow(p.section, p.line.coords)
	var live int64
	var started, ended, complete int32
	growing := false
	for c := range p.section {
		if growing && p.ends[c] > 0 {
			p.total, p.at = append(p.total, live), append(p.at, complete)
			growing = false
		}
		ended += p.ends[c]
		p.ends[c] = ended
		p.section[c] = int32(len(p.total))
		live += p.delta[c]
		if p.first[c] > started {
			started, complete, growing = p.first[c], int32(c), true
		}
	}
	for k := range p.start {
		p.lo[k], p.hi[k] = p.section[p.start[k]], p.section[p.end[k]]
	}
}

// split finds the parts and the lower bounds.
func (p *problem) split() {
	reach := int32(0)
	for k := range p.lo {
		if p.lo[k] >= reach {
			p.closePart(k)
			p.parts = append(p.parts, part{first: k, secFirst: int(p.lo[k])})
		}
		reach = max(reach, p.hi[k])
		now := &p.parts[len(p.parts)-1]
		now.pairs += int64(k) - int64(p.ends[p.start[k]])
		if p.fixed[k] >= 0 {
			now.fixed, now.bound = true, max(now.bound, p.fixed[k]+p.size[k])
		}
	}
	p.closePart(p.n())
}

// closePart ends the last part, if any, before item k.
func (p *problem) closePart(k int) {
	if len(p.parts) == 0 {
		return
	}
	now := &p.parts[len(p.parts)-1]
	now.last = k
	now.secLast = p.sections()
	if k < p.n() {
		now.secLast = int(p.lo[k])
	}
	for _, total := range p.total[now.secFirst:now.secLast] {
		now.bound = max(now.bound, total)
	}
	p.bound = max(p.bound, now.bound)
}

// peakAt returns the first node with the largest total of live bytes.
func (p *problem) peakAt() int64 {
	best := -1
	for s, total := range p.total {
		if best < 0 || total > p.total[best] {
			best = s
		}
	}
	if best < 0 {
		return 0
	}
	return p.line.node(p.at[best])
}

func alignUp(v, align int64) int64 { return (v + align - 1) &^ (align - 1) }
