package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// lineBytes is the size of a cache line.
const lineBytes = 64

// panelBytes is the size of one step of a weight panel: 32 columns of 4 bytes.
const panelBytes = 128

// tileF32AVX512 makes tiles of 1 to 14 rows and the 32 columns of a panel.
func tileF32AVX512(c *build.Context) {
	for rows := 1; rows <= 14; rows++ {
		t := tile{c: c, rows: rows, vectors: 2, bytes: 64, reg: c.ZMM, step: 4 * rows}
		t.begin(fmt.Sprintf("tileF32x%dAVX512", rows))
		t.loop(func(u int) {
			b := [2]reg.VecVirtual{c.ZMM(), c.ZMM()}
			for v := range b {
				c.VMOVUPS(t.b.Offset(u*panelBytes+64*v), b[v])
			}
			for r := range rows {
				x := c.ZMM()
				c.VBROADCASTSS(t.a.Offset(u*t.step+4*r), x)
				for v := range b {
					c.VFMADD231PS(x, b[v], t.acc[r][v])
				}
			}
		})
		t.finish(c.VADDPS)
	}
}

// tileF32AVX2 makes tiles of 1 to 6 rows and half a panel: 16 columns.
func tileF32AVX2(c *build.Context) {
	for rows := 1; rows <= 6; rows++ {
		t := tile{c: c, rows: rows, vectors: 2, bytes: 32, reg: c.YMM, step: 4 * rows}
		t.begin(fmt.Sprintf("tileF32x%dAVX2", rows))
		t.loop(func(u int) {
			b := [2]reg.VecVirtual{c.YMM(), c.YMM()}
			for v := range b {
				c.VMOVUPS(t.b.Offset(u*panelBytes+32*v), b[v])
			}
			for r := range rows {
				x := c.YMM()
				c.VBROADCASTSS(t.a.Offset(u*t.step+4*r), x)
				for v := range b {
					c.VFMADD231PS(x, b[v], t.acc[r][v])
				}
			}
		})
		t.finish(c.VADDPS)
	}
}

// tile is the frame of a loop that multiplies a packed group of rows with a
// panel of weights: sums in registers, one step of K at a time.
type tile struct {
	c       *build.Context
	rows    int
	vectors int // registers of a row of sums
	bytes   int // size of a register
	reg     func() reg.VecVirtual
	step    int // bytes of a step of the packed rows
	a, b    operand.Mem
	next    operand.Mem
	acc     [][]reg.VecVirtual
}

// unroll is the number of steps of one turn of a tile's loop.
const unroll = 4

func (t *tile) begin(name string) {
	c := t.c
	target.Function(c, name, "func(steps int, a, b, c *byte, stride int, add bool, next *byte)",
		fmt.Sprintf("%s computes a tile of %d rows and %d columns; see Tile.", name, t.rows, t.vectors*t.bytes/4))
	t.a = operand.Mem{Base: c.Load(c.Param("a"), c.GP64())}
	t.b = operand.Mem{Base: c.Load(c.Param("b"), c.GP64())}
	t.next = operand.Mem{Base: c.Load(c.Param("next"), c.GP64())}
	t.acc = make([][]reg.VecVirtual, t.rows)
	for r := range t.acc {
		for range t.vectors {
			x := t.reg()
			c.VXORPS(x, x, x)
			t.acc[r] = append(t.acc[r], x)
		}
	}
}

// loop runs step for every step of K: u counts the steps of one turn.
func (t *tile) loop(step func(u int)) {
	c := t.c
	n := c.Load(c.Param("steps"), c.GP64())
	c.SUBQ(operand.U8(unroll), n)
	c.JLT(operand.LabelRef("tail"))
	c.Label("turn")
	for u := range unroll {
		for line := 0; line < panelBytes; line += lineBytes {
			if line < t.vectors*t.bytes {
				c.PREFETCHT1(t.next.Offset(u*panelBytes + line))
			}
		}
		step(u)
	}
	t.advance(unroll)
	c.SUBQ(operand.U8(unroll), n)
	c.JGE(operand.LabelRef("turn"))
	c.Label("tail")
	c.ADDQ(operand.U8(unroll), n)
	c.JZ(operand.LabelRef("sums"))
	c.Label("single")
	step(0)
	t.advance(1)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("single"))
}

func (t *tile) advance(steps int) {
	t.c.ADDQ(operand.U32(steps*t.step), t.a.Base)
	t.c.ADDQ(operand.U32(steps*panelBytes), t.b.Base)
	t.c.ADDQ(operand.U32(steps*panelBytes), t.next.Base)
}

// finish stores the sums, or adds them to what is there.
func (t *tile) finish(add func(ops ...operand.Op)) {
	c := t.c
	c.Label("sums")
	out := operand.Mem{Base: c.Load(c.Param("c"), c.GP64())}
	stride := c.Load(c.Param("stride"), c.GP64())
	c.SHLQ(operand.U8(2), stride)
	flag := c.Load(c.Param("add"), c.GP8())
	c.TESTB(flag, flag)
	c.JZ(operand.LabelRef("store"))
	from := c.GP64()
	c.MOVQ(out.Base, from)
	for _, row := range t.acc {
		for v, x := range row {
			add(operand.Mem{Base: from, Disp: v * t.bytes}, x, x)
		}
		c.ADDQ(stride, from)
	}
	c.Label("store")
	for _, row := range t.acc {
		for v, x := range row {
			c.VMOVUPS(x, out.Offset(v*t.bytes))
		}
		c.ADDQ(stride, out.Base)
	}
	target.Return(c)
}
