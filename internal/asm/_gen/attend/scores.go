package attend

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
)

// scores makes inner products of a few rows with the rows of a cache. The lanes
// are the rows of the cache, so that a sum goes over its products in order: a
// chunk of as many rows as there are lanes is transposed in registers.
func scores(v isa, t rowType, rows int) {
	name := fmt.Sprintf("scores%sx%d%s", t.name, rows, v.suffix)
	f := v.begin(name, fmt.Sprintf("%s does Scores for %d rows of X and %s rows of a cache.", name, rows, t.name))
	c := v.c
	acc := v.regs(rows)
	f.chunkScores(t, rows)
	pairs := f.wide && rows <= 4
	c.MOVQ(operand.I32(0), f.arg(argTails))
	f.heads(func() {
		if pairs {
			f.pairsOfHeads(t, rows)
		}
		c.MOVQ(f.get(argY), f.arg(argOut))
		f.spans("span", f.arg(argRows), func(key, n vecPointer) {
			c.MOVQ(n, f.arg(argLeft))
			if pairs {
				f.tail(key, n, "spanDone")
			}
			c.Label("keys")
			c.MOVQ(key, f.arg(argKey))
			for _, x := range acc {
				f.zero(x)
			}
			f.chunks(t, key, func() products {
				x := f.stride(f.get(argX), f.get(argXRow), len(acc))
				return products{
					column: func(d int, col vec) {
						for r := range acc {
							f.mulAdd(x.at(r, 4*d), col, acc[r])
						}
					},
					advance: func(n int) { x.advance(4 * n) },
				}
			})
			f.storeSums(acc)
			c.IMUL3Q(operand.I32(v.lanes), f.get(argStep), key)
			c.ADDQ(f.arg(argKey), key)
			c.SUBQ(operand.I32(v.lanes), f.arg(argLeft))
			c.JGT(operand.LabelRef("keys"))
			c.Label("spanDone")
		})
		c.DECQ(f.arg(argTails))
	})
}

// fewOrAll jumps to label where fewer than n rows of the cache are left.
func (f frame) fewOrAll(n int, label string) {
	f.c.CMPQ(f.arg(argLeft), operand.I32(n))
	f.c.JLT(operand.LabelRef(label))
}

// products is what is done with the chunks of rows: column with a register for
// each element of a chunk, advance behind n elements.
type products struct {
	column  func(d int, col vec)
	advance func(n int)
}

// beside is p with something done behind every column.
func (p products) beside(do func()) products {
	column := p.column
	p.column = func(d int, col vec) {
		column(d, col)
		do()
	}
	return p
}

// chunks transposes the chunks of as many rows of the cache from key on as there
// are lanes, or of those that are left. begin prepares what is done with them.
func (f frame) chunks(t rowType, key vecPointer, begin func() products) {
	c := f.c
	f.fewOrAll(f.lanes, "some")
	c.TESTQ(operand.I32(chunk-1), f.arg(argWidth))
	c.JNE(operand.LabelRef("some"))
	if t.name == "BF16" {
		f.wholePairs(t, key, begin())
	} else {
		f.wholeChunks(t, key, begin())
	}
	c.JMP(operand.LabelRef("whole"))
	c.Label("some")
	f.someRows(t, key, begin())
	c.Label("whole")
}

// wholeChunks does as many rows of the cache as there are lanes, whose width is a
// number of chunks.
func (f frame) wholeChunks(t rowType, key vecPointer, p products) {
	c := f.c
	k := f.stride(key, f.get(argStep), f.lanes)
	n := f.get(argWidth)
	c.SHRQ(operand.U8(3), n)
	ahead := f.fetching()
	c.Label("chunk")
	f.chunk(t, k, p.beside(f.spread("chunk", ahead, chunk*t.size*f.lanes/lineBytes, chunk)))
	c.DECQ(n)
	c.JNE(operand.LabelRef("chunk"))
	f.fetched(ahead)
}

// chunk transposes a chunk of the rows.
func (f frame) chunk(t rowType, k strided, p products) {
	for d, col := range f.transposed(t, func(i int) operand.Mem { return k.at(i, 0) }, nil) {
		p.column(d, col)
	}
	k.advance(chunk * t.size)
	p.advance(chunk)
}

