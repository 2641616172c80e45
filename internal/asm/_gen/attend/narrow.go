package attend

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// Rows of one chunk have loops of their own. Of each run of rows all heads are done
// before the next run, so what heads share is done once, and memory is read in order.

// chunkScores makes inner products with rows of one chunk and ends the function
// where the rows are that wide.
func (f frame) chunkScores(t rowType, rows int) {
	if !f.wide {
		return
	}
	c := f.c
	c.CMPQ(f.arg(argWidth), operand.I32(chunk))
	c.JNE(operand.LabelRef("head"))
	c.MOVQ(f.get(argY), f.arg(argOut))
	f.spans("chunkSpan", f.arg(argRows), func(key, n reg.GPVirtual) {
		c.MOVQ(n, f.arg(argLeft))
		c.Label("chunkRows")
		f.fewOrAll(f.lanes, "chunkLast")
		c.Label("chunkWhole")
		c.MOVQ(key, f.arg(argKey))
		f.wholeChunkHeads(t, rows, key)
		step := f.get(argStep)
		c.SHLQ(operand.U8(4), step)
		c.MOVQ(f.arg(argKey), key)
		c.ADDQ(step, key)
		c.ADDQ(operand.I32(4*f.lanes), f.arg(argOut))
		c.SUBQ(operand.I32(f.lanes), f.arg(argLeft))
		c.JNE(operand.LabelRef("chunkRows"))
		c.JMP(operand.LabelRef("chunkNext"))
		c.Label("chunkLast")
		f.lastAsWhole(key, "chunkFew")
		c.JMP(operand.LabelRef("chunkWhole"))
		c.Label("chunkFew")
		f.lastChunkHeads(t, rows, key)
		last := f.get(argLeft)
		c.SHLQ(operand.U8(2), last)
		c.ADDQ(last, f.arg(argOut))
		c.Label("chunkNext")
	})
	c.JMP(operand.LabelRef("end"))
}

// lastAsWhole goes back so far from the last rows of a span that there are as many as
// lanes, of which the first are done again. It jumps to label where the span is too short.
func (f frame) lastAsWhole(key vecPointer, label string) {
	c, back, step := f.c, f.c.GP64(), f.get(argStep)
	c.CMPQ(operand.Mem{Base: f.get(argSpan), Disp: 8}, operand.I32(f.lanes))
	c.JLT(operand.LabelRef(label))
	c.MOVQ(f.arg(argLeft), back)
	c.SUBQ(operand.I32(f.lanes), back)
	c.MOVQ(operand.I32(f.lanes), f.arg(argLeft))
	c.IMULQ(back, step)
	c.ADDQ(step, key)
	c.SHLQ(operand.U8(2), back)
	c.ADDQ(back, f.arg(argOut))
}

// wholeChunkHeads does as many rows of the cache as there are lanes, of all heads.
func (f frame) wholeChunkHeads(t rowType, rows int, key vecPointer) {
	k := f.stride(key, f.get(argStep), f.lanes)
	f.chunkHeads(t, rows, "chunkHead", nil, func(i int) operand.Mem { return k.at(i, 0) }, func() {
		for _, p := range k.bases {
			f.c.ADDQ(f.arg(argHead), p)
		}
	})
}

// lastChunkHeads does fewer rows of the cache: behind the last one it is repeated.
func (f frame) lastChunkHeads(t rowType, rows int, key vecPointer) {
	f.repeatLast(key)
	k := f.first(f.get(argLeft), f.lanes)
	at := f.c.GP64()
	f.c.XORQ(at, at)
	f.chunkHeads(t, rows, "chunkLastHead", &k, func(i int) operand.Mem {
		return operand.Mem{Base: f.get(argSlots + 8*i), Index: at, Scale: 1}
	}, func() { f.c.ADDQ(f.arg(argHead), at) })
}

