package matmul

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/tensor"
)

// rowsOfX prepares the rows of x for the range of K of an item.
func (w *floatWorker) rowsOfX(p *place) {
	t := w.t
	if w.xBatch == p.b && w.xFrom == p.k0 {
		return
	}
	w.xBatch, w.xFrom = p.b, p.k0
	if t.DirectX {
		w.xRows = device.View[float32](w.x)[p.b*t.X.Batch+p.k0:]
		w.xStride = t.X.Lead
		return
	}
	w.xRows, w.xStride = w.xs, t.Span
	span := p.k1 - p.k0
	if t.X.AlongK {
		for i := range p.m {
			t.X.run(w.xs[i*t.Span:], w.x, p.b, p.i+i, p.k0, span)
		}
		return
	}
	for k := range span {
		column := t.X.run(w.tmp, w.x, p.b, p.i, p.k0+k, p.m)
		for i, v := range column {
			w.xs[int64(i)*t.Span+k] = v
		}
	}
}

// rowOfX returns n elements of a prepared row of x from k on.
func (w *floatWorker) rowOfX(i, k, n int64) []float32 {
	o := i*w.xStride + k - w.xFrom
	return w.xRows[o : o+n]
}

// rows multiplies rows of x with four rows of w at a time, w running along K.
func (w *floatWorker) rows(p *place, acc []float32, ld int64) {
	t := w.t
	w.rowsOfX(p)
	if p.m == 1 && t.W.direct() {
		w.row(p, acc)
		return
	}
	single := p.m == 1 && t.W.DType == tensor.BFloat16 && t.W.Block == 0
	for j := int64(0); j < p.n; j += panelWidth {
		for k := p.k0; k < p.k1; k += t.Chunk {
			n := min(t.Chunk, p.k1-k)
			switch {
			case single:
				w.rowsBF16(p, acc[j:], j, k, n)
			case t.W.direct():
				w.dots(acc[j:], ld, p.m, k, n, w.inPlaceRows(p, j, k, n))
			default:
				w.dots(acc[j:], ld, p.m, k, n, w.convertedRows(p, j, k, n))
			}
		}
	}
}

// row multiplies one row of x with f32 rows of w: the step of decoding, where
// a call costs as much as a short row.
func (w *floatWorker) row(p *place, acc []float32) {
	m := &w.t.W
	mem := device.View[float32](w.w)[p.b*m.Batch+p.j*m.Lead:]
	x := w.rowOfX(0, p.k0, p.k1-p.k0)
	last := (p.n - 1) * m.Lead
	for j := int64(0); j < p.n; j += panelWidth {
		o0 := j * m.Lead
		o1 := min(o0+m.Lead, last)
		o2 := min(o1+m.Lead, last)
		o3 := min(o2+m.Lead, last)
		c := (*[panelWidth]float32)(acc[j:])
		for k := p.k0; k < p.k1; k += w.t.Chunk {
			end := min(k+w.t.Chunk, p.k1)
			s0, s1, s2, s3 := vec.Dots4(x[k-p.k0:end-p.k0], mem[o0+k:o0+end], mem[o1+k:o1+end], mem[o2+k:o2+end], mem[o3+k:o3+end])
			c[0] += s0
			c[1] += s1
			c[2] += s2
			c[3] += s3
		}
	}
}

// dots multiplies m rows of x with four rows of w from k on.
func (w *floatWorker) dots(acc []float32, ld, m, k, n int64, ws [panelWidth][]float32) {
	for i := range m {
		s0, s1, s2, s3 := vec.Dots4(w.rowOfX(i, k, n), ws[0], ws[1], ws[2], ws[3])
		c := acc[i*ld : i*ld+panelWidth]
		c[0] += s0
		c[1] += s1
		c[2] += s2
		c[3] += s3
	}
}

// inPlaceRows returns n elements from k on of the four f32 rows of w from j on.
func (w *floatWorker) inPlaceRows(p *place, j, k, n int64) (ws [panelWidth][]float32) {
	m := &w.t.W
	mem := device.View[float32](w.w)
	at := p.b*m.Batch + (p.j+j)*m.Lead + k
	for i := range ws {
		ws[i] = mem[at : at+n : at+n]
		if j+int64(i)+1 < p.n {
			at += m.Lead
		}
	}
	return ws
}

// rowsBF16 multiplies one row of x with four rows of bf16 weights in place,
// which saves the conversion that several rows would share.
func (w *floatWorker) rowsBF16(p *place, c []float32, j, k, n int64) {
	bits := device.View[uint16](w.w)
	row := func(i int64) []uint16 {
		o := w.t.W.at(p.b, w.column(p, j+i), k) / 2
		return bits[o : o+n]
	}
	s0, s1, s2, s3 := vec.Dots4BF16(w.rowOfX(0, k, n), row(0), row(1), row(2), row(3))
	c = c[:panelWidth]
	c[0] += s0
	c[1] += s1
	c[2] += s2
	c[3] += s3
}

// column returns the matrix's column for column j of an item; the last one
// stands in for columns behind it.
func (w *floatWorker) column(p *place, j int64) int64 { return p.j + min(j, p.n-1) }

// convertedRows is inPlaceRows for weights that have to be converted.
func (w *floatWorker) convertedRows(p *place, j, k, n int64) (ws [panelWidth][]float32) {
	for i := range ws {
		r := int64(i)
		ws[i] = w.t.W.run(w.ws[r*n:], w.w, p.b, w.column(p, j+r), k, n)
	}
	return ws
}

// columns adds multiples of rows of w, stored [k,n], four at a time.
func (w *floatWorker) columns(p *place, acc []float32, ld int64) {
	t := w.t
	w.rowsOfX(p)
	part := w.part[:p.m*p.n]
	for k := p.k0; k < p.k1; k += t.Chunk {
		clear(part)
		end := min(k+t.Chunk, p.k1)
		at := k
		for ; at+panelWidth <= end; at += panelWidth {
			w0, w1, w2, w3 := w.segment(p, at, 0), w.segment(p, at, 1), w.segment(p, at, 2), w.segment(p, at, 3)
			for i := range p.m {
				a := (*[panelWidth]float32)(w.rowOfX(i, at, panelWidth))
				vec.Axpy4(part[i*p.n:(i+1)*p.n], a, w0, w1, w2, w3)
			}
		}
		for ; at < end; at++ {
			w0 := w.segment(p, at, 0)
			for i := range p.m {
				vec.Axpy(w.rowOfX(i, at, 1)[0], w0, part[i*p.n:(i+1)*p.n])
			}
		}
		for i := range p.m {
			c := acc[i*ld : i*ld+p.n]
			vec.Add(c, c, part[i*p.n:(i+1)*p.n])
		}
	}
}

// segment returns an item's part of row at+i of w.
func (w *floatWorker) segment(p *place, at, i int64) []float32 {
	return w.t.W.run(w.ws[i*p.n:], w.w, p.b, p.j, at+i, p.n)
}
