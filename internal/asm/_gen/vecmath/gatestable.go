package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// With AVX-512 the sigmoid of most numbers is a cubic from a table, for results of
// 16 bits: a register holds a coefficient of 16 pieces, and two registers are
// looked up in one instruction. Its relative error is below 2^-14.2. What is not
// below tableLimit has the exponential of gates.go, which a turn without such
// elements does not compute.

const (
	// pieceWidth is the width of a piece; piece j lies around j·pieceWidth.
	pieceWidth = 0.5625
	// pieces16 is the number of pieces on each side of the one around 0.
	pieces16   = 15
	tableLimit = 8.5
	tableName  = "sigmoidPieces"
)

// sigmoidPieces holds the coefficients of 1/(1+e^-x) for piece i-pieces16,
// from the lowest power of x up.
var sigmoidPieces = [2*pieces16 + 1][4]float64{
	{0x1.00e3bcp-5, 0x1.3e87aep-7, 0x1.0abc7ep-10, 0x1.2d1d26p-15},  // -15
	{0x1.785f58p-5, 0x1.ee96fcp-7, 0x1.b7b894p-10, 0x1.07e34p-14},   // -14
	{0x1.1078cp-4, 0x1.7cb332p-6, 0x1.68a8b4p-9, 0x1.ce113cp-14},    // -13
	{0x1.851d5cp-4, 0x1.220d2ap-5, 0x1.25fc8cp-8, 0x1.93d54cp-13},   // -12
	{0x1.115892p-3, 0x1.b47626p-5, 0x1.db6bf6p-8, 0x1.5fdb02p-12},   // -11
	{0x1.7880c2p-3, 0x1.43350ep-4, 0x1.7c338p-7, 0x1.30ea4cp-11},    // -10
	{0x1.f9f268p-3, 0x1.d4ca5ap-4, 0x1.2b4e8p-6, 0x1.05bb4cp-10},    // -9
	{0x1.4968b6p-2, 0x1.4a7318p-3, 0x1.cc57dap-6, 0x1.b9d1eep-10},   // -8
	{0x1.9bc056p-2, 0x1.bfa432p-3, 0x1.557258p-5, 0x1.69e37ep-9},    // -7
	{0x1.e80af2p-2, 0x1.1e591ep-2, 0x1.de3caap-5, 0x1.18cadap-8},    // -6
	{0x1.0e9f24p-1, 0x1.519842p-2, 0x1.310612p-4, 0x1.89f356p-8},    // -5
	{0x1.16c45p-1, 0x1.6422eep-2, 0x1.4d2b7ap-4, 0x1.c2ef78p-8},     // -4
	{0x1.0ec4bcp-1, 0x1.4ac588p-2, 0x1.1771ccp-4, 0x1.2af568p-8},    // -3
	{0x1.03f096p-1, 0x1.1c495ep-2, 0x1.2318e6p-5, -0x1.b50302p-9},   // -2
	{0x1.002a44p-1, 0x1.028cbp-2, 0x1.aa837ap-8, -0x1.e1c12ap-7},    // -1
	{0x1p-1, 0x1.fffcap-3, -0x1.a1c39p-40, -0x1.5151eep-6},          // 0
	{0x1.ffb262p-2, 0x1.026224p-2, -0x1.966074p-8, -0x1.e7b626p-7},  // 1
	{0x1.f861bap-2, 0x1.1b9168p-2, -0x1.1dea04p-5, -0x1.cd8c1cp-9},  // 2
	{0x1.e2e1aap-2, 0x1.4a04a4p-2, -0x1.15a604p-4, 0x1.254a3ap-8},   // 3
	{0x1.d28538p-2, 0x1.641056p-2, -0x1.4d0a52p-4, 0x1.c2a0f8p-8},   // 4
	{0x1.e2229p-2, 0x1.5242b2p-2, -0x1.31f8d4p-4, 0x1.8bbf34p-8},    // 5
	{0x1.0b63f8p-1, 0x1.1f6576p-2, -0x1.e0b942p-5, 0x1.1ac162p-8},   // 6
	{0x1.316974p-1, 0x1.c1d1p-3, -0x1.57a842p-5, 0x1.6ce168p-9},     // 7
	{0x1.5a9744p-1, 0x1.4c54b4p-3, -0x1.cfb044p-6, 0x1.bdc838p-10},  // 8
	{0x1.80e48ap-1, 0x1.d7bc1ep-4, -0x1.2da224p-6, 0x1.082e66p-10},  // 9
	{0x1.a15ddap-1, 0x1.455fe8p-4, -0x1.7f48a8p-7, 0x1.33d61ap-11},  // 10
	{0x1.bb44bep-1, 0x1.b786fep-5, -0x1.df62b4p-8, 0x1.634536p-12},  // 11
	{0x1.cf106ep-1, 0x1.24291ap-5, -0x1.287c7p-8, 0x1.97c7fep-13},   // 12
	{0x1.ddb978p-1, 0x1.7f8b3ep-6, -0x1.6bc522p-9, 0x1.d29a74p-14},  // 13
	{0x1.e85266p-1, 0x1.f25daap-7, -0x1.bb8e82p-10, 0x1.0a7bfcp-14}, // 14
	{0x1.efd5eap-1, 0x1.4101a2p-7, -0x1.0d1582p-10, 0x1.3014a8p-15}, // 15
}

