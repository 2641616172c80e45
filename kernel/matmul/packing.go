package matmul

import (
	"encoding/binary"
	"unsafe"

	"goatb/device"
	"goatb/internal/asm/gemm"
)

// packRows packs the rows of an item for the elements [from, to) of K, unless
// they are there already or can be read where they lie. The groups of rows that
// tiles take lie one behind the other.
func (s *sweeper) packRows(p *place, from, to int64) {
	t := s.t
	want := place{b: p.b, i: p.i, m: p.m, k0: from, k1: to}
	if s.held == want {
		return
	}
	s.held, s.words = want, s.e.words(to-from)
	if t.DirectX {
		s.rows = s.x[t.X.at(p.b, p.i, from):]
		return
	}
	groups := ceilDiv(p.m, s.e.set.MaxRows())
	least, larger := p.m/groups, p.m%groups
	pk := packer{e: s.e, m: &t.X, mem: s.x, b: p.b, flip: s.e.flip(), tmp: s.tmp}
	row := int64(0)
	for g := range groups {
		rows := least
		if g < larger {
			rows++
		}
		for k := from; k < to; k += t.Chunk {
			pk.pack(s.rows[4*(row*s.words+s.e.words(k-from)*rows):], 4*rows, p.i+row, rows, k, min(t.Chunk, to-k))
		}
		row += rows
	}
	if t.Narrow { // a panel may have one element more, a zero
		clear(s.rows[4*s.words*p.m:][:4*p.m])
	}
}

// flip is what the words of x are changed by: VPDPBUSD takes one operand
// unsigned, so that 128 is added to int8 elements of x.
func (e *engine) flip() uint32 {
	if e.set.Elem == gemm.Int8 {
		return 0x80808080
	}
	return 0
}

// weights is a part of a panel that tiles can multiply with, and the memory that
// will be wanted next: fetch bytes from next on.
type weights struct {
	mem   []byte
	next  uintptr
	fetch int64
}

// weights returns the elements [k, end) of the panel of column j of an item.
func (s *sweeper) weights(p *place, j, from, k, end, to int64) weights {
	t := s.t
	if t.Ahead {
		column := 4 * roundUp(s.e.words(min(t.Chunk, t.K)), 2)
		w := weights{mem: s.panel[j*column:]}
		if j+gemm.PanelColumns < p.n {
			w.fetch = gemm.PanelColumns * column
			w.next = address(w.mem) + uintptr(w.fetch)
		}
		return w
	}
	if !s.e.passes(&t.W) {
		pk := packer{e: s.e, m: &t.W, mem: s.w, b: p.b, tmp: s.tmp}
		pk.panel(s.panel, p.j+j, min(gemm.PanelColumns, p.n-j), k, end-k)
		return weights{s.panel, address(s.panel), 0}
	}
	w := weights{mem: s.w[t.W.at(p.b, p.j+j, k):]}
	switch {
	case end < to:
		w.next = address(s.w[t.W.at(p.b, p.j+j, end):])
	case j+gemm.PanelColumns < p.n:
		w.next = address(s.w[t.W.at(p.b, p.j+j+gemm.PanelColumns, from):])
	}
	if w.next != 0 {
		w.fetch = (end - k) * gemm.PanelColumns * t.W.DType.Size()
	}
	if narrow := s.e.narrow(&t.W); narrow != nil && !t.Narrow {
		steps := ceilDiv(end-k, int64(t.W.Step))
		narrow.Widen(int(steps), &s.panel[0], &w.mem[0])
		w.mem = s.panel
	}
	return w
}

// packPanels packs the elements [from, to) of all panels of an item: one chunk.
func (s *sweeper) packPanels(p *place, from, to int64) {
	t := s.t
	pk := packer{e: s.e, m: &t.W, mem: s.w, b: p.b, tmp: s.tmp}
	panel := 4 * roundUp(s.e.words(min(t.Chunk, t.K)), 2)
	for j := int64(0); j < p.n; j += gemm.PanelColumns {
		pk.panel(s.panel[panel*j:], p.j+j, min(gemm.PanelColumns, p.n-j), from, to-from)
	}
}

