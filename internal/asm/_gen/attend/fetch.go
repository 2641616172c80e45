package attend

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	// lineBytes is the size of a cache line: every one is asked for, fewer are slower.
	lineBytes = 64
	// fetchLines is the most lines that are asked for between two looks at the end of
	// a piece.
	fetchLines = 4
)

// Words of a run of what is fetched: its first piece, the size of a piece, the
// distance of pieces, and their number.
const (
	runAt = 8 * iota
	runPiece
	runStep
	runRows
	runBytes
)

// beginFetch makes the first look at the end of a piece find the first run.
func (f frame) beginFetch() {
	f.c.MOVQ(operand.I32(0), f.arg(argFetchAt))
	f.c.MOVQ(operand.I32(0), f.arg(argFetchEnd))
	f.c.MOVQ(operand.I32(0), f.arg(argFetchRows))
}

// fetching is the place at which fetching goes on; it is put away by fetched.
func (f frame) fetching() reg.GPVirtual { return f.get(argFetchAt) }

func (f frame) fetched(at reg.GPVirtual) { f.c.MOVQ(at, f.arg(argFetchAt)) }

// fetch asks for the next lines of what is needed next, in the order of memory: so the
// processor sees the order and asks for more by itself, which waits for memory without
// keeping others waiting.
func (f frame) fetch(label string, at reg.GPVirtual, lines int) {
	f.spread(label, at, lines, 1)()
}

// spread is fetch in a number of calls: many lines at once wait for each other, and
// what is used waits for them.
func (f frame) spread(label string, at reg.GPVirtual, lines, calls int) func() {
	c, call, done := f.c, 0, 0
	return func() {
		for call++; done < lines*call/calls; done++ {
			in := done % fetchLines
			if in == 0 {
				here := fmt.Sprintf("%sFetch%d", label, done)
				c.CMPQ(at, f.arg(argFetchEnd))
				c.JCS(operand.LabelRef(here))
				f.nextPiece(here, at)
				c.Label(here)
			}
			c.PREFETCHT1(operand.Mem{Base: at, Disp: lineBytes * in})
			if in+1 == fetchLines || done+1 == lines {
				c.ADDQ(operand.I32(lineBytes*(in+1)), at)
			}
		}
	}
}

// nextPiece goes on to the next piece of the run or to the next run. Behind the last
// one it is X that is asked for, which is at hand.
func (f frame) nextPiece(label string, at reg.GPVirtual) {
	c := f.c
	n := c.GP64()
	c.MOVQ(f.arg(argFetch), at)
	c.DECQ(f.arg(argFetchRows))
	c.JLE(operand.LabelRef(label + "Run"))
	c.MOVQ(operand.Mem{Base: at, Disp: runStep - runBytes}, n)
	c.ADDQ(f.arg(argFetchEnd), n)
	c.MOVQ(n, f.arg(argFetchEnd))
	c.SUBQ(operand.Mem{Base: at, Disp: runPiece - runBytes}, n)
	c.MOVQ(n, at)
	c.JMP(operand.LabelRef(label))
	c.Label(label + "Run")
	c.DECQ(f.arg(argFetches))
	c.JLT(operand.LabelRef(label + "None"))
	c.ADDQ(operand.I32(runBytes), f.arg(argFetch))
	c.MOVQ(operand.Mem{Base: at, Disp: runRows}, n)
	c.MOVQ(n, f.arg(argFetchRows))
	c.MOVQ(operand.Mem{Base: at, Disp: runPiece}, n)
	c.MOVQ(operand.Mem{Base: at, Disp: runAt}, at)
	c.ADDQ(at, n)
	c.MOVQ(n, f.arg(argFetchEnd))
	c.JMP(operand.LabelRef(label))
	c.Label(label + "None")
	c.MOVQ(f.arg(argX), at)
	c.MOVQ(operand.I32(0), f.arg(argFetchEnd))
}

// nearBytes is how far ahead of use rows are brought from the second level cache to the
// first: what waits for the second level waits behind what is fetched from memory.
const nearBytes = 64

// nearRows returns what asks for the next line of n rows in a number of calls.
func (f frame) nearRows(k strided, n, calls int) func() {
	call, done := 0, 0
	return func() {
		for call++; done < n*call/calls; done++ {
			f.c.PREFETCHT0(k.at(done, nearBytes))
		}
	}
}
