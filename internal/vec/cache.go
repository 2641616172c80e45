package vec

import (
	"unsafe"

	"goatb/internal/asm/attend"
	"goatb/internal/asm/gemm"
	"goatb/internal/asm/vecmath"
	"goatb/internal/cpu"
)

// Span is some rows at even distances: where the first begins, in bytes, and how
// many there are.
type Span = attend.Span

// Ahead is memory that will be needed next.
type Ahead = attend.Ahead

// SpanWords and AheadWords are the numbers of int64 of a Span and an Ahead.
const (
	SpanWords  = 2
	AheadWords = 4
)

// SpansIn uses memory for spans.
func SpansIn(mem []int64) []Span {
	return unsafe.Slice((*Span)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/SpanWords)
}

// AheadIn uses memory for runs of what is needed next.
func AheadIn(mem []int64) []Ahead {
	return unsafe.Slice((*Ahead)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/AheadWords)
}

// Address is where element at of memory lies, for an Ahead.
func Address(mem []byte, e Element, at int64) uintptr {
	return gemm.Address(mem) + uintptr(at)*uintptr(sizeOf(e))
}

// Fetch asks for memory to be brought to the second level cache, in order.
func Fetch(runs []Ahead) {
	for _, r := range runs {
		for i := range r.Rows {
			gemm.Fetch(r.At+uintptr(i*r.Step), (r.Bytes+63)/64)
		}
	}
}

// Cache is rows of keys or values as they lie in memory, for one head or
// several. Sizes and distances are in elements.
type Cache struct {
	Mem  []byte
	Elem Element
	// Spans hold the rows of the first head: all of Spans one after the other,
	// rows of a span Step apart. A row is Width wide. There are Heads heads, Head
	// apart.
	Spans        []Span
	Step, Head   int
	Heads, Width int
	// Next will be needed next: in assembly it is fetched meanwhile. It need not lie
	// in Mem.
	Next []Ahead
}

// Add appends n rows from element at of Mem on, n positive.
func (c *Cache) Add(at int64, n int) {
	size := sizeOf(c.Elem)
	last := int(at) + (c.Heads-1)*c.Head + (n-1)*c.Step + c.Width
	_ = c.Mem[:last*size]
	c.Spans = append(c.Spans, Span{At: int(at) * size, Rows: n})
}

// Part returns n rows from row j on, which lie in one span from the first on.
func (c *Cache) Part(j, n int) Span {
	return Span{At: c.Spans[0].At + j*c.Step*sizeOf(c.Elem), Rows: n}
}

// Only leaves the rows of one head.
func (c *Cache) Only(head int) {
	c.Heads = 1
	for i := range c.Spans {
		c.Spans[i].At += head * c.HeadBytes()
	}
}

// StepBytes is the distance of the rows of a span in bytes.
func (c *Cache) StepBytes() int { return c.Step * sizeOf(c.Elem) }

// HeadBytes is the distance of the heads in bytes.
func (c *Cache) HeadBytes() int { return c.Head * sizeOf(c.Elem) }

// Rows returns the number of rows of a head.
func (c *Cache) Rows() (n int) {
	for _, s := range c.Spans {
		n += s.Rows
	}
	return n
}

// CacheTakes reports whether the methods of Cache take rows of an element type and
// width. They always take F32; the others have to be widened where they do not.
func CacheTakes(e Element, width int) bool {
	if cpu.Active() == cpu.None {
		return true
	}
	_, ok := attend.Best(cpu.Active(), attend.Elem(e), width)
	return ok
}

// Padded is the length of a query row of the given width in Cache.Scores.
func Padded(width int) int { return (width + attend.Chunk - 1) / attend.Chunk * attend.Chunk }

// Scores stores the inner products of query rows with the rows of the cache:
//
//	dst[(h*rows+r)*ldd+j] = Σ_i q[(h*rows+r)*ldq+i] * cache[h][j][i]
//
// Rows of q are followed by zeros up to Padded(Width). In assembly a sum takes
// the products in order, fused; in plain Go it is in the package's lane order.
func (c *Cache) Scores(dst []float32, ldd int, q []float32, ldq, rows int) {
	keys, all := c.Rows(), c.Heads*rows
	if keys == 0 || all == 0 {
		return
	}
	dst, q = dst[:(all-1)*ldd+keys], q[:(all-1)*ldq+Padded(c.Width)]
	if l, ok := attend.Best(cpu.Active(), attend.Elem(c.Elem), c.Width); ok {
		var a attend.Args
		c.fill(&a)
		a.X, a.XRow, a.XHead, a.Y, a.YRow, a.YHead = &q[0], 4*ldq, 4*ldq*rows, &dst[0], 4*ldd, 4*ldd*rows
		l.Scores(&a, rows)
		return
	}
	for x := range all {
		row, j := q[x*ldq:][:c.Width], 0
		for _, s := range c.Spans {
			d, mem := dst[x*ldd+j:][:s.Rows], c.Mem[s.At+x/rows*c.Head*sizeOf(c.Elem):]
			j += s.Rows
			switch c.Elem {
			case F32:
				Dots(F32, d, row, elements[float32](mem), c.Step)
			case I8:
				Dots(I8, d, row, elements[int8](mem), c.Step)
			default:
				Dots(c.Elem, d, row, elements[uint16](mem), c.Step)
			}
		}
	}
}