// writePieces adds the table to a file: for every power the coefficients of the
// pieces from 0 on, and then of those below.
func writePieces(c *build.Context) {
	c.StaticGlobal(tableName)
	c.DataAttributes(attrConst)
	for power := range 4 {
		for i := range 32 {
			piece, x := (i+16)%32-16+pieces16, 0.0
			if piece >= 0 {
				x = sigmoidPieces[piece][power]
			}
			c.AppendDatum(operand.U32(math.Float32bits(float32(x))))
		}
	}
}

// table is the registers of the table, by power and half.
type table [4][2]vec

func (v isa) loadTable() (p table) {
	for i := range p {
		for half := range p[i] {
			at := operand.NewDataAddr(operand.NewStaticSymbol(tableName), (2*i+half)*64)
			p[i][half] = v.copy(at)
		}
	}
	return p
}

// sigmoid returns 1/(1+e^-x) for |x| < tableLimit, and nothing of use beyond.
func (p *table) sigmoid(v isa, x vec) vec {
	// The lowest bits of m are the number of the piece.
	m := v.set(v.nums.f32(1 / pieceWidth))
	v.mulAdd(m, x, v.nums.f32(magic))
	look := func(power int) vec {
		d := m // the last one may take its place
		if power > 0 {
			d = v.copy(m)
		}
		v.c.VPERMI2PS(p[power][1], p[power][0], d)
		return d
	}
	q := look(3)
	for power := 2; power >= 0; power-- {
		v.mulAdd(q, x, look(power))
	}
	return q
}

// shortGate is a gate of results of 16 bits that is made of the sigmoid of x.
type shortGate struct {
	// of returns its value, given the sigmoid; far returns it for every x.
	of  func(x, sigmoid vec) vec
	far func(x vec) vec
}

// eachShort does store with the values of a gate for all elements of p.
func (l *loop) eachShort(e element, p gp, g shortGate, store func(y vec)) {
	if !l.wide {
		l.eachGate(e, func() { store(g.far(l.load(p, e))) })
		return
	}
	cubics, limit := l.loadTable(), l.set(l.wordsOf(e, tableLimit))
	near := func() {
		x := l.load(p, e)
		store(g.of(x, cubics.sigmoid(l.isa, x)))
	}
	far := func() {
		const notBelow = 0x15 // or unordered
		x := l.load(p, e)
		y, k := g.of(x, cubics.sigmoid(l.isa, x)), l.c.K()
		l.c.VCMPPS_BCST(operand.U8(notBelow), l.nums.f32(tableLimit).Mem, l.and(x, l.nums.u32(math.MaxInt32)), k)
		l.c.VMOVAPS(g.far(x), k, y)
		store(y)
	}
	const regs, chains = 3, 3
	if e == bf16 {
		l.splitPairs(l.roundAway)
	}
	l.once(2*regs, func() {
		beyond, done := l.label("far"), l.label("near")
		l.askAhead(2 * regs * l.lanes())
		l.c.KORTESTD(l.reaching(p, limit, regs))
		l.c.JNE(operand.LabelRef(beyond))
		for u := 0; u < 2*regs; u += chains {
			l.group(e, u, chains, near)
		}
		l.c.JMP(operand.LabelRef(done))
		l.c.Label(beyond)
		for u := range 2 * regs {
			l.group(e, u, 1, far)
		}
		l.c.Label(done)
	})
	if e == bf16 {
		l.pairs(1, far)
	}
	l.turns(1, far)
	l.tail(far)
}

// group does body for count registers of a turn, interleaved, from one on: those
// of bf16 are the even and the odd elements in turn.
func (l *loop) group(e element, from, count int, body func()) {
	target.Interleave(l.c, count, func(i int) {
		u := from + i
		l.off = u * l.lanes()
		if e == bf16 {
			l.off, l.part = u/2*2*l.lanes(), evens+part(u%2)
		}
		body()
	})
	l.off, l.part = 0, whole
}

// wordsOf is a number as two words of a type of 16 bits without their signs,
// shifted to the left by one bit.
func (v isa) wordsOf(e element, x float64) num {
	w := math.Float32bits(float32(x)) >> 16
	if e == f16 {
		// Exponents have 5 bits and another bias, mantissas 3 bits more.
		w = w<<3 - (127-15)<<10
	}
	return v.nums.u32(w<<1 | w<<17)
}

// reaching returns, twice, the words in which one of count registers of words at
// p is as large as limit, both shifted to the left by one bit.
func (l *loop) reaching(p gp, limit vec, count int) (k, same reg.OpmaskVirtual) {
	const notBelow = 5
	var top vec
	for i := range count {
		m := l.at(p, 2)
		m.Disp += i * l.bytes()
		x := l.reg()
		l.c.VMOVDQU16(m, x)
		l.c.VPADDW(x, x, x)
		if i == 0 {
			top = x
			continue
		}
		l.c.VPMAXUW(x, top, top)
	}
	k = l.c.K()
	l.c.VPCMPUW(operand.U8(notBelow), limit, top, k)
	return k, k
}
