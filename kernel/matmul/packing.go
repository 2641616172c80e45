package matmul

import (
	"encoding/binary"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/tensor"
)

// packRows packs the rows of an item for the elements [from, to) of K, unless
// they are there already or can be read where they lie. The chunks of the span lie
// one behind the other, and in each of them the groups of rows that tiles take, so
// that the tiles of a panel's chunk read one run of memory.
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
	groups := s.groups(p)
	pk := packer{e: s.e, m: &t.X, mem: s.x, b: p.b, flip: s.e.flip(), tmp: s.tmp}
	for k := from; k < to; k += t.Chunk {
		n := min(t.Chunk, to-k)
		words := s.e.words(n)
		chunk, padded := s.rows[4*s.e.words(k-from)*p.m:], s.e.padded(t, words)
		for g := range groups {
			row, end := kernel.Share(p.m, int(g), int(groups))
			rows := end - row
			group := chunk[4*row*padded:]
			pk.pack(group, 4*rows, p.i+row, rows, k, n)
			clear(group[4*rows*words : 4*rows*padded])
		}
	}
}

// padded returns the words that a group of packed rows takes for each of its rows:
// a panel of 2-byte elements may have one more, a zero, which only a zero may meet.
func (e *engine) padded(t *tiling, words int64) int64 {
	if e.narrow(&t.W) != nil {
		return roundUp(words, int64(t.W.Step))
	}
	return words
}

// flip is what the words of x are changed by: VPDPBUSD takes one operand
// unsigned, so that 128 is added to int8 elements of x then.
func (e *engine) flip() uint32 {
	if e.set.Elem == gemm.Int8 && !e.set.Signed {
		return 0x80808080
	}
	return 0
}

// weights returns the elements [k, end) of the panel of column j of an item, which
// the tiles of a part of its rows multiply with. Weights that have to be packed are
// packed for the first part, and kept for the others.
func (s *sweeper) weights(p, part *place, j, from, k, end, to int64) []byte {
	t := s.t
	switch {
	case s.e.passes(&t.W):
		s.fetchPanel(p, part, j, from, k, end, to)
		return s.w[t.W.at(p.b, p.j+j, k):]
	case part.i > p.i:
		s.fetchKept(part, j, p.n, end-k)
		return s.kept(j)
	}
	s.fetchSource(p, j, from, k, end, to)
	panel := s.panel
	if t.Kept {
		panel = s.kept(j)
	}
	pk := packer{e: s.e, m: &t.W, mem: s.w, b: p.b, tmp: s.tmp}
	pk.panel(panel, p.j+j, min(gemm.PanelColumns, p.n-j), k, end-k)
	return panel
}

// kept is the memory of the packed panel of column j of an item.
func (s *sweeper) kept(j int64) []byte {
	return s.panel[4*j*roundUp(s.e.words(min(s.t.Chunk, s.t.K)), 2):]
}

// packer packs parts of one matrix of a batch into words. tmp has room for
// Width rows of the elements asked for, and for acrossWords.
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
	if loop := p.loopAcross(); loop != nil {
		p.across(dst, loop, r, columns, k, n)
		return
	}
	if p.e.step() == 1 && !p.m.AlongK {
		p.beside(dst, gemm.PanelColumns, r, columns, k, n)
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
		if whole > 0 {
			p.turn(dst, stride, r, rows, k, whole)
		}
		if whole*step < n {
			p.gather(dst[whole*stride:], stride, r, rows, k+whole*step, n-whole*step)
		}
	case step > 1:
		p.gather(dst, stride, r, rows, k, n)
	case p.m.AlongK:
		p.convert(dst, stride, r, rows, k, n)
	default:
		p.beside(dst, stride/4, r, rows, k, n)
	}
}

// turn packs so many words of rows that are words in memory. Those of one row lie one
// behind the other already.
func (p *packer) turn(dst []byte, stride, r, rows, k, words int64) {
	src := p.mem[p.m.at(p.b, r, k):]
	if rows == 1 && stride == 4 {
		copyFlipped(dst[:4*words], src[:4*words], p.flip)
		return
	}
	p.e.set.Turn(int(words), &dst[0], int(stride), &src[0], int(p.m.Lead*p.m.DType.Size()), int(rows), p.flip)
}

// copyFlipped copies words, which it changes by flip.
func copyFlipped(dst, src []byte, flip uint32) {
	if flip == 0 {
		copy(dst, src)
		return
	}
	order, both := binary.NativeEndian, uint64(flip)<<32|uint64(flip)
	for len(src) >= 32 && len(dst) >= 32 {
		a, b, c, d := order.Uint64(src), order.Uint64(src[8:]), order.Uint64(src[16:]), order.Uint64(src[24:])
		order.PutUint64(dst, a^both)
		order.PutUint64(dst[8:], b^both)
		order.PutUint64(dst[16:], c^both)
		order.PutUint64(dst[24:], d^both)
		dst, src = dst[32:], src[32:]
	}
	for ; len(src) > 0; dst, src = dst[4:], src[4:] {
		order.PutUint32(dst, order.Uint32(src)^flip)
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

// loopAcross returns the loop that packs columns which lie side by side for each k,
// nil where there is none.
func (p *packer) loopAcross() gemm.Pack {
	if p.m.AlongK || p.m.Block != 0 {
		return nil
	}
	loops := gemm.BestAcross(cpu.Active())
	switch {
	case p.m.DType == tensor.Float32:
		return loops.Words
	case p.m.DType == tensor.Int8:
		return loops.Quads
	case p.e.step() == 2:
		return loops.Pairs
	case p.m.DType == tensor.Float16:
		return loops.F16
	}
	return loops.BF16
}

// acrossRows is the number of rows that are gathered where they are no whole steps of
// 32 columns, a multiple of the rows of a step, and acrossWords their size.
const (
	acrossRows  = 16
	acrossWords = acrossRows * gemm.PanelColumns
)

// across packs up to 32 columns that lie side by side for each k; the last one is
// repeated behind them, and missing last elements of K are zeros.
func (p *packer) across(dst []byte, loop gemm.Pack, r, columns, k, n int64) {
	step, size, whole := p.e.step(), p.m.DType.Size(), int64(0)
	if columns == gemm.PanelColumns && n >= step {
		whole = n / step * step
		loop(int(whole/step), &dst[0], &p.mem[p.m.at(p.b, r, k)], int(p.m.Lead*size))
	}
	line := gemm.PanelColumns * size
	rows := device.BytesOf(p.tmp[:acrossWords])[:acrossRows*line]
	for at := whole; at < n; at += acrossRows {
		count := min(acrossRows, n-at)
		clear(rows[count*line:])
		for i := range count {
			row := rows[i*line:][:line]
			copy(row, p.mem[p.m.at(p.b, r, k+at+i):][:columns*size])
			for c := columns; c < gemm.PanelColumns; c++ {
				copy(row[c*size:], row[(columns-1)*size:columns*size])
			}
		}
		loop(int(ceilDiv(count, step)), &dst[at/step*4*gemm.PanelColumns], &rows[0], int(line))
	}
}

// beside packs a matrix whose rows lie side by side for each k, as f32: steps of
// width words, the last row repeated behind the others.
func (p *packer) beside(dst []byte, width, r, rows, k, n int64) {
	to := device.View[float32](dst)
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
