package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

const (
	// lineBytes is the size of a cache line.
	lineBytes = 64
	// panelBytes is the size of one step of a panel of words.
	panelBytes = 128
	// unroll is the number of steps of one turn of a tile's loop.
	unroll = 4
	// nearBytes is how far ahead of a panel that streams by lines are fetched into L1:
	// those into L2 are dropped where memory is slower than the tile.
	nearBytes = 4096
)

// adder emits a vector addition.
type adder func(ops ...operand.Op)

// tile is the frame of a loop that multiplies a packed group of rows with a
// panel of weights: sums in registers, one step of K at a time.
type tile struct {
	c       *build.Context
	rows    int
	vectors int // registers of a row of sums
	bytes   int // size of a register
	reg     func() reg.VecVirtual
	step    int // bytes of a step of the packed rows
	panel   int // bytes of a step of the panel
	a, b    operand.Mem
	next    [unroll]operand.Mem // what is fetched in each step of a turn
	pace    reg.GPVirtual       // bytes between the turns
	near    reg.GPVirtual       // what is fetched into L1, from the panel's step on
	out     operand.Mem         // the sums in memory
	line    operand.Mem         // a row of them: each turn fetches one
	stride  reg.Register        // bytes between the rows
	last    reg.Register        // the first byte behind them
	widens  bool                // the tile stores the panel widened to f32
	wide    operand.Mem         // where to
	acc     [][]reg.VecVirtual
}

func (t *tile) begin(name string) {
	c := t.c
	params, kind := "steps int, a, b, c *byte, stride int, add bool, next, pace uintptr", "Tile"
	if t.widens {
		params, kind = params+", wide *byte", "Widening"
	}
	target.Function(c, name, "func("+params+")",
		fmt.Sprintf("%s computes a tile of %d rows and %d columns; see %s.", name, t.rows, t.vectors*t.bytes/4, kind))
	t.a = operand.Mem{Base: c.Load(c.Param("a"), c.GP64())}
	t.b = operand.Mem{Base: c.Load(c.Param("b"), c.GP64())}
	if t.widens {
		t.wide = operand.Mem{Base: c.Load(c.Param("wide"), c.GP64())}
	}
	t.fetched()
	t.sums()
	t.acc = make([][]reg.VecVirtual, t.rows)
	for r := range t.acc {
		t.acc[r] = registers(t.reg, t.vectors)
		for _, x := range t.acc[r] {
			c.VXORPS(x, x, x)
		}
	}
}

// fetched makes the addresses that a turn fetches: 0 to 3 times pace further on. A
// tile that fetches as much as it takes is a panel's only one: its panel streams by.
func (t *tile) fetched() {
	c := t.c
	next, pace, thrice := c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("next"), next)
	c.Load(c.Param("pace"), pace)
	c.LEAQ(operand.Mem{Base: pace, Index: pace, Scale: 2}, thrice)
	t.next = [unroll]operand.Mem{
		{Base: next}, {Base: next, Index: pace, Scale: 1}, {Base: next, Index: pace, Scale: 2}, {Base: next, Index: thrice, Scale: 1},
	}
	t.near = c.GP64()
	ahead := c.GP64()
	c.XORQ(t.near, t.near)
	c.MOVQ(operand.U32(nearBytes), ahead)
	c.CMPQ(pace, operand.U32(t.panel))
	c.CMOVQCC(ahead, t.near)
	t.pace = c.GP64()
	c.MOVQ(pace, t.pace)
	c.SHLQ(operand.U8(2), t.pace)
}

// sums makes the addresses of the sums in memory.
func (t *tile) sums() {
	c := t.c
	t.out = operand.Mem{Base: c.Load(c.Param("c"), c.GP64())}
	t.stride = c.Load(c.Param("stride"), c.GP64())
	c.SHLQ(operand.U8(2), t.stride)
	t.line = operand.Mem{Base: c.GP64()}
	c.MOVQ(t.out.Base, t.line.Base)
	last := c.GP64()
	c.IMUL3Q(operand.U8(t.rows), t.stride, last)
	c.ADDQ(t.out.Base, last)
	t.last = last
}

// fetchSums fetches a row of the sums in memory and goes on to the next one, or to
// the first again: a tile that ends with all of them there need not wait.
func (t *tile) fetchSums() {
	c := t.c
	for line := 0; line < t.vectors*t.bytes; line += lineBytes {
		c.PREFETCHT0(t.line.Offset(line))
	}
	c.ADDQ(t.stride, t.line.Base)
	c.CMPQ(t.line.Base, t.last)
	c.CMOVQCC(t.out.Base, t.line.Base)
}

// loop runs step for every step of K: u counts the steps of one turn.
func (t *tile) loop(step func(u int)) {
	c := t.c
	eachStep(c, c.Load(c.Param("steps"), c.GP64()).(reg.GPVirtual), func() {
		for u := range unroll {
			for line := 0; line < t.vectors*t.bytes*t.panel/panelBytes; line += lineBytes {
				c.PREFETCHT1(t.next[u].Offset(line))
				c.PREFETCHT0(operand.Mem{Base: t.b.Base, Index: t.near, Scale: 1, Disp: u*t.panel + line})
			}
			step(u)
		}
		t.fetchSums()
		t.advance(unroll)
		c.ADDQ(t.pace, t.next[0].Base)
	}, func() {
		step(0)
		t.advance(1)
	})
}

func (t *tile) advance(steps int) {
	t.c.ADDQ(operand.U32(steps*t.step), t.a.Base)
	t.c.ADDQ(operand.U32(steps*t.panel), t.b.Base)
	if t.widens {
		t.c.ADDQ(operand.U32(steps*t.step/(4*t.rows)*panelBytes), t.wide.Base)
	}
}

// keep stores what became of a step of the panel: a row of columns for step k of
// the packed rows in turn u.
func (t *tile) keep(x []reg.VecVirtual, u, k int) {
	if !t.widens {
		return
	}
	k += u * t.step / (4 * t.rows)
	for v, x := range x {
		t.c.VMOVUPS(x, t.wide.Offset(k*panelBytes+v*t.bytes))
	}
}

// finish stores the sums, or adds them to what is there.
func (t *tile) finish(add adder) {
	c := t.c
	out, stride := t.out, t.stride
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
