package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// part is the part of the elements of a register of bf16 that a step does: with
// the even and the odd elements apart, widening is one instruction and shuffles
// are none. All arrays of such a loop hold bf16.
type part uint8

const (
	whole part = iota
	evens
	odds
)

// oddWords has a bit for every odd word of a register.
const oddWords = 0xaaaaaaaa

// eachPair does body for all elements of arrays of bf16, unroll registers of
// bf16 in a turn, whose results round rounds to the upper halves of words.
func (l *loop) eachPair(unroll int, round func(x vec) vec, body func()) {
	l.splitPairs(round)
	l.pairs(unroll, body)
	if unroll > 1 {
		l.pairs(1, body)
	}
	l.turns(1, body)
	l.tail(body)
}

// splitPairs makes the loop ready for parts of pairs, whose results round rounds.
func (l *loop) splitPairs(round func(x vec) vec) {
	l.rounds, l.even = round, map[reg.Register]vec{}
	if l.wide {
		bits := l.c.GP32()
		l.oddMask = l.c.K()
		l.c.MOVL(operand.U32(oddWords), bits)
		l.c.KMOVD(bits, l.oddMask)
	}
}

// pairs does body for the even and for the odd elements of each register of as
// many turns as there are.
func (l *loop) pairs(unroll int, body func()) {
	l.once(2*unroll, func() {
		if unroll > 1 {
			l.askAhead(2 * unroll * l.lanes())
		}
		target.Interleave(l.c, 2*unroll, func(u int) {
			l.off, l.part = u/2*2*l.lanes(), evens+part(u%2)
			body()
		})
		l.off, l.part = 0, whole
	})
}

// loadPart reads a part of a register of bf16 as float32.
func (l *loop) loadPart(p reg.Register) vec {
	raw := l.copy(l.at(p, 2))
	if l.part == evens {
		return l.shiftLeft(raw, 16)
	}
	return l.and(raw, l.nums.u32(0xffff0000))
}

// storePart writes a register of bf16 when it has got both of its parts.
func (l *loop) storePart(a vec, p reg.Register) {
	a = l.rounds(a)
	if l.part == evens {
		l.even[p] = l.unsignedShiftRight(a, 16)
		return
	}
	d := l.even[p]
	if l.wide {
		l.c.VMOVDQU16(a, l.oddMask, d)
	} else {
		l.c.VPBLENDW(operand.U8(oddWords&0xff), a, d, d)
	}
	l.c.VMOVUPS(d, l.at(p, 2))
}

// roundAway rounds to the upper halves of words, ties away from zero, for
// numbers that are not exact; the lower half of a NaN must be 0.
func (v isa) roundAway(x vec) vec { return v.addInt(x, v.nums.u32(0x8000)) }

// roundEven rounds to the upper halves of words, ties to even; the lower half
// of a NaN must be 0.
func (v isa) roundEven(x vec) vec {
	if !v.wide {
		odd := v.and(v.unsignedShiftRight(x, 16), v.nums.u32(1))
		return v.addInt(v.addInt(x, v.nums.u32(0x7fff)), odd)
	}
	odd := v.c.K()
	v.c.VPTESTMD_BCST(v.nums.u32(1<<16).Mem, x, odd)
	d := v.addInt(x, v.nums.u32(0x7fff))
	v.c.VPSUBD_BCST(v.nums.u32(math.MaxUint32).Mem, d, odd, d)
	return d
}

// eachGate does the body of a gate for all elements of arrays of f16 or bf16.
func (l *loop) eachGate(e element, body func()) {
	unroll := 1
	if l.wide {
		unroll = 3
	}
	if e == bf16 {
		l.eachPair(unroll, l.roundAway, body)
	} else {
		l.each(2*unroll, body)
	}
}
