package optimal

import (
	"cmp"
	"slices"
)

// order is a way to go through the plans: which buffer is tried next. Plans that
// the first choices lead to are found soon, all others hardly ever.
type order struct {
	name string
	pick pick
	// keys are compared one after another, the largest first.
	keys []key
	// loads says that the largest total of the buffer's sections comes before
	// the keys: of the buffers that wait when a part is made.
	loads bool
}

// key is a property of buffers.
type key uint8

const (
	life     key = iota // duration
	area                // duration times size
	span                // number of sections
	spanArea            // number of sections times size
)

// orders are all orders. The first ones find most plans.
var orders = [...]order{
	{"exact load-life-area", low, []key{life, area}, true},
	{"exact tight-area-life", tight, []key{area, life}, false},
	{"exact reach-load-life-area", reach, []key{life, area}, true},
	{"exact life-area", low, []key{life, area}, false},
	{"exact load-span-area", low, []key{span, spanArea}, true},
	{"exact tight-area-span", tight, []key{spanArea, span}, false},
	{"exact reach-load-area-life", reach, []key{area, life}, true},
	{"exact few-life-area", few, []key{life, area}, false},
	{"exact load-area-life", low, []key{area, life}, true},
	{"exact tight-life-area", tight, []key{life, area}, false},
	{"exact area-span", low, []key{spanArea, span}, false},
	{"exact few-area-span", few, []key{spanArea, span}, false},
}

// ranked is a buffer with what it is ranked by.
type ranked struct {
	load   int64
	rank   int32
	buffer int32
}

// value returns a property of buffer i.
func (p *problem) value(k key, i int32) float64 {
	b := &p.buffers[i]
	switch k {
	case life:
		return float64(b.Life)
	case area:
		return float64(b.Life) * float64(b.Size)
	case span:
		return float64(b.Upper - b.Lower)
	}
	return float64(b.Upper-b.Lower) * float64(b.Size)
}

// sortAll ranks all buffers and fills the first list.
func (l *lane) sortAll() {
	for i := range l.n {
		l.lists = append(l.lists, int32(i))
	}
	slices.SortFunc(l.lists, func(i, j int32) int {
		for _, k := range l.order.keys {
			if a, b := l.value(k, i), l.value(k, j); a != b {
				return cmp.Compare(b, a)
			}
		}
		return cmp.Compare(i, j)
	})
	for r, i := range l.lists {
		l.rank[i] = int32(r)
	}
}

// sortByLoad ranks by load, then by rank.
func (l *lane) sortByLoad(list []int32) {
	l.sorter = l.sorter[:0]
	for _, i := range list {
		load := int64(0)
		for c := l.slot[i].lo; c < l.slot[i].hi; c++ {
			load = max(load, l.limit-l.room[c])
		}
		l.sorter = append(l.sorter, ranked{load, l.rank[i], i})
	}
	slices.SortFunc(l.sorter, func(a, b ranked) int {
		if a.load != b.load {
			return cmp.Compare(b.load, a.load)
		}
		return cmp.Compare(a.rank, b.rank)
	})
	for k := range l.sorter {
		list[k] = l.sorter[k].buffer
	}
}