// chunkHeads does some rows of the cache, of all heads: row locates them, next goes
// on to the next head.
func (f frame) chunkHeads(t rowType, rows int, label string, k *mask, row func(i int) operand.Mem, next func()) {
	c := f.c
	x, y, left := f.get(argX), f.get(argOut), f.get(argHeads)
	xRow, yRow := f.get(argXRow), f.get(argYRow)
	cols := f.transposed(t, row, nil)
	sums := func() { f.chunkSums(cols, rows, k, x, y, xRow, yRow) }
	c.DECQ(left)
	c.JEQ(operand.LabelRef(label + "Last"))
	c.Label(label)
	next()
	halves := [2][]vec{}
	target.Interleave(c, 3, func(i int) {
		if i == 0 {
			sums()
			return
		}
		halves[i-1] = f.quadsOf(t, row, nil, i-1)
	})
	f.joinQuads(halves[0], halves[1], cols)
	c.ADDQ(f.arg(argXHead), x)
	c.ADDQ(f.arg(argYHead), y)
	c.DECQ(left)
	c.JNE(operand.LabelRef(label))
	c.Label(label + "Last")
	sums()
}

// chunkSums multiplies the rows of X with the columns of a chunk and stores the sums.
func (f frame) chunkSums(cols []vec, rows int, k *mask, x, y, xRow, yRow reg.GPVirtual) {
	c := f.c
	xAt, yAt := x, y
	if rows > 2 {
		xAt, yAt = c.GP64(), c.GP64()
		c.MOVQ(x, xAt)
		c.MOVQ(y, yAt)
	}
	for r := 0; r < rows; r += 2 {
		if r > 0 {
			c.LEAQ(operand.Mem{Base: xAt, Index: xRow, Scale: 2}, xAt)
			c.LEAQ(operand.Mem{Base: yAt, Index: yRow, Scale: 2}, yAt)
		}
		acc := f.regs(min(2, rows))
		for d, col := range cols {
			for i := range acc {
				f.addProduct(d == 0, beside(xAt, xRow, i).Offset(4*d), col, acc[i])
			}
		}
		for i := range acc {
			f.store(acc[i], k, beside(yAt, yRow, i))
		}
	}
}

// beside is the first or the second of two rows.
func beside(base, step reg.GPVirtual, i int) operand.Mem {
	m := operand.Mem{Base: base}
	if i > 0 {
		m.Index, m.Scale = step, 1
	}
	return m
}

// addProduct is mulAdd to a sum that begins with the first product.
func (f frame) addProduct(first bool, m operand.Mem, x, acc vec) {
	if first {
		f.c.VMULPS_BCST(m, x, acc)
		return
	}
	f.mulAdd(m, x, acc)
}

// chunkPairs is the number of registers of sums that chunkMix keeps, each of two rows of X.
const chunkPairs = 4

// chunkMix adds weighted rows of one chunk, as long as there are so many heads that
// chunkPairs registers hold the sums of their rows. A register holds the sums of
// two rows of X, so a row of the cache is there twice, and each half is weighted
// with its row's weight.
func (f frame) chunkMix(t rowType, rows int) {
	c := f.c
	heads := 2 * chunkPairs / rows
	acc := f.regs(chunkPairs)
	places := f.lanePlaces()
	one := f.reg()
	f.splat(1, one)
	c.Label("chunkHeads")
	c.CMPQ(f.arg(argHeads), operand.I32(heads))
	c.JLT(operand.LabelRef("head"))
	y := f.stride(f.get(argY), f.get(argYRow), 2*chunkPairs)
	for p, x := range acc {
		f.loadPair(y, p, nil, x)
	}
	weights, step := f.stride(f.get(argX), f.get(argXRow), 2*chunkPairs), f.get(argStep)
	f.spans("chunkSpan", f.arg(argRows), func(row, keys reg.GPVirtual) {
		v := f.stride(row, f.get(argHead), heads)
		m := chunkMixer{frame: f, t: t, rows: rows, v: v, acc: acc, w: f.regs(chunkPairs)}
		c.SUBQ(operand.I32(chunk), keys)
		c.JLT(operand.LabelRef("chunkFew"))
		c.Label("chunkKeys")
		for p, w := range m.w {
			f.loadPair(weights, p, nil, w)
		}
		for _, at := range places {
			m.position(at)
			m.next(step)
		}
		weights.advance(4 * chunk)
		c.SUBQ(operand.I32(chunk), keys)
		c.JGE(operand.LabelRef("chunkKeys"))
		c.Label("chunkFew")
		c.ADDQ(operand.I32(chunk), keys)
		c.JEQ(operand.LabelRef("chunkNone"))
		k := f.first(keys, chunk)
		for p, w := range m.w {
			f.loadPair(weights, p, &k, w)
		}
		for _, b := range weights.bases {
			c.LEAQ(operand.Mem{Base: b, Index: keys, Scale: 4}, b)
		}
		at := f.reg()
		c.VMOVDQA32(places[0], at)
		c.Label("chunkKey")
		m.position(at)
		m.next(step)
		c.VPADDD(one, at, at)
		c.DECQ(keys)
		c.JNE(operand.LabelRef("chunkKey"))
		c.Label("chunkNone")
	})
	y = f.stride(f.get(argY), f.get(argYRow), 2*chunkPairs)
	for p, x := range acc {
		c.VMOVUPS(x.AsY(), y.at(2*p, 0))
		c.VEXTRACTF64X4(operand.U8(1), x, y.at(2*p+1, 0))
	}
	f.skipHeads(heads)
	c.JNE(operand.LabelRef("chunkHeads"))
	c.JMP(operand.LabelRef("end"))
}