// wholePairs is wholeChunks for bf16: pairs of elements are transposed as words,
// two chunks at once, and their halves are f32 but for the other half's bits.
func (f frame) wholePairs(t rowType, key vecPointer, p products) {
	c := f.c
	k := f.stride(key, f.get(argStep), f.lanes)
	n, upper := f.get(argWidth), f.upperHalves()
	ahead := f.fetching()
	c.SHRQ(operand.U8(4), n)
	c.JEQ(operand.LabelRef("odd"))
	c.Label("pairs")
	q := p.beside(f.spread("pairs", ahead, pieceBytes*f.lanes/lineBytes, 2*chunk))
	for w, col := range f.transposed(word, func(i int) operand.Mem { return k.at(i, 0) }, nil) {
		first := f.reg()
		c.VPSLLD(operand.U8(16), col, first)
		q.column(2*w, first)
		f.dropLower(col, upper)
		q.column(2*w+1, col)
	}
	k.advance(pieceBytes)
	p.advance(2 * chunk)
	c.DECQ(n)
	c.JNE(operand.LabelRef("pairs"))
	f.fetched(ahead)
	c.Label("odd")
	c.TESTQ(operand.I32(chunk), f.arg(argWidth))
	c.JEQ(operand.LabelRef("whole"))
	f.chunk(t, k, p)
}

// upperHalves makes the mask of the upper halves of words, for AVX-512: AVX2 has no
// register left.
func (f frame) upperHalves() vec {
	if !f.wide {
		return nil
	}
	m := f.reg()
	f.c.VPTERNLOGD(operand.U8(0xff), m, m, m)
	f.c.VPSLLD(operand.U8(16), m, m)
	return m
}

// dropLower makes the lower halves of words zero; upper is from upperHalves.
func (f frame) dropLower(x, upper vec) {
	if f.wide {
		f.c.VANDPS(upper, x, x)
		return
	}
	f.c.VPSRLD(operand.U8(16), x, x)
	f.c.VPSLLD(operand.U8(16), x, x)
}

// someRows is wholeChunks for any number of rows of any width: behind the last
// row of the cache it is repeated.
func (f frame) someRows(t rowType, key vecPointer, p products) {
	c := f.c
	f.repeatLast(key)
	n, at := f.get(argWidth), c.GP64()
	c.XORQ(at, at)
	c.Label("piece")
	k := f.first(n, chunk)
	out := f.transposed(t, func(i int) operand.Mem {
		return operand.Mem{Base: f.get(argSlots + 8*i), Index: at, Scale: uint8(t.size)}
	}, &k)
	for d, col := range out {
		p.column(d, col)
	}
	c.ADDQ(operand.I32(chunk), at)
	p.advance(chunk)
	c.SUBQ(operand.I32(chunk), n)
	c.JGT(operand.LabelRef("piece"))
}

// repeatLast writes down where as many rows of the cache lie as there are lanes: behind
// the last one it is repeated.
func (f frame) repeatLast(key vecPointer) {
	c := f.c
	row, next, step := c.GP64(), c.GP64(), f.get(argStep)
	c.MOVQ(key, row)
	for i := range f.lanes {
		c.MOVQ(row, f.arg(argSlots+8*i))
		if i+1 < f.lanes {
			c.LEAQ(operand.Mem{Base: row, Index: step, Scale: 1}, next)
			c.CMPQ(f.arg(argLeft), operand.I32(i+1))
			c.CMOVQGT(next, row)
		}
	}
}

// storeSums stores the sums of the rows of the cache that there are.
func (f frame) storeSums(acc []vec) {
	c := f.c
	y, stride := f.get(argOut), f.get(argYRow)
	f.fewOrAll(f.lanes, "last")
	write := func(k *mask) {
		for i, s := range acc {
			f.store(s, k, operand.Mem{Base: y})
			if i+1 < len(acc) {
				c.ADDQ(stride, y)
			}
		}
	}
	c.ADDQ(operand.I32(4*f.lanes), f.arg(argOut))
	write(nil)
	c.JMP(operand.LabelRef("stored"))
	c.Label("last")
	n := f.get(argLeft)
	k := f.first(n, f.lanes)
	c.SHLQ(operand.U8(2), n)
	c.ADDQ(n, f.arg(argOut))
	write(&k)
	c.Label("stored")
}
