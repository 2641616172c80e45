package attend

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// Words of Args in package goatb/internal/asm/attend.
const (
	argRows = 8 * iota
	argStep
	argHead
	argSpans
	argCount
	argHeads
	argX
	argXRow
	argXHead
	argY
	argYRow
	argYHead
	argWidth
	argFetch
	argFetches
	argFetchAt
	argFetchEnd
	argFetchRows
	argTurns
	argTails
	argNear
	argNearFlip
	argNearLast
	argSpansEnd
	argLeft
	argSpan
	argOut
	argKey
	argSlots
)

// spanBytes is the size of a span: its place and its number of rows.
const spanBytes = 16

// frame is a function that gets the address of its Args.
type frame struct {
	isa
	args reg.GPVirtual
}

func (v isa) begin(name string, doc ...string) frame {
	target.Function(v.c, name, "func(a *byte)", doc...)
	f := frame{isa: v, args: v.c.GP64()}
	c := v.c
	c.Load(c.Param("a"), f.args)
	end := f.get(argCount)
	c.IMUL3Q(operand.U8(spanBytes), end, end)
	c.ADDQ(f.arg(argSpans), end)
	c.MOVQ(end, f.arg(argSpansEnd))
	f.beginFetch()
	return f
}

// arg is a word of the arguments.
func (f frame) arg(at int) operand.Mem { return operand.Mem{Base: f.args, Disp: at} }

// get loads a word of the arguments.
func (f frame) get(at int) reg.GPVirtual {
	r := f.c.GP64()
	f.c.MOVQ(f.arg(at), r)
	return r
}

// heads does body for every head.
func (f frame) heads(body func()) {
	c := f.c
	c.Label("head")
	body()
	f.skipHeads(1)
	c.JNE(operand.LabelRef("head"))
	c.Label("end")
	target.Return(c)
}

// skipHeads goes on to the heads behind the next n; the flags say whether there
// are any.
func (f frame) skipHeads(n int) {
	for _, x := range [...][2]int{{argRows, argHead}, {argX, argXHead}, {argY, argYHead}} {
		step := f.get(x[1])
		if n > 1 {
			f.c.IMUL3Q(operand.I32(n), step, step)
		}
		f.c.ADDQ(step, f.arg(x[0]))
	}
	f.c.SUBQ(operand.I32(n), f.arg(argHeads))
}

// spans does body for every span of the rows: row is its first row behind base,
// n the number of its rows.
func (f frame) spans(label string, base operand.Op, body func(row, n reg.GPVirtual)) {
	c := f.c
	c.MOVQ(f.get(argSpans), f.arg(argSpan))
	c.Label(label)
	span, row, n := f.get(argSpan), c.GP64(), c.GP64()
	c.MOVQ(operand.Mem{Base: span}, row)
	c.MOVQ(operand.Mem{Base: span, Disp: 8}, n)
	c.ADDQ(base, row)
	body(row, n)
	last := f.get(argSpan)
	c.ADDQ(operand.I32(spanBytes), last)
	c.MOVQ(last, f.arg(argSpan))
	c.CMPQ(last, f.arg(argSpansEnd))
	c.JNE(operand.LabelRef(label))
}

// strided locates rows a stride apart: four of them from each base, or eight with
// multiples up to seven.
type strided struct {
	c      *build.Context
	bases  []reg.GPVirtual
	s1, s3 reg.GPVirtual
	s5, s7 reg.GPVirtual
}

// stride prepares n rows from base on; base is kept.
func (f frame) stride(base, step reg.GPVirtual, n int) strided {
	c := f.c
	s := strided{c: c, s1: step}
	for i := range (n + 3) / 4 {
		p := c.GP64()
		if i == 0 {
			c.MOVQ(base, p)
		} else {
			c.LEAQ(operand.Mem{Base: s.bases[i-1], Index: step, Scale: 4}, p)
		}
		s.bases = append(s.bases, p)
	}
	if n > 3 {
		s.s3 = c.GP64()
		c.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, s.s3)
	}
	return s
}

// strideEight is stride with eight rows from each base.
func (f frame) strideEight(base, step reg.GPVirtual, n int) strided {
	c := f.c
	s := strided{c: c, s1: step, s3: c.GP64(), s5: c.GP64(), s7: c.GP64()}
	c.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, s.s3)
	c.LEAQ(operand.Mem{Base: step, Index: step, Scale: 4}, s.s5)
	c.LEAQ(operand.Mem{Base: s.s3, Index: step, Scale: 4}, s.s7)
	for i := range n / 8 {
		p := c.GP64()
		if i == 0 {
			c.MOVQ(base, p)
		} else {
			c.LEAQ(operand.Mem{Base: s.bases[i-1], Index: step, Scale: 8}, p)
		}
		s.bases = append(s.bases, p)
	}
	return s
}

// at is the byte at disp of row i.
func (s strided) at(i, disp int) operand.Mem {
	each := 4
	if s.s5 != nil {
		each = 8
	}
	m := operand.Mem{Base: s.bases[i/each], Disp: disp, Scale: 1}
	switch i % each {
	case 0:
		m.Scale = 0
	case 1:
		m.Index = s.s1
	case 2:
		m.Index, m.Scale = s.s1, 2
	case 3:
		m.Index = s.s3
	case 4:
		m.Index, m.Scale = s.s1, 4
	case 5:
		m.Index = s.s5
	case 6:
		m.Index, m.Scale = s.s3, 2
	case 7:
		m.Index = s.s7
	}
	return m
}

// advance moves on along the rows.
func (s strided) advance(bytes int) {
	for _, p := range s.bases {
		s.c.ADDQ(operand.I32(bytes), p)
	}
}