// FixedTakes reports whether FixedScores takes int8 rows of a width.
func FixedTakes(width int) bool { return attend.FixedTakes(cpu.Active(), width) }

// Fix turns a query row in place into what FixedScores takes: numbers that are
// multiples of a unit, which is less than the largest magnitude times 2^-FixedBits.
// NaN or an infinity makes the row's scores NaN.
func Fix(row []float32) { attend.Fix(row, len(row)) }

// FixedBits bounds what Fix rounds off: half of the largest magnitude's bit -FixedBits.
const FixedBits = attend.FixedBits

// FixedScores is Scores for int8 rows that FixedTakes takes and query rows after
// Fix, whose sums are exact integers before they are rounded.
func (c *Cache) FixedScores(dst []float32, ldd int, q []float32, ldq, rows int) {
	keys, all := c.Rows(), c.Heads*rows
	if keys == 0 || all == 0 {
		return
	}
	dst, q = dst[:(all-1)*ldd+keys], q[:(all-1)*ldq+c.Width]
	var a attend.Args
	c.fill(&a)
	a.X, a.XRow, a.XHead, a.Y, a.YRow, a.YHead = &q[0], 4*ldq, 4*ldq*rows, &dst[0], 4*ldd, 4*ldd*rows
	attend.FixedScores(&a, rows)
}

// Mix adds weighted rows of the cache:
//
//	acc[(h*rows+r)*lda+i] += Σ_j p[(h*rows+r)*ldp+j] * cache[h][j][i]
//
// The products are added one after the other in the order of j, so mixing the
// rows in several calls gives the bits of one. In assembly they are fused; in
// plain Go they are rounded first.
func (c *Cache) Mix(acc []float32, lda int, p []float32, ldp, rows int) {
	keys, all := c.Rows(), c.Heads*rows
	if keys == 0 || all == 0 {
		return
	}
	acc, p = acc[:(all-1)*lda+c.Width], p[:(all-1)*ldp+keys]
	if l, ok := attend.Best(cpu.Active(), attend.Elem(c.Elem), c.Width); ok {
		var a attend.Args
		c.fill(&a)
		a.X, a.XRow, a.XHead, a.Y, a.YRow, a.YHead = &p[0], 4*ldp, 4*ldp*rows, &acc[0], 4*lda, 4*lda*rows
		l.Mix(&a, rows)
		return
	}
	for x := range all {
		sums, j := acc[x*lda:][:c.Width], 0
		for _, s := range c.Spans {
			weights, mem := p[x*ldp+j:][:s.Rows], c.Mem[s.At+x/rows*c.Head*sizeOf(c.Elem):]
			j += s.Rows
			switch c.Elem {
			case F32:
				Mix(F32, sums, weights, elements[float32](mem), c.Step)
			case I8:
				Mix(I8, sums, weights, elements[int8](mem), c.Step)
			default:
				Mix(c.Elem, sums, weights, elements[uint16](mem), c.Step)
			}
		}
	}
}

// fill sets the arguments of a loop, without X and Y.
func (c *Cache) fill(a *attend.Args) {
	size := sizeOf(c.Elem)
	a.Rows, a.Step, a.Head, a.Heads, a.Width = unsafe.Pointer(unsafe.SliceData(c.Mem)), c.Step*size, c.Head*size, c.Heads, c.Width
	a.Spans, a.Count = &c.Spans[0], len(c.Spans)
	a.Fetch, a.Fetches = unsafe.SliceData(c.Next), len(c.Next)
}

// sizeOf is the size of an element in bytes.
func sizeOf(e Element) int {
	switch e {
	case F32:
		return 4
	case I8:
		return 1
	}
	return 2
}

// elements views memory as elements, for which it is aligned.
func elements[T vecmath.Row](mem []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(*new(T))))
}
