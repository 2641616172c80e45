package matmul

import (
	"goatb/internal/vec"
)

// panels multiplies packed panels of two rows of x and four columns of w.
func (w *floatWorker) panels(p *place, acc []float32, ld int64) {
	t := w.t
	for k := p.k0; k < p.k1; k += t.Chunk {
		n := min(t.Chunk, p.k1-k)
		ws, stride := w.weightPanels(p, k, n)
		for i := int64(0); i < p.m; i += t.SubM {
			m := min(t.SubM, p.m-i)
			pk := pairer{&t.X, w.x, p.b, w.tmp}
			pk.pairs(w.xs, p.i+i, m, k, n)
			for j := int64(0); j < p.n; j += panelWidth {
				b := ws[j/panelWidth*stride:][:panelWidth*n]
				for r := int64(0); r < m; r += 2 {
					c := acc[(i+r)*ld+j:]
					vec.Tile2x4((*[panelWidth]float32)(c), (*[panelWidth]float32)(c[ld:]), w.xs[r*n:(r+2)*n], b)
				}
			}
		}
	}
}

// weightPanels returns the panels of an item's columns for n elements of K from
// k on, stride apart.
func (w *floatWorker) weightPanels(p *place, k, n int64) (panels []float32, stride int64) {
	t := w.t
	pk := pairer{&t.W, w.w, p.b, w.tmp}
	pk.quads(w.ws, panelWidth*n, p.j, p.n, k, n)
	return w.ws, panelWidth * n
}

// pairer packs a part of one matrix of a batch for plain Go. tmp has room for four runs
// along K, or for the rows asked for and a panel more.
type pairer struct {
	m   *matrix
	mem []byte
	b   int64
	tmp []float32
}

// pairs packs rows [r, r+rows) into panels of two rows, n elements of K from k
// on, one panel behind the other. A missing last row is zeros.
func (p *pairer) pairs(dst []float32, r, rows, k, n int64) {
	if !p.m.AlongK {
		p.across(dst, 2*n, 2, r, rows, k, n)
		return
	}
	for i := int64(0); i < rows; i += 2 {
		r0 := p.m.run(p.tmp, p.mem, p.b, r+i, k, n)
		r1 := p.row(1, r+i+1, r+rows, k, n)
		vec.Interleave2(dst[i*n:(i+2)*n], r0, r1)
	}
}

// quads packs rows [r, r+rows) into panels of four rows, stride apart. Missing
// last rows are zeros.
func (p *pairer) quads(dst []float32, stride, r, rows, k, n int64) {
	if !p.m.AlongK {
		p.across(dst, stride, panelWidth, r, rows, k, n)
		return
	}
	end := r + rows
	for i := int64(0); i < rows; i += panelWidth {
		r0, r1 := p.row(0, r+i, end, k, n), p.row(1, r+i+1, end, k, n)
		r2, r3 := p.row(2, r+i+2, end, k, n), p.row(3, r+i+3, end, k, n)
		vec.Interleave4(dst[i/panelWidth*stride:][:panelWidth*n], r0, r1, r2, r3)
	}
}

// row returns row r, or zeros when it is not below end, in slot i of tmp where
// it must be converted.
func (p *pairer) row(i, r, end, k, n int64) []float32 {
	buf := p.tmp[i*n : (i+1)*n]
	if r < end {
		return p.m.run(buf, p.mem, p.b, r, k, n)
	}
	clear(buf)
	return buf
}

// across packs a matrix whose rows lie side by side for each k.
func (p *pairer) across(dst []float32, stride, width, r, rows, k, n int64) {
	padded := roundUp(rows, width)
	line := p.tmp[:padded]
	clear(line[rows:])
	for i := range n {
		src := p.m.run(line[:rows], p.mem, p.b, r, k+i, rows)
		whole := rows / width
		if width == panelWidth {
			spread4(dst[panelWidth*i:], stride, src[:whole*width])
		} else {
			spread2(dst[2*i:], stride, src[:whole*width])
		}
		if whole*width < rows {
			copy(line[whole*width:], src[whole*width:])
			copy(dst[whole*stride+i*width:][:width], line[whole*width:])
		}
	}
}

// spread4 stores groups of four elements stride apart.
func spread4(dst []float32, stride int64, src []float32) {
	o := int64(0)
	for ; len(src) >= 4; src = src[4:] {
		*(*[4]float32)(dst[o:]) = *(*[4]float32)(src)
		o += stride
	}
}

// spread2 stores groups of two elements stride apart.
func spread2(dst []float32, stride int64, src []float32) {
	o := int64(0)
	for ; len(src) >= 2; src = src[2:] {
		*(*[2]float32)(dst[o:]) = *(*[2]float32)(src)
		o += stride
	}
}
