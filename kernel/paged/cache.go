package paged

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/status"
	"goatb/tensor"
)

// cacheView says where the rows of a cache lie: strides in elements between
// positions of a block, heads and blocks, and the width of a row.
type cacheView struct {
	Dim, Position, Head, Block int64
	// InPlace is the largest number of positions whose rows are used at once where they
	// lie. All heads of an item use some positions before the next ones, so that memory
	// is read in the order of positions.
	InPlace int64
	Type    tensor.DType
	// HeadMajor says that a block holds one head after the other.
	HeadMajor bool
	// Serial says that the rows of a block go on in the block of the next number.
	Serial bool
	// Direct says that rows are used where they lie; otherwise they are gathered
	// as float32.
	Direct bool
}

// directBlock is the block size from which on rows are used in place: below it
// the rows of several blocks are gathered first.
const directBlock = 8

// element is the cache's element type as package vec names it.
func (c *cacheView) element() vec.Element {
	switch c.Type {
	case tensor.Float16:
		return vec.F16
	case tensor.BFloat16:
		return vec.BF16
	case tensor.Int8:
		return vec.I8
	}
	return vec.F32
}

func (c *cacheView) fill(d *tensor.Desc, headMajor bool, heads int64) {
	c.Dim, c.Type, c.HeadMajor = d.Dim(3), d.DType, headMajor
	slots := d.Dim(1)
	c.Position, c.Head = heads*c.Dim, c.Dim
	if headMajor {
		slots = d.Dim(2)
		c.Position, c.Head = c.Dim, slots*c.Dim
	}
	c.Block = d.Shape.Product(1, 4)
	rows := fetchBytes / max(c.Position*c.Type.Size(), 1)
	c.InPlace = min(max(rows/fetchRows, 1)*fetchRows, parts.Len)
	c.Serial = c.Block == slots*c.Position
	c.Direct = slots >= directBlock && vec.CacheTakes(c.element(), int(c.Dim))
}

// affine holds the scales and offsets by channel of an item's heads; empty
// slices mean 1 and 0.
type affine struct{ scale, offset []float32 }

// block returns the number of the block at a column of a sequence's table.
func (w *worker) block(column int64) (int64, error) {
	id := int64(w.table[column])
	if uint64(id) >= uint64(w.t.Blocks) {
		return 0, status.Errorf(status.ErrRuntimeFail, "block %d of sequence %d: want 0 to %d, the cache has %d blocks, got %d", column, w.sequence, w.t.Blocks-1, w.t.Blocks, id).On("block table")
	}
	return id, nil
}

// load makes out, a zero Cache, the rows of the item's heads at up to n positions from
// position j on, no more than are loaded at once: where they lie if they are used in
// place, else a tile.
func (w *worker) load(out *vec.Cache, c *cacheView, mem []byte, j, n int64) error {
	bs := w.t.BlockSize
	out.Mem, out.Elem, out.Spans = mem, c.element(), w.spans[:0]
	out.Heads, out.Width, out.Step, out.Head = int(w.heads), int(c.Dim), int(c.Position), int(c.Head)
	if c.Direct {
		n = w.stream.take(w, c, j, n)
		out.Next = w.stream.runs[w.stream.now:]
	} else {
		n = min(n, w.t.TileRows)
		out.Mem, out.Elem, out.Step, out.Head = device.BytesOf(w.tile), vec.F32, int(c.Dim), int(n*c.Dim)
		if !c.HeadMajor {
			out.Step, out.Head = int(w.heads*c.Dim), int(c.Dim)
		}
		out.Add(0, int(n))
	}
	column, slot, serial := j/bs, j%bs, c.Direct && c.Serial
	for done := int64(0); done < n; slot = 0 {
		id, err := w.block(column)
		if err != nil {
			return err
		}
		at, m, blocks := w.element(c, id, slot), bs-slot, int64(1)
		for _, next := range w.table[column+1:] {
			if !serial || m >= n-done || int64(next) != id+blocks || id+blocks >= w.t.Blocks {
				break
			}
			m, blocks = m+bs, blocks+1
		}
		m = min(m, n-done)
		if c.Direct {
			out.Add(at, int(m))
		} else {
			w.gather(c, mem, n, at, done, m)
		}
		column, done = column+blocks, done+m
	}
	return nil
}

// element returns where the row of the item's first head in a slot of a block
// begins.
func (w *worker) element(c *cacheView, block, slot int64) int64 {
	return block*c.Block + w.firstHead*c.Head + slot*c.Position
}

// gather widens m rows of a block, from element at on, to the rows of a tile of
// n positions from position done on.
func (w *worker) gather(c *cacheView, mem []byte, n, at, done, m int64) {
	if c.HeadMajor {
		for h := range w.heads {
			dst := w.tile[(h*n+done)*c.Dim:][:m*c.Dim]
			widen(dst, mem, c.Type, at+h*c.Head)
		}
		return
	}
	width := w.heads * c.Dim
	dst := w.tile[done*width : (done+m)*width]
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
