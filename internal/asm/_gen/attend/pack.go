package attend

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// packs makes the loops that pack rows of a cache into panels.
func packs(c *build.Context, wide bool) {
	v := newISA(c, wide)
	for _, t := range rowTypes {
		packKeys(v, t)
		packValues(v, t)
	}
}

// packKeys turns rows into columns of a panel.
func packKeys(v isa, t rowType) {
	name := "packKeys" + t.name + v.suffix
	f := v.begin(name, fmt.Sprintf("%s does Keys for at most %d rows.", name, v.lanes))
	c := v.c
	span, row := f.get(argSpans), f.get(argRows)
	c.MOVQ(span, f.arg(argSpan))
	c.MOVQ(f.get(argCount), f.arg(argLeft))
	c.ADDQ(operand.Mem{Base: span}, row)
	f.chunks(t, row, func() products {
		y := f.get(argY)
		return products{
			column:  func(d int, col vec) { f.store(col, nil, operand.Mem{Base: y, Disp: panelBytes * d}) },
			advance: func(n int) { c.ADDQ(operand.I32(panelBytes*n), y) },
		}
	})
	target.Return(c)
}

// packValues widens rows into steps of panels.
func packValues(v isa, t rowType) {
	name := "packValues" + t.name + v.suffix
	f := v.begin(name, name+" does Values.")
	c := v.c
	row, dst, step, next := f.get(argRows), f.get(argY), f.get(argStep), f.get(argYRow)
	n := f.get(argCount)
	rest := f.get(argWidth)
	c.ANDQ(operand.I32(v.lanes-1), rest)
	// A mask of a whole register stands for that of none.
	k := f.first(rest, v.lanes)
	move := func(from, to vecPointer, i int, k *mask) {
		x := f.loadColumns(t, operand.Mem{Base: from, Disp: v.lanes * t.size * i}, k)
		f.store(x, nil, operand.Mem{Base: to, Disp: 4 * v.lanes * i})
	}
	c.Label("row")
	from, to, left := c.GP64(), c.GP64(), f.get(argWidth)
	c.MOVQ(row, from)
	c.MOVQ(dst, to)
	c.SUBQ(operand.I32(panelBytes/4), left)
	c.JLT(operand.LabelRef("some"))
	c.Label("panel")
	for line := 0; line < panelBytes/4*t.size; line += 64 {
		c.PREFETCHT0(operand.Mem{Base: from, Index: step, Scale: 8, Disp: line})
	}
	for i := range panelBytes / 4 / v.lanes {
		move(from, to, i, nil)
	}
	c.ADDQ(operand.I32(panelBytes/4*t.size), from)
	c.ADDQ(next, to)
	c.SUBQ(operand.I32(panelBytes/4), left)
	c.JGE(operand.LabelRef("panel"))
	c.Label("some")
	c.ADDQ(operand.I32(panelBytes/4-v.lanes), left)
	c.JLT(operand.LabelRef("rest"))
	c.Label("register")
	move(from, to, 0, nil)
	c.ADDQ(operand.I32(v.lanes*t.size), from)
	c.ADDQ(operand.I32(4*v.lanes), to)
	c.SUBQ(operand.I32(v.lanes), left)
	c.JGE(operand.LabelRef("register"))
	c.Label("rest")
	c.TESTQ(rest, rest)
	c.JEQ(operand.LabelRef("packed"))
	move(from, to, 0, &k)
	c.Label("packed")
	c.ADDQ(step, row)
	c.ADDQ(operand.I32(panelBytes), dst)
	c.DECQ(n)
	c.JNE(operand.LabelRef("row"))
	target.Return(c)
}
