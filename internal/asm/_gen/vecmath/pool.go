package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// attrConst are the attributes of constants.
const attrConst = attr.RODATA | attr.NOPTR

// num is a constant in memory: 32 bytes that repeat 4 or 8.
type num struct{ operand.Mem }

// numBytes is the size of a constant, one AVX2 register.
const numBytes = 32

// pool holds the constants of a file, each once.
type pool struct {
	bits []uint64
	wide []bool // 8 bytes instead of 4
	name string
}

// newPool makes the pool of a file; write puts it there.
func newPool(file string) *pool { return &pool{name: file + "Nums"} }

func (p *pool) f32(x float64) num { return p.u32(math.Float32bits(float32(x))) }

func (p *pool) u32(bits uint32) num { return p.at(uint64(bits), false) }

func (p *pool) f64(x float64) num { return p.at(math.Float64bits(x), true) }

func (p *pool) at(bits uint64, wide bool) num {
	i := 0
	for i < len(p.bits) && (p.bits[i] != bits || p.wide[i] != wide) {
		i++
	}
	if i == len(p.bits) {
		p.bits, p.wide = append(p.bits, bits), append(p.wide, wide)
	}
	return num{operand.NewDataAddr(operand.NewStaticSymbol(p.name), i*numBytes)}
}

// write adds the constants to the file.
func (p *pool) write(c *build.Context) {
	if len(p.bits) == 0 {
		return
	}
	c.StaticGlobal(p.name)
	c.DataAttributes(attrConst)
	for i, bits := range p.bits {
		if p.wide[i] {
			for range numBytes / 8 {
				c.AppendDatum(operand.U64(bits))
			}
			continue
		}
		for range numBytes / 4 {
			c.AppendDatum(operand.U32(bits))
		}
	}
}

// tailName is the table of the masks of AVX2 tails: tailLanes words of ones,
// then as many of zeros.
const (
	tailName  = "tailMasks"
	tailLanes = 8
)

// oddName is the table of the numbers of the odd words of a 512-bit register.
const oddName = "oddWords"

// writeTables adds the tables that loops use to a file.
func writeTables(c *build.Context) {
	c.StaticGlobal(tailName)
	c.DataAttributes(attrConst)
	for range tailLanes {
		c.AppendDatum(operand.U32(math.MaxUint32))
	}
	for range tailLanes {
		c.AppendDatum(operand.U32(0))
	}
	c.StaticGlobal(oddName)
	c.DataAttributes(attrConst)
	for i := range 16 {
		c.AppendDatum(operand.U16(2*i + 1))
	}
}
