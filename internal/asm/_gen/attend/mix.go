package attend

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns is the number of registers of a row's sums that are kept at once.
func (v isa) columns(rows int) int {
	if v.wide {
		return map[int]int{1: 4, 2: 4, 4: 4, 8: 2}[rows]
	}
	return map[int]int{1: 4, 2: 4, 4: 2}[rows]
}

// mix makes weighted sums of the rows of a cache.
func mix(v isa, t rowType, rows int) {
	name := fmt.Sprintf("mix%sx%d%s", t.name, rows, v.suffix)
	f := v.begin(name, fmt.Sprintf("%s does Mix for %d rows of X and %s rows of a cache.", name, rows, t.name))
	c := v.c
	wide := v.columns(rows)
	f.narrowHeads(t, rows)
	f.heads(func() {
		col, y, left := f.get(argRows), f.get(argY), f.get(argWidth)
		// block does some registers of columns for all keys.
		block := func(label string, registers int, k *mask) {
			f.mixColumns(t, label, rows, registers, k, col, y)
			c.ADDQ(operand.I32(registers*v.lanes*t.size), col)
			c.ADDQ(operand.I32(registers*v.lanes*4), y)
			c.SUBQ(operand.I32(registers*v.lanes), left)
		}
		c.Label("wide")
		c.CMPQ(left, operand.I32(wide*v.lanes))
		c.JLT(operand.LabelRef("narrow"))
		block("wideKeys", wide, nil)
		c.JMP(operand.LabelRef("wide"))
		c.Label("narrow")
		c.TESTQ(left, left)
		c.JLE(operand.LabelRef("done"))
		k := v.first(left, v.lanes)
		block("narrowKeys", 1, &k)
		c.JMP(operand.LabelRef("narrow"))
		c.Label("done")
	})
}

// mixColumns adds all rows of the cache to the sums of some registers of
// columns.
func (f frame) mixColumns(t rowType, label string, rows, registers int, k *mask, col, y reg.GPVirtual) {
	c := f.c
	acc := make([][]vec, rows)
	stride := f.get(argYRow)
	at := c.GP64()
	each := func(move func(m operand.Mem, x vec)) {
		c.MOVQ(y, at)
		for r := range acc {
			for i, x := range acc[r] {
				move(operand.Mem{Base: at, Disp: 4 * f.lanes * i}, x)
			}
			if r+1 < rows {
				c.ADDQ(stride, at)
			}
		}
	}
	for r := range acc {
		acc[r] = f.regs(registers)
	}
	each(func(m operand.Mem, x vec) { f.load(m, k, x) })
	weights := f.stride(f.get(argX), f.get(argXRow), rows)
	f.spans(label+"Span", col, func(row, keys reg.GPVirtual) {
		ahead := f.fetching()
		var near reg.GPVirtual
		if k == nil {
			near = f.nearSpan(label, row, keys, col, registers*f.lanes*t.size)
		}
		c.Label(label)
		if k == nil {
			bytes := registers * f.lanes * t.size
			f.fetch(label, ahead, (bytes+lineBytes-1)/lineBytes)
			for at := 0; at < bytes; at += lineBytes {
				c.PREFETCHT0(operand.Mem{Base: row, Index: near, Scale: 1, Disp: at})
			}
			c.CMPQ(keys, operand.I32(nearPositions))
			c.CMOVQLE(f.arg(argNearLast), near)
		}
		v := make([]vec, registers)
		for i := range v {
			v[i] = f.loadColumns(t, operand.Mem{Base: row, Disp: f.lanes * t.size * i}, k)
		}
		for r := range acc {
			f.weigh(weights.at(r, 0), v, acc[r])
		}
		c.ADDQ(f.arg(argStep), row)
		weights.advance(4)
		c.DECQ(keys)
		c.JNE(operand.LabelRef(label))
		f.fetched(ahead)
	})
	each(func(m operand.Mem, x vec) { f.store(x, k, m) })
}

// nearPositions is how many positions ahead of use rows are brought from the second
// level cache to the first.
const nearPositions = 8

