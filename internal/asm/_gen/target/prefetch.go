package target

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// prefetchW is an instruction that neither avo nor Go's assembler knows.
const prefetchW = "PREFETCHW"

// PREFETCHW asks for the line at m, which has a base, to write it soon.
// Processors without the instruction do nothing. Write replaces it by its bytes.
func PREFETCHW(c *build.Context, m operand.Mem) {
	i, err := x86.PREFETCHT0(m)
	if err != nil {
		panic(err)
	}
	i.Opcode = prefetchW
	c.Instruction(i)
}

// encodePrefetch gives the bytes of PREFETCHW: REX 0F 0D /1 with a SIB byte and
// a displacement of 32 bits.
func encodePrefetch(i *ir.Instruction) ([]ir.Node, error) {
	m, ok := i.Operands[0].(operand.Mem)
	if !ok {
		return nil, fmt.Errorf("%s: want memory, got %s", i.Opcode, i.Operands[0].Asm())
	}
	number := func(r reg.Register) byte {
		p, ok := r.(reg.Physical)
		if !ok {
			panic(fmt.Sprintf("%s: %s is not allocated", i.Opcode, r.Asm()))
		}
		return byte(p.PhysicalIndex())
	}
	const none = 4 // as an index
	base, index, scale := number(m.Base), byte(none), byte(0)
	if m.Index != nil {
		index, scale = number(m.Index), byte(bits.TrailingZeros8(m.Scale))
	}
	code := []byte{0x40 | index>>3<<1 | base>>3, 0x0f, 0x0d, 0x8c, scale<<6 | index&7<<3 | base&7}
	code = binary.LittleEndian.AppendUint32(code, uint32(m.Disp))
	nodes := []ir.Node{&ir.Comment{Lines: []string{i.Opcode + " " + m.Asm()}}}
	for _, b := range code {
		nodes = append(nodes, &ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
	}
	return nodes, nil
}
