package paged

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// cacheView says where the rows of a cache lie: strides in elements between
// positions of a block, heads and blocks, and the width of a row.
type cacheView struct {
	Dim, Position, Head, Block int64
	Type                       tensor.DType
	// HeadMajor says that a block holds one head after the other.
	HeadMajor bool
	// Direct says that rows are used where they lie.
	Direct bool
}

// directBlock is the block size from which on float32 rows are used in place:
// below it the rows of several blocks are gathered first.
const directBlock = 8

func (c *cacheView) fill(d *tensor.Desc, headMajor bool, heads int64) {
	c.Dim, c.Type, c.HeadMajor = d.Dim(3), d.DType, headMajor
	slots := d.Dim(1)
	c.Position, c.Head = heads*c.Dim, c.Dim
	if headMajor {
		slots = d.Dim(2)
		c.Position, c.Head = c.Dim, slots*c.Dim
	}
	c.Block = d.Shape.Product(1, 4)
	c.Direct = d.DType == tensor.Float32 && slots >= directBlock
}

// rows is a tile of a cache as float32: row j of head h lies at h*head+j*step
// of data.
type rows struct {
	data       []float32
	step, head int
}

// affine holds the scales and offsets by channel of an item's heads; empty
// slices mean 1 and 0.
type affine struct{ scale, offset []float32 }

// block returns the number of the block at a column of a sequence's table.
func (w *worker) block(column int64) (int64, error) {
	id := int64(w.table[column])
	if uint64(id) >= uint64(w.t.Blocks) {
		return 0, status.Errorf(status.ErrRuntimeFail, "sequence %d, position %d: want a block from 0 to %d, the cache has %d, got %d", w.sequence, column, w.t.Blocks-1, w.t.Blocks, id).On("block tables")
	}
	return id, nil
}

// load returns the rows of the item's heads at up to n positions from position
// j on, and how many positions these are: a whole tile, or the rest of the
// block where rows are used in place.
func (w *worker) load(c *cacheView, mem []byte, f affine, j, n int64) (rows, int64, error) {
	bs := w.t.BlockSize
	first := w.firstHead * c.Head
	if c.Direct {
		id, err := w.block(j / bs)
		if err != nil {
			return rows{}, 0, err
		}
		n = min(n, bs-j%bs, w.t.TileRows)
		at := id*c.Block + first + j%bs*c.Position
		return rows{device.View[float32](mem)[at:], int(c.Position), int(c.Head)}, n, nil
	}
	n = min(n, w.t.TileRows)
	out := rows{data: w.tile, step: int(c.Dim), head: int(n * c.Dim)}
	if !c.HeadMajor {
		out.step, out.head = int(w.heads*c.Dim), int(c.Dim)
	}
	for done := int64(0); done < n; {
		slot := (j + done) % bs
		id, err := w.block((j + done) / bs)
		if err != nil {
			return rows{}, 0, err
		}
		m := min(n-done, bs-slot)
		w.gather(c, mem, f, out, id*c.Block+first+slot*c.Position, done, m)
		done += m
	}
	return out, n, nil
}

// gather widens m rows of a block, from element at on, to the rows of a tile
// from row done on.
func (w *worker) gather(c *cacheView, mem []byte, f affine, out rows, at, done, m int64) {
	if c.HeadMajor {
		for h := range w.heads {
			dst := out.data[h*int64(out.head)+done*c.Dim:][:m*c.Dim]
			widen(dst, mem, c.Type, at+h*c.Head)
			f.apply(dst, int(h*c.Dim), int(c.Dim))
		}
		return
	}
	width := w.heads * c.Dim
	dst := out.data[done*width : (done+m)*width]
	switch {
	case c.Position == width:
		widen(dst, mem, c.Type, at)
	case c.Head == c.Dim:
		for r := range m {
			widen(dst[r*width:(r+1)*width], mem, c.Type, at+r*c.Position)
		}
	default:
		for r := range m {
			for h := range w.heads {
				widen(dst[r*width+h*c.Dim:][:c.Dim], mem, c.Type, at+r*c.Position+h*c.Head)
			}
		}
	}
	f.apply(dst, 0, int(width))
}

// apply scales and shifts rows of width channels, the first of which is
// channel from of the item's heads.
func (f affine) apply(rows []float32, from, width int) {
	if len(f.scale) == 0 {
		return
	}
	scale := f.scale[from : from+width]
	for ; len(rows) >= width; rows = rows[width:] {
		row := rows[:width]
		if len(f.offset) != 0 {
			vec.Add(row, row, f.offset[from:from+width])
		}
		vec.Mul(row, row, scale)
	}
}

// widen loads len(dst) elements of mem from element at on.
func widen(dst []float32, mem []byte, t tensor.DType, at int64) {
	n := int64(len(dst))
	if t == tensor.Int8 {
		vec.Int8Floats(dst, device.View[int8](mem)[at:at+n])
		return
	}
	size := t.Size()
	kernel.LoadFloats(dst, mem[at*size:(at+n)*size], t)
}
