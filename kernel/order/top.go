package order

import (
	"math"
	"slices"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Largest is the parameter of Top.
type Largest struct {
	// Num is the number of elements to keep of every row: 1 to its length.
	Num int64
}

// Top holds the kernels that keep the Num largest elements of each row along the
// last axis, in falling order, with their positions:
//
//	inputs   0 x       [..., n]    f32 f16 bf16, n < 2^31
//	outputs  0 values  [..., Num]  like x
//	         1 indices [..., Num]  int32
var Top = kernel.Table{topRadix}

const (
	// digitBits is the size of the digits by which keys are counted, so that
	// counts stay in the first-level cache.
	digitBits = 11
	digits    = 1 << digitBits
	// fewEntries is the number of entries below which comparing them is faster
	// than counting.
	fewEntries = 512
	// insertNum is the number of elements to keep up to which they are inserted one
	// by one.
	insertNum = 16
	// nanosPerElement and nanosPerEntry estimate one core's time for an element of
	// a row and for one that is kept.
	nanosPerElement, nanosPerEntry = 2.5, 12
)

type topTiling struct {
	Rows, Length, Num int64
	DType             tensor.DType
}

// topRadix counts the leading digits of a row's keys, which bounds those that are
// kept, and sorts the entries within the bound by their digits, the last first. A
// few elements to keep are inserted one by one instead.
var topRadix = kernel.Define(kernel.Def[Largest, topTiling]{
	Name:     "top/radix",
	Class:    device.Vector,
	Supports: supportsTop,
	Scratch: func(p *kernel.Problem, a Largest) int64 {
		return int64(topBlocks(p, a)) * scratchWords(p.In[0].Dim(-1)) * 8
	},
	Tile: func(p *kernel.Problem, a Largest, t *topTiling, _ []int64) (kernel.Grid, error) {
		x := &p.In[0]
		t.Rows, t.Length, t.Num, t.DType = x.Shape.Product(0, x.Rank()-1), x.Dim(-1), a.Num, x.DType
		return kernel.Grid{Blocks: topBlocks(p, a)}, nil
	},
	Run: func(a *kernel.Args, block int, t *topTiling, _ []int64) error {
		s := newScratch(device.View[uint64](a.Scratch.Bytes()), block, t.Length)
		if t.DType == tensor.Float32 {
			topRows[uint32](a, block, t, s, format{inf: 0x7f800000})
		} else if t.DType == tensor.BFloat16 {
			topRows[uint16](a, block, t, s, format{shift: 16, inf: 0x7f800000})
		} else {
			topRows[uint16](a, block, t, s, format{shift: 16, inf: 0x7c000000})
		}
		return nil
	},
	Cost: func(t *topTiling, _ []int64) (flops, bytes int64) {
		return t.Rows * t.Length, t.Rows * (t.Length*t.DType.Size() + t.Num*(t.DType.Size()+4))
	},
})

func supportsTop(p *kernel.Problem, a Largest) error {
	if len(p.In) != 1 || len(p.Out) != 2 {
		return status.Errorf(status.ErrInvalidParam, "want one input and two outputs, got %d and %d", len(p.In), len(p.Out))
	}
	x, values, indices := &p.In[0], &p.Out[0], &p.Out[1]
	switch x.DType {
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
	default:
		return status.Errorf(status.ErrInvalidTensorDType, "want f32, f16 or bf16, got %s", x.DType)
	}
	if x.Rank() < 1 || x.Numel() < 1 || x.Dim(-1) > math.MaxInt32 {
		return status.Errorf(status.ErrInvalidParam, "want rows of 1 to %d elements, got %s", math.MaxInt32, x)
	}
	if a.Num < 1 || a.Num > x.Dim(-1) {
		return status.Errorf(status.ErrInvalidParam, "want to keep 1 to %d elements of each row, got %d", x.Dim(-1), a.Num)
	}
	want := x.Shape.With(x.Rank()-1, a.Num)
	if values.DType != x.DType || values.Shape != want || indices.DType != tensor.Int32 || indices.Shape != want {
		return status.Errorf(status.ErrInvalidParam, "want %s and int32 outputs %s, got %s and %s", x.DType, want, values, indices)
	}
	return nil
}

func topBlocks(p *kernel.Problem, a Largest) int {
	x := &p.In[0]
	rows := x.Shape.Product(0, x.Rank()-1)
	return kernel.BlocksFor(p.Machine, rows, float64(rows)*(float64(x.Dim(-1))*nanosPerElement+float64(a.Num)*nanosPerEntry))
}

// scratch is the memory of a block: entries, which are keys with positions below
// them, the same again to sort them into, and counts of digits.
type scratch struct {
	entries, sorted []uint64
	counts          *[digits]uint32
}

// scratchWords is the size of a block's scratch for rows of n elements.
func scratchWords(n int64) int64 { return 2*n + digits/2 }

func newScratch(words []uint64, block int, n int64) scratch {
	words = words[int64(block)*scratchWords(n):][:scratchWords(n)]
	return scratch{
		entries: words[:n], sorted: words[n : 2*n],
		counts: (*[digits]uint32)(device.View[uint32](device.BytesOf(words[2*n:]))),
	}
}

// format tells how the bits of an element become those of a key's argument.
type format struct {
	shift int
	inf   uint32
}

// topRows does the rows of a block.
func topRows[E uint16 | uint32](a *kernel.Args, block int, t *topTiling, s scratch, f format) {
	x, values, indices := device.View[E](a.Mem(0)), device.View[E](a.Mem(1)), device.View[int32](a.Mem(2))
	lo, hi := kernel.Share(t.Rows, block, a.Blocks)
	for r := lo; r < hi; r++ {
		row, at := x[r*t.Length:(r+1)*t.Length], r*t.Num
		for i, e := range largest(s, row, t.Num, f) {
			position := uint32(e)
			values[at+int64(i)], indices[at+int64(i)] = row[position], int32(position)
		}
	}
}

// largest returns the entries of the num largest elements in order.
func largest[E uint16 | uint32](s scratch, row []E, num int64, f format) []uint64 {
	if num <= insertNum {
		return insert(s, row, num, f)
	}
	return s.sort(collect(s, row, num, f))[:num]
}

// insert puts the elements one by one where they belong among the num largest.
func insert[E uint16 | uint32](s scratch, row []E, num int64, f format) []uint64 {
	best := s.entries[:num]
	for i := range best {
		best[i] = math.MaxUint64
	}
	for i, v := range row {
		e := uint64(key(uint32(v)<<f.shift, f.inf))<<32 | uint64(i)
		if e >= best[num-1] {
			continue
		}
		at := num - 1
		for ; at > 0 && best[at-1] > e; at-- {
			best[at] = best[at-1]
		}
		best[at] = e
	}
	return best
}

// collect returns the number of entries that it made, in order of position: the
// num largest elements are among them.
func collect[E uint16 | uint32](s scratch, row []E, num int64, f format) int {
	last := uint32(digits - 1)
	if num < int64(len(row)) {
		clear(s.counts[:])
		for _, v := range row {
			s.counts[key(uint32(v)<<f.shift, f.inf)>>(32-digitBits)]++
		}
		last = 0
		for n := int64(s.counts[0]); n < num; n += int64(s.counts[last]) {
			last++
		}
	}
	entries, n := s.entries[:len(row)], 0
	for i, v := range row {
		k := key(uint32(v)<<f.shift, f.inf)
		entries[n] = uint64(k)<<32 | uint64(i)
		if k>>(32-digitBits) <= last {
			n++
		}
	}
	return n
}

// sort returns the first n entries in ascending order.
func (s scratch) sort(n int) []uint64 {
	from, to := s.entries[:n], s.sorted[:n]
	if n < fewEntries {
		slices.Sort(from)
		return from
	}
	for shift := 32; shift < 64; shift += digitBits {
		clear(s.counts[:])
		for _, e := range from {
			s.counts[e>>shift%digits]++
		}
		if s.counts[from[0]>>shift%digits] == uint32(n) {
			continue // nothing to tell apart by this digit
		}
		at := uint32(0)
		for d, n := range s.counts {
			s.counts[d], at = at, at+n
		}
		for _, e := range from {
			d := e >> shift % digits
			to[s.counts[d]] = e
			s.counts[d]++
		}
		from, to = to, from
	}
	return from
}
