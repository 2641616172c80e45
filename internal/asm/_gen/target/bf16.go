package target

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// dotBF16 is an instruction that neither avo nor Go's assembler knows.
const dotBF16 = "VDPBF16PS"

// VDPBF16PS adds the products of the pairs of bf16 in the words of a and b to
// the f32 in acc, all 512-bit registers. Its operands are those of VPDPWSSD, as
// which it goes through register allocation; Write replaces it by its bytes.
func VDPBF16PS(c *build.Context, a, b, acc reg.VecVirtual) {
	i, err := x86.VPDPWSSD(a, b, acc)
	if err != nil {
		panic(err)
	}
	i.Opcode, i.ISA = dotBF16, []string{"AVX512_BF16"}
	c.Instruction(i)
}

// encode replaces instructions that Go's assembler does not know by bytes, once
// registers are allocated.
func encode(f *ir.File) error {
	for _, fn := range f.Functions() {
		var nodes []ir.Node
		for _, n := range fn.Nodes {
			i, ok := n.(*ir.Instruction)
			if !ok || i.Opcode != dotBF16 && i.Opcode != prefetchW {
				nodes = append(nodes, n)
				continue
			}
			code, err := encodeOne(i)
			if err != nil {
				return err
			}
			nodes = append(nodes, code...)
		}
		fn.Nodes = nodes
	}
	return nil
}

func encodeOne(i *ir.Instruction) ([]ir.Node, error) {
	if i.Opcode == prefetchW {
		return encodePrefetch(i)
	}
	return encodeDot(i)
}

// encodeDot gives the bytes of VDPBF16PS: EVEX.512.F3.0F38.W0 52 /r.
func encodeDot(i *ir.Instruction) ([]ir.Node, error) {
	var num [3]uint32
	for o := range num {
		r, ok := i.Operands[o].(reg.VecPhysical)
		if !ok {
			return nil, fmt.Errorf("%s: want registers, got %s", i.Opcode, i.Operands[o].Asm())
		}
		num[o] = uint32(r.PhysicalIndex())
	}
	rm, vvvv, dst := num[0], num[1], num[2]
	not := func(x, bit uint32) uint32 { return ^x >> bit & 1 }
	p1 := not(dst, 3)<<7 | not(rm, 4)<<6 | not(rm, 3)<<5 | not(dst, 4)<<4 | 0x02
	p2 := (^vvvv&15)<<3 | 1<<2 | 0x02
	p3 := uint32(0x40) | not(vvvv, 4)<<3
	modrm := 0xc0 | (dst&7)<<3 | rm&7
	return []ir.Node{
		&ir.Comment{Lines: []string{fmt.Sprintf("%s %s, %s, %s", i.Opcode, i.Operands[0].Asm(), i.Operands[1].Asm(), i.Operands[2].Asm())}},
		&ir.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(0x62 | p1<<8 | p2<<16 | p3<<24)}},
		&ir.Instruction{Opcode: "WORD", Operands: []operand.Op{operand.U16(0x52 | modrm<<8)}},
	}, nil
}