// chunkMixer is a loop of chunkMix over positions.
type chunkMixer struct {
	frame
	t    rowType
	rows int
	v    strided
	acc  []vec
	w    []vec
}

// position adds a row of each head; at says which of the weights at hand are its.
func (m *chunkMixer) position(at vec) {
	heads := 2 * chunkPairs / m.rows
	for h := range heads {
		x := m.loadTwice(m.t, m.v.at(h, 0))
		for i := range m.rows / 2 {
			p := h*m.rows/2 + i
			w := m.reg()
			m.c.VPERMPS(m.w[p], at, w)
			m.c.VFMADD231PS(w, x, m.acc[p])
		}
	}
}

// next goes on to the next position.
func (m *chunkMixer) next(step reg.GPVirtual) {
	for _, p := range m.v.bases {
		m.c.ADDQ(step, p)
	}
}

// lanePlaces makes, for each element of a chunk, the places of element i of both
// halves of a register.
func (f frame) lanePlaces() []vec {
	c, out := f.c, f.regs(chunk)
	bits, upper, one := c.GP64(), c.K(), f.reg()
	c.MOVQ(operand.I32(0xff00), bits)
	c.KMOVW(bits.As32(), upper)
	f.splat(1, one)
	c.MOVQ(operand.I32(chunk), bits)
	c.VPBROADCASTD_Z(bits.As32(), upper, out[0])
	for i := 1; i < chunk; i++ {
		c.VPADDD(one, out[i-1], out[i])
	}
	return out
}

// splat fills a register with an integer.
func (f frame) splat(n int, x vec) {
	r := f.c.GP64()
	f.c.MOVQ(operand.I32(n), r)
	f.c.VPBROADCASTD(r.As32(), x)
}

// loadPair reads the chunks at hand of rows 2p and 2p+1 into the halves of a register;
// with a mask, the elements that it has, and zeros.
func (f frame) loadPair(s strided, p int, k *mask, x vec) {
	c := f.c
	if k == nil {
		c.VMOVUPS(s.at(2*p, 0), x.AsY())
		c.VINSERTF64X4(operand.U8(1), s.at(2*p+1, 0), x, x)
		return
	}
	h := c.YMM()
	c.VMOVUPS_Z(s.at(2*p, 0), k.k, x.AsY())
	c.VMOVUPS_Z(s.at(2*p+1, 0), k.k, h)
	c.VINSERTF64X4(operand.U8(1), h, x, x)
}

// loadTwice reads a chunk of a row as f32 into both halves of a register.
func (f frame) loadTwice(t rowType, m operand.Mem) vec {
	c, z := f.c, f.reg()
	switch t.name {
	case "F32":
		c.VBROADCASTF64X4(m, z)
	case "I8":
		x := c.XMM()
		c.VPBROADCASTQ(m, x)
		f.widen(t, x, z)
	default:
		y := c.YMM()
		c.VBROADCASTI32X4(m, y)
		f.widen(t, y, z)
	}
	return z
}
