package gemm

import "goatb/internal/cpu"

// PanelColumns is the number of columns of a panel of weights.
const PanelColumns = 32

// Tile multiplies a packed group of rows with columns of a panel of weights:
//
//	c[r][j] = sum over s of a[s][r] * b[s][j]      (+ c[r][j] with add)
//
// Each of the steps s takes one 4-byte word of every row and every column: an
// f32, two bf16 or four int8 along K. a holds steps × rows words, b steps × 32
// words, of which the tile uses the first Columns; c is f32, or int32 for int8,
// its rows stride elements apart. The sum of an element starts from 0 and takes
// the steps in order, whatever the tile's rows: a row gives the same bits in
// every tile. next is a part of what will be multiplied after b: cache lines are
// fetched from that address on, pace bytes further in each step. It may be any.
// Rows of c are fetched too, early enough to be there when the sums are.
type Tile func(steps int, a, b, c *byte, stride int, add bool, next, pace uintptr)

// Elem is the element type of a set of loops.
type Elem uint8

// Element types.
const (
	F32 Elem = iota
	BF16
	Int8
)

// Step returns the elements of K in a word.
func (e Elem) Step() int64 { return [...]int64{F32: 1, BF16: 2, Int8: 4}[e] }

// Set is the loops for an element type.
type Set struct {
	// Name tells the instructions, as in "avx512-bf16". Needs are the features
	// without which they do not run, Wants those without which others are better.
	Name  string
	Needs cpu.Features
	Wants cpu.Features
	Elem  Elem
	// Rows holds the tiles of 1, 2, ... rows.
	Rows []Tile
	// Columns is the width of a tile: 32, or 16 for half a panel.
	Columns int64
	Transpose
	// Row multiplies one row with columns, at least one, of panels that lie stride
	// bytes apart, and gives the bits that Rows[0] gives for each. Of f32 several
	// panels are read at a time, for weights that a cache holds, and c has room for the
	// columns alone; those of int8 stream by, one behind the other, and c has room for
	// whole panels. It is nil where there is no such loop.
	Row func(steps, columns int, a, b, c *byte, stride int)
	// Signed says that the int8 elements of the rows are signed as those of the panel
	// are; without it they are unsigned.
	Signed bool
	// F16 and BF16 are there for sets of f32, Dequant for sets of int8.
	F16, BF16 Narrow
	Dequant   Dequant
}

// Narrow is the loops that multiply f32 rows with panels of 2-byte elements, as
// f32: a tile gives the bits that a tile of f32 gives for the widened panel.
type Narrow struct {
	// Rows holds the tiles of 1, 2, ... rows. They count steps of the panel.
	Rows []Tile
	// Widenings holds tiles that store the widened panel for others of more rows:
	// those of LeastWidening() to MaxRows() rows.
	Widenings []Widening
	// StepBytes is the size of a step of the panel: 32 f16, or 32 pairs of bf16
	// that are two steps of the rows.
	StepBytes int64
	// Row multiplies one row of such elements, as they are, with whole panels, stride
	// bytes apart, that stream by, and gives the bits that Rows[0] gives for each where
	// it takes chunk steps at a time and adds up. It is nil where there is no such loop.
	Row func(steps, chunk, panels int, a, b, c *byte, stride int)
}

// Widening is a tile that stores its columns of the panel as f32 too: steps of 32
// words from wide on, of which it writes as many as it has columns.
type Widening func(steps int, a, b, c *byte, stride int, add bool, next, pace uintptr, wide *byte)

// MaxRows is the number of rows of the largest tile.
func (n *Narrow) MaxRows() int64 { return int64(len(n.Rows)) }

// LeastWidening is the number of rows of the smallest widening tile: the least that
// more rows than MaxRows are cut into.
func (n *Narrow) LeastWidening() int64 { return (n.MaxRows() + 1) / 2 }

// MaxRows is the number of rows of the largest tile.
func (s *Set) MaxRows() int64 { return int64(len(s.Rows)) }

// Sets lists all sets that the program holds, the fastest first.
func Sets() []Set { return sets }
