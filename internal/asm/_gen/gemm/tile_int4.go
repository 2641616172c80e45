package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

const (
	// octetBytes is the size of eight elements of K of a panel of int4.
	octetBytes = 128
	// int4Pairs is the number of pairs of elements in a word of int4.
	int4Pairs = 4
)

// tileInt4AVX512 makes tiles of 1 to 6 rows and the 32 columns of a panel.
func tileInt4AVX512(c *build.Context) {
	w, _ := widths(c)
	for rows := 1; rows <= 6; rows++ {
		newInt4Tile(c, w, rows, func(x, b, acc reg.VecVirtual) { c.VPDPWSSD(x, b, acc) })
	}
}

// tileInt4AVX2 makes tiles of 1 or 2 rows and half a panel.
func tileInt4AVX2(c *build.Context) {
	_, w := widths(c)
	for rows := 1; rows <= 2; rows++ {
		newInt4Tile(c, w, rows, func(x, b, acc reg.VecVirtual) {
			t := c.YMM()
			c.VPMADDWD(x, b, t)
			c.VPADDD(t, acc, acc)
		})
	}
}

// int4Tile is the frame of a tile of int16 rows and a panel of int4 with scales.
type int4Tile struct {
	c        *build.Context
	w        wide
	rows     int
	a, b     operand.Mem
	next     operand.Mem
	pace     reg.Register
	ints     [][]reg.VecVirtual // sums of a group
	sums     [][]reg.VecVirtual // sums of all groups
	multiply func(x, b, acc reg.VecVirtual)
}

func newInt4Tile(c *build.Context, w wide, rows int, multiply func(x, b, acc reg.VecVirtual)) {
	name := fmt.Sprintf("tileInt4x%d%s", rows, w.suffix)
	target.Function(c, name, "func(groups, octets int, a, b, scales, c *byte, stride int, add bool, factors *float32, half bool, next, pace uintptr)",
		fmt.Sprintf("%s computes a tile of %d rows and %d columns; see Int4Tile.", name, rows, 2*w.bytes/4))
	mem := func(p string) operand.Mem { return operand.Mem{Base: c.Load(c.Param(p), c.GP64())} }
	t := int4Tile{c: c, w: w, rows: rows, a: mem("a"), b: mem("b"), next: mem("next"), pace: c.Load(c.Param("pace"), c.GP64()), multiply: multiply}
	for range rows {
		t.ints, t.sums = append(t.ints, registers(w.reg, 2)), append(t.sums, registers(w.reg, 2))
	}
	each(t.sums, func(_, _ int, x reg.VecVirtual) { c.VXORPS(x, x, x) })
	groups := c.Load(c.Param("groups"), c.GP64())
	scales := mem("scales")
	half := c.Load(c.Param("half"), c.GP8())
	c.Label("group")
	each(t.ints, func(_, _ int, x reg.VecVirtual) { c.VXORPS(x, x, x) })
	octets := c.Load(c.Param("octets"), c.GP64())
	c.Label("octet")
	t.octet()
	c.DECQ(octets)
	c.JNZ(operand.LabelRef("octet"))
	t.flush(scales, half)
	c.Load(c.Param("octets"), octets)
	c.SHLQ(operand.U8(7), octets)
	c.ADDQ(octets, scales.Base)
	c.DECQ(groups)
	c.JNZ(operand.LabelRef("group"))
	t.store()
}

// each visits registers by row and column.
func each(x [][]reg.VecVirtual, visit func(r, v int, x reg.VecVirtual)) {
	for r := range x {
		for v := range x[r] {
			visit(r, v, x[r][v])
		}
	}
}

// octet adds eight elements of K: words of x hold two of them, words of the
// panel eight, each half of a word every other.
func (t *int4Tile) octet() {
	c := t.c
	packed := registers(t.w.reg, 2)
	for v := range packed {
		c.VMOVUPS(t.b.Offset(v*t.w.bytes), packed[v])
	}
	for line := 0; line < 2*t.w.bytes; line += lineBytes {
		c.PREFETCHT1(t.next.Offset(line))
	}
	c.ADDQ(t.pace, t.next.Base)
	for i := range int4Pairs {
		b := registers(t.w.reg, 2)
		for v := range b {
			from := packed[v]
			if up := 12 - 4*i; up > 0 {
				c.VPSLLW(operand.U8(up), from, b[v])
				from = b[v]
			}
			c.VPSRAW(operand.U8(12), from, b[v])
		}
		for r := range t.rows {
			x := t.w.reg()
			c.VBROADCASTSS(t.a.Offset(4*(i*t.rows+r)), x)
			for v := range b {
				t.multiply(x, b[v], t.ints[r][v])
			}
		}
	}
	c.ADDQ(operand.U32(4*int4Pairs*t.rows), t.a.Base)
	c.ADDQ(operand.U32(octetBytes), t.b.Base)
}

// flush adds the sums of a group times the scales of its columns.
func (t *int4Tile) flush(scales operand.Mem, half reg.Register) {
	c := t.c
	scale := registers(t.w.reg, 2)
	c.TESTB(half, half)
	c.JZ(operand.LabelRef("wide"))
	for v := range scale {
		c.VCVTPH2PS(scales.Offset(v*t.w.bytes/2), scale[v])
	}
	c.ADDQ(operand.U32(64), scales.Base)
	c.ADDQ(operand.U32(64), t.b.Base)
	c.JMP(operand.LabelRef("scaled"))
	c.Label("wide")
	for v := range scale {
		c.VMOVUPS(scales.Offset(v*t.w.bytes), scale[v])
	}
	c.ADDQ(operand.U32(128), scales.Base)
	c.ADDQ(operand.U32(128), t.b.Base)
	c.Label("scaled")
	each(t.ints, func(r, v int, x reg.VecVirtual) {
		c.VCVTDQ2PS(x, x)
		c.VFMADD231PS(x, scale[v], t.sums[r][v])
	})
}

// store stores the sums times the factors of the rows, or adds them to what is
// there.
func (t *int4Tile) store() {
	c := t.c
	out := operand.Mem{Base: c.Load(c.Param("c"), c.GP64())}
	stride := c.Load(c.Param("stride"), c.GP64())
	c.SHLQ(operand.U8(2), stride)
	factors := operand.Mem{Base: c.Load(c.Param("factors"), c.GP64())}
	flag := c.Load(c.Param("add"), c.GP8())
	for _, add := range []bool{true, false} {
		if add {
			c.TESTB(flag, flag)
			c.JZ(operand.LabelRef("fresh"))
		} else {
			c.Label("fresh")
		}
		for r := range t.sums {
			f := t.w.reg()
			c.VBROADCASTSS(factors.Offset(4*r), f)
			for v, x := range t.sums[r] {
				if add {
					c.VFMADD213PS(out.Offset(v*t.w.bytes), f, x)
				} else {
					c.VMULPS(f, x, x)
				}
				c.VMOVUPS(x, out.Offset(v*t.w.bytes))
			}
			c.ADDQ(stride, out.Base)
		}
		target.Return(c)
	}
}
