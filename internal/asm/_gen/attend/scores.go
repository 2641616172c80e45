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
	f.heads(func() {
		c.MOVQ(f.get(argY), f.arg(argOut))
		f.spans("span", f.get(argRows), func(key, n vecPointer) {
			c.MOVQ(n, f.arg(argLeft))
			c.Label("keys")
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
					advance: func() { x.advance(4 * chunk) },
				}
			})
			f.storeSums(acc)
			step := f.get(argStep)
			c.IMUL3Q(operand.I32(v.lanes), step, step)
			c.ADDQ(step, key)
			c.SUBQ(operand.I32(v.lanes), f.arg(argLeft))
			c.JGT(operand.LabelRef("keys"))
		})
	})
}

// fewOrAll jumps to label where fewer than n rows of the cache are left.
func (f frame) fewOrAll(n int, label string) {
	f.c.CMPQ(f.arg(argLeft), operand.I32(n))
	f.c.JLT(operand.LabelRef(label))
}

// products is what is done with the chunks of rows: column with a register for
// each element of a chunk, advance behind each chunk.
type products struct {
	column  func(d int, col vec)
	advance func()
}

// chunks transposes the chunks of as many rows of the cache from key on as there
// are lanes, or of those that are left. begin prepares what is done with them.
func (f frame) chunks(t rowType, key vecPointer, begin func() products) {
	c := f.c
	f.fewOrAll(f.lanes, "some")
	c.TESTQ(operand.I32(chunk-1), f.arg(argWidth))
	c.JNE(operand.LabelRef("some"))
	f.wholeChunks(t, key, begin())
	c.JMP(operand.LabelRef("whole"))
	c.Label("some")
	f.someRows(t, key, begin())
	c.Label("whole")
}

// wholeChunks does as many rows of the cache as there are lanes, whose width is a
// number of chunks.
func (f frame) wholeChunks(t rowType, key vecPointer, p products) {
	c := f.c
	f.prefetchRows(t, key)
	k := f.stride(key, f.get(argStep), f.lanes)
	n := f.get(argWidth)
	c.SHRQ(operand.U8(3), n)
	c.Label("chunk")
	for d, col := range f.transposed(t, func(i int) operand.Mem { return k.at(i, 0) }, nil) {
		p.column(d, col)
	}
	k.advance(chunk * t.size)
	p.advance()
	c.DECQ(n)
	c.JNE(operand.LabelRef("chunk"))
}

// prefetchRows fetches the rows that come after those at key: in the same span,
// or the first ones of the next span.
func (f frame) prefetchRows(t rowType, key vecPointer) {
	c := f.c
	step := f.get(argStep)
	ahead, bytes := c.GP64(), f.get(argWidth)
	c.CMPQ(bytes, operand.I32(64/t.size))
	c.JLT(operand.LabelRef("fetched"))
	c.CMPQ(f.arg(argLeft), operand.I32(f.lanes))
	c.JEQ(operand.LabelRef("nextSpan"))
	c.IMUL3Q(operand.I32(f.lanes), step, ahead)
	c.ADDQ(key, ahead)
	c.JMP(operand.LabelRef("fetchRows"))
	c.Label("nextSpan")
	span := f.get(argSpan)
	c.ADDQ(operand.I32(spanBytes), span)
	c.CMPQ(span, f.arg(argSpansEnd))
	c.JEQ(operand.LabelRef("fetched"))
	c.MOVQ(operand.Mem{Base: span}, ahead)
	c.ADDQ(f.arg(argRows), ahead)
	c.Label("fetchRows")
	k := f.stride(ahead, step, f.lanes)
	if t.size > 1 {
		c.IMUL3Q(operand.I32(t.size), bytes, bytes)
	}
	c.Label("fetch")
	for i := range f.lanes {
		c.PREFETCHT0(k.at(i, 0))
	}
	k.advance(64)
	c.SUBQ(operand.I32(64), bytes)
	c.JGT(operand.LabelRef("fetch"))
	c.Label("fetched")
}

// someRows is wholeChunks for any number of rows of any width: behind the last
// row of the cache it is repeated.
func (f frame) someRows(t rowType, key vecPointer, p products) {
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
	p.advance()
	c.SUBQ(operand.I32(chunk), n)
	c.JGT(operand.LabelRef("piece"))
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