// address is where memory lies, to fetch it: not to reach it.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// packer packs parts of one matrix of a batch into words. tmp has room for
// Width rows of the elements asked for.
type packer struct {
	e    *engine
	m    *matrix
	mem  []byte
	b    int64
	flip uint32
	tmp  []float32
}

// panel packs up to 32 columns of w from r on; the last one is repeated behind
// them.
func (p *packer) panel(dst []byte, r, columns, k, n int64) {
	if p.e.step() == 1 && !p.m.AlongK {
		p.across(dst, gemm.PanelColumns, r, columns, k, n)
		return
	}
	width := p.e.set.Width
	for c := int64(0); c < gemm.PanelColumns; c += width {
		at := min(c, columns-1)
		p.pack(dst[4*c:], 4*gemm.PanelColumns, r+at, min(width, columns-at), k, n)
	}
}

// pack stores n elements of K from k on of up to Width rows from r on, a step
// every stride bytes.
func (p *packer) pack(dst []byte, stride, r, rows, k, n int64) {
	switch step := p.e.step(); {
	case p.e.inPlace(p.m):
		whole := n / step
		size := p.m.DType.Size()
		if whole > 0 {
			src := &p.mem[p.m.at(p.b, r, k)]
			p.e.set.Turn(int(whole), &dst[0], int(stride), src, int(p.m.Lead*size), int(rows), p.flip)
		}
		if whole*step < n {
			p.gather(dst[whole*stride:], stride, r, rows, k+whole*step, n-whole*step)
		}
	case step > 1:
		p.gather(dst, stride, r, rows, k, n)
	case p.m.AlongK:
		p.convert(dst, stride, r, rows, k, n)
	default:
		p.across(dst, stride/4, r, rows, k, n)
	}
}

// convert packs rows along K that have to be converted to f32 first.
func (p *packer) convert(dst []byte, stride, r, rows, k, n int64) {
	if rows == 1 && stride == 4 {
		copy(device.View[float32](dst)[:n], p.m.run(device.View[float32](dst), p.mem, p.b, r, k, n))
		return
	}
	for i := range rows {
		copy(p.tmp[i*n:(i+1)*n], p.m.run(p.tmp[i*n:], p.mem, p.b, r+i, k, n))
	}
	src := device.BytesOf(p.tmp[:rows*n])
	p.e.set.Turn(int(n), &dst[0], int(stride), &src[0], int(4*n), int(rows), 0)
}

// across packs a matrix whose rows lie side by side for each k, as f32: steps of
// width words, the last row repeated behind the others.
func (p *packer) across(dst []byte, width, r, rows, k, n int64) {
	to := device.View[float32](dst)
	if copySteps := p.e.set.CopySteps; copySteps != nil && p.m.direct() && rows == gemm.PanelColumns {
		copySteps(int(n), &dst[0], &p.mem[p.m.at(p.b, r, k)], int(4*p.m.Lead))
		return
	}
	for i := range n {
		line := to[i*width:][:width]
		got := p.m.run(p.tmp[:rows], p.mem, p.b, r, k+i, rows)
		copy(line, got)
		for c := rows; c < width; c++ {
			line[c] = got[rows-1]
		}
	}
}

// gather packs words element by element; missing last elements of K are zeros.
func (p *packer) gather(dst []byte, stride, r, rows, k, n int64) {
	step, size := p.e.step(), p.m.DType.Size()
	for i := int64(0); i < n; i += step {
		line := dst[i/step*stride:]
		for c := range min(stride/4, p.e.set.Width) {
			var word [4]byte
			for h := range min(step, n-i) {
				o := p.m.at(p.b, r+min(c, rows-1), k+i+h)
				copy(word[h*size:], p.mem[o:o+size])
			}
			binary.LittleEndian.PutUint32(line[4*c:], binary.LittleEndian.Uint32(word[:])^p.flip)
		}
	}
}
