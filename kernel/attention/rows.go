package attention

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// operand is the keys or the values of a sequence.
type operand struct {
	mem, fresh []byte
	table      []int32
	at, new    Strides
	// size is the length of a row, start the element of the first one.
	size, start int64
	buf         []float32
}

// place is a run of rows in memory: the element of the first, the elements from
// one to the next, and how many there are.
type place struct {
	mem         []byte
	at, step, n int64
}

// load returns the rows [from, to) of the item's key head: where they lie if
// they lie at even distances and need no widening, otherwise as float32.
func (w *worker) load(o *operand, from, to int64) (vec.Cache, error) {
	t := w.t.KeyType
	out := vec.Cache{Mem: device.BytesOf(o.buf), Elem: vec.F32, Heads: 1, Width: int(o.size), Step: int(o.size), Spans: w.spans[:0]}
	for j := from; j < to; {
		p, err := w.locate(o, j, to)
		if err != nil {
			return out, err
		}
		if e := elementOf(t); j == from && p.n == to-from && vec.CacheTakes(e, int(o.size)) {
			out.Mem, out.Elem, out.Step = p.mem, e, int(p.step)
			out.Add(p.at, int(p.n))
			size := int(t.Size())
			out.Next = append(w.ahead[:0], vec.Ahead{
				At: vec.Address(p.mem, e, p.at+p.n*p.step), Bytes: int(o.size) * size, Step: int(p.step) * size, Rows: int(p.n),
			})
			return out, nil
		}
		dst := o.buf[(j-from)*o.size : (j-from+p.n)*o.size]
		if p.step == o.size {
			widen(dst, p.mem, p.at, t)
		} else {
			for i := range p.n {
				widen(dst[i*o.size:(i+1)*o.size], p.mem, p.at+i*p.step, t)
			}
		}
		j += p.n
	}
	out.Add(0, int(to-from))
	return out, nil
}

// elementOf names an element type of keys as package vec does.
func elementOf(t tensor.DType) vec.Element {
	switch t {
	case tensor.Float16:
		return vec.F16
	case tensor.BFloat16:
		return vec.BF16
	case tensor.Int8:
		return vec.I8
	}
	return vec.F32
}

// locate finds row j of an operand and how many of the rows [j, to) follow it
// evenly.
func (w *worker) locate(o *operand, j, to int64) (place, error) {
	a := &w.t.P
	p := place{mem: o.mem, step: o.at.Row, n: to - j}
	p.at = o.start + j*o.at.Row + w.keyHead*o.at.Head
	switch {
	case a.Source == Paged:
		block := int64(o.table[w.seq.Index*a.Columns+j/a.Slots])
		if block < 0 || block >= a.Blocks {
			return p, status.Errorf(status.ErrRuntimeFail, "block %d of sequence %d: want 0 to %d, the cache has %d blocks, got %d",
				j/a.Slots, w.seq.Index, a.Blocks-1, a.Blocks, block).On("block table")
		}
		p.at = block*o.at.Batch + j%a.Slots*o.at.Row + w.keyHead*o.at.Head
		p.n = min(p.n, a.Slots-j%a.Slots)
	case a.Ring:
		old := w.seq.Keys
		if a.NewKeys {
			old -= w.seq.Live
		}
		if j >= old {
			return place{o.fresh, (w.seq.NewRow+j-old)*o.new.Row + w.keyHead*o.new.Head, o.new.Row, to - j}, nil
		}
		p.at = o.start + j%a.Slots*o.at.Row + w.keyHead*o.at.Head
		p.n = min(p.n, old-j, a.Slots-j%a.Slots)
	}
	return p, nil
}

// widen loads len(dst) elements of mem from element at on.
func widen(dst []float32, mem []byte, at int64, t tensor.DType) {
	n := int64(len(dst))
	if t == tensor.Int8 {
		vec.Int8Floats(dst, device.View[int8](mem)[at:at+n])
		return
	}
	size := t.Size()
	kernel.LoadFloats(dst, mem[at*size:(at+n)*size], t)
}

// element returns element at of a float tensor.
func element(mem []byte, at int64, t tensor.DType) float32 {
	switch t {
	case tensor.Float16:
		return device.View[tensor.F16](mem)[at].Float32()
	case tensor.BFloat16:
		return device.View[tensor.BF16](mem)[at].Float32()
	}
	return device.View[float32](mem)[at]
}