// nearSpan returns the distance of the rows that are brought near from those at hand,
// n rows from row on. Behind the last of them come those of the next span or, behind
// the last span, those of the columns that are done next.
func (f frame) nearSpan(label string, row, n, col reg.GPVirtual, bytes int) reg.GPVirtual {
	c, next, near := f.c, f.get(argSpan), f.c.GP64()
	c.ADDQ(operand.I32(spanBytes), next)
	c.XORQ(near, near)
	c.CMPQ(next, f.arg(argSpansEnd))
	c.JNE(operand.LabelRef(label + "Next"))
	c.MOVQ(f.arg(argSpans), next)
	c.MOVQ(operand.I32(bytes), near)
	c.Label(label + "Next")
	c.ADDQ(operand.Mem{Base: next}, near)
	c.ADDQ(col, near)
	c.SUBQ(row, near)
	c.MOVQ(n, next)
	c.SUBQ(operand.I32(nearPositions), next)
	c.IMULQ(f.arg(argStep), next)
	c.SUBQ(next, near)
	c.MOVQ(near, f.arg(argNearLast))
	c.IMUL3Q(operand.I32(nearPositions), f.get(argStep), near)
	return near
}

// weigh adds a row of the cache times the weight in memory.
func (f frame) weigh(m operand.Mem, v, acc []vec) {
	if len(v) == 1 {
		f.mulAdd(m, v[0], acc[0])
		return
	}
	// One load for all columns: there are more loads than multiplications otherwise.
	w := f.reg()
	f.c.VBROADCASTSS(m, w)
	for i := range v {
		f.c.VFMADD231PS(w, v[i], acc[i])
	}
}

// narrowHeads does as many heads at once as there are sums to keep both
// multipliers busy, as long as there are so many: heads that fit into a
// register, whose rows of X and Y lie evenly.
func (f frame) narrowHeads(t rowType, rows int) {
	c := f.c
	heads := 8 / rows
	if f.wide && rows > 1 {
		c.CMPQ(f.arg(argWidth), operand.I32(chunk))
		c.JNE(operand.LabelRef("wider"))
		f.evenRows(rows)
		f.chunkMix(t, rows)
		c.Label("wider")
	}
	if heads < 2 {
		return
	}
	c.CMPQ(f.arg(argWidth), operand.I32(f.lanes))
	c.JGT(operand.LabelRef("head"))
	f.evenRows(rows)
	if f.wide {
		// Whole registers would reach over the ends of cache lines.
		c.CMPQ(f.arg(argWidth), operand.I32(f.lanes/2))
		c.JGT(operand.LabelRef("whole"))
		short := f
		short.half, short.lanes = true, f.lanes/2
		short.someHeads(t, rows, heads, "short")
		c.JMP(operand.LabelRef("head"))
		c.Label("whole")
	}
	f.someHeads(t, rows, heads, "heads")
}

// evenRows goes to the loop that does one head at a time unless the rows of X and Y of
// all heads lie evenly.
func (f frame) evenRows(rows int) {
	c := f.c
	for _, x := range [...][2]int{{argXRow, argXHead}, {argYRow, argYHead}} {
		even := f.get(x[0])
		c.IMUL3Q(operand.I32(rows), even, even)
		c.CMPQ(even, f.arg(x[1]))
		c.JNE(operand.LabelRef("head"))
	}
}

// someHeads does heads as long as there are so many; each is one register wide.
func (f frame) someHeads(t rowType, rows, heads int, label string) {
	c := f.c
	c.Label(label)
	c.CMPQ(f.arg(argHeads), operand.I32(heads))
	c.JLT(operand.LabelRef("head"))
	k := f.first(f.get(argWidth), f.lanes)
	acc := f.regs(8)
	each := func(move func(m operand.Mem, x vec)) {
		y := f.stride(f.get(argY), f.get(argYRow), 8)
		for i, x := range acc {
			move(y.at(i, 0), x)
		}
	}
	each(func(m operand.Mem, x vec) { f.load(m, &k, x) })
	weights, step := f.stride(f.get(argX), f.get(argXRow), 8), f.get(argStep)
	f.spans(label+"Span", f.get(argRows), func(row, keys reg.GPVirtual) {
		v := f.stride(row, f.get(argHead), heads)
		c.Label(label + "Keys")
		for h := range heads {
			x := f.loadColumns(t, v.at(h, 0), &k)
			for r := range rows {
				f.mulAdd(weights.at(h*rows+r, 0), x, acc[h*rows+r])
			}
		}
		for _, p := range v.bases {
			c.ADDQ(step, p)
		}
		weights.advance(4)
		c.DECQ(keys)
		c.JNE(operand.LabelRef(label + "Keys"))
	})
	each(func(m operand.Mem, x vec) { f.store(x, &k, m) })
	f.skipHeads(heads)
	c.JNE(operand.LabelRef(label))
	c.JMP(operand.LabelRef("end"))
}
