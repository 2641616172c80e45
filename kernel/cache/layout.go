package cache

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Layout is how a cache lies in memory.
type Layout uint8

// Layouts.
const (
	// Rows is [blocks, block size, heads, width]: a slot's row is contiguous.
	Rows Layout = iota
	// NZ is [blocks, row/L, block size, L]: a slot's row lies in pieces of L
	// elements.
	NZ
)

// target is a cache that rows are written to; sizes in bytes, where not said
// otherwise. It is plain data and part of tilings.
type target struct {
	// Row is the size of a slot's row, Piece that of its contiguous pieces,
	// Step the distance between two pieces.
	Row, Piece, Step int64
	// Slots is the number of slots, BlockSize the number in a block, Block
	// the size of a block.
	Slots, BlockSize, Block int64
}

// fill takes the sizes of cache d, whose rows have the given number of
// elements.
func (c *target) fill(d *tensor.Desc, l Layout, rowElements int64) error {
	if d.Rank() != 4 {
		return status.Errorf(status.ErrInvalidParam, "want a cache of rank 4, got %s", d)
	}
	size := d.DType.Size()
	c.Row = rowElements * size
	c.Block = d.Shape.Product(1, 4) * size
	inBlock := d.Shape.Product(2, 4)
	if l == NZ {
		c.BlockSize, c.Piece = d.Dim(2), d.Dim(3)*size
		inBlock = d.Dim(1) * d.Dim(3)
	} else {
		c.BlockSize, c.Piece = d.Dim(1), c.Row
	}
	c.Step = c.BlockSize * c.Piece
	c.Slots = d.Dim(0) * c.BlockSize
	if inBlock != rowElements || size == 0 {
		return status.Errorf(status.ErrInvalidParam, "want a cache with rows of %d elements, got %s", rowElements, d)
	}
	return nil
}

// offset returns where the first piece of a slot's row lies.
func (c *target) offset(slot int64) int64 {
	return slot/c.BlockSize*c.Block + slot%c.BlockSize*c.Piece
}

// nzPiece is the size of a piece of an NZ cache of 16-bit or 8-bit elements.
const nzPiece = 32

// put writes a row to a slot.
func (c *target) put(dst []byte, slot int64, row []byte) {
	at := c.offset(slot)
	switch c.Piece {
	case c.Row:
		copy(dst[at:at+c.Row], row[:c.Row])
	case nzPiece:
		for ; len(row) >= nzPiece; row = row[nzPiece:] {
			*(*[nzPiece]byte)(dst[at:]) = *(*[nzPiece]byte)(row)
			at += c.Step
		}
	default:
		for ; int64(len(row)) >= c.Piece; row = row[c.Piece:] {
			copy(dst[at:at+c.Piece], row)
			at += c.Step
		}
	}
}

// ownerRun is the number of consecutive slots that one block writes.
const ownerRun = 8

// owns reports whether a block writes a slot.
func owns(slot int64, block, blocks int) bool {
	return blocks == 1 || slot/ownerRun%int64(blocks) == int64(block)
}

// Estimates of one core, in nanoseconds.
const (
	nanosPerByte  = 0.1
	nanosPerPiece = 7
)

// nanos estimates the writing of n rows.
func (c *target) nanos(n int64) float64 {
	if c.Piece == 0 {
		return 0
	}
	return float64(n) * (float64(c.Row)*nanosPerByte + float64(c.Row/c.Piece)*nanosPerPiece)
}

// side is a source of rows with its cache; the zero side is absent.
type side struct {
	target
	Present bool
}

// write puts one row of a source to a slot.
func (s *side) write(dst, src []byte, slot, row int64) {
	if s.Present {
		s.put(dst, slot, src[row*s.Row:(row+1)*s.Row])
	}
}

// fillSide takes the sizes of source x and its cache c, which are both absent
// or both there.
func (s *side) fillSide(x, c *tensor.Desc, l Layout, rows, rowElements int64) error {
	if x.Empty() && c.Empty() {
		return nil
	}
	if x.DType != c.DType || x.Empty() || x.Dim(0) != rows {
		return status.Errorf(status.ErrInvalidParam, "source %s does not go with cache %s and %d slots", x, c, rows)
	}
	s.Present = true
	return s.fill(c, l, rowElements)
}

// ids returns the elements of an int32 operand.
func ids(a *kernel.Args, i int) []int32 { return device.View[int32](a.Mem(i)) }
