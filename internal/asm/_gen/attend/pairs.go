package attend

import (
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
)

// pairsOfHeads does two heads at once, as many rows of the cache as there are lanes,
// and leaves what is behind the last of them to the heads' own loop. A few rows of X are
// too few sums for two multipliers that take four clocks: those of two heads are enough.
func (f frame) pairsOfHeads(t rowType, rows int) {
	c := f.c
	c.CMPQ(f.arg(argTails), operand.I32(0))
	c.JGT(operand.LabelRef("single"))
	c.CMPQ(f.arg(argHeads), operand.I32(2))
	c.JLT(operand.LabelRef("single"))
	c.TESTQ(operand.I32(chunk-1), f.arg(argWidth))
	c.JNE(operand.LabelRef("single"))
	c.MOVQ(operand.I32(2), f.arg(argTails))
	c.MOVQ(f.get(argY), f.arg(argOut))
	flip := f.get(argHead)
	c.SUBQ(operand.I32(lineBytes/2), flip)
	c.MOVQ(flip, f.arg(argNearFlip))
	sums := [2][]vec{f.regs(rows), f.regs(rows)}
	f.spans("pairSpan", f.arg(argRows), func(key, n vecPointer) {
		c.MOVQ(n, f.arg(argLeft))
		c.Label("pairKeys")
		f.fewOrAll(f.lanes, "pairRest")
		for i := range sums {
			for _, x := range sums[i] {
				f.zero(x)
			}
		}
		c.MOVQ(key, f.arg(argKey))
		f.pairProducts(t, key, sums)
		f.storePair(sums)
		c.IMUL3Q(operand.I32(f.lanes), f.get(argStep), key)
		c.ADDQ(f.arg(argKey), key)
		c.SUBQ(operand.I32(f.lanes), f.arg(argLeft))
		c.JMP(operand.LabelRef("pairKeys"))
		c.Label("pairRest")
		rest := f.get(argLeft)
		c.SHLQ(operand.U8(2), rest)
		c.ADDQ(rest, f.arg(argOut))
	})
	c.Label("single")
}

// pairProducts adds the products of two heads' rows from key on.
func (f frame) pairProducts(t rowType, key vecPointer, sums [2][]vec) {
	c, rows := f.c, len(sums[0])
	k := f.strideEight(key, f.get(argStep), f.lanes)
	x := [2]strided{f.stride(f.get(argX), f.get(argXRow), rows)}
	x[1] = x[0]
	x[1].bases = []vecPointer{c.GP64()}
	c.MOVQ(x[0].bases[0], x[1].bases[0])
	c.ADDQ(f.arg(argXHead), x[1].bases[0])
	c.MOVQ(operand.I32(0), f.arg(argNear))
	ahead, turns := f.fetching(), f.get(argWidth)
	elems, upper := chunk, vec(nil)
	if t.name == "BF16" {
		elems, upper = 2*chunk, f.upperHalves()
	}
	c.SHRQ(operand.U8(bits.TrailingZeros(uint(elems))), turns)
	c.MOVQ(turns, f.arg(argTurns))
	// both transposes a piece of both heads: products alternate between them.
	both := func(t rowType) (cols [2][]vec) {
		for h := range cols {
			cols[h] = f.transposed(t, func(i int) operand.Mem { return k.at(i, 0) }, nil)
			for _, p := range k.bases {
				if h == 0 {
					c.ADDQ(f.arg(argHead), p)
				} else {
					c.SUBQ(f.arg(argHead), p)
				}
			}
		}
		return cols
	}
	advance := func(n int) {
		k.advance(t.size * n)
		x[0].advance(4 * n)
		x[1].advance(4 * n)
	}
	product := func(d int, cols [2]vec) {
		for r := range rows {
			for h, col := range cols {
				f.mulAdd(x[h].at(r, 4*d), col, sums[h][r])
			}
		}
	}
	small := func(beside func()) {
		cols := both(t)
		f.toNear(k)
		for d := range chunk {
			product(d, [2]vec{cols[0][d], cols[1][d]})
			beside()
		}
		f.fromNear(k)
		advance(chunk)
	}
	if elems > chunk {
		c.TESTQ(turns, turns)
		c.JEQ(operand.LabelRef("pairOdd"))
	}
	c.Label("pairPiece")
	fetch := f.spread("pairPiece", ahead, 2*elems*t.size*f.lanes/lineBytes, elems)
	near := f.nearRows(k, f.lanes, elems)
	beside := func() {
		fetch()
		near()
	}
	if elems == chunk {
		small(beside)
	} else {
		cols := both(word)
		f.toNear(k)
		for w := range chunk {
			var first, second [2]vec
			for h := range cols {
				first[h], second[h] = f.reg(), cols[h][w]
				c.VPSLLD(operand.U8(16), second[h], first[h])
				f.dropLower(second[h], upper)
			}
			product(2*w, first)
			beside()
			product(2*w+1, second)
			beside()
		}
		f.fromNear(k)
		advance(elems)
	}
	c.DECQ(f.arg(argTurns))
	c.JNE(operand.LabelRef("pairPiece"))
	if elems > chunk {
		c.Label("pairOdd")
		c.TESTQ(operand.I32(chunk), f.arg(argWidth))
		c.JEQ(operand.LabelRef("pairDone"))
		small(func() {})
		c.Label("pairDone")
	}
	f.fetched(ahead)
}

// toNear goes from the rows of the first head to those of which the next line is asked
// for: these or, every other time, the second head's, half a line on. fromNear goes back.
func (f frame) toNear(k strided) {
	for _, p := range k.bases {
		f.c.ADDQ(f.arg(argNear), p)
	}
}

func (f frame) fromNear(k strided) {
	for _, p := range k.bases {
		f.c.SUBQ(f.arg(argNear), p)
	}
	flip := f.get(argNearFlip)
	f.c.XORQ(flip, f.arg(argNear))
}

// storePair stores the sums of two heads.
func (f frame) storePair(sums [2][]vec) {
	c := f.c
	y, stride := c.GP64(), f.get(argYRow)
	for h := range sums {
		c.MOVQ(f.arg(argOut), y)
		if h > 0 {
			c.ADDQ(f.arg(argYHead), y)
		}
		for r, s := range sums[h] {
			f.store(s, nil, operand.Mem{Base: y})
			if r+1 < len(sums[h]) {
				c.ADDQ(stride, y)
			}
		}
	}
	c.ADDQ(operand.I32(4*f.lanes), f.arg(argOut))
}

// tail goes to what pairsOfHeads left of a span of n rows from key on, or to the label
// where that is nothing.
func (f frame) tail(key, n vecPointer, none string) {
	c := f.c
	c.CMPQ(f.arg(argTails), operand.I32(0))
	c.JLE(operand.LabelRef("keys"))
	whole := c.GP64()
	c.MOVQ(n, whole)
	c.ANDQ(operand.I32(f.lanes-1), f.arg(argLeft))
	c.SUBQ(f.arg(argLeft), whole)
	c.LEAQ(operand.Mem{Base: f.get(argOut), Index: whole, Scale: 4}, n)
	c.MOVQ(n, f.arg(argOut))
	c.IMULQ(f.arg(argStep), whole)
	c.ADDQ(whole, key)
	c.CMPQ(f.arg(argLeft), operand.I32(0))
	c.JEQ(operand.LabelRef(none))
}
